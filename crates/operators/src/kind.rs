//! The kinds of batches.

use std::fmt;

/// The kind of a stream's batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Records of the host language.
    Host,
    /// Arrow columns.
    Columns,
    /// Records at times of their own.
    Timed,
    /// Updates of a collection.
    Updates,
    /// Batches of an arrangement.
    Sealed,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Host => "records",
            Kind::Columns => "record batches",
            Kind::Timed => "records at times of their own",
            Kind::Updates => "updates of a collection",
            Kind::Sealed => "batches of an arrangement",
        })
    }
}
