//! `aggregate`: per time and key, sent when the time closes. It never calls Python.
//!
//! Where rows move between workers there are two operators. The first adds up what is on its worker, where that pays,
//! and otherwise lets rows pass; the second, on the worker of the key, adds up both.

use arrow_array::RecordBatch;
use pointstamp_columnar::aggregate::{Plan, Table};
use pointstamp_columnar::partial::{Experience, Fate, Limits, Partial};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::Notify;
use pointstamp_engine::pact::Pact;
use pointstamp_operators::{Input, Output, Typed, Unary};
use pyo3::prelude::*;

use super::outbox::send;
use super::router::pact_by_columns;
use super::schema::Schema;
use crate::batch::Batch;
use crate::errors::IntoException;
use crate::library::per_time::PerTime;
use crate::stream::Stream;

const NAME: &str = "aggregate";

/// Aggregations `(column, function)` per time and key, exchanged by key unless the rows are `in_place`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn aggregate_columns(
    stream: &Stream,
    schema: &Schema,
    by: Vec<String>,
    aggregations: Vec<(String, String)>,
    in_place: bool,
) -> PyResult<(Stream, Schema)> {
    let plan =
        Plan::new(&schema.schema, &by, &aggregations).map_err(IntoException::into_exception)?;
    let result = Schema::new(plan.output().clone());
    let engine = stream.typed()?;
    let made = if in_place || plan.keeps_values() || engine.scope().worker().peers() == 1 {
        let pact = if in_place {
            Pact::Pipeline
        } else {
            pact_by_columns(plan.key().to_vec())
        };
        here(stream, &engine, plan, pact)?
    } else {
        let (rows, states) = partial(&engine, plan.clone())?;
        total(stream, &rows, &states, plan)?
    };
    Ok((made, result))
}

/// One operator, for rows that are where they belong.
fn here(
    stream: &Stream,
    engine: &Typed<RecordBatch>,
    plan: Plan,
    pact: Pact<Batch>,
) -> PyResult<Stream> {
    let unary = Unary::new(engine, NAME, pact).map_err(IntoException::into_exception)?;
    let mut tables: PerTime<(Capability, Table)> = PerTime::new();
    let made = unary.on_messages_and_closing(move |input, output| {
        while let Some((message, batch)) = input.next()? {
            let (_, table) = tables.at(message.time(), || {
                Ok::<_, BoxError>((message.retain(0)?, Table::new(&plan)?))
            })?;
            table.update(&batch)?;
        }
        for (capability, table) in tables.closed(&input.port().frontier()) {
            table.finish(|batch| send(output, &capability, batch))?;
        }
        Ok(())
    });
    Ok(Stream::of(stream.home(), made))
}

/// The operator on the senders: rows that pass as they are, and what tables know of the others.
fn partial(
    stream: &Typed<RecordBatch>,
    plan: Plan,
) -> PyResult<(Typed<RecordBatch>, Typed<RecordBatch>)> {
    let refused = IntoException::into_exception;
    let builder = stream.scope().operator(NAME).map_err(refused)?;
    let input = Input::new(&builder, stream, Pact::Pipeline).map_err(refused)?;
    let (passed, rows) = Output::new(&builder).map_err(refused)?;
    let (known, states) = Output::new(&builder).map_err(refused)?;
    builder.notify();
    let mut experience = Experience::new(Limits::default());
    let mut times: PerTime<(Option<Capability>, Partial)> = PerTime::new();
    builder.build(move || {
        while let Some((message, batch)) = input.next()? {
            let (capability, partial) =
                times.at(message.time(), || Ok::<_, BoxError>(Default::default()))?;
            match partial.take(batch, &plan, &mut experience)? {
                // No capability is held while rows only pass: the time may close at once.
                Fate::Passes(batch) => send(&passed, &message, batch)?,
                Fate::Held if capability.is_some() => {}
                Fate::Held => *capability = Some(message.retain(known.port().port())?),
                Fate::Full(table, rest) => {
                    table.states(|batch| send(&known, &message, batch))?;
                    *capability = None;
                    if let Some(rest) = rest {
                        send(&passed, &message, rest)?;
                    }
                }
            }
        }
        for (capability, partial) in times.closed(&input.port().frontier()) {
            if let (Some(capability), Some(table)) = (capability, partial.close()) {
                table.states(|batch| send(&known, &capability, batch))?;
            }
        }
        Ok(false)
    });
    Ok((rows, states))
}

/// The operator on the worker of a key.
fn total(
    stream: &Stream,
    rows: &Typed<RecordBatch>,
    states: &Typed<RecordBatch>,
    plan: Plan,
) -> PyResult<Stream> {
    let refused = IntoException::into_exception;
    let builder = rows.scope().operator("aggregate: total").map_err(refused)?;
    let rows = Input::new(&builder, rows, pact_by_columns(plan.key().to_vec()));
    let rows = rows.map_err(refused)?;
    let states = Input::new(&builder, states, pact_by_columns(plan.state_key()));
    let states = states.map_err(refused)?;
    let (output, result) = Output::new(&builder).map_err(refused)?;
    for input in [&rows, &states] {
        builder.notify_of(input.port().port(), Notify::WhileHolding);
    }
    let mut tables: PerTime<(Capability, Table)> = PerTime::new();
    builder.build(move || {
        for (input, add) in [
            (&rows, Table::update as fn(&mut _, &_) -> _),
            (&states, Table::merge),
        ] {
            while let Some((message, batch)) = input.next()? {
                let (_, table) = tables.at(message.time(), || {
                    Ok::<_, BoxError>((message.retain(0)?, Table::new(&plan)?))
                })?;
                add(table, &batch)?;
            }
        }
        let closed = {
            let (rows, states) = (rows.port().frontier(), states.port().frontier());
            tables.closed_unless(|time| rows.less_equal(time) || states.less_equal(time))
        };
        for (capability, table) in closed {
            table.finish(|batch| send(&output, &capability, batch))?;
        }
        Ok(false)
    });
    Ok(Stream::of(stream.home(), result))
}
