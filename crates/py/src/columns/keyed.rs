//! Operators with state for each key: `distinct`, per time, and `distinct_so_far` and `join` across times. They never
//! call Python.

use arrow_array::RecordBatch;
use pointstamp_columnar::distinct::{Distinct, SoFar};
use pointstamp_columnar::join::{Join, Plan, Side};
use pointstamp_columnar::pieces::Merger;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_operators::{Input, Output};
use pointstamp_order::{PartialOrder, Point};
use pyo3::prelude::*;

use super::outbox::{Outbox, send};
use super::router::pact_by_columns;
use super::schema::Schema;
use crate::batch::Batch;
use crate::errors::IntoException;
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
    let unary = stream.unary("distinct", pact)?;
    let schema = schema.schema.clone();
    let mut times: PerTime<Distinct> = PerTime::new();
    let mut outbox = Outbox::new(0);
    let made = unary.on_messages_and_frontier(move |input, output| {
        while let Some((message, batch)) = input.next()? {
            let seen = times.at(message.time(), || Distinct::new(&schema, key.clone()))?;
            if let Some(first) = seen.first_rows(&batch)? {
                outbox.give(&message, output, first)?;
            }
        }
        outbox.flush(output)?;
        drop(times.closed(&input.port().frontier()));
        Ok(())
    });
    Ok(Stream::of(stream.home(), made))
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
    let unary = stream.unary("distinct_so_far", pact)?;
    unary.builder().retains_forever();
    let seen = SoFar::new(&schema.schema, key).map_err(IntoException::into_exception)?;
    let mut seen = Some(seen);
    let mut waiting: PerTime<(Capability, Vec<RecordBatch>)> = PerTime::new();
    let made = unary.on_messages_and_frontier(move |input, output| {
        // Batches that come while this runs are not before those that the frontier has now.
        let ready = input.port().frontier().frontier().to_vec();
        while let Some((message, batch)) = input.next()? {
            let (_, batches) = waiting.at(message.time(), || {
                Ok::<_, BoxError>((message.retain(0)?, Vec::new()))
            })?;
            batches.push(batch);
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
    });
    Ok(Stream::of(stream.home(), made))
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
    let (left, right) = (
        stream.typed::<RecordBatch>()?,
        other.typed::<RecordBatch>()?,
    );
    let builder = left.scope().operator("join").map_err(refused)?;
    let left = Input::new(&builder, &left, pact_for(plan.left_key(), in_place.0));
    let left = left.map_err(refused)?;
    let right = Input::new(&builder, &right, pact_for(plan.right_key(), in_place.1));
    let right = right.map_err(refused)?;
    let (output, joined) = Output::new(&builder).map_err(refused)?;
    builder.notify();
    builder.retains_forever();
    let key = plan.left_key().to_vec();
    let mut join = Join::new(plan).map_err(IntoException::into_exception)?;
    let mut outbox = Outbox::new(0);
    builder.build(move || {
        for (input, side) in [(&left, Side::Left), (&right, Side::Right)] {
            while let Some((message, batch)) = input.next()? {
                join.update(side, message.time(), &batch, |time, pairs| {
                    outbox.give_at(time, &message, &output, pairs)
                })?;
            }
        }
        outbox.flush(&output)?;
        join.advance(Side::Left, left.port().frontier().frontier());
        join.advance(Side::Right, right.port().frontier().frontier());
        Ok(false)
    });
    Ok((Stream::of(stream.home(), joined), result, key))
}
