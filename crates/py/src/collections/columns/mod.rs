//! Collections of columns: record batches as rows, and rows as record batches.
//!
//! A row is the tuple of a record batch's columns, of values as the crate `columnar` makes them plain: integers for dates, times
//! and booleans, too. The schema, which the dataflow knows, says what they were. So rows of columns are rows like those of
//! Python's tuples, and the same operators run on both; where all columns are integers without nulls, rows are words from
//! end to end. [`types`] refuses expressions that have no meaning for a column's type, while the dataflow is built.

pub(crate) mod back;
pub(crate) mod changes;
mod read;
mod types;
mod write;

use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, Int64Array, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field as Column, Schema as ArrowSchema, SchemaRef};
use pointstamp_arrange::Rows;
use pointstamp_columnar::physical::physical;
use pointstamp_engine::pact::Pact;
use pointstamp_operators::Input;
use pointstamp_operators::collections::Updates;
use pyo3::prelude::*;
use pyo3::types::PyList;

use self::read::rows_of;
use self::types::{condition, typed};
use self::write::columns_of_rows;
use super::given::Given;
use super::project::{filter, project_with};
use super::shape::consolidated;
use crate::capture::EventQueue;
use crate::collections::field::expr_of;
use crate::columns::ffi::export_batch;
use crate::columns::schema::{Schema, import_conforming};
use crate::errors::{GraphError, IntoException};
use crate::gil::detached;
use crate::input::InputHandle;
use crate::raised::Raised;
use crate::stream::Stream;
use crate::time::point_to_py;
use pointstamp_rows::expressions::{Condition, Expr, Nulls};
use pointstamp_rows::{Cells, Row};

/// Refuses a schema with a column that a collection cannot keep, or with two of one name.
#[pyfunction]
pub(crate) fn check_columns(schema: &Schema) -> PyResult<()> {
    for (index, column) in schema.schema.fields().iter().enumerate() {
        if schema.schema.index_of(column.name()).ok() != Some(index) {
            return Err(GraphError::new_err(format!(
                "a collection cannot have two columns named '{}': rename one of them",
                column.name()
            )));
        }
        if physical(column.data_type()).is_none() {
            return Err(GraphError::new_err(format!(
                "a collection cannot keep column '{}' of type {}: it keeps numbers, decimals of 128 bits, booleans, dates, \
                 times, durations, text and bytes; cast it, or leave it out",
                column.name(),
                column.data_type()
            )));
        }
    }
    Ok(())
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
        let rows = detached(data.py(), || rows_of(&batch));
        given.push_rows(rows.map_err(IntoException::into_exception)?, diff);
        Ok(())
    })?;
    handle.update_all(data.py(), given)
}

/// Columns that expressions make of the columns of each row, and their schema.
#[pyfunction]
pub(crate) fn select_columns(
    stream: &Stream,
    schema: &Schema,
    names: Vec<String>,
    fields: &Bound<'_, PyList>,
) -> PyResult<(Stream, Schema)> {
    let (mut exprs, mut columns) = (Vec::new(), Vec::new());
    for (name, field) in names.into_iter().zip(fields) {
        let (expr, data_type) = typed(&expr_of(&field)?, &schema.schema)?;
        columns.push(Column::new(name, data_type, true));
        exprs.push(expr);
    }
    let schema = Schema::new(Arc::new(ArrowSchema::new(columns)));
    let exprs = Expr::Tuple(exprs.into());
    let stream = project_with(stream, exprs, Nulls::Unknown, "select")?;
    Ok((stream, schema))
}

/// The rows of which a condition on the columns is true.
#[pyfunction]
pub(crate) fn filter_columns(
    stream: &Stream,
    schema: &Schema,
    fields: &Bound<'_, PyAny>,
) -> PyResult<Stream> {
    let condition = Condition::new(
        condition(&expr_of(fields)?, &schema.schema)?,
        Nulls::Unknown,
    );
    filter(stream, condition, "filter")
}

/// The updates as record batches with two more columns, of diffs and of times; each at its own time.
#[pyfunction]
pub(crate) fn column_updates(stream: &Stream, schema: &Schema) -> PyResult<(Stream, Schema)> {
    let engine = stream.engine()?;
    let dims = engine.scope().dims();
    let rows = schema.schema.clone();
    let all = with_changes(&rows, Some(dims));
    let result = Schema::new(all.clone());
    let unary = stream.unary("updates", Pact::Pipeline)?;
    let made = unary.on_messages(move |input: &Input<Updates>, output| {
        while let Some((capability, updates)) = input.next()? {
            for (time, indices) in updates.by_time(capability.time()) {
                let (mut cells, mut diffs, mut times) = (Cells::default(), Vec::new(), Vec::new());
                for update in indices.into_iter().map(|index| updates.get(index)) {
                    cells.push(update.row);
                    diffs.push(update.diff);
                    times.extend_from_slice(time.coords());
                }
                let batch = batch_of(&cells, diffs, Some(times), &rows, &all);
                let batch = batch.map_err(Raised::here)?;
                output.send(&capability.delayed(&time, 0)?, batch)?;
            }
        }
        Ok(())
    });
    Ok((Stream::of(stream.home(), made), result))
}

/// What a queue has caught of a collection of columns: `(time, batch)`, added up, in the order of times and rows.
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
            let batch = batch_of(cells, std::mem::take(diffs), None, &schema.schema, &all)?;
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

/// A schema with columns for the changes: the diff, and the time, unless it is said otherwise.
fn with_changes(schema: &SchemaRef, dims: Option<usize>) -> SchemaRef {
    let mut columns: Vec<Arc<Column>> = schema.fields().to_vec();
    if let Some(dims) = dims {
        columns.push(Arc::new(Column::new("time", time_type(dims), false)));
    }
    columns.push(Arc::new(Column::new("diff", DataType::Int64, false)));
    Arc::new(ArrowSchema::new(columns))
}

/// The type of times: a number where they have one coordinate, and else a list of so many.
fn time_type(dims: usize) -> DataType {
    match i32::try_from(dims) {
        Ok(1) | Err(_) => DataType::UInt64,
        Ok(dims) => {
            DataType::FixedSizeList(Arc::new(Column::new("item", DataType::UInt64, false)), dims)
        }
    }
}

/// Rows as a batch with their changes.
fn batch_of(
    rows: &Cells,
    diffs: Vec<i64>,
    times: Option<Vec<u64>>,
    schema: &SchemaRef,
    all: &SchemaRef,
) -> PyResult<RecordBatch> {
    let mut columns = columns_of_rows(rows, schema)?;
    if let Some(times) = times {
        let coords: ArrayRef = Arc::new(UInt64Array::from(times));
        columns.push(match all.field(columns.len()).data_type() {
            DataType::FixedSizeList(item, dims) => {
                let lists = FixedSizeListArray::try_new(item.clone(), *dims, coords, None);
                Arc::new(lists.map_err(write::failed)?)
            }
            _ => coords,
        });
    }
    columns.push(Arc::new(Int64Array::from(diffs)));
    RecordBatch::try_new(all.clone(), columns).map_err(write::failed)
}
