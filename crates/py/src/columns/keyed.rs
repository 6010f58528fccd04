//! Operators with state for each key: `aggregate`, `distinct` and `join`. They never call Python.

use pointstamp_columnar::aggregate::{Plan, Table};
use pointstamp_columnar::distinct::Distinct;
use pointstamp_columnar::join::{Join, Plan as JoinPlan, Side};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pyo3::prelude::*;

use super::columns_of;
use super::movement::pact_by_columns;
use super::outbox::{Outbox, send};
use super::schema::Schema;
use crate::errors::IntoException;
use crate::library::Unary;
use crate::library::per_time::PerTime;
use crate::stream::Stream;

/// Aggregations `(column, function)` per time and key, exchanged by key, sent when the time closes.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn aggregate_columns(
    stream: &Stream,
    schema: &Schema,
    by: Vec<String>,
    aggregations: Vec<(String, String)>,
) -> PyResult<(Stream, Schema)> {
    let plan =
        Plan::new(&schema.schema, &by, &aggregations).map_err(IntoException::into_exception)?;
    let result = Schema::new(plan.output().clone());
    let pact = pact_by_columns(plan.key().to_vec());
    let unary = Unary::new(&stream.engine()?, "aggregate", pact)?;
    let mut tables: PerTime<(Capability, Table)> = PerTime::new();
    let stream = unary.on_messages_and_frontier(stream, move |input, output| {
        while let Some((message, batch)) = input.next()? {
            let (_, table) = tables.at(message.time(), || {
                Ok::<_, BoxError>((message.retain(0)?, Table::new(&plan)?))
            })?;
            table.update(&columns_of(batch))?;
        }
        for (capability, table) in tables.closed(&input.frontier()) {
            table.finish(|batch| send(output, &capability, batch))?;
        }
        Ok(())
    });
    Ok((stream, result))
}

/// The first row of each key, exchanged by key.
#[pyfunction]
pub(crate) fn distinct_columns(
    stream: &Stream,
    schema: &Schema,
    key: Vec<usize>,
) -> PyResult<Stream> {
    let unary = Unary::new(&stream.engine()?, "distinct", pact_by_columns(key.clone()))?;
    let mut seen = Distinct::new(&schema.schema, key).map_err(IntoException::into_exception)?;
    let mut outbox = Outbox::new(0);
    Ok(unary.on_messages(stream, move |input, output| {
        while let Some((message, batch)) = input.next()? {
            if let Some(first) = seen.first_rows(&columns_of(batch))? {
                outbox.give(&message, output, first)?;
            }
        }
        outbox.flush(output)
    }))
}

/// Pairs of rows of two streams with equal keys.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn join_columns(
    stream: &Stream,
    schema: &Schema,
    other: &Stream,
    other_schema: &Schema,
    on: Vec<String>,
    suffix: &str,
) -> PyResult<(Stream, Schema)> {
    let refused = IntoException::into_exception;
    let plan = JoinPlan::new(&schema.schema, &other_schema.schema, &on, suffix)
        .map_err(IntoException::into_exception)?;
    let result = Schema::new(plan.output().clone());
    let (left, right) = (stream.engine()?, other.engine()?);
    let builder = left.scope().operator("join").map_err(refused)?;
    let left = builder
        .new_input(&left, pact_by_columns(plan.left_key().to_vec()))
        .map_err(refused)?;
    let right = builder
        .new_input(&right, pact_by_columns(plan.right_key().to_vec()))
        .map_err(refused)?;
    let (output, joined) = builder.new_output().map_err(refused)?;
    let mut join = Join::new(plan).map_err(IntoException::into_exception)?;
    let mut outbox = Outbox::new(0);
    builder.build(move || {
        for (input, side) in [(&left, Side::Left), (&right, Side::Right)] {
            while let Some((message, batch)) = input.next()? {
                join.update(side, message.time(), &columns_of(batch), |time, pairs| {
                    // A pair is at the least upper bound of its rows' times.
                    let time = time.join(message.time()).unwrap_or_else(|| time.clone());
                    outbox.give_at(&time, &message, &output, pairs)
                })?;
            }
        }
        outbox.flush(&output)?;
        Ok(false)
    });
    Ok((Stream::plain(stream.home(), joined), result))
}
