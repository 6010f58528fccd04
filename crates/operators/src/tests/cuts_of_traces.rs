//! Traces that `main` and other dataflows read, of computations that are cut at any moment and resume from there.

use std::cell::RefCell;
use std::sync::atomic::AtomicUsize;

use pointstamp_engine::cut::{Part, Share, rescale};
use pointstamp_engine::error::Error as EngineError;
use pointstamp_engine::operators::{Input, Probe};
use pointstamp_engine::worker::Worker;
use pointstamp_order::Point;
use pointstamp_testkit::cases;
use proptest::prelude::*;

use super::cuts::{Ran, Record, When, parts, sink, with_shares};
use super::support::Place;
use crate::batch::Batch;
use crate::collections::{By, JoinResult, Reduction, Trace, arrange, reducer};
use crate::entry::draw::Draw;
use crate::entry::model::{self, Bag};
use crate::entry::program::{Timed, no_exotic};
use crate::entry::running::{Found, as_of, batch, ended};
use crate::entry::value::Value;
use crate::typed::Typed;

/// The number of rounds; each sends the records of an input at its time.
const ROUNDS: u64 = 5;

/// Two dataflows: one arranges and counts an input; the other imports the arrangement and joins it with another input.
#[derive(Clone, Debug)]
struct Plan {
    inputs: [Vec<Timed>; 2],
    /// When `main` takes a trace of the arrangement.
    taken: u64,
    /// When the second dataflow is built, if it is.
    imported: Option<u64>,
    /// When the first input is closed.
    closes: u64,
    /// When the first dataflow is dropped, if it is.
    drops: Option<u64>,
    /// The number of steps after each message.
    steps: usize,
}

impl Plan {
    fn draw(bytes: &[u8]) -> Self {
        let mut draw = Draw::new(bytes);
        let steps = draw.below(4);
        let taken = draw.below(3) as u64;
        let imports = draw.below(4) > 0;
        let imported = imports.then(|| taken + draw.below(3) as u64);
        // A dataflow that is imported is complete before it goes.
        let drops = (!imports && draw.below(2) > 0).then(|| taken + 1 + draw.below(2) as u64);
        // Complete updates without readers are not kept.
        let closes = taken + 1 + draw.below(4) as u64;
        let mut input = || {
            let updates = (0..6 + draw.below(12)).map(|_| {
                #[allow(clippy::cast_precision_loss, reason = "they are small")]
                let mut number = |end| Value::Number(draw.below(end) as f64);
                let pair = Value::pair(number(4), number(3));
                let round = draw.below(5) as u64;
                (pair, Point::from([round]), draw.one_of(&[1, 1, -1, 2]))
            });
            updates.collect()
        };
        Plan {
            inputs: [input(), input()],
            taken,
            imported,
            closes,
            drops,
            steps,
        }
    }

    /// The time at which the first input ends.
    fn ends(&self) -> u64 {
        self.drops
            .map_or(self.closes, |drops| drops.min(self.closes))
    }

    fn first(&self, at: u64) -> Bag {
        let ends = self.ends();
        let come = |(_, time, _): &&Timed| time.coords()[0] < ends;
        as_of(self.inputs[0].iter().filter(come), &Point::from([at]))
    }

    fn second(&self, at: u64) -> Bag {
        let begins = self.imported.unwrap_or(ROUNDS);
        let come = |(_, time, _): &&Timed| time.coords()[0] >= begins;
        as_of(self.inputs[1].iter().filter(come), &Point::from([at]))
    }

    /// The time at which the traces are read in the end.
    fn reads_at(&self) -> u64 {
        match self.drops {
            Some(drops) if drops <= self.closes => drops - 1,
            _ => ROUNDS,
        }
    }

