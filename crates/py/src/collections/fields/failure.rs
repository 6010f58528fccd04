//! Why an expression has no result for a record, as the error that Python sees.

use pointstamp_engine::error::BoxError;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyZeroDivisionError};
use pyo3::prelude::*;

use super::super::rows::RowBuf;
use super::super::updates::too_deep;
use crate::gil::attached;
use crate::raised::{Raised, shown};

/// Why an expression has no result for a record.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A record has no such part; the part of the expression, and the row that it was to be cut out of.
    NoPart(String, RowBuf),
    /// A record is not the tuple of two that was expected, in these words.
    NotPair(String, RowBuf),
    /// Something that is no number was to be calculated with.
    NotNumber(&'static str, RowBuf),
    /// A result is no integer of 64 bits.
    Overflow(&'static str),
    /// A number was divided by 0.
    DivisionByZero,
    /// A tuple would be nested deeper than records may be.
    TooDeep,
    /// Something that is neither true nor false was to decide.
    NotBool(RowBuf),
}

impl Failure {
    /// The error of the operator that runs.
    #[cold]
    pub(crate) fn raised(self) -> BoxError {
        attached(|py| Raised::here(self.exception(py).unwrap_or_else(|error| error)))
    }

    fn exception(self, py: Python<'_>) -> PyResult<PyErr> {
        Ok(match self {
            Failure::NoPart(part, row) => PyTypeError::new_err(format!(
                "{} has no part {part}: the expression reads records of another form",
                shown(&row.get().decode(py)?)
            )),
            Failure::NotPair(expected, row) => PyTypeError::new_err(format!(
                "{expected}, and got {}: map the records to that form first",
                shown(&row.get().decode(py)?)
            )),
            Failure::NotNumber(symbol, row) => PyTypeError::new_err(format!(
                "an expression's {symbol} takes bools, floats and ints of 64 bits, and got {}: use a function for others",
                shown(&row.get().decode(py)?)
            )),
            Failure::Overflow(symbol) => PyOverflowError::new_err(format!(
                "the result of an expression's {symbol} is no int of 64 bits: use a function for larger ones"
            )),
            Failure::DivisionByZero => {
                PyZeroDivisionError::new_err("an expression divides a number by 0")
            }
            Failure::TooDeep => too_deep(),
            Failure::NotBool(row) => PyTypeError::new_err(format!(
                "an expression's condition is a comparison or a bool, and got {}: compare it with something",
                shown(&row.get().decode(py)?)
            )),
        })
    }
}
