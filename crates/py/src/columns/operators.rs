//! Operators over columns, as `pointstamp.ArrowStream` calls them. They call Python only for a warning.

use pointstamp_columnar::aggregate::Plan;
use pointstamp_columnar::event_time::time_column;
use pointstamp_columnar::join::{Plan as JoinPlan, Side};
use pointstamp_columnar::join_per_time::Settings;
use pointstamp_columnar::windows::Layout;
use pointstamp_operators::columns;
use pyo3::prelude::*;

use super::schema::Schema;
use crate::errors::IntoException;
use crate::gil::attached;
use crate::kinds::How;
use crate::raised::Raised;
use crate::stream::Stream;

/// The name of a column of a result, the column that it is computed of, and the function.
pub(super) type Named = (String, String, String);

/// A window's length, the distance between starts, and the offset of the first start.
pub(super) fn layout_of((length, every, offset): (i64, i64, i64)) -> Layout {
    Layout {
        length,
        every,
        offset,
    }
}

/// Aggregations per time and key, exchanged by key unless the rows are `in_place`. Where it is `divisible`, one worker has the operators that several
/// have.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn aggregate_columns(
    stream: &Stream,
    schema: &Schema,
    by: Vec<String>,
    aggregations: Vec<Named>,
    in_place: bool,
    divisible: bool,
) -> PyResult<Stream> {
    let plan = Plan::new(&schema.schema, &by, &aggregations);
    let plan = plan.map_err(IntoException::into_exception)?;
    let made = columns::aggregate(&stream.typed()?, plan, in_place, divisible);
    stream.made(made)
}

/// Returns the schema of the result of `aggregate_columns`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn aggregate_schema(
    schema: &Schema,
    by: Vec<String>,
    aggregations: Vec<Named>,
) -> PyResult<Schema> {
    let plan = Plan::new(&schema.schema, &by, &aggregations);
    let plan = plan.map_err(IntoException::into_exception)?;
    Ok(Schema::new(plan.output().clone()))
}

/// A row of each key of each time, exchanged by key unless `in_place`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn distinct_columns(
    stream: &Stream,
    schema: &Schema,
    key: Vec<usize>,
    in_place: bool,
) -> PyResult<Stream> {
    let distinct = columns::distinct(&stream.typed()?, &schema.schema, &key, in_place);
    stream.made(distinct)
}

/// A row of each key at the least times at which it has one, exchanged by key unless `in_place`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn distinct_so_far_columns(
    stream: &Stream,
    schema: &Schema,
    key: Vec<usize>,
    in_place: bool,
) -> PyResult<Stream> {
    let distinct = columns::distinct_so_far(&stream.typed()?, &schema.schema, &key, in_place);
    stream.made(distinct)
}

/// Pairs of rows of two streams with equal keys and times, and rows without a match, as `how` says; each side is exchanged
/// unless `in_place`.
#[pyfunction]
#[allow(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    reason = "what pyo3 hands over"
)]
pub(crate) fn join_columns(
    stream: &Stream,
    schema: &Schema,
    other: &Stream,
    other_schema: &Schema,
    on: Vec<String>,
    suffix: &str,
    how: How,
    in_place: (bool, bool),
    later: Option<(bool, Py<PyAny>)>,
) -> PyResult<Stream> {
    let settings = Settings::new(
        &schema.schema,
        &other_schema.schema,
        &on,
        suffix,
        how.into(),
    );
    let settings = settings.map_err(IntoException::into_exception)?;
    let (left, right) = (stream.typed()?, other.typed()?);
    let later = later.map(|(of_right, function)| columns::Later {
        side: if of_right { Side::Right } else { Side::Left },
        call: Box::new(move || attached(|py| function.call0(py).map(drop)).map_err(Raised::here)),
    });
    let in_place = in_place.into();
    stream.made(columns::join(&left, &right, settings, in_place, later))
}

