//! Errors of the kernel.
//!
//! Owns [`Overflow`] and [`Error`]. The kernel refuses only differences that do not fit; other errors come from the
//! caller's own function, and pass through unchanged.

use std::fmt;

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

/// Why work stopped.
#[derive(Debug)]
pub enum Error {
    /// A difference did not fit.
    Overflow,
    /// A function of the caller failed with this.
    Caller(Box<dyn std::error::Error + Send + Sync>),
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
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Overflow => None,
            Error::Caller(error) => Some(error.as_ref()),
        }
    }
}

/// The sum of two differences.
#[inline]
pub(crate) fn add(a: i64, b: i64) -> Result<i64, Overflow> {
    a.checked_add(b).ok_or(Overflow)
}