    fn check(&self, found: &[Found], read: &[Found]) {
        let of = |found: &[Found], collection| {
            let found = found.iter().filter(|found| found.collection == collection);
            let updates = found.map(|found| found.update.clone());
            updates.collect::<Vec<Timed>>()
        };
        let counts = |of: &Bag| model::reduce(of, |list| model::reduced(&Reduction::Count, list));
        for at in 0..ROUNDS {
            let point = Point::from([at]);
            if at < self.ends() {
                let expected = counts(&self.first(at));
                assert_eq!(
                    as_of(&of(found, 0), &point),
                    expected,
                    "counts at {at} of {self:?}"
                );
            }
            if self.imported.is_some_and(|imported| imported <= at) {
                let expected = model::join(&self.first(at), &self.second(at), |[key, a, b]| {
                    Value::pair(key, Value::pair(a, b))
                });
                assert_eq!(
                    as_of(&of(found, 1), &point),
                    expected,
                    "joined at {at} of {self:?}"
                );
            }
        }
        let (at, all) = (self.reads_at(), Point::from([ROUNDS]));
        assert_eq!(
            as_of(&of(read, 0), &all),
            counts(&self.first(at)),
            "{self:?}"
        );
        assert_eq!(as_of(&of(read, 1), &all), self.first(at), "{self:?}");
    }
}

/// Returns the contents of a trace at a time, as updates of a collection.
fn read(trace: &Trace, at: u64, collection: usize) -> Vec<Found> {
    let items = trace.items(&Point::from([at])).unwrap();
    let items = items.into_iter().map(|(key, (value, count))| Found {
        collection,
        update: (
            Value::pair(Value::of(key.get()), Value::of(value.get())),
            Point::from([0]),
            count,
        ),
    });
    items.collect()
}

/// An input, and the position at which it resumes.
struct Driven {
    input: Input<Batch>,
    from: u64,
    sent: u64,
}

impl Driven {
    fn new(input: Input<Batch>) -> Self {
        let resumed = input.resumed();
        let (from, sent) = resumed.map_or((0, 0), |(time, given)| (time.coords()[0], given.sent));
        Driven { input, from, sent }
    }

    /// Sends the worker's records of a round.
    fn send(
        &self,
        worker: &Worker<Batch>,
        updates: &[Timed],
        round: u64,
        mut stepped: impl FnMut() -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        if round < self.from || self.input.is_closed() {
            return Ok(());
        }
        let at = Point::from([round]);
        if self.input.time().is_some_and(|time| time != at) {
            self.input.advance_to(&at)?;
        }
        let of_round = updates.iter().filter(|(_, time, _)| *time == at);
        let own = of_round.skip(worker.index()).step_by(worker.peers());
        let there = if round == self.from { self.sent } else { 0 };
        let own: Vec<_> = own.skip(usize::try_from(there).unwrap()).cloned().collect();
        for some in own.chunks(2) {
            let sent = self.input.send(Batch::Updates(batch(some, &at)));
            sent.map_err(|error| panic!("{}", error.into_cause()))
                .unwrap_or(());
            stepped()?;
        }
        self.input.advance_to(&Point::from([round + 1]))
    }
}

/// Runs a plan on a worker, from its beginning or from a cut; returns also the final contents of the traces.
fn run(
    worker: &Worker<Batch>,
    plan: &Plan,
    when: When,
    share: Option<Share<Batch>>,
    arrived: &AtomicUsize,
) -> Result<(Ran, Vec<Found>), EngineError> {
    if let Some(share) = share {
        worker.restore(share)?;
    }
    let record = Record::new(worker, when);
    let first = Input::new();
    let (arranged, counted, probed) = worker.dataflow("base", 1, |scope| {
        let stream = Typed::assume(first.attach(scope)?);
        let arranged = arrange(&stream, By::Key, "arrange").map_err(ended)?;
        let (counts, form) = reducer(Reduction::Count, &no_exotic(), "count");
        let counted = arranged.reduce(counts, form, "count").map_err(ended)?;
        let updates = counted.updates().map_err(ended)?;
        sink(&updates, 0, &record)?;
        let probed = Probe::new();
        probed.attach(updates.stream())?;
        Ok((arranged, counted, probed))
    })?;
    let open = Input::new(); // a computation without dataflows has ended, and is not cut
    worker.dataflow("open", 1, |scope| open.attach(scope))?;
    let first = Driven::new(first);
    let counts = counted.trace().map_err(ended)?;
    let (mut trace, mut second) = (None, None);
    let messages = RefCell::new(0);
    for round in 0..=ROUNDS {
        let stepped = || {
            *messages.borrow_mut() += 1;
            for _ in 0..plan.steps {
                worker.step()?;
            }
            record.cut_amid(worker, round, *messages.borrow());
            Ok(())
        };
        // No earlier one: a worker that resumes is not cut before it has built all dataflows of the checkpoint.
        if when == When::Before(round) {
            record.cut_before(worker, round, arrived)?;
        }
        if round == plan.taken {
            trace = Some(arranged.trace().map_err(ended)?);
        }
        if Some(round) == plan.imported
            && let Some(trace) = &trace
        {
            let input = Input::new();
            worker.dataflow("reader", 1, |scope| {
                let stream = Typed::assume(input.attach(scope)?);
                let imported = trace.import(scope).map_err(ended)?;
                let other = arrange(&stream, By::Key, "arrange").map_err(ended)?;
                let joined = imported.join(&other, JoinResult::Pairs, "join");
                sink(&joined.map_err(ended)?, 1, &record)
            })?;
            second = Some(Driven::new(input));
        }
        if Some(round) == plan.drops {
            worker.step_while(|| probed.less_than(&Point::from([round])))?;
            worker.drop_dataflow(0);
        }
        if round >= plan.closes {
            first.input.close();
        }
        first.send(worker, &plan.inputs[0], round, stepped)?;
        if let Some(second) = &second {
            second.send(worker, &plan.inputs[1], round, stepped)?;
        }
        stepped()?;
    }
    record.end_amid(worker)?;
    open.close();
    first.input.close();
    if let Some(second) = second {
        second.input.close();
    }
    worker.run()?;
    let mut found = read(&counts, plan.reads_at(), 0);
    if let Some(trace) = trace {
        found.extend(read(&trace, plan.reads_at(), 1));
    }
    Ok((record.ran(), found))
}

