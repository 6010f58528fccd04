//! Why an expression has no result for a record.

use crate::RowBuf;

/// Why an expression has no result for a record.
#[derive(Debug)]
pub enum Failure {
    /// A record has no such part: the part of the expression, and the row that it was to be cut out of.
    NoPart(String, RowBuf),
    /// A record is not the tuple of two that was expected, in these words.
    NotPair(String, RowBuf),
    /// Something that is no number was to be calculated with: the operator's symbol, and the row.
    NotNumber(&'static str, RowBuf),
    /// A result is no integer of 64 bits: the operator's symbol.
    Overflow(&'static str),
    /// A number was divided by 0.
    DivisionByZero,
    /// A tuple would be nested deeper than records may be.
    TooDeep,
    /// Something that is neither true nor false was to decide.
    NotBool(RowBuf),
}
