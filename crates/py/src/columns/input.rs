//! Sending record batches from `main`.

use pyo3::prelude::*;

use super::schema::{Schema, import_conforming};
use crate::gil::detached;
use crate::input::InputHandle;
use crate::raised::exception_of;

/// Sends the batches of an object at the handle's current time; tiny ones wait for others, as records do.
#[pyfunction]
pub(crate) fn send_columns(
    handle: &InputHandle,
    data: &Bound<'_, PyAny>,
    schema: &Schema,
) -> PyResult<()> {
    let py = data.py();
    handle.check_open()?;
    import_conforming(data, &schema.schema, |batch| {
        // The engine is on its own thread here, only without the interpreter.
        let sent = detached(py, || handle.send_columns(batch));
        sent?.map_err(|error| exception_of(py, error))?;
        handle.make_room(py)
    })
}
