//! Aggregations per time and key, sent when the time closes.
//!
//! Where rows move between workers there are two operators. The first aggregates the rows of its own worker, where that
//! pays, and otherwise lets rows pass; the second, on the worker of the key, aggregates both.

use arrow_array::RecordBatch;
use pointstamp_columnar::aggregate::{Plan, Table};
use pointstamp_columnar::partial::{Experience, Fate, Limits, Partial};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::{BoxError, Error as EngineError};
use pointstamp_engine::operator::Notify;
use pointstamp_engine::pact::Pact;

use super::route::{by_columns, placed};
use crate::Error;
use crate::batch::Batch;
use crate::per_time::PerTime;
use crate::typed::{Input, Output, Typed};
use crate::unary::Unary;

const NAME: &str = "aggregate";

/// Aggregates the rows of each time by key, as a plan says; rows are exchanged by key unless they are `in_place`.
///
/// # Errors
///
/// Those of building an operator.
pub fn aggregate(
    stream: &Typed<RecordBatch>,
    plan: Plan,
    in_place: bool,
) -> Result<Typed<RecordBatch>, Error> {
    let made = if in_place || plan.keeps_values() || stream.scope().worker().peers() == 1 {
        let pact = placed(plan.key(), in_place);
        here(stream, plan, pact)?
    } else {
        let (rows, states) = partial(stream, plan.clone())?;
        total(&rows, &states, plan)?
    };
    Ok(made)
}

/// Returns the results of one operator, for rows that its pact brings to the right worker.
fn here(
    stream: &Typed<RecordBatch>,
    plan: Plan,
    pact: Pact<Batch>,
) -> Result<Typed<RecordBatch>, EngineError> {
    let unary = Unary::new(stream, NAME, pact)?;
    let mut tables: PerTime<(Capability, Table)> = PerTime::new();
    Ok(
        unary.on_messages_and_closing(move |input: &Input<RecordBatch>, output| {
            while let Some((message, batch)) = input.next()? {
                let (_, table) = tables.at(message.time(), || {
                    Ok::<_, BoxError>((message.retain(0)?, Table::new(&plan)?))
                })?;
                table.update(&batch)?;
            }
            for (capability, table) in tables.closed(&input.port().frontier()) {
                table.finish(|batch| output.send(&capability, batch))?;
            }
            Ok(())
        }),
    )
}

/// Returns the outputs of the senders' operator: rows that pass as they are, and the states of tables of other rows.
fn partial(
    stream: &Typed<RecordBatch>,
    plan: Plan,
) -> Result<(Typed<RecordBatch>, Typed<RecordBatch>), EngineError> {
    let builder = stream.scope().operator(NAME)?;
    let input = Input::new(&builder, stream, Pact::Pipeline)?;
    let (passed, rows) = Output::new(&builder)?;
    let (known, states) = Output::new(&builder)?;
    builder.notify();
    let mut experience = Experience::new(Limits::default());
    let mut times: PerTime<(Option<Capability>, Partial)> = PerTime::new();
    builder.build(move || {
        while let Some((message, batch)) = input.next()? {
            let (capability, partial) =
                times.at(message.time(), || Ok::<_, BoxError>(Default::default()))?;
            match partial.take(batch, &plan, &mut experience)? {
                // No capability is held while rows only pass: the time may close at once.
                Fate::Passes(batch) => passed.send(&message, batch)?,
                Fate::Held if capability.is_some() => {}
                Fate::Held => *capability = Some(message.retain(known.port().port())?),
                Fate::Full(table, rest) => {
                    table.states(|batch| known.send(&message, batch))?;
                    *capability = None;
                    if let Some(rest) = rest {
                        passed.send(&message, rest)?;
                    }
                }
            }
        }
        for (capability, partial) in times.closed(&input.port().frontier()) {
            if let (Some(capability), Some(table)) = (capability, partial.close()) {
                table.states(|batch| known.send(&capability, batch))?;
            }
        }
        Ok(false)
    });
    Ok((rows, states))
}

/// Returns the results of the operator on the worker of a key.
fn total(
    rows: &Typed<RecordBatch>,
    states: &Typed<RecordBatch>,
    plan: Plan,
) -> Result<Typed<RecordBatch>, EngineError> {
    let builder = rows.scope().operator("aggregate: total")?;
    let rows = Input::new(&builder, rows, by_columns(plan.key()))?;
    let states = Input::new(&builder, states, by_columns(&plan.state_key()))?;
    let (output, result) = Output::new(&builder)?;
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
            table.finish(|batch| output.send(&capability, batch))?;
        }
        Ok(false)
    });
    Ok(result)
}
