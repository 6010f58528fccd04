//! Updates from `main`.
//!
//! A record becomes a row where it is sent, so that one that a collection cannot keep is refused there, and a later
//! change of the object changes nothing.

use pyo3::prelude::*;

use super::given::{Given, diff_of};
use crate::input::InputHandle;
use crate::iterables::refuse_iterator;

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

/// Checks the updates that `send_updates` would add: their form, not the counts of a strict input.
#[pyfunction]
#[pyo3(signature = (updates, diff = None))]
pub(crate) fn check_updates(updates: &Bound<'_, PyAny>, diff: Option<i64>) -> PyResult<()> {
    Given::of(updates, diff).map(drop)
}
