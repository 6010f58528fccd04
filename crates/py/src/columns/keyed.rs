//! Operators with state for each key across times: `distinct` and `join`. They never call Python.

use pointstamp_columnar::distinct::Distinct;
use pointstamp_columnar::join::{Join, Plan, Side};
use pointstamp_engine::pact::Pact;
use pyo3::prelude::*;

use super::columns_of;
use super::movement::pact_by_columns;
use super::outbox::Outbox;
use super::schema::Schema;
use crate::batch::Batch;
use crate::errors::IntoException;
use crate::library::Unary;
use crate::stream::Stream;

/// How rows reach the operator of their key: they are moved, unless the stream's rows are there already.
fn pact_for(key: &[usize], in_place: bool) -> Pact<Batch> {
    if in_place {
        Pact::Pipeline
    } else {
        pact_by_columns(key.to_vec())
    }
}

/// The first row of each key, exchanged by key unless `in_place`.
#[pyfunction]
pub(crate) fn distinct_columns(
    stream: &Stream,
    schema: &Schema,
    key: Vec<usize>,
    in_place: bool,
) -> PyResult<Stream> {
    let pact = pact_for(&key, in_place);
    let unary = Unary::new(&stream.engine()?, "distinct", pact)?;
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
