//! Operators with state by key: distinct rows, per time and across times, and joins of rows at their times.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pointstamp_columnar::distinct::{Distinct, SoFar};
use pointstamp_columnar::join::{Join, Plan, Side};
use pointstamp_columnar::pieces::Merger;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_order::{PartialOrder, Point};

use super::outbox::Outbox;
use super::route::placed;
use crate::Error;
use crate::per_time::PerTime;
use crate::typed::{Input, Output, Typed};
use crate::unary::Unary;

/// Keeps one row of each key of each time; rows are exchanged by key unless they are `in_place`.
///
/// # Errors
///
/// Those of building an operator.
pub fn distinct(
    stream: &Typed<RecordBatch>,
    schema: &SchemaRef,
    key: &[usize],
    in_place: bool,
) -> Result<Typed<RecordBatch>, Error> {
    let unary = Unary::new(stream, "distinct", placed(key, in_place))?;
    let (schema, key) = (SchemaRef::clone(schema), key.to_vec());
    let mut times: PerTime<Distinct> = PerTime::new();
    let mut outbox = Outbox::new(0);
    Ok(
        unary.on_messages_and_frontier(move |input: &Input<RecordBatch>, output| {
            while let Some((message, batch)) = input.next()? {
                let seen = times.at(message.time(), || Distinct::new(&schema, key.clone()))?;
                if let Some(first) = seen.first_rows(&batch)? {
                    outbox.give(&message, output, first)?;
                }
            }
            outbox.flush(output)?;
            drop(times.closed(&input.port().frontier()));
            Ok(())
        }),
    )
}

/// Keeps one row of each key at the least times at which it has one; rows are exchanged by key unless they are `in_place`.
///
/// A batch waits until no time before its own can come, so that the result does not depend on the order of arrival.
///
/// # Errors
///
/// An error of the key's columns; those of building an operator.
pub fn distinct_so_far(
    stream: &Typed<RecordBatch>,
    schema: &SchemaRef,
    key: &[usize],
    in_place: bool,
) -> Result<Typed<RecordBatch>, Error> {
    let unary = Unary::new(stream, "distinct_so_far", placed(key, in_place))?;
    unary.builder().retains_forever();
    let mut seen = Some(SoFar::new(schema, key.to_vec())?);
    let mut waiting: PerTime<(Capability, Vec<RecordBatch>)> = PerTime::new();
    Ok(
        unary.on_messages_and_frontier(move |input: &Input<RecordBatch>, output| {
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
                        merger.push(first, |batch| output.send(&capability, batch))?;
                    }
                }
                merger.flush(|batch| output.send(&capability, batch))?;
            }
            known.advance(&ready);
            if ready.is_empty() {
                seen = None; // nothing can come any more
            }
            Ok(())
        }),
    )
}

/// Joins the rows of two streams with equal keys, at the least upper bounds of their times; the rows of a side are exchanged
/// by key unless they are in place, as `in_place` says of each side.
///
/// # Errors
///
/// An error of the key's columns; those of building an operator.
pub fn join(
    left: &Typed<RecordBatch>,
    right: &Typed<RecordBatch>,
    plan: Plan,
    in_place: [bool; 2],
) -> Result<Typed<RecordBatch>, Error> {
    let builder = left.scope().operator("join")?;
    let left = Input::new(&builder, left, placed(plan.left_key(), in_place[0]))?;
    let right = Input::new(&builder, right, placed(plan.right_key(), in_place[1]))?;
    let (output, joined) = Output::new(&builder)?;
    builder.notify();
    builder.retains_forever();
    let mut join = Join::new(plan)?;
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
    Ok(joined)
}
