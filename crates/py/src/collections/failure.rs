//! What Python raises where an expression has no result for a record, or reads what its operator does not have.

use pointstamp_engine::error::BoxError;
use pointstamp_rows::expressions::{Failure, Unresolved};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyZeroDivisionError};
use pyo3::prelude::*;

use super::updates::too_deep;
use super::values::ToPython;
use crate::errors::GraphError;
use crate::gil::attached;
use crate::raised::{Raised, shown};

/// The error of the operator that runs, for a record of which its expression has no result.
#[cold]
pub(crate) fn raised(failure: Failure) -> BoxError {
    attached(|py| Raised::here(exception(py, failure).unwrap_or_else(|error| error)))
}

fn exception(py: Python<'_>, failure: Failure) -> PyResult<PyErr> {
    Ok(match failure {
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

/// The error for an expression that reads what its operator does not have.
pub(crate) fn unresolved(error: &Unresolved) -> PyErr {
    let text = error.to_string();
    match error {
        Unresolved::Records(_) => PyTypeError::new_err(text),
        Unresolved::Source(..) | Unresolved::Column(..) => GraphError::new_err(text),
    }
}
