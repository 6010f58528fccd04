//! Why an expression has no result for a record.

use super::Expr;
use crate::{Row, RowBuf};

/// Why an expression has no result for a record.
#[derive(Debug)]
pub enum Failure {
    /// A record has no such part: the part of the expression, and the row that it was to be cut out of.
    NoPart(String, RowBuf),
    /// A record is not the tuple of two that was expected, in these words.
    NotPair(String, RowBuf),
    /// Something that is no number was to be calculated with: the operator's symbol, and the row.
    NotNumber(&'static str, RowBuf),
    /// A result is no integer of 64 bits: the operator's symbol, and the place.
    Overflow(&'static str, Option<Box<FailurePlace>>),
    /// A number was divided by 0, at a place.
    DivisionByZero(Option<Box<FailurePlace>>),
    /// A tuple would be nested deeper than records may be.
    TooDeep,
    /// Something that is neither true nor false was to decide.
    NotBool(RowBuf),
}

/// The expression as a whole, and the rows of which it has no result.
#[derive(Debug)]
pub struct FailurePlace {
    /// The expression.
    pub expr: String,
    /// A record, or of a join the key and its two values.
    pub rows: Vec<RowBuf>,
}

impl Failure {
    /// Adds the place to a failure inside of an expression, which knows only its own part.
    #[cold]
    pub(super) fn at(self, expr: &Expr, rows: &[Row<'_>]) -> Self {
        let place = || {
            Some(Box::new(FailurePlace {
                expr: expr.to_string(),
                rows: rows.iter().map(|row| RowBuf::of(*row)).collect(),
            }))
        };
        match self {
            Failure::Overflow(symbol, _) => Failure::Overflow(symbol, place()),
            Failure::DivisionByZero(_) => Failure::DivisionByZero(place()),
            other => other,
        }
    }
}
