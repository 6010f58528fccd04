//! What Python raises where an expression has no result for a record, or reads what its operator does not have.

use pointstamp_rows::expressions::{Failure, Unresolved};
use pointstamp_rows::terms::MAX_DEPTH;
use pyo3::exceptions::{PyOverflowError, PyRecursionError, PyTypeError, PyZeroDivisionError};
use pyo3::prelude::*;

use super::values::ToPython;
use crate::errors::GraphError;
use crate::gil::attached;
use crate::raised::shown;

/// The error of an operator that would nest records deeper than `insert` allows.
#[cold]
pub(crate) fn too_deep() -> PyErr {
    PyRecursionError::new_err(format!(
        "a record would nest tuples more than {MAX_DEPTH} deep: a collection takes flatter ones; where a loop or a long \
         chain of operators makes pairs of pairs, map them to what is needed of them"
    ))
}

/// The error for a record of which an expression has no result.
#[cold]
pub(crate) fn expression_failed(failure: &Failure) -> PyErr {
    attached(|py| exception(py, failure).unwrap_or_else(|error| error))
}

fn exception(py: Python<'_>, failure: &Failure) -> PyResult<PyErr> {
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
