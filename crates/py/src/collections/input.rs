//! Updates from `main`.
//!
//! A record becomes a row where it is given, so that one that a collection cannot keep is refused there, and one that
//! changes later changes nothing.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::given::Given;
use crate::input::InputHandle;
use crate::iterables::refuse_iterator;
use crate::raised::shown;

/// The diff of an update, which is not 0.
pub(crate) fn diff_of(diff: &Bound<'_, PyAny>) -> PyResult<i64> {
    let Ok(count) = diff.extract::<i64>() else {
        return Err(PyTypeError::new_err(format!(
            "{} is not the diff of an update: it is an int of at most 64 bits, 1 to insert a record and -1 to remove it",
            shown(diff)
        )));
    };
    if count == 0 {
        return Err(PyValueError::new_err(
            "an update of diff 0 changes nothing: leave it out",
        ));
    }
    Ok(count)
}

/// The record and the diff of an update.
pub(crate) fn pair_of<'py>(update: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, i64)> {
    if let Ok(tuple) = update.cast::<PyTuple>()
        && tuple.len() == 2
    {
        return Ok((tuple.get_item(0)?, diff_of(&tuple.get_item(1)?)?));
    }
    if let Ok(list) = update.cast::<PyList>()
        && list.len() == 2
    {
        return Ok((list.get_item(0)?, diff_of(&list.get_item(1)?)?));
    }
    Err(PyTypeError::new_err(format!(
        "{} is not an update: an update is a pair (record, diff)",
        shown(update)
    )))
}

/// Adds an update at the handle's current time.
#[pyfunction]
pub(crate) fn update_input(
    handle: &InputHandle,
    record: &Bound<'_, PyAny>,
    diff: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let diff = diff_of(diff)?;
    let (call, many) =
        [("insert", "insert_many"), ("remove", "remove_many")][usize::from(diff < 0)];
    refuse_iterator(call, many, record)?;
    handle.update(record, diff)
}

/// Has the handle of a collection's input refuse updates that take away more of a record than it has added.
#[pyfunction]
pub(crate) fn refuse_negative_counts(handle: &InputHandle) -> PyResult<()> {
    handle.open_state()?.refuse_negative_counts();
    Ok(())
}

/// Adds the updates of an iterable of pairs, or, with a diff, of an iterable of records: all, or none where one is refused.
#[pyfunction]
#[pyo3(signature = (handle, updates, diff = None))]
pub(crate) fn send_updates(
    handle: &InputHandle,
    updates: &Bound<'_, PyAny>,
    diff: Option<i64>,
) -> PyResult<()> {
    handle.check_open()?;
    handle.update_all(updates.py(), Given::of(updates, diff)?)
}

/// Checks the updates that `send_updates` would add: what they are, not what a strict input has of them.
#[pyfunction]
#[pyo3(signature = (updates, diff = None))]
pub(crate) fn check_updates(updates: &Bound<'_, PyAny>, diff: Option<i64>) -> PyResult<()> {
    Given::of(updates, diff).map(drop)
}
