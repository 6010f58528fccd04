//! Operators on rows that tell their event times: `delay`, and windows. They never call Python.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use pointstamp_columnar::Error;
use pointstamp_columnar::aggregate::Plan;
use pointstamp_columnar::event_time::{by_time, time_column, times_of};
use pointstamp_columnar::runs::{Ends, Runs};
use pointstamp_columnar::windows::{Layout, Windows, constant_time};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_operators::Input;
use pointstamp_order::Point;
use pyo3::prelude::*;

use super::outbox::{Outbox, send};
use super::router::pact_by_columns;
use super::schema::Schema;
use crate::errors::IntoException;
use crate::raised::Raised;
use crate::stream::Stream;

/// An error of the rows, which Python sees as the exception of its kind.
fn raised(error: Error) -> BoxError {
    Raised::here(error.into_exception())
}

/// The number of a column that can tell times.
#[pyfunction]
pub(crate) fn time_column_of(schema: &Schema, name: &str) -> PyResult<usize> {
    time_column(&schema.schema, name).map_err(IntoException::into_exception)
}

/// Each row at the time that its column tells.
#[pyfunction]
pub(crate) fn delay_columns(stream: &Stream, column: usize) -> PyResult<Stream> {
    let unary = stream.unary("delay", Pact::Pipeline)?;
    let mut outbox = Outbox::new(0);
    let moved = unary.on_messages_moved(move |input, output| {
        while let Some((message, batch)) = input.next()? {
            let least = message.time().last().unwrap_or_default();
            for (time, rows) in by_time(&batch, column, least).map_err(raised)? {
                outbox.give_at(&Point::new(&[time]), &message, output, rows)?;
            }
            outbox.flush(output)?;
        }
        Ok(())
    });
    let moved = moved.map_err(IntoException::into_exception)?;
    Ok(Stream::of(stream.home(), moved))
}

/// The latest time that a column tells; `least` where there is no row.
fn latest_of(batch: &RecordBatch, column: usize, least: u64) -> Result<u64, BoxError> {
    let times = times_of(batch.column(column), least).map_err(raised)?;
    let latest = times.values().iter().max();
    Ok(latest.map_or(least, |latest| latest.unsigned_abs()))
}

/// A time as one of a dataflow: those before 0 are none.
fn or_none(time: i64) -> u64 {
    u64::try_from(time).unwrap_or(0)
}

/// Each row with the time that it is at, in a column after the others: the one of the schema `told`.
#[pyfunction]
pub(crate) fn with_own_times(
    stream: &Stream,
    schema: &Schema,
    told: &Schema,
) -> PyResult<(Stream, Schema)> {
    let mut fields = schema.schema.fields().to_vec();
    fields.extend(told.schema.fields().iter().cloned());
    let types: Vec<_> = told.schema.fields().iter().cloned().collect();
    let output: SchemaRef = Arc::new(ArrowSchema::new(fields));
    let result = Schema::new(Arc::clone(&output));
    let unary = stream.unary("own times", Pact::Pipeline)?;
    let mut outbox = Outbox::new(0);
    let made = unary.on_messages(move |input: &Input<RecordBatch>, to| {
        while let Some((message, rows)) = input.next()? {
            let mut columns = rows.columns().to_vec();
            for field in &types {
                let time = message.time().last().unwrap_or_default();
                columns
                    .push(constant_time(time, rows.num_rows(), field.data_type()).map_err(raised)?);
            }
            let rows = RecordBatch::try_new(Arc::clone(&output), columns)?;
            outbox.give(&message, to, rows)?;
            outbox.flush(to)?;
        }
        Ok(())
    });
    Ok((Stream::of(stream.home(), made), result))
}

