//! The errors of captures.

use std::path::PathBuf;

use pointstamp_engine::error::{BoxError, Error as EngineError};

/// The reason why a capture cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The bytes of a capture do not have the format of a writer.
    #[error("{name}: damaged at byte {offset}: {what}")]
    Damaged {
        /// The capture.
        name: String,
        /// The place in it.
        offset: u64,
        /// A description of the damage.
        what: String,
    },
    /// An operation on a file failed.
    #[error("{}: {error}", path.display())]
    File {
        /// The error of the operating system.
        error: std::io::Error,
        /// The file.
        path: PathBuf,
    },
    /// The path of a new capture is a symbolic link.
    #[error("{}: a symbolic link is not written through: name the file that it leads to", path.display())]
    Link {
        /// The error of the operating system.
        error: std::io::Error,
        /// The link.
        path: PathBuf,
    },
    /// A file is not the one that was read before.
    #[error(
        "{}: {what}. A capture may only grow while it is read: what begins anew writes to a path of its own",
        path.display()
    )]
    Changed {
        /// A description of the change.
        what: String,
        /// The file.
        path: PathBuf,
    },
    /// Another writer writes to a file.
    #[error(
        "another writer is writing to {}: give each worker and each stream a file of its own",
        path.display()
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// A row has more values than a reader takes of so few bytes.
    #[error("a row of more than {most} values that take no space cannot be captured")]
    Hollow {
        /// The most values that take no bytes.
        most: u64,
    },
    /// An event is too long for a frame.
    #[error(transparent)]
    TooLong(#[from] pointstamp_events::frame::TooLong),
    /// Columns could not be encoded or decoded.
    #[error(transparent)]
    Columns(#[from] pointstamp_columnar::Error),
    /// A stream carries batches of a kind that has no form in a capture.
    #[error(transparent)]
    Kind(#[from] crate::Error),
    /// The engine refused a step of building the graph.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The host failed: a record could not be encoded, the thread that feeds a capture failed, or a target could not be written.
    #[error("{0}")]
    Host(BoxError),
}

impl CaptureError {
    /// Makes the error of an operation on a file.
    pub(super) fn file(error: std::io::Error, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        CaptureError::File { error, path }
    }

    /// Returns the error as the cause why an operator failed: the host's error itself, where it is one.
    pub fn into_cause(self) -> BoxError {
        match self {
            CaptureError::Host(cause) => cause,
            other => Box::new(other),
        }
    }
}