/// Pairs of rows of two streams with equal keys, across times; each side is exchanged unless `in_place`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn join_so_far_columns(
    stream: &Stream,
    schema: &Schema,
    other: &Stream,
    other_schema: &Schema,
    on: Vec<String>,
    suffix: &str,
    in_place: (bool, bool),
) -> PyResult<Stream> {
    let plan = JoinPlan::new(&schema.schema, &other_schema.schema, &on, suffix);
    let plan = plan.map_err(IntoException::into_exception)?;
    let (left, right) = (stream.typed()?, other.typed()?);
    stream.made(columns::join_so_far(&left, &right, plan, in_place.into()))
}

/// Returns the schema of the result of `join_columns`, or of `join_so_far_columns` for an inner join, and the key's columns in it.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn join_schema(
    schema: &Schema,
    other: &Schema,
    on: Vec<String>,
    suffix: &str,
    how: How,
) -> PyResult<(Schema, Vec<usize>)> {
    let settings = Settings::new(&schema.schema, &other.schema, &on, suffix, how.into());
    let settings = settings.map_err(IntoException::into_exception)?;
    let key = settings.key(Side::Left).to_vec();
    Ok((Schema::new(settings.output().clone()), key))
}

/// Exchanges rows by key; small batches are merged into larger ones.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn exchange_columns(stream: &Stream, key: Vec<usize>) -> PyResult<Stream> {
    stream.made(columns::exchange(&stream.typed()?, &key))
}

/// Splits the rows by key into several streams, on their worker.
#[pyfunction]
pub(crate) fn partition_columns(
    stream: &Stream,
    parts: usize,
    key: Vec<usize>,
) -> PyResult<Vec<Stream>> {
    let parts = columns::partition(&stream.typed()?, parts, key);
    let parts = parts.map_err(IntoException::into_exception)?;
    let parts = parts.into_iter();
    Ok(parts.map(|part| Stream::of(stream.home(), part)).collect())
}

/// Returns the number of a column that can hold times.
#[pyfunction]
pub(crate) fn time_column_of(schema: &Schema, name: &str) -> PyResult<usize> {
    time_column(&schema.schema, name).map_err(IntoException::into_exception)
}

/// Moves each row to the time in its column.
#[pyfunction]
pub(crate) fn delay_columns(stream: &Stream, column: usize) -> PyResult<Stream> {
    stream.made(columns::delay(&stream.typed()?, column))
}

/// Adds the time of each row, in a column after the others: the one of the schema `times`.
#[pyfunction]
pub(crate) fn with_own_times(stream: &Stream, schema: &Schema, times: &Schema) -> PyResult<Stream> {
    stream.made(columns::with_own_times(
        &stream.typed()?,
        &schema.schema,
        &times.schema,
    ))
}

/// Returns the schema of the result of `with_own_times`.
#[pyfunction]
pub(crate) fn own_times_schema(schema: &Schema, times: &Schema) -> Schema {
    Schema::new(columns::own_times_schema(&schema.schema, &times.schema))
}

/// Returns the schema of the result of `window_columns`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn window_schema(
    schema: &Schema,
    by: Vec<String>,
    aggregations: Vec<Named>,
    column: &str,
    layout: (i64, i64, i64),
) -> PyResult<Schema> {
    let schema = &schema.schema;
    let plan = Plan::new(schema, &by, &aggregations).map_err(IntoException::into_exception)?;
    let result = columns::window_schema(schema, plan, column, layout_of(layout));
    let result = result.map_err(IntoException::into_exception)?;
    Ok(Schema::new(result))
}

/// Aggregations per key and window of event time, exchanged by key unless the rows are `in_place`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn window_columns(
    stream: &Stream,
    schema: &Schema,
    by: Vec<String>,
    aggregations: Vec<Named>,
    column: &str,
    layout: (i64, i64, i64),
    in_place: bool,
) -> PyResult<Stream> {
    let schema = &schema.schema;
    let plan = Plan::new(schema, &by, &aggregations).map_err(IntoException::into_exception)?;
    let (rows, layout) = (stream.typed()?, layout_of(layout));
    let windows = columns::window(&rows, schema, plan, column, layout, in_place);
    stream.made(windows)
}
