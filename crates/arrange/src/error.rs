//! Errors of the kernel.
//!
//! Owns [`Overflow`] and [`Error`]. The kernel refuses only differences that do not fit, and pages that are not as they
//! were written; other errors come from the caller's own functions, and pass through unchanged.

use std::fmt;

use crate::storage::StorageError;

/// A difference left the range of 64 bits, where updates were added up or multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl fmt::Display for Overflow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(
            "a record's count left the range of 64 bits; a loop that multiplies records wants \
             distinct() or consolidate() inside, and updates want smaller differences",
        )
    }
}

impl std::error::Error for Overflow {}

/// Bytes that are not a batch, or not of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The part in which that was seen.
    pub part: &'static str,
}

impl fmt::Display for Damaged {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = self.part;
        write!(
            formatter,
            "these bytes are not a batch of this version (seen in its {part}): use a copy that is whole, \
             or build the arrangement again"
        )
    }
}

impl std::error::Error for Damaged {}

/// Why work stopped.
#[derive(Debug)]
pub enum Error {
    /// A difference did not fit.
    Overflow,
    /// A function of the caller failed with this.
    Caller(Box<dyn std::error::Error + Send + Sync>),
    /// The caller could not write or read a page.
    Storage(StorageError),
    /// The page of this number is not as it was written.
    Page(usize),
    /// Bytes are not a batch.
    Damaged(Damaged),
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        Error::Storage(error)
    }
}

impl From<Overflow> for Error {
    fn from(_: Overflow) -> Self {
        Error::Overflow
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Overflow => Overflow.fmt(formatter),
            Error::Caller(error) => error.fmt(formatter),
            Error::Storage(error) => error.fmt(formatter),
            Error::Damaged(damaged) => damaged.fmt(formatter),
            Error::Page(page) => write!(
                formatter,
                "page {page} of a batch on disk is not as it was written: look at the disk, and start again"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Overflow | Error::Page(_) => None,
            Error::Caller(error) => Some(error.as_ref()),
            Error::Storage(error) => Some(error),
            Error::Damaged(damaged) => Some(damaged),
        }
    }
}

/// The sum of two differences.
#[inline]
pub(crate) fn add(a: i64, b: i64) -> Result<i64, Overflow> {
    a.checked_add(b).ok_or(Overflow)
}
