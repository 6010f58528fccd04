//! Aggregations per time and key, sent when the time closes.
//!
//! Where rows move between workers there are two operators. The first aggregates the rows of its own worker, where that
//! pays, and otherwise lets rows pass; the second, on the worker of the key, aggregates both.

use std::cell::RefCell;
use std::rc::Rc;

use arrow_array::RecordBatch;
use pointstamp_columnar::aggregate::{Plan, Table};
use pointstamp_columnar::partial::{Experience, Fate, Limits, Partial};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::{Notify, OperatorBuilder};
use pointstamp_engine::pact::Pact;
use pointstamp_order::Point;

use super::by_time::ByTime;
use super::parts::Divisible;
use super::route::{by_columns, placed};
use crate::Error;
use crate::batch::Batch;
use crate::checkpoint::{Division, Entry, Restored, keep};
use crate::per_time::PerTime;
use crate::typed::{Input, Output, Typed};
use crate::unary::Unary;

const NAME: &str = "aggregate";

/// Aggregates the rows of each time by key, as a plan says; rows are exchanged by key unless they are `in_place`.
/// Where it is `divisible`, one worker has the operators that several have, so that a checkpoint fits any number of workers.
///
/// # Errors
///
/// Errors of building an operator.
pub fn aggregate(
    stream: &Typed<RecordBatch>,
    plan: Plan,
    in_place: bool,
    divisible: bool,
) -> Result<Typed<RecordBatch>, Error> {
    let alone = stream.scope().worker().peers() == 1 && !divisible;
    let made = if in_place || plan.keeps_values() || alone {
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
) -> Result<Typed<RecordBatch>, Error> {
    let unary = Unary::new(stream, NAME, pact)?;
    let key = plan.key().to_vec();
    let tables = ByTime::new(Tables::new(plan), unary.builder(), 0)?;
    Ok(
        unary.on_messages_and_closing(move |input: &Input<RecordBatch>, output| {
            let mut tables = tables.borrow_mut();
            while let Some((message, batch)) = input.next()? {
                tables.give(ROWS, &message, &key, batch)?;
            }
            let frontier = input.port().frontier();
            let is_open = |time: &Point| frontier.less_equal(time);
            tables.close(is_open, output, |table, send| table.finish(send))
        }),
    )
}

/// Returns the outputs of the senders' operator: rows that pass as they are, and the states of tables of other rows.
fn partial(
    stream: &Typed<RecordBatch>,
    plan: Plan,
) -> Result<(Typed<RecordBatch>, Typed<RecordBatch>), Error> {
    let builder = stream.scope().operator(NAME)?;
    let input = Input::new(&builder, stream, Pact::Pipeline)?;
    let (passed, rows) = Output::new(&builder)?;
    let (known, states) = Output::new(&builder)?;
    builder.notify();
    let mut experience = Experience::new(Limits::default());
    let times = kept_partials(&builder, &plan, known.port().port())?;
    builder.build(move || {
        let mut times = times.borrow_mut();
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
) -> Result<Typed<RecordBatch>, Error> {
    let builder = rows.scope().operator("aggregate: total")?;
    let rows = Input::new(&builder, rows, by_columns(plan.key()))?;
    let states = Input::new(&builder, states, by_columns(&plan.state_key()))?;
    let (output, result) = Output::new(&builder)?;
    for input in [&rows, &states] {
        builder.notify_of(input.port().port(), Notify::WhileHolding);
    }
    let (key, state_key) = (plan.key().to_vec(), plan.state_key());
    let tables = ByTime::new(Tables::new(plan), &builder, 0)?;
    builder.build(move || {
        let mut tables = tables.borrow_mut();
        for (input, what, key) in [(&rows, ROWS, &key), (&states, STATES, &state_key)] {
            while let Some((message, batch)) = input.next()? {
                tables.give(what, &message, key, batch)?;
            }
        }
        let (rows, states) = (rows.port().frontier(), states.port().frontier());
        let is_open = |time: &Point| rows.less_equal(time) || states.less_equal(time);
        tables.close(is_open, &output, |table, send| table.finish(send))?;
        Ok(false)
    });
    Ok(result)
}

/// The input: rows, or the states of tables.
const ROWS: u64 = 0;
const STATES: u64 = 1;

/// Tables by time.
struct Tables {
    plan: Plan,
    key: Vec<usize>,
}

impl Tables {
    fn new(plan: Plan) -> Self {
        let key = plan.state_key();
        Tables { plan, key }
    }
}

/// The numbers of contents are those of a time.
impl Divisible for Tables {
    type State = PerTime<Table>;

    fn make(&self) -> Result<Self::State, Error> {
        Ok(PerTime::new())
    }

    fn key_of(&self, _numbers: &[u64]) -> &[usize] {
        &self.key
    }

    fn put(
        &self,
        tables: &mut Self::State,
        numbers: &[u64],
        states: RecordBatch,
    ) -> Result<(), Error> {
        let table = tables.at(&Point::new(numbers), || Table::new(&self.plan))?;
        Ok(table.merge(&states)?)
    }

    fn take(
        &self,
        tables: &mut Self::State,
        numbers: &[u64],
        rows: RecordBatch,
    ) -> Result<(), Error> {
        let (what, time) = numbers.split_first().ok_or(Error::NotABatch)?;
        let table = tables.at(&Point::new(time), || Table::new(&self.plan))?;
        if *what == ROWS {
            table.update(&rows)?;
        } else {
            table.merge(&rows)?;
        }
        Ok(())
    }

    fn entries(&self, tables: &Self::State) -> Result<Vec<Entry>, Error> {
        let entries = tables.iter().map(|(time, table)| {
            let numbers = time.coords().to_vec();
            Ok(Entry::new(numbers, states_of(table)?))
        });
        entries.collect()
    }

    fn size(&self, tables: &Self::State) -> usize {
        tables.iter().map(|(_, table)| table.len()).sum()
    }
}

/// The rows of times that are aggregated before they are exchanged, with capabilities for the times that have
/// a table.
type Partials = Rc<RefCell<PerTime<(Option<Capability>, Partial)>>>;

/// Returns the tables of a senders' operator, which checkpoints take. The first number of an entry is that of the rows.
fn kept_partials(
    builder: &OperatorBuilder<Batch>,
    plan: &Plan,
    output: usize,
) -> Result<Partials, Error> {
    let times = Partials::default();
    if let Some((mut restored, entries)) = Restored::of(builder)? {
        for entry in entries {
            let (time, rows) = (entry.time(1), entry.numbers.first().copied().unwrap_or(0));
            let mut times = times.borrow_mut();
            let (capability, partial) = times.at(&time, || Ok::<_, Error>(Default::default()))?;
            if capability.is_none() {
                *capability = Some(restored.capability(output, &time)?);
            }
            let states: Vec<RecordBatch> = entry.contents()?;
            partial.put(&states, usize::try_from(rows).unwrap_or(usize::MAX), plan)?;
        }
    }
    let kept = Rc::clone(&times);
    keep(builder, Division::Parts, move || {
        let mut entries = Vec::new();
        for (time, (_, partial)) in kept.borrow().iter() {
            if let Some((table, rows)) = partial.table() {
                entries.push(Entry::at(rows as u64, time, states_of(table)?));
            }
        }
        Ok(entries)
    });
    Ok(times)
}

fn states_of(table: &Table) -> Result<Vec<RecordBatch>, Error> {
    let mut states = Vec::new();
    table.states(|batch| {
        states.push(batch);
        Ok::<_, Error>(())
    })?;
    Ok(states)
}
