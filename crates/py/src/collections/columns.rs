//! Collections of columns, as `pointstamp.ColumnCollection` calls them.

use arrow_schema::SchemaRef;
use pointstamp_operators::collections::Updates;
use pointstamp_operators::collections::columns::{
    self, ColumnsError, PlainColumns, batch_of, pieces, with_changes,
};
use pointstamp_rows::expressions::Expr;
use pointstamp_rows::{Cells, Row};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::expression::expr_of;
use super::given::Given;
use super::shape::consolidated;
use crate::capture::EventQueue;
use crate::columns::ffi::export_batch;
use crate::columns::schema::{Schema, import_conforming};
use crate::columns::selection::one;
use crate::errors::IntoException;
use crate::gil::detached;
use crate::input::InputHandle;
use crate::stream::Stream;
use crate::time::point_to_py;
use pointstamp_arrange::Rows;

/// Refuses a schema with a column that a collection cannot keep, or with two of one name.
#[pyfunction]
pub(crate) fn check_columns(schema: &Schema) -> PyResult<()> {
    columns::check_columns(&schema.schema).map_err(IntoException::into_exception)
}

/// Adds the rows of batches at the handle's current time, each so often.
#[pyfunction]
pub(crate) fn update_columns(
    handle: &InputHandle,
    data: &Bound<'_, PyAny>,
    schema: &Schema,
    diff: i64,
) -> PyResult<()> {
    handle.check_open()?;
    let mut given = Given::default();
    import_conforming(data, &schema.schema, |batch| {
        let pieces = detached(data.py(), || {
            let pieces = pieces(&batch).map(|piece| match PlainColumns::of(&piece)? {
                // Updates that are carried as columns outlive the call, and frames may change after it.
                columns if Updates::carries(&columns) => columns.owned(),
                columns => Ok(columns),
            });
            pieces.collect::<Result<Vec<_>, _>>()
        });
        for piece in pieces.map_err(IntoException::into_exception)? {
            given.push_columns(piece, diff);
        }
        Ok(())
    })?;
    handle.update_all(data.py(), given)
}

/// Returns columns that expressions make of the columns of each row.
#[pyfunction]
pub(crate) fn select_columns(
    stream: &Stream,
    schema: &Schema,
    names: Vec<String>,
    fields: &Bound<'_, PyList>,
) -> PyResult<Stream> {
    let columns = named_exprs(names, fields)?;
    stream.made(columns::select(&stream.typed()?, &schema.schema, columns))
}

/// Returns the schema of the result of `select_columns`.
#[pyfunction]
pub(crate) fn select_schema(
    schema: &Schema,
    names: Vec<String>,
    fields: &Bound<'_, PyList>,
) -> PyResult<Schema> {
    let columns = named_exprs(names, fields)?;
    schema_of(columns::select_schema(&schema.schema, columns))
}

fn named_exprs(names: Vec<String>, fields: &Bound<'_, PyList>) -> PyResult<Vec<(String, Expr)>> {
    let fields = names.into_iter().zip(fields);
    fields
        .map(|(name, field)| Ok((name, expr_of(&field)?)))
        .collect()
}

fn schema_of(made: Result<SchemaRef, ColumnsError>) -> PyResult<Schema> {
    Ok(Schema::new(made.map_err(IntoException::into_exception)?))
}

/// Keeps the rows of which a condition on the columns is true.
#[pyfunction]
pub(crate) fn filter_columns(
    stream: &Stream,
    schema: &Schema,
    fields: &Bound<'_, PyAny>,
) -> PyResult<Stream> {
    let condition = expr_of(fields)?;
    stream.made(columns::keep(&stream.typed()?, &schema.schema, &condition))
}

/// Refuses a condition that has no meaning for the columns.
#[pyfunction]
pub(crate) fn check_filter(schema: &Schema, fields: &Bound<'_, PyAny>) -> PyResult<()> {
    let checked = columns::check_condition(&expr_of(fields)?, &schema.schema);
    checked.map_err(IntoException::into_exception)
}

/// Returns columns that expressions make of the columns of a batch.
#[pyfunction]
pub(crate) fn select_batch<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
    names: Vec<String>,
    fields: &Bound<'py, PyList>,
) -> PyResult<Bound<'py, PyAny>> {
    let columns = named_exprs(names, fields)?;
    let batch = one(batch)?;
    let made = detached(py, || columns::select_batch(&batch, columns));
    export_batch(py, &made.map_err(IntoException::into_exception)?)
}

/// Keeps the rows of a batch of which a condition is true.
#[pyfunction]
pub(crate) fn filter_batch<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
    condition: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let condition = expr_of(condition)?;
    let batch = one(batch)?;
    let kept = detached(py, || columns::filter_batch(&batch, &condition));
    export_batch(py, &kept.map_err(IntoException::into_exception)?)
}

/// Returns the schema of the result of `column_updates`, for a stream whose times have `dims` coordinates.
#[pyfunction]
pub(crate) fn column_updates_schema(schema: &Schema, dims: usize) -> Schema {
    Schema::new(with_changes(&schema.schema, Some(dims)))
}

/// Returns the schema of the result of `collect_columns`, for a stream whose times have `dims` coordinates.
#[pyfunction]
pub(crate) fn collect_schema(schema: &Schema, diffs: bool, dims: usize) -> PyResult<Schema> {
    schema_of(columns::collect_schema(&schema.schema, diffs, dims))
}

/// Returns the updates as record batches with two more columns, of times and of diffs; each at its own time.
#[pyfunction]
pub(crate) fn column_updates(stream: &Stream, schema: &Schema) -> PyResult<Stream> {
    stream.made(columns::updates(&stream.typed()?, &schema.schema))
}

/// Returns the rows of a stream as a collection: each row once, or, with `diffs`, as the columns `time` and `diff` say,
/// which come last.
#[pyfunction]
pub(crate) fn collect_columns(stream: &Stream, schema: &Schema, diffs: bool) -> PyResult<Stream> {
    stream.made(columns::collect(&stream.typed()?, &schema.schema, diffs))
}

/// Returns the contents of a queue that has captured a collection of columns: `(time, batch)`, added up, in
/// the order of times and rows.
#[pyfunction]
pub(crate) fn extract_column_updates<'py>(
    py: Python<'py>,
    queue: &EventQueue,
    schema: &Schema,
) -> PyResult<Bound<'py, PyList>> {
    let all = with_changes(&schema.schema, None);
    let list = PyList::empty(py);
    let send = |time, cells: &mut Cells, diffs: &mut Vec<i64>| {
        if !cells.is_empty() {
            let batch = batch_of(cells, std::mem::take(diffs), None, &schema.schema, &all);
            let batch = batch.map_err(IntoException::into_exception)?;
            list.append((point_to_py(py, &time)?, export_batch(py, &batch)?))?;
            cells.clear();
        }
        PyResult::Ok(())
    };
    let (mut cells, mut diffs, mut current) = (Cells::default(), Vec::new(), None);
    consolidated(queue, |time, row: Row<'_>, diff| {
        if current.as_ref() != Some(time)
            && let Some(before) = current.replace(time.clone())
        {
            send(before, &mut cells, &mut diffs)?;
        }
        cells.push(row);
        diffs.push(i64::try_from(diff)?);
        Ok(())
    })?;
    if let Some(last) = current {
        send(last, &mut cells, &mut diffs)?;
    }
    Ok(list)
}
