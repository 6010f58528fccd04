//! Some of the rows of batches, of every type, for operators that Python drives.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::DataType;
use pointstamp_columnar::selection;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::ffi::{export_batch, exported, import_batches};
use super::schema::Schema;
use crate::errors::IntoException;
use crate::gil::detached;

/// The batch of an object that is one.
pub(crate) fn one(batch: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let mut found = None;
    import_batches(batch, |rows| {
        found = Some(rows);
        Ok(())
    })?;
    found.ok_or_else(|| PyValueError::new_err("a record batch is needed"))
}

/// Converts the one column of a function's result for a batch.
fn column(of: &Bound<'_, PyAny>, data_type: &DataType) -> PyResult<ArrayRef> {
    let batch = one(of)?;
    let column = batch.columns().first();
    let column = column.filter(|column| column.data_type() == data_type);
    let column = column.ok_or_else(|| {
        PyValueError::new_err(format!("a column of {data_type} is needed for each row"))
    })?;
    Ok(column.clone())
}

/// The rows for which a column of booleans, the only one of another batch, is true.
#[pyfunction]
pub(crate) fn rows_where<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
    condition: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = one(batch)?;
    let condition = column(condition, &DataType::Boolean)?;
    let condition: &BooleanArray = condition.as_boolean();
    let found = detached(py, || selection::rows_where(&rows, condition));
    export_batch(py, &found.map_err(IntoException::into_exception)?)
}

/// The rows at places, the only column of another batch, in the order of these.
#[pyfunction]
pub(crate) fn rows_at<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
    places: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = one(batch)?;
    let places = column(places, &DataType::UInt32)?;
    let found = detached(py, || {
        selection::rows_at(&rows, places.as_primitive::<UInt32Type>())
    });
    export_batch(py, &found.map_err(IntoException::into_exception)?)
}

/// The numbers of columns by which rows can be brought into order.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn order_columns(schema: &Schema, names: Vec<String>) -> PyResult<Vec<usize>> {
    selection::order_columns(&schema.schema, &names).map_err(IntoException::into_exception)
}

/// The rows of batches of one schema in the order of some columns.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn rows_in_order<'py>(
    py: Python<'py>,
    batches: Vec<Bound<'py, PyAny>>,
    by: Vec<usize>,
    descending: bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let batches = batches.iter().map(one).collect::<PyResult<Vec<_>>>()?;
    let found = detached(py, || selection::rows_in_order(&batches, &by, descending));
    exported(py, &found.map_err(IntoException::into_exception)?)
}

/// Returns the rows with plain columns in place of views and runs, for kernels that support neither.
#[pyfunction]
pub(crate) fn without_views<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = one(batch)?;
    let found = detached(py, || selection::without_views(&rows));
    export_batch(py, &found.map_err(IntoException::into_exception)?)
}
