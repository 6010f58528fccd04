//! Random programs of collections that are cut at any moment, and resume from there on as many workers or on others.

use std::cell::{Cell, RefCell};
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pointstamp_engine::cut::{Cuts, GivenUp, Limits, Part, Piece, Share, State, rescale};
use pointstamp_engine::error::{Error as EngineError, UserResult};
use pointstamp_engine::operators::Input;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::payload::Payload;
use pointstamp_engine::worker::Worker;
use pointstamp_order::Point;
use pointstamp_testkit::cases;
use proptest::prelude::*;

use super::support::Place;
use crate::batch::Batch;
use crate::collections::{Updates, set_fuel};
use crate::entry::draw::Draw;
use crate::entry::encoded;
use crate::entry::program::{COORDS, Program, Timed, build};
use crate::entry::running::{Found, Pace, batch, check, ended};
use crate::entry::value::Value;
use crate::typed::{Input as Port, Typed};

/// The limit of an attempt, against hangs.
const LONG: Limits = Limits {
    ready: Duration::from_secs(300),
    common: Duration::ZERO,
    drain: Duration::from_secs(300),
    rounds: u32::MAX,
};

/// When there is a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Never,
    /// In this round, when the first worker has sent so many messages.
    Amid(u64, usize),
    /// Before this round, when no worker has sent anything at its times.
    Before(u64),
}

/// The parts of cuts that a worker received.
pub(super) struct Record {
    when: When,
    found: RefCell<Vec<Found>>,
    /// The part, and the number of results at that moment.
    part: RefCell<Option<(Part<Batch>, usize)>>,
    worker: RefCell<Option<Worker<Batch>>>,
    /// Whether the cut amid a round was requested.
    asked: Cell<bool>,
    /// The number of cuts before rounds.
    cuts: Cell<usize>,
}

impl Cuts<Batch> for Record {
    fn taken(&self, part: Part<Batch>) -> UserResult<()> {
        if let Some(objection) = part.objections().into_iter().next() {
            return Err(objection.into());
        }
        let found = self.found.borrow().len();
        *self.part.borrow_mut() = Some((part, found));
        Ok(())
    }

    fn given_up(&self, _: GivenUp) {
        let worker = self.worker.borrow();
        if let Some(worker) = worker.as_ref().filter(|worker| worker.index() == 0) {
            worker.request_cut(); // workers had not built the same yet
        }
    }
}

/// A worker's results before a cut and after it, and its part at the cut.
pub(super) struct Ran {
    pub(super) before: Vec<Found>,
    pub(super) after: Vec<Found>,
    pub(super) part: Option<Part<Batch>>,
}

impl Record {
    /// Makes the record of a worker that is to be cut.
    pub(super) fn new(worker: &Worker<Batch>, when: When) -> Rc<Self> {
        let record = Rc::new(Record {
            when,
            found: RefCell::default(),
            part: RefCell::default(),
            worker: RefCell::new(Some(worker.clone())),
            asked: Cell::default(),
            cuts: Cell::default(),
        });
        worker.set_cuts(LONG, Rc::clone(&record) as _);
        record
    }

    /// Cuts before a round, if the cut is to be there, or later: the last cut counts, and shares pieces with those before it. `arrived` counts the workers
    /// that have come to a cut.
    pub(super) fn cut_before(
        &self,
        worker: &Worker<Batch>,
        round: u64,
        arrived: &AtomicUsize,
    ) -> Result<(), EngineError> {
        if !matches!(self.when, When::Before(last) if round <= last) {
            return Ok(());
        }
        self.part.take();
        self.cuts.set(self.cuts.get() + 1);
        arrived.fetch_add(1, Ordering::SeqCst);
        if worker.index() == 0 {
            while arrived.load(Ordering::SeqCst) < worker.peers() * self.cuts.get() {
                worker.step()?;
                std::thread::yield_now();
            }
            worker.request_cut();
        }
        self.wait(worker)
    }

    /// Requests a cut amid a round, if the first worker has sent so many messages.
    pub(super) fn cut_amid(&self, worker: &Worker<Batch>, round: u64, messages: usize) {
        if let When::Amid(amid, after) = self.when
            && (amid, after) <= (round, messages)
        {
            self.request(worker);
        }
    }

    /// Waits for the cut amid a round; requests it, if the first worker has sent too few messages.
    pub(super) fn end_amid(&self, worker: &Worker<Batch>) -> Result<(), EngineError> {
        if let When::Amid(..) = self.when {
            self.request(worker);
            self.wait(worker)?;
        }
        Ok(())
    }

    /// Requests a cut on the first worker, once.
    fn request(&self, worker: &Worker<Batch>) {
        if worker.index() == 0 && !self.asked.replace(true) {
            worker.request_cut();
        }
    }

