//! Rows with their event times in a column.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use pointstamp_columnar::event_time::{by_time, times_of};
use pointstamp_columnar::windows::constant_time;
use pointstamp_engine::pact::Pact;
use pointstamp_order::Point;

use super::outbox::Outbox;
use crate::Error;
use crate::typed::{Input, Typed};
use crate::unary::Unary;

/// Moves each row to the time in its column.
///
/// # Errors
///
/// Errors of building an operator.
pub fn delay(stream: &Typed<RecordBatch>, column: usize) -> Result<Typed<RecordBatch>, Error> {
    let unary = Unary::new(stream, "delay", Pact::Pipeline)?;
    let mut outbox = Outbox::new(0);
    let moved = unary.on_messages_moved(move |input: &Input<RecordBatch>, output| {
        while let Some((message, batch)) = input.next()? {
            let least = message.time().last().unwrap_or_default();
            for (time, rows) in by_time(&batch, column, least)? {
                outbox.give_at(&Point::new(&[time]), &message, output, rows)?;
            }
            outbox.flush(output)?;
        }
        Ok(())
    })?;
    Ok(moved)
}

/// Adds the time of each row, in the one column of the schema `times`, after the other columns.
///
/// # Errors
///
/// Errors of building an operator.
pub fn with_own_times(
    stream: &Typed<RecordBatch>,
    schema: &SchemaRef,
    times: &SchemaRef,
) -> Result<Typed<RecordBatch>, Error> {
    let types: Vec<_> = times.fields().iter().cloned().collect();
    let result = own_times_schema(schema, times);
    let unary = Unary::new(stream, "own times", Pact::Pipeline)?;
    let mut outbox = Outbox::new(0);
    Ok(unary.on_messages(move |input: &Input<RecordBatch>, to| {
        while let Some((message, rows)) = input.next()? {
            let mut columns = rows.columns().to_vec();
            for field in &types {
                let time = message.time().last().unwrap_or_default();
                columns.push(constant_time(time, rows.num_rows(), field.data_type())?);
            }
            outbox.give(
                &message,
                to,
                RecordBatch::try_new(Arc::clone(&result), columns)?,
            )?;
            outbox.flush(to)?;
        }
        Ok(())
    }))
}

/// Returns the schema of the result of [`with_own_times`].
pub fn own_times_schema(schema: &SchemaRef, times: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().chain(times.fields().iter());
    Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()))
}

/// Returns the latest time in a column; `least` where there is no row.
pub(super) fn latest_of(
    batch: &RecordBatch,
    column: usize,
    least: u64,
) -> Result<u64, pointstamp_columnar::Error> {
    let times = times_of(batch.column(column), least)?;
    let latest = times.values().iter().max();
    Ok(latest.map_or(least, |latest| latest.unsigned_abs()))
}

/// Returns the instant of a dataflow for a time; times before 0 are instant 0.
pub(super) fn instant(time: i64) -> u64 {
    u64::try_from(time).unwrap_or(0)
}

/// Returns the only time of an input's frontier in a scope of one coordinate; `None` when nothing can come any more.
pub(super) fn frontier_of(input: &Input<RecordBatch>) -> Option<u64> {
    let frontier = input.port().frontier();
    frontier.frontier().first().and_then(Point::last)
}

/// Returns a frontier as a bound of event times.
pub(super) fn bound_of(open: Option<u64>) -> Option<i64> {
    open.map(|open| i64::try_from(open).unwrap_or(i64::MAX))
}