fn on(
    place: Place,
    plan: &Plan,
    when: When,
    shares: Option<Vec<Part<Batch>>>,
) -> (Vec<Ran>, Vec<Found>) {
    let arrived = AtomicUsize::new(0);
    let ran = with_shares(place, shares, |worker, share| {
        run(worker, plan, when, share, &arrived)
    });
    let (ran, read): (Vec<_>, Vec<_>) = ran.into_iter().unzip();
    (ran, read.into_iter().flatten().collect())
}

fn goes_on(bytes: &[u8], (cut, rest): (Place, Place), amid: (u64, usize)) {
    let plan = Plan::draw(bytes);
    let (mut ran, read) = on(cut, &plan, When::Amid(amid.0, amid.1), None);
    let parts = parts(&mut ran);
    let (rest, read_again) = on(rest, &plan, When::Never, Some(parts));
    let before: Vec<_> = ran.iter().flat_map(|ran| ran.before.clone()).collect();
    let after = ran.into_iter().flat_map(|ran| ran.after);
    plan.check(
        &before.iter().cloned().chain(after).collect::<Vec<_>>(),
        &read,
    );
    let after = rest.into_iter().flat_map(|ran| ran.before);
    plan.check(
        &before.into_iter().chain(after).collect::<Vec<_>>(),
        &read_again,
    );
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 60..140)
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn traces_go_on_from_a_cut(bytes in bytes(), workers in 1..4_usize, amid in (0..=ROUNDS, 0..12_usize)) {
        goes_on(&bytes, (Place::Threads(workers), Place::Threads(workers)), amid);
    }

    #[test]
    fn traces_go_on_with_any_number_of_workers(bytes in bytes(), numbers in [1..5_usize, 1..5_usize, 1..5_usize, 1..5_usize]) {
        let plan = Plan::draw(&bytes);
        let (mut found, mut shares) = (Vec::new(), None);
        for (turn, workers) in numbers.into_iter().enumerate() {
            let next = numbers.get(turn + 1);
            let when = next.map_or(When::Never, |_| When::Before(1 + turn as u64));
            let (mut ran, read) = on(Place::Threads(workers), &plan, when, shares.take());
            found.extend(ran.iter().flat_map(|ran| ran.before.clone()));
            match next {
                Some(&next) => shares = Some(rescale(parts(&mut ran), next).unwrap()),
                None => plan.check(&found, &read),
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn traces_of_a_cut_in_any_interleaving_go_on(
        bytes in bytes(), shape in (1..3_usize, 1..3_usize), seeds: (u64, u64), amid in (0..=ROUNDS, 0..12_usize),
    ) {
        let place = |seed| Place::Simulated(shape.0, shape.1, seed);
        goes_on(&bytes, (place(seeds.0), place(seeds.1)), amid);
    }
}
