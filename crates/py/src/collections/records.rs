//! Updates as Python reads them.

use crate::collections::values::ToPython;
use pointstamp_order::Point;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::time::point_to_py;
use pointstamp_operators::collections::Updates;

/// The updates of a message as tuples `(record, time, diff)`.
pub(crate) fn records_of<'py>(
    py: Python<'py>,
    updates: &Updates,
    message: &Point,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let mut made: Option<(Point, Bound<'py, PyAny>)> = None;
    for update in updates.iter() {
        let time = update.time(message);
        let shown = match &made {
            Some((at, shown)) if *at == time => shown.clone(),
            _ => point_to_py(py, &time)?,
        };
        list.append((update.row.decode(py)?, &shown, update.diff))?;
        made = Some((time, shown));
    }
    Ok(list)
}
