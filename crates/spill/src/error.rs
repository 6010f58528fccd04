//! Errors of files.

use std::io;
use std::path::PathBuf;

/// Why state could not be stored or read back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be made or written.
    #[error("{operator} cannot store its state in {}: {cause}. Free space there, or name another folder (Config(spill=...)) or a larger budget (Config(memory=...))", folder.display())]
    Write {
        /// The operator.
        operator: String,
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A page could not be read.
    #[error("{operator} cannot read its state from {}: {cause}", folder.display())]
    Read {
        /// The operator.
        operator: String,
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A page is not as it was written.
    #[error("{operator} reads state from {} that is not as it was written ({what}): look at the disk, and start again, from a checkpoint if there is one", folder.display())]
    Damaged {
        /// The operator.
        operator: String,
        /// The folder.
        folder: PathBuf,
        /// The damage.
        what: String,
    },
}
