//! Collections through expressions over the parts of their records, which Python gives.

use pointstamp_operators::collections;
use pointstamp_rows::expressions::{Condition, Expr, Nulls, Projection, Source};
use pyo3::prelude::*;

use super::expression::expr_of;
use super::failure::unresolved;
use crate::stream::Stream;

/// The expression of a Python object, over a record.
fn expression(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    expr_of(value)?
        .resolved(&[Source::Record], &[])
        .map_err(|error| unresolved(&error))
}

/// Refuses fields that `project`, or `filter_fields`, has no record for.
#[pyfunction]
pub(crate) fn check_fields(fields: &Bound<'_, PyAny>) -> PyResult<()> {
    expression(fields).map(drop)
}

/// Applies an expression to each record.
#[pyfunction]
pub(crate) fn project(stream: &Stream, fields: &Bound<'_, PyAny>, name: &str) -> PyResult<Stream> {
    let projection = Projection::new(expression(fields)?, Nulls::Value);
    let projected = collections::project(&stream.typed()?, projection, name);
    stream.made(projected)
}

/// Makes of the rows of each key records whose diffs are its number of rows, and of each value its number of nulls and, where
/// it is marked, its sum. The fields are the key and a tuple of the values.
#[pyfunction]
pub(crate) fn accumulate(
    stream: &Stream,
    key: &Bound<'_, PyAny>,
    values: Vec<(Bound<'_, PyAny>, bool)>,
    name: &str,
) -> PyResult<Stream> {
    let values = values.into_iter();
    let values = values.map(|(value, summed)| Ok((expression(&value)?, summed)));
    let values = values.collect::<PyResult<Vec<_>>>()?;
    let accumulated = collections::accumulate(&stream.typed()?, &expression(key)?, values, name);
    stream.made(accumulated)
}

/// Keeps the records of which an expression is true.
#[pyfunction]
pub(crate) fn filter_fields(
    stream: &Stream,
    condition: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<Stream> {
    let condition = Condition::new(expression(condition)?, Nulls::Value);
    let kept = collections::filter(&stream.typed()?, condition, name);
    stream.made(kept)
}

/// Passes on the updates, of records that are all tuples of two.
///
/// The operator raises `TypeError` for another record: with the expected and the given one.
#[pyfunction]
pub(crate) fn check_pairs(stream: &Stream, expected: String, name: &str) -> PyResult<Stream> {
    let checked = collections::check_pairs(&stream.typed()?, expected, name);
    stream.made(checked)
}

/// Makes of each record the pair of a number and the record: a stable hash, from 0 up to `range`.
#[pyfunction]
pub(crate) fn hashed(stream: &Stream, range: u32, name: &str) -> PyResult<Stream> {
    stream.made(collections::hashed(&stream.typed()?, range, name))
}

/// Moves each update to a later turn of a loop: the greater the magnitude of an expression's result, the later.
#[pyfunction]
pub(crate) fn by_magnitude(
    stream: &Stream,
    number: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<Stream> {
    let number = Projection::new(expression(number)?, Nulls::Value);
    stream.made(collections::by_magnitude(&stream.typed()?, number, name))
}

/// Adds up the updates of each time, when it is complete.
#[pyfunction]
pub(crate) fn consolidate(stream: &Stream) -> PyResult<Stream> {
    stream.made(collections::consolidate(&stream.typed()?))
}

/// Negates the diffs of the updates.
#[pyfunction]
pub(crate) fn negate(stream: &Stream) -> PyResult<Stream> {
    stream.made(collections::negate(&stream.typed()?))
}

/// Sets the number of updates that an activation works on, in all workers of the process, and returns the number before:
/// for tests.
#[pyfunction]
pub(crate) fn set_collections_fuel(updates: usize) -> PyResult<usize> {
    let updates = std::num::NonZeroUsize::new(updates).ok_or_else(|| {
        pyo3::exceptions::PyValueError::new_err("without fuel nothing is done: give 1 or more")
    })?;
    Ok(collections::set_fuel(updates))
}
