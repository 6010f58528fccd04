//! The errors of this crate.

use std::io;

use crate::names::Lineage;

/// A failed call of a store: full, out of reach, or refused. The call may be tried again.
#[derive(Debug, thiserror::Error)]
#[error("{call} of {object} in {place} failed: {source}")]
pub struct StoreError {
    /// The call, as a noun: "write", "read", "list".
    pub call: &'static str,
    /// The name of the object, or of the folder of a list.
    pub object: String,
    /// The place of the store: a path or a URL.
    pub place: String,
    /// The cause.
    #[source]
    pub source: io::Error,
}

impl StoreError {
    /// Names the call, the object and the place of a failure.
    pub fn new(
        call: &'static str,
        object: impl Into<String>,
        place: impl Into<String>,
        source: io::Error,
    ) -> Self {
        StoreError {
            call,
            object: object.into(),
            place: place.into(),
            source,
        }
    }

    /// Whether the object does not exist.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether the object ends before the range that was read.
    pub fn is_cut(&self) -> bool {
        self.source.kind() == io::ErrorKind::UnexpectedEof
    }
}

/// A failure to write, find or read a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A failed call of the store.
    #[error(transparent)]
    Store(#[from] StoreError),

    /// Wrong bytes.
    #[error(
        "{object} is damaged at byte {offset}: {what}; restore it from a copy, or resume from an older checkpoint (at=)"
    )]
    Damaged {
        /// The object.
        object: String,
        /// The offset of the damaged piece, in bytes from the beginning of the object.
        offset: u64,
        /// The damage.
        what: String,
    },

    /// An object that should exist.
    #[error(
        "{object} is missing: {by} names it; restore it from a copy, or resume from an older checkpoint (at=)"
    )]
    Missing {
        /// The object.
        object: String,
        /// The object that names the missing one.
        by: String,
    },

    /// A format that a later version of this library writes.
    #[error(
        "{object} has format {version}; this version reads formats up to {known}: upgrade pointstamp"
    )]
    Newer {
        /// The object.
        object: String,
        /// The version of its format.
        version: u32,
        /// The latest version that can be read.
        known: u32,
    },

    /// An object of another location.
    #[error(
        "{object} belongs to lineage {found}, and this location is of lineage {expected}: do not mix the files of two locations"
    )]
    Lineage {
        /// The object.
        object: String,
        /// The lineage that the object names.
        found: Lineage,
        /// The lineage of the location.
        expected: Lineage,
    },

    /// No checkpoint of this number.
    #[error("there is no checkpoint {number}; kept are {kept:?}")]
    NoCheckpoint {
        /// The number.
        number: u64,
        /// The numbers of the checkpoints that are kept.
        kept: Vec<u64>,
    },

    /// Another execution uses the location now. This execution must end and show nothing.
    #[error(
        "execution {ours} was overtaken: {by} in the log is another's; only one program at a time may use a location"
    )]
    Overtaken {
        /// The number of the execution that was overtaken.
        ours: u64,
        /// The object by which this was noticed.
        by: String,
    },

    /// A store on which two executions could overwrite each other's log.
    #[error(
        "{store} does not refuse to create an object that exists: checkpoints cannot be kept there; use a local file system with hard links, or an object store with conditional writes"
    )]
    NotExclusive {
        /// The store.
        store: String,
    },

    /// A call that does not fit the state of the execution or of the pack.
    #[error("{0}")]
    Misuse(String),
}

impl Error {
    pub(crate) fn damaged(object: impl Into<String>, offset: u64, what: impl Into<String>) -> Self {
        Error::Damaged {
            object: object.into(),
            offset,
            what: what.into(),
        }
    }

    /// Returns the object that the error is about, where it is about one.
    pub fn object(&self) -> Option<&str> {
        match self {
            Error::Store(error) => Some(&error.object),
            Error::Damaged { object, .. }
            | Error::Missing { object, .. }
            | Error::Newer { object, .. }
            | Error::Lineage { object, .. }
            | Error::Overtaken { by: object, .. } => Some(object),
            Error::NoCheckpoint { .. } | Error::NotExclusive { .. } | Error::Misuse(_) => None,
        }
    }
}
