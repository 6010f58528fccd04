//! Programs on workers: the contents of each collection, and the comparison with recomputation.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::rc::Rc;

use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::{BoxError, Error as EngineError};
use pointstamp_engine::operators::{Event, UnorderedInput, capture};
use pointstamp_engine::worker::Worker;
use pointstamp_order::{PartialOrder, Point};

use super::draw::Draw;
use super::model::{self, Bag};
use super::program::{COORDS, Program, Timed, build};
use super::value::Value;
use crate::Error;
use crate::batch::Batch;
use crate::collections::{Builder, Updates, set_fuel};
use crate::typed::Typed;

/// The way in which input is given to a dataflow, and the amount of work that its operators do at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The maximum number of updates in one message.
    pub(crate) message: usize,
    /// The number of steps that the worker makes after each message.
    pub(crate) steps: usize,
    /// The number of updates that operators work on in an activation; the usual number where it is `None`.
    pub(crate) fuel: Option<NonZeroUsize>,
}

impl Pace {
    pub(crate) fn draw(draw: &mut Draw<'_>) -> Pace {
        Pace {
            message: 1 + draw.below(4),
            steps: draw.below(4),
            fuel: NonZeroUsize::new(draw.below(5)),
        }
    }
}

/// An update that a collection of a program has carried on a worker.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) collection: usize,
    pub(crate) update: Timed,
}

/// Converts an error of building into one that ends the worker.
pub(crate) fn ended(error: Error) -> EngineError {
    match error {
        Error::Engine(error) => error,
        other => panic!("{other}"),
    }
}

/// Runs a program to its end with this worker's share of the inputs.
pub(crate) fn run(
    worker: &Worker<Batch>,
    program: &Program,
    pace: Pace,
) -> Result<Vec<Found>, EngineError> {
    if let Some(fuel) = pace.fuel {
        set_fuel(fuel);
    }
    let found = Rc::new(RefCell::new(Vec::new()));
    let mut feeds = worker.dataflow("program", program.dims, |scope| {
        let (mut feeds, mut streams) = (Vec::new(), Vec::new());
        for updates in &program.inputs {
            let (input, capability, stream) = scope.unordered_input()?;
            let own = updates.iter().skip(worker.index()).step_by(worker.peers());
            feeds.push(Feed::new(input, capability, own.cloned().collect(), pace));
            streams.push(Typed::assume(stream));
        }
        let made = build(program, scope, streams).map_err(ended)?;
        for (collection, stream) in made.iter().enumerate() {
            let found = Rc::clone(&found);
            collect(stream, move |update| {
                found.borrow_mut().push(Found { collection, update });
            })?;
        }
        Ok(feeds)
    })?;
    while feeds.iter().any(|feed| !feed.messages.is_empty()) {
        for feed in &mut feeds {
            feed.send()?;
            for _ in 0..pace.steps {
                worker.step()?;
            }
        }
    }
    drop(feeds);
    worker.run()?;
    Ok(found.take())
}

/// The updates of an input that are still to be sent, and the rights to send them.
pub(crate) struct Feed {
    input: UnorderedInput<Batch>,
    capabilities: Vec<Capability>,
    /// Messages, last one first: each with a time at or before all of its updates'.
    messages: Vec<(Point, Vec<Timed>)>,
}

impl Feed {
    pub(crate) fn new(
        input: UnorderedInput<Batch>,
        capability: Capability,
        mut updates: Vec<Timed>,
        pace: Pace,
    ) -> Self {
        updates.sort_by(|(_, a, _), (_, b, _)| a.cmp(b));
        let parts = updates.chunks(pace.message);
        let mut messages: Vec<_> = parts
            .map(|part| {
                let times = part.iter().map(|(_, time, _)| time.clone());
                let least = times.reduce(|a, b| a.meet(&b).expect("one scope's"));
                (least.expect("parts are not empty"), part.to_vec())
            })
            .collect();
        messages.reverse();
        Feed {
            input,
            capabilities: vec![capability],
            messages,
        }
    }

