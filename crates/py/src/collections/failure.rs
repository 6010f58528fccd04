//! Errors of operators as exceptions, with their records in Python's notation.

use pointstamp_operators::Error;
use pointstamp_operators::collections::columns::ColumnsError;
use pointstamp_rows::RowBuf;
use pointstamp_rows::expressions::{Failure, FailurePlace, Unresolved};
use pointstamp_rows::terms::MAX_DEPTH;
use pyo3::exceptions::{
    PyOverflowError, PyRecursionError, PyTypeError, PyValueError, PyZeroDivisionError,
};
use pyo3::prelude::*;

use super::values::ToPython;
use crate::errors::{
    CheckpointError, CodecError, GraphError, IntoException, PointstampError, TimeError,
};
use crate::gil::attached;
use crate::raised::{self, shown};

/// An error of an operator, with its records in Python's notation.
impl IntoException for Error {
    fn into_exception(self) -> PyErr {
        (&self).into_exception()
    }
}

impl IntoException for &Error {
    fn into_exception(self) -> PyErr {
        match self {
            Error::WrongKind { .. }
            | Error::OtherScope
            | Error::Immovable
            | Error::NotTotal
            | Error::NothingKept
            | Error::EnteredTrace
            | Error::TraceDropped => GraphError::new_err(self.to_string()),
            Error::TooDeep => too_deep(),
            Error::BeforeMessage { .. } => TimeError::new_err(self.to_string()),
            Error::UnevenColumns { .. } => PyValueError::new_err(self.to_string()),
            Error::Engine(error) => attached(|py| raised::exception(py, error).0),
            Error::Columns(error) => error.into_exception(),
            Error::Spill(_) => PointstampError::new_err(self.to_string()),
            Error::Expression(failure) => expression_failed(failure),
            Error::CountTooLarge { key, total } => PyOverflowError::new_err(format!(
                "count: the key {} has {total} values, and counts have 64 bits: updates want smaller differences",
                row_shown(key)
            )),
            Error::NotAPair { reader, record } => PyTypeError::new_err(format!(
                "{reader} reads records of the form (key, value), and got {}: map them to such tuples first",
                row_shown(record)
            )),
            Error::Collected(error) => error.into_exception(),
            Error::State(_)
            | Error::NotHeld { .. }
            | Error::Checkpoint(_)
            | Error::ReadBySome(_) => CheckpointError::new_err(self.to_string()),
            Error::Early { .. } | Error::NotABatch | Error::Unreadable(_) => {
                CodecError::new_err(self.to_string())
            }
        }
    }
}

impl IntoException for ColumnsError {
    fn into_exception(self) -> PyErr {
        (&self).into_exception()
    }
}

impl IntoException for &ColumnsError {
    fn into_exception(self) -> PyErr {
        let text = self.to_string();
        match self {
            ColumnsError::Unresolved(error) => unresolved(error),
            ColumnsError::SameName { .. }
            | ColumnsError::Unkept { .. }
            | ColumnsError::NoCondition { .. }
            | ColumnsError::NeverTrue { .. }
            | ColumnsError::NoMeaning { .. }
            | ColumnsError::NoColumn(_)
            | ColumnsError::NoFunction { .. }
            | ColumnsError::NoConstant
            | ColumnsError::NoUpdates { .. } => GraphError::new_err(text),
            ColumnsError::NoResult {
                expr,
                why,
                overflow,
                row,
            } => {
                let text = format!("{expr} has no result for the row {}: {why}", row_shown(row));
                if *overflow {
                    PyOverflowError::new_err(text)
                } else {
                    PyValueError::new_err(text)
                }
            }
            ColumnsError::TooLarge {
                column,
                data_type,
                value,
                row,
            } => {
                let value = value.map_or_else(
                    || "number of more than 38 digits".to_owned(),
                    |value| value.to_string(),
                );
                PyOverflowError::new_err(format!(
                    "column '{column}' is {data_type}, which has no {value}, in the row {}: cast what it is computed of to \
                     decimal128(38, 0) or float64",
                    row_shown(row)
                ))
            }
            ColumnsError::NoRow { columns, row } => PyTypeError::new_err(format!(
                "{} is not a row of the columns {columns}: a row is a tuple with a value of each column's type",
                row_shown(row)
            )),
            ColumnsError::Misplaced(_) | ColumnsError::NoTime(_) => TimeError::new_err(text),
            ColumnsError::NoChanges { .. }
            | ColumnsError::NoTimes { .. }
            | ColumnsError::NoIntegers { .. }
            | ColumnsError::Nulls { .. } => PyTypeError::new_err(text),
            ColumnsError::NoDiff | ColumnsError::WideDiff(_) => PyValueError::new_err(text),
        }
    }
}

/// A row in a message, as the record that it is.
fn row_shown(row: &RowBuf) -> String {
    attached(|py| {
        let record = row.get().decode(py);
        record.map_or_else(|_| "a record".to_owned(), |record| shown(&record))
    })
}

/// The error of an operator that would nest records deeper than `insert` allows.
#[cold]
fn too_deep() -> PyErr {
    PyRecursionError::new_err(format!(
        "a record would nest tuples more than {MAX_DEPTH} deep: a collection takes flatter ones; where a loop or a long \
         chain of operators makes pairs of pairs, map them to what is needed of them"
    ))
}

/// The error for a record of which an expression has no result.
#[cold]
fn expression_failed(failure: &Failure) -> PyErr {
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
        Failure::Overflow(symbol, place) => PyOverflowError::new_err(format!(
            "{}the result of {symbol} is no int of 64 bits: use a function for larger ones",
            no_result(py, place.as_deref())?
        )),
        Failure::DivisionByZero(place) => PyZeroDivisionError::new_err(format!(
            "{}a number is divided by 0: filter such records out first, or use a function",
            no_result(py, place.as_deref())?
        )),
        Failure::TooDeep => too_deep(),
        Failure::NotBool(row) => PyTypeError::new_err(format!(
            "an expression's condition is a comparison or a bool, and got {}: compare it with something",
            shown(&row.get().decode(py)?)
        )),
    })
}

/// The beginning of a message about an expression and the record, or the key and values, of which it has no result.
fn no_result(py: Python<'_>, place: Option<&FailurePlace>) -> PyResult<String> {
    let Some(FailurePlace { expr, rows }) = place else {
        return Ok(String::new());
    };
    let rows: PyResult<Vec<_>> =
        (rows.iter().map(|row| Ok(shown(&row.get().decode(py)?)))).collect();
    let of = match &rows?[..] {
        [key, left, right] => format!("the key {key} with {left} and {right}"),
        records => format!("the record {}", records.join(", ")),
    };
    Ok(format!("{expr} has no result for {of}: "))
}

/// Returns the error for an expression that reads a row that its operator does not have.
pub(crate) fn unresolved(error: &Unresolved) -> PyErr {
    let text = error.to_string();
    match error {
        Unresolved::Records(_) | Unresolved::Function(_) => PyTypeError::new_err(text),
        Unresolved::Source(..) | Unresolved::Column(..) => GraphError::new_err(text),
    }
}