    /// Waits for the cut.
    fn wait(&self, worker: &Worker<Batch>) -> Result<(), EngineError> {
        worker.step_while(|| self.part.borrow().is_none())
    }

    pub(super) fn ran(&self) -> Ran {
        self.worker.take();
        let (mut before, part) = (self.found.take(), self.part.take());
        let at = part.as_ref().map_or(before.len(), |(_, at)| *at);
        let after = before.split_off(at);
        let part = part.map(|(part, _)| part);
        Ran {
            before,
            after,
            part,
        }
    }
}

/// Hands a collection's updates to a record.
pub(super) fn sink(
    stream: &Typed<Updates>,
    collection: usize,
    record: &Rc<Record>,
) -> Result<(), EngineError> {
    let builder = stream.scope().operator("sink")?;
    let input = Port::new(&builder, stream, Pact::Pipeline)?;
    builder.stateless();
    let record = Rc::clone(record);
    builder.build(move || {
        while let Some((message, updates)) = input.next()? {
            let found = updates.iter().map(|update| Found {
                collection,
                update: (
                    Value::of(update.row),
                    update.time(message.time()),
                    update.diff,
                ),
            });
            record.found.borrow_mut().extend(found);
        }
        Ok(false)
    });
    Ok(())
}

/// The coordinate that an input moves on.
fn moves(input: usize, dims: usize) -> usize {
    input % dims
}

/// The time of an input in a round.
fn time_in(round: u64, input: usize, dims: usize) -> Point {
    let coords = (0..dims).map(|at| if at == moves(input, dims) { round } else { 0 });
    coords.collect()
}

/// Runs a program on a worker, from its beginning or from a cut. `arrived` counts the workers that are where a cut is wanted.
fn run(
    worker: &Worker<Batch>,
    program: &Program,
    pace: Pace,
    when: When,
    share: Option<Share<Batch>>,
    arrived: &AtomicUsize,
) -> Result<Ran, EngineError> {
    if let Some(fuel) = pace.fuel {
        set_fuel(fuel);
    }
    if let Some(share) = share {
        worker.restore(share)?;
    }
    let record = Record::new(worker, when);
    let dims = program.dims;
    let inputs: Vec<Input<Batch>> = program.inputs.iter().map(|_| Input::new()).collect();
    worker.dataflow("program", dims, |scope| {
        let streams = inputs.iter().map(|input| input.attach(scope));
        let streams = streams.map(|stream| Ok(Typed::assume(stream?)));
        let streams = streams.collect::<Result<Vec<_>, EngineError>>()?;
        let made = build(program, scope, streams).map_err(ended)?;
        for (collection, stream) in made.iter().enumerate() {
            sink(stream, collection, &record)?;
        }
        Ok(())
    })?;
    let (here, peers) = (worker.index(), worker.peers());
    let mut messages = 0;
    let begins: Vec<(u64, u64)> = inputs
        .iter()
        .enumerate()
        .map(|(number, input)| {
            let resumed = input.resumed();
            resumed.map_or((0, 0), |(time, given)| {
                (time.coords()[moves(number, dims)], given.sent)
            })
        })
        .collect();
    for round in 0..=COORDS {
        record.cut_before(worker, round, arrived)?;
        for (number, input) in inputs.iter().enumerate() {
            // Records that are sent to an ended input are dropped.
            let (from, sent) = begins[number];
            if round < from {
                continue;
            }
            let at = time_in(round, number, dims);
            let of_round = |(_, time, _): &&Timed| time.coords()[moves(number, dims)] == round;
            let updates = program.inputs[number].iter().filter(of_round);
            let own = updates.skip(here).step_by(peers).cloned();
            let skipped = if round == from { sent } else { 0 };
            let own: Vec<_> = own.skip(usize::try_from(skipped).unwrap()).collect();
            for some in own.chunks(pace.message) {
                if !input.is_closed() {
                    let sent = input.send(Batch::Updates(batch(some, &at)));
                    sent.map_err(|error| panic!("{}", error.into_cause()))
                        .unwrap_or(());
                }
                messages += 1;
                for _ in 0..pace.steps {
                    worker.step()?;
                }
                record.cut_amid(worker, round, messages);
            }
            let later = program.inputs[number].iter();
            let last = later
                .map(|(_, time, _)| time.coords()[moves(number, dims)])
                .max();
            if number == 0 && inputs.len() > 1 && last.is_none_or(|last| last <= round) {
                input.close(); // its operators end, and others still read their state
            } else if !input.is_closed() {
                input.advance_to(&time_in(round + 1, number, dims))?;
            }
            for _ in 0..pace.steps {
                worker.step()?;
            }
        }
    }
    record.end_amid(worker)?;
    inputs.iter().for_each(Input::close);
    worker.run()?;
    Ok(record.ran())
}