/// Aggregations `(column, function)` per key and window of event time, exchanged by key unless the rows are `in_place`.
///
/// A window's rows are sent at its last instant, when no row of it can come any more. One capability is held, for the last
/// instant of the first open window.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn window_columns(
    stream: &Stream,
    schema: &Schema,
    by: Vec<String>,
    aggregations: Vec<(String, String)>,
    column: &str,
    layout: (i64, i64, i64),
    in_place: bool,
) -> PyResult<(Stream, Schema)> {
    let refused = IntoException::into_exception;
    let plan = Plan::new(&schema.schema, &by, &aggregations).map_err(refused)?;
    let (length, every, offset) = layout;
    let layout = Layout {
        length,
        every,
        offset,
    };
    let pact = if in_place {
        Pact::Pipeline
    } else {
        pact_by_columns(plan.key().to_vec())
    };
    let at = time_column(&schema.schema, column).map_err(refused)?;
    let mut windows = Windows::new(&schema.schema, plan, column, layout)
        .map_err(IntoException::into_exception)?;
    let result = Schema::new(windows.output().clone());
    let unary = stream.unary("window", pact)?;
    let retention = unary.retention().map_err(IntoException::into_exception)?;
    let mut held: Option<Capability> = None;
    let made = unary.on_messages_and_frontier(move |input, output| {
        while let Some((message, rows)) = input.next()? {
            let least = message.time().last().unwrap_or_default();
            windows.update(&rows, least).map_err(raised)?;
            if let Some(retention) = &retention {
                retention.take(least, latest_of(&rows, at, least)?);
            }
            if held
                .as_ref()
                .is_none_or(|held| held.time() > message.time())
            {
                held = Some(message.retain(0)?);
            }
        }
        let open = input
            .port()
            .frontier()
            .frontier()
            .first()
            .and_then(Point::last);
        let bound = open.map(|open| i64::try_from(open).unwrap_or(i64::MAX));
        let keep = || {
            if let Some(retention) = &retention {
                let least = bound.map_or(i64::MAX, |bound| layout.first_open(bound));
                retention.keep(open, or_none(least));
            }
        };
        let Some(capability) = &mut held else {
            keep();
            return Ok(());
        };
        let mut closing: Option<Capability> = None;
        windows.close(bound, |last, rows| {
            let instant = Point::new(&[last.unsigned_abs()]);
            let capability = match &mut closing {
                Some(closing) if *closing.time() == instant => closing,
                closing => closing.insert(capability.delayed(&instant)?),
            };
            send(output, capability, rows)
        })?;
        match windows.next_last() {
            None => held = None,
            Some(last) => {
                let instant = Point::new(&[last.unsigned_abs()]);
                if instant > *capability.time() {
                    capability.downgrade(&instant)?;
                }
            }
        }
        keep();
        Ok(())
    });
    Ok((Stream::of(stream.home(), made), result))
}

/// Aggregations `(column, function)` per key and window of event time that follows the rows of a key: sessions that end after so
/// much `silence`, else windows of so many `rows`. Exchanged by key unless the rows are `in_place`.
///
/// Rows are looked at when their times are final, and a window's results are sent at its last instant. One capability is held, for
/// what waits and for the first window that may end.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn window_runs_columns(
    stream: &Stream,
    schema: &Schema,
    by: Vec<String>,
    aggregations: Vec<(String, String)>,
    column: &str,
    ends: (Option<i64>, u64),
    in_place: bool,
) -> PyResult<(Stream, Schema)> {
    let (silence, rows) = ends;
    let ends = silence.map_or(Ends::Rows(rows), Ends::Silence);
    let mut runs = Runs::new(&schema.schema, &by, &aggregations, column, ends)
        .map_err(IntoException::into_exception)?;
    let pact = if in_place {
        Pact::Pipeline
    } else {
        pact_by_columns(runs.key().to_vec())
    };
    let result = Schema::new(runs.output().clone());
    let at = time_column(&schema.schema, column).map_err(IntoException::into_exception)?;
    let unary = stream.unary("window", pact)?;
    let retention = match ends {
        Ends::Silence(_) => unary.retention().map_err(IntoException::into_exception)?,
        Ends::Rows(_) => {
            // Where a window ends follows from all rows of the key before it.
            unary.builder().retains_forever();
            None
        }
    };
    let mut held: Option<Capability> = None;
    let mut stood: Option<i64> = Some(-1);
    let made = unary.on_messages_and_frontier(move |input, output| {
        while let Some((message, rows)) = input.next()? {
            let least = message.time().last().unwrap_or_default();
            if let Some(retention) = &retention {
                retention.take(least, latest_of(&rows, at, least)?);
            }
            runs.update(rows, least).map_err(raised)?;
            if held
                .as_ref()
                .is_none_or(|held| held.time() > message.time())
            {
                held = Some(message.retain(0)?);
            }
        }
        let open = input
            .port()
            .frontier()
            .frontier()
            .first()
            .and_then(Point::last);
        let bound = open.map(|open| i64::try_from(open).unwrap_or(i64::MAX));
        let Some(capability) = &mut held else {
            if let Some(retention) = &retention {
                retention.keep(open, open.unwrap_or_default());
            }
            return Ok(());
        };
        if bound == stood {
            return Ok(());
        }
        stood = bound;
        runs.advance(bound, |instant, rows| {
            let instant = Point::new(&[instant.unsigned_abs()]);
            send(output, &capability.delayed(&instant)?, rows)
        })?;
        match runs.next_instant() {
            None => held = None,
            Some(next) => {
                let instant = Point::new(&[next.unsigned_abs()]);
                if instant > *capability.time() {
                    capability.downgrade(&instant)?;
                }
            }
        }
        if let Some(retention) = &retention {
            let until = open.unwrap_or_default();
            let first = runs.earliest().map_or(until, or_none);
            retention.keep(open, first.min(until));
        }
        Ok(())
    });
    Ok((Stream::of(stream.home(), made), result))
}
