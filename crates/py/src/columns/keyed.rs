//! Operators with state for each key: `distinct`, per time, and `distinct_so_far` and `join` across times. They never
//! call Python.

use arrow_array::RecordBatch;
use pointstamp_columnar::distinct::{Distinct, SoFar};
use pointstamp_columnar::join::{Join, Plan, Side};
use pointstamp_columnar::pieces::Merger;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_order::{PartialOrder, Point};
use pyo3::prelude::*;

use super::columns_of;
use super::outbox::{Outbox, send};
use super::router::pact_by_columns;
use super::schema::Schema;
use crate::batch::Batch;
use crate::errors::IntoException;
use crate::library::Unary;
use crate::library::per_time::PerTime;
use crate::stream::Stream;

/// How rows reach the operator of their key: they are moved, unless the stream's rows are there already.
fn pact_for(key: &[usize], in_place: bool) -> Pact<Batch> {
    if in_place {
        Pact::Pipeline
    } else {
        pact_by_columns(key.to_vec())
    }
}

/// A row of each key of each time, exchanged by key unless `in_place`.
#[pyfunction]
pub(crate) fn distinct_columns(
    stream: &Stream,
    schema: &Schema,
    key: Vec<usize>,
    in_place: bool,
) -> PyResult<Stream> {
    let pact = pact_for(&key, in_place);
    let unary = Unary::new(&stream.engine()?, "distinct", pact)?;
    let schema = schema.schema.clone();
    let mut times: PerTime<Distinct> = PerTime::new();
    let mut outbox = Outbox::new(0);
    Ok(
        unary.on_messages_and_frontier(stream, move |input, output| {
            while let Some((message, batch)) = input.next()? {
                let seen = times.at(message.time(), || Distinct::new(&schema, key.clone()))?;
                if let Some(first) = seen.first_rows(&columns_of(batch))? {
                    outbox.give(&message, output, first)?;
                }
            }
            outbox.flush(output)?;
            drop(times.closed(&input.frontier()));
            Ok(())
        }),
    )
}

/// A row of each key at the least times at which it has one, exchanged by key unless `in_place`.
///
/// A batch waits until no time before its own can come, so that what a time gives is the same whatever came first.
#[pyfunction]
pub(crate) fn distinct_so_far_columns(
    stream: &Stream,
    schema: &Schema,
    key: Vec<usize>,
    in_place: bool,
) -> PyResult<Stream> {
    let pact = pact_for(&key, in_place);
    let unary = Unary::new(&stream.engine()?, "distinct_so_far", pact)?;
    unary.retains_forever();
    let seen = SoFar::new(&schema.schema, key).map_err(IntoException::into_exception)?;
    let mut seen = Some(seen);
    let mut waiting: PerTime<(Capability, Vec<RecordBatch>)> = PerTime::new();
    Ok(
        unary.on_messages_and_frontier(stream, move |input, output| {
            // Batches that come while this runs are not before those that the frontier has now.
            let ready = input.frontier().frontier().to_vec();
            while let Some((message, batch)) = input.next()? {
                let (_, batches) = waiting.at(message.time(), || {
                    Ok::<_, BoxError>((message.retain(0)?, Vec::new()))
                })?;
                batches.push(columns_of(batch));
            }
            let before = |time: &Point| ready.iter().any(|least| least.less_than(time));
            let Some(known) = &mut seen else {
                return Ok(());
            };
            for (capability, batches) in waiting.closed_unless(before) {
                let mut merger = Merger::new();
                for batch in batches {
                    if let Some(first) = known.first_rows(capability.time(), &batch)? {
                        merger.push(first, |batch| send(output, &capability, batch))?;
                    }
                }
                merger.flush(|batch| send(output, &capability, batch))?;
            }
            known.advance(&ready);
            if ready.is_empty() {
                seen = None; // nothing can come any more
            }
            Ok(())
        }),
    )
}

/// Pairs of rows of two streams with equal keys, each exchanged unless `in_place`. With the key's columns of the result.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn join_columns(
    stream: &Stream,
    schema: &Schema,
    other: &Stream,
    other_schema: &Schema,
    on: Vec<String>,
    suffix: &str,
    in_place: (bool, bool),
) -> PyResult<(Stream, Schema, Vec<usize>)> {
    let refused = IntoException::into_exception;
    let plan = Plan::new(&schema.schema, &other_schema.schema, &on, suffix)
        .map_err(IntoException::into_exception)?;
    let result = Schema::new(plan.output().clone());
    let (left, right) = (stream.engine()?, other.engine()?);
    let builder = left.scope().operator("join").map_err(refused)?;
    let left = builder
        .new_input(&left, pact_for(plan.left_key(), in_place.0))
        .map_err(refused)?;
    let right = builder
        .new_input(&right, pact_for(plan.right_key(), in_place.1))
        .map_err(refused)?;
    let (output, joined) = builder.new_output().map_err(refused)?;
    builder.notify();
    builder.retains_forever();
    let key = plan.left_key().to_vec();
    let mut join = Join::new(plan).map_err(IntoException::into_exception)?;
    let mut outbox = Outbox::new(0);
    builder.build(move || {
        for (input, side) in [(&left, Side::Left), (&right, Side::Right)] {
            while let Some((message, batch)) = input.next()? {
                join.update(side, message.time(), &columns_of(batch), |time, pairs| {
                    outbox.give_at(time, &message, &output, pairs)
                })?;
            }
        }
        outbox.flush(&output)?;
        join.advance(Side::Left, left.frontier().frontier());
        join.advance(Side::Right, right.frontier().frontier());
        Ok(false)
    });
    Ok((Stream::plain(stream.home(), joined), result, key))
}