/// Writes a part as bytes and reads it again.
pub(super) fn through_bytes(mut part: Part<Batch>) -> Part<Batch> {
    let again = |piece: Piece| Piece::from(piece.to_bytes().unwrap().to_vec());
    let all = |pieces: Vec<Piece>| pieces.into_iter().map(again).collect();
    let operators = part.dataflows.iter_mut().flat_map(|it| &mut it.operators);
    for operator in operators {
        operator.state = operator.state.take().map(|state| match state {
            State::None => State::None,
            State::Workers(pieces) => State::Workers(all(pieces)),
            State::Groups(pieces) => State::Groups(all(pieces)),
            State::Parts(pieces) => State::Parts(all(pieces)),
        });
        for queued in &mut operator.queued {
            let bytes: Bytes = encoded(&queued.batch);
            queued.batch = Batch::decode(bytes).unwrap();
        }
    }
    part
}

/// Returns the parts of the workers at a cut.
pub(super) fn parts(ran: &mut [Ran]) -> Vec<Part<Batch>> {
    let parts = ran.iter_mut().map(|ran| ran.part.take().unwrap());
    parts.map(through_bytes).collect()
}

/// Runs `main` with the share with which each worker begins.
pub(super) fn with_shares<R: Send>(
    place: Place,
    parts: Option<Vec<Part<Batch>>>,
    main: impl Fn(&Worker<Batch>, Option<Share<Batch>>) -> Result<R, EngineError> + Sync,
) -> Vec<R> {
    let shares = parts.map(|parts| {
        let shares = Share::of(parts).into_iter().map(Some);
        Mutex::new(shares.collect::<Vec<_>>())
    });
    place.run(|worker| {
        let shares = shares.as_ref();
        let own = shares.map(|shares| shares.lock()[worker.index()].take().unwrap());
        main(worker, own)
    })
}

fn on(
    at: Place,
    (program, pace, when): (&Program, Pace, When),
    parts: Option<Vec<Part<Batch>>>,
) -> Vec<Ran> {
    let arrived = AtomicUsize::new(0);
    with_shares(at, parts, |worker, share| {
        run(worker, program, pace, when, share, &arrived)
    })
}

fn drawn(bytes: &[u8]) -> (Pace, Program, usize) {
    let mut draw = Draw::new(bytes);
    let mut pace = Pace::draw(&mut draw);
    pace.fuel = pace.fuel.or(NonZeroUsize::new(1 << 10));
    let at = draw.below(4);
    (pace, Program::draw(&mut draw), at)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 20..200)
}

/// Cuts a program, and checks that it continues both undisturbed and from the cut.
fn goes_on(bytes: &[u8], (cut, rest): (Place, Place), round: u64) {
    let (pace, program, at) = drawn(bytes);
    let when = When::Amid(round, at);
    let mut ran = on(cut, (&program, pace, when), None);
    let parts = parts(&mut ran);
    let rest = on(rest, (&program, pace, When::Never), Some(parts));
    let before: Vec<_> = ran.iter().flat_map(|ran| ran.before.clone()).collect();
    let after = ran.into_iter().flat_map(|ran| ran.after);
    check(&program, before.clone().into_iter().chain(after));
    let after = rest.into_iter().flat_map(|ran| ran.before);
    check(&program, before.into_iter().chain(after));
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn a_worker_goes_on_from_a_cut(bytes in bytes(), round in 0..=COORDS) {
        goes_on(&bytes, (Place::Threads(1), Place::Threads(1)), round);
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn two_to_four_workers_go_on_from_a_cut(bytes in bytes(), workers in 2..5_usize, round in 0..=COORDS) {
        goes_on(&bytes, (Place::Threads(workers), Place::Threads(workers)), round);
    }

    #[test]
    fn collections_go_on_with_any_number_of_workers(
        bytes in bytes(), numbers in [1..5_usize, 1..5_usize, 1..5_usize, 1..5_usize],
    ) {
        let (pace, program, _) = drawn(&bytes);
        let (mut found, mut shares) = (Vec::new(), None);
        for (number, workers) in numbers.into_iter().enumerate() {
            let next = numbers.get(number + 1);
            let when = next.map_or(When::Never, |_| When::Before(1 + number as u64));
            let mut ran = on(Place::Threads(workers), (&program, pace, when), shares.take());
            found.extend(ran.iter().flat_map(|ran| ran.before.clone()));
            shares = next.map(|&next| rescale(parts(&mut ran), next).unwrap());
        }
        check(&program, found);
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn a_cut_in_any_interleaving_goes_on(
        bytes in bytes(), shape in (1..3_usize, 1..3_usize), seeds: (u64, u64), round in 0..=COORDS,
    ) {
        let place = |seed| Place::Simulated(shape.0, shape.1, seed);
        goes_on(&bytes, (place(seeds.0), place(seeds.1)), round);
    }
}