    /// Sends a message, and drops capabilities that the others do not need.
    pub(crate) fn send(&mut self) -> Result<(), EngineError> {
        let held = |capabilities: &[Capability], time: &Point| {
            let mut held = capabilities.iter();
            let held = held.find(|held| held.time().less_equal(time));
            held.expect("what is left can be sent").delayed(time)
        };
        if let Some((time, updates)) = self.messages.pop() {
            let capability = held(&self.capabilities, &time)?;
            let batch = Batch::Updates(batch(&updates, &time));
            let sent = self.input.send(&capability, batch);
            sent.map_err(|error| panic!("{}", error.into_cause()))
                .unwrap_or(());
        }
        let mut least: Vec<Point> = Vec::new();
        for (time, _) in &self.messages {
            if !least.iter().any(|other| other.less_equal(time)) {
                least.retain(|other| !time.less_equal(other));
                least.push(time.clone());
            }
        }
        let kept = least.iter().map(|time| held(&self.capabilities, time));
        self.capabilities = kept.collect::<Result<_, _>>()?;
        Ok(())
    }
}

/// A batch of updates, for a message at a time.
pub(crate) fn batch(updates: &[Timed], message: &Point) -> Updates {
    let mut builder = Builder::default();
    for (value, time, diff) in updates {
        builder.push(value.row().get(), time, *diff);
    }
    builder.finish(message)
}

/// Hands each update of a stream to a function. The worker fails if one comes behind the stream's frontier.
pub(crate) fn collect(
    stream: &Typed<Updates>,
    mut sink: impl FnMut(Timed) + 'static,
) -> Result<(), EngineError> {
    let mut frontier: BTreeMap<Point, i64> = BTreeMap::new();
    capture(stream.stream(), move |event| {
        match event {
            Event::Progress(changes) => {
                for (time, change) in changes {
                    *frontier.entry(time).or_default() += change;
                }
                frontier.retain(|_, count| *count != 0);
            }
            Event::Messages(message, batch) => {
                let Batch::Updates(updates) = batch else {
                    return Err("a collection has another kind of batches".into());
                };
                for update in updates.iter() {
                    let time = update.time(&message);
                    if !frontier.keys().any(|open| open.less_equal(&time))
                        || !message.less_equal(&time)
                    {
                        return Err::<_, BoxError>(format!("an update at {time} came late").into());
                    }
                    sink((Value::of(update.row), time, update.diff));
                }
            }
        }
        Ok(())
    })
}

/// Every time of so many coordinates at which a program's collections may differ.
pub(crate) fn grid(dims: usize) -> Vec<Point> {
    let mut times = vec![Point::minimum(0)];
    for _ in 0..dims {
        let longer = times
            .iter()
            .flat_map(|time| (0..COORDS).map(|coord| time.extend(&[coord])));
        times = longer.collect();
    }
    times
}

/// Adds up the updates at or before a time.
pub(crate) fn as_of<'a>(updates: impl IntoIterator<Item = &'a Timed>, at: &Point) -> Bag {
    let come = updates
        .into_iter()
        .filter(|(_, time, _)| time.less_equal(at));
    model::bag(come.map(|(value, _, diff)| (value.clone(), *diff)))
}

/// Compares the results of all workers with recomputation at every time.
///
/// # Panics
///
/// When they differ.
pub(crate) fn check(program: &Program, found: impl IntoIterator<Item = Found>) {
    let mut collections = vec![Vec::new(); program.inputs.len() + program.steps.len()];
    for found in found {
        collections[found.collection].push(found.update);
    }
    for (number, updates) in collections.iter().enumerate() {
        if program.is_consolidated(number) {
            let all: BTreeSet<_> = updates
                .iter()
                .map(|(value, time, _)| (value, time))
                .collect();
            assert_eq!(
                all.len(),
                updates.len(),
                "collection {number} of {program:?}: {updates:?}"
            );
        }
    }
    for at in grid(program.dims) {
        for (number, expected) in program.recompute(&at).into_iter().enumerate() {
            let found = as_of(&collections[number], &at);
            assert_eq!(
                found, expected,
                "collection {number} at {at} of {program:?}"
            );
        }
    }
}
