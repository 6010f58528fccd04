//! Random programs that can be cut: loops in loops, exchanges, feedback, operators that hold capabilities, that are notified, that stop in
//! the middle of their work, and that leave batches at their inputs.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test program uses a part of it"
)]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pointstamp_engine::capability::Capability;
use pointstamp_engine::cut::{Cuts, GivenUp, Limits, Part, Share, State};
use pointstamp_engine::error::{Error, UserResult};
use pointstamp_engine::inspect::ScopeState;
use pointstamp_engine::operators::{Input, concatenate};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::scope::Scope;
use pointstamp_engine::stream::Stream;
use pointstamp_engine::worker::Worker;
use pointstamp_order::{Point, Summary, group_of, worker_of};
use pointstamp_testkit::Rng;

pub type Batch = Vec<u64>;

/// A time and a record, as often as they come out.
pub type Output = BTreeMap<(Vec<u64>, u64), usize>;

/// The limit of an attempt that is to succeed, against hangs.
pub const LONG: Limits = Limits {
    ready: Duration::from_secs(300),
    common: Duration::ZERO,
    drain: Duration::from_secs(300),
    rounds: u32::MAX,
};

/// One step of a program.
#[derive(Clone, Debug)]
pub enum Op {
    /// Another record for each.
    Map,
    /// Records to the workers of their key groups.
    Exchange,
    /// Records to every worker.
    Broadcast,
    /// By time, each record once, when the time is complete.
    Distinct,
    /// By time and key, a sum, when the time is complete.
    Sums,
    /// Records at a later time, when their own is complete.
    Delay(u64),
    /// Stops after each batch, and resumes.
    Stops,
    /// Leaves batches at its input until it activates itself.
    Leaves,
    /// Round a loop, with a program in its body.
    Loop(Vec<Op>),
}

/// A program, drawn by a seed.
#[derive(Clone, Debug)]
pub struct Program {
    pub seed: u64,
    pub ops: Vec<Op>,
    pub rounds: u64,
}

impl Program {
    /// Draws a program. A `divisible` one can resume with another number of workers.
    pub fn draw(seed: u64, divisible: bool) -> Self {
        let mut rng = Rng::new(seed);
        let ops = draw(&mut rng, 2, true, divisible);
        let rounds = if divisible {
            5
        } else {
            2 + rng.below(5) as u64
        };
        Program { seed, ops, rounds }
    }
}

fn draw(rng: &mut Rng, depth: usize, grows: bool, divisible: bool) -> Vec<Op> {
    let len = 1 + rng.below(if grows { 5 } else { 3 });
    let op = |rng: &mut Rng| loop {
        match rng.below(10) {
            0 => return Op::Map,
            1 => return Op::Exchange,
            2 if grows && !divisible => return Op::Broadcast,
            3 => return Op::Distinct,
            4 if grows => return Op::Sums,
            5 => return Op::Delay(rng.below(3) as u64),
            6 => return Op::Stops,
            7 => return Op::Leaves,
            8 | 9 if depth > 0 => return Op::Loop(draw(rng, depth - 1, false, divisible)),
            _ => {}
        }
    };
    (0..len).map(|_| op(rng)).collect()
}

#[allow(clippy::unnecessary_wraps, reason = "a router may fail")]
fn by_group(batch: Batch, parts: &mut [Vec<Batch>]) -> UserResult<()> {
    let peers = parts.len();
    let mut routed = vec![Batch::new(); peers];
    for x in batch {
        routed[worker_of(group_of(x), peers)].push(x);
    }
    for (part, batch) in parts.iter_mut().zip(routed) {
        part.push(batch);
    }
    Ok(())
}

#[allow(clippy::unnecessary_wraps, reason = "a router may fail")]
fn by_key(batch: Batch, parts: &mut [Vec<Batch>]) -> UserResult<()> {
    let peers = parts.len();
    for x in batch {
        parts[worker_of(group_of(x % 8), peers)].push(vec![x]);
    }
    Ok(())
}

/// The records that have waited for each time, with the capability to send them.
type Waiting = BTreeMap<Point, (Vec<u64>, Capability)>;

/// Encodes the waiting records, as state by key group, or as parts for any worker.
fn taken(waiting: &Waiting, by_group: bool) -> UserResult<State> {
    let records = waiting.iter().flat_map(|(time, (records, _))| {
        let at = |&record: &u64| (time.coords().to_vec(), record);
        records.iter().map(at)
    });
    let records: Vec<_> = records.collect();
    let pieces = vec![postcard::to_stdvec(&records)?.into()];
    Ok(if by_group {
        State::Groups(pieces)
    } else {
        State::Parts(pieces)
    })
}

/// Builds an operator that keeps records until their time is complete, and then sends the results of
/// `results`, `later` in the last coordinate. Records have a `group` where they come to the workers of their
/// groups.
fn at_the_end(
    stream: &Stream<Batch>,
    name: &str,
    pact: Pact<Batch>,
    later: u64,
    group: Option<fn(u64) -> u16>,
    results: fn(Vec<u64>) -> Vec<u64>,
) -> Result<Stream<Batch>, Error> {
    let builder = stream.scope().operator(name)?;
    let input = builder.new_input(stream, pact)?;
    let (output, sent) = builder.new_output()?;
    builder.notify();
    let mut waiting = Waiting::new();
    if let Some(mut restored) = builder.restored()
        && let State::Groups(pieces) | State::Parts(pieces) =
            std::mem::replace(&mut restored.state, State::None)
    {
        let worker = stream.scope().worker();
        let (here, peers) = (worker.index(), worker.peers());
        for bytes in pieces {
            let records: Vec<(Vec<u64>, u64)> =
                postcard::from_bytes(&bytes.to_bytes().unwrap()).unwrap();
            for (time, record) in records {
                if group.is_some_and(|group| worker_of(group(record), peers) != here) {
                    continue;
                }
                let time = Point::from(time);
                let at = time.with_last(time.last().unwrap() + later);
                let entry = waiting.entry(time).or_insert_with(|| {
                    let capability = restored.capability(0, &at);
                    (Vec::new(), capability.expect("a time that was held"))
                });
                entry.0.push(record);
            }
        }
    }
    let waiting = Rc::new(RefCell::new(waiting));
    let kept = waiting.clone();
    builder.keeps(move || taken(&kept.borrow(), group.is_some()));
    builder.build(move || {
        let mut waiting = waiting.borrow_mut();
        while let Some((capability, batch)) = input.next()? {
            let time = capability.time().clone();
            let at = time.with_last(time.last().unwrap() + later);
            let held = capability.delayed(&at, 0)?;
            waiting
                .entry(time)
                .or_insert_with(|| (Vec::new(), held))
                .0
                .extend(batch);
        }
        let frontier = input.frontier();
        let complete = |time: &Point| !frontier.less_equal(time);
        let done: Vec<_> = waiting
            .keys()
            .filter(|time| complete(time))
            .cloned()
            .collect();
        for time in done {
            let (records, capability) = waiting.remove(&time).unwrap();
            output.send(&capability, results(records))?;
        }
        Ok(false)
    });
    Ok(sent)
}

fn each(
    stream: &Stream<Batch>,
    name: &str,
    function: impl Fn(u64) -> u64 + 'static,
) -> Result<Stream<Batch>, Error> {
    let builder = stream.scope().operator(name)?;
    let input = builder.new_input(stream, Pact::Pipeline)?;
    let (output, sent) = builder.new_output()?;
    builder.stateless();
    builder.build(move || {
        while let Some((capability, batch)) = input.next()? {
            output.send(&capability, batch.into_iter().map(&function).collect())?;
        }
        Ok(false)
    });
    Ok(sent)
}

fn stops(stream: &Stream<Batch>) -> Result<Stream<Batch>, Error> {
    let builder = stream.scope().operator("stops")?;
    let input = builder.new_input(stream, Pact::Pipeline)?;
    let (output, sent) = builder.new_output()?;
    let activator = builder.activator();
    let left = Rc::new(RefCell::new(VecDeque::<(Capability, Batch)>::new()));
    let seen = left.clone();
    builder.keeps(move || {
        if seen.borrow().is_empty() {
            return Ok(State::None);
        }
        Err("work was left at the cut that the operator had stopped in".into())
    });
    builder.build(move || {
        let mut left = left.borrow_mut();
        while let Some((capability, batch)) = input.next()? {
            for x in batch {
                left.push_back((capability.retain(0)?, vec![x]));
            }
        }
        if let Some((capability, batch)) = left.pop_front() {
            output.send(&capability, batch)?;
        }
        if !left.is_empty() {
            activator.resume();
        }
        Ok(false)
    });
    Ok(sent)
}

fn leaves(stream: &Stream<Batch>) -> Result<Stream<Batch>, Error> {
    let builder = stream.scope().operator("leaves")?;
    let input = builder.new_input(stream, Pact::exchange(by_group))?;
    let (output, sent) = builder.new_output()?;
    let activator = builder.activator();
    builder.stateless();
    let worker = stream.scope().worker();
    let (here, peers) = (worker.index(), worker.peers());
    let mut takes = false;
    builder.build(move || {
        takes = !takes;
        if !takes {
            if input.has_messages() {
                activator.activate();
            }
        } else if let Some((capability, batch)) = input.next()? {
            if batch.iter().any(|&x| worker_of(group_of(x), peers) != here) {
                return Err("a record is at a worker that does not have its group".into());
            }
            output.send(&capability, batch)?;
        }
        Ok(false)
    });
    Ok(sent)
}

fn turns(stream: &Stream<Batch>, body: &[Op]) -> Result<Stream<Batch>, Error> {
    let scope = stream.scope().nested("loop", 1)?;
    let (handle, cycle) = scope.feedback(Summary::step(scope.dims(), 1))?;
    let entered = scope.enter(stream)?;
    let merged = concatenate(&scope, [entered, cycle])?;
    let turned = apply(&merged, body)?;
    let builder = scope.operator("ways")?;
    let input = builder.new_input(&turned, Pact::Pipeline)?;
    let (out, leaving) = builder.new_output()?;
    let (on, going) = builder.new_output()?;
    builder.stateless();
    builder.build(move || {
        while let Some((capability, batch)) = input.next()? {
            let (done, rest): (Batch, Batch) =
                batch.into_iter().partition(|x| x % 4 == 0 || *x < 2);
            out.send(&capability, done)?;
            on.send(&capability, rest.into_iter().map(|x| x / 2).collect())?;
        }
        Ok(false)
    });
    handle.connect(&going)?;
    let left = scope.leave(&leaving)?;
    scope.close();
    Ok(left)
}

/// Adds the steps of a program.
pub fn apply(stream: &Stream<Batch>, ops: &[Op]) -> Result<Stream<Batch>, Error> {
    let mut stream = stream.clone();
    for op in ops {
        stream = match op {
            Op::Map => each(&stream, "map", |x| x ^ 1)?,
            Op::Exchange => stream.forward("exchange", Pact::exchange(by_group))?,
            Op::Broadcast => stream.forward("broadcast", Pact::Broadcast)?,
            Op::Distinct => at_the_end(
                &stream,
                "distinct",
                Pact::exchange(by_group),
                0,
                Some(group_of),
                |records| {
                    let distinct: BTreeSet<_> = records.into_iter().collect();
                    distinct.into_iter().collect()
                },
            )?,
            Op::Sums => at_the_end(
                &stream,
                "sums",
                Pact::exchange(by_key),
                0,
                Some(|x| group_of(x % 8)),
                |records| {
                    let mut sums = BTreeMap::new();
                    for x in records {
                        *sums.entry(x % 8).or_insert(0) += x;
                    }
                    sums.into_iter()
                        .map(|(key, sum)| key + 8 * (sum % 50))
                        .collect()
                },
            )?,
            Op::Delay(by) => at_the_end(&stream, "delay", Pact::Pipeline, *by, None, |all| all)?,
            Op::Stops => stops(&stream)?,
            Op::Leaves => leaves(&stream)?,
            Op::Loop(body) => turns(&stream, body)?,
        };
    }
    Ok(stream)
}

/// The output of a worker, and its contents at the cut.
#[derive(Default)]
pub struct Record {
    pub out: RefCell<Vec<(Vec<u64>, u64)>>,
    pub part: RefCell<Option<(Part<Batch>, usize)>>,
    pub given_up: RefCell<Vec<GivenUp>>,
    pub complete: Cell<u64>,
    pub worker: RefCell<Option<Worker<Batch>>>,
    /// Whether an attempt that came to nothing is followed by another.
    pub again: Cell<bool>,
    /// The worker's counts at every port at the cut.
    pub view: RefCell<String>,
}

/// Formats a worker's counts at every port of a scope, and whether it holds any of them back.
fn view(scope: &ScopeState, known: &mut String) {
    assert!(
        scope.unsent.is_empty(),
        "{:?} is held back at the cut",
        scope.unsent
    );
    for operator in &scope.operators {
        let sorted = |frontier: &[Point]| {
            let mut times = frontier.to_vec();
            times.sort();
            times
        };
        let inputs = operator
            .inputs
            .iter()
            .map(|it| (sorted(&it.frontier), &it.pointstamps));
        let outputs = operator
            .outputs
            .iter()
            .map(|it| (sorted(&it.frontier), &it.pointstamps));
        let ports: Vec<_> = inputs.chain(outputs).collect();
        let _ = writeln!(known, "{} {ports:?}", operator.name);
        if let Some(scope) = &operator.scope {
            view(scope, known);
        }
    }
}

impl Cuts<Batch> for Record {
    fn taken(&self, part: Part<Batch>) -> UserResult<()> {
        let objections = part.objections();
        if let Some(objection) = objections.into_iter().next() {
            return Err(objection.into());
        }
        if let Some(worker) = &*self.worker.borrow() {
            let snapshot = worker.inspect();
            let known = &mut *self.view.borrow_mut();
            snapshot.dataflows.iter().for_each(|it| view(it, known));
        }
        *self.part.borrow_mut() = Some((part, self.out.borrow().len()));
        Ok(())
    }

    fn complete(&self, attempt: u64) {
        self.complete.set(attempt);
    }

    fn given_up(&self, given_up: GivenUp) {
        self.given_up.borrow_mut().push(given_up);
        let worker = self.worker.borrow();
        let leads = worker.as_ref().filter(|worker| worker.index() == 0);
        if let Some(worker) = leads.filter(|_| self.again.get()) {
            worker.request_cut(); // workers had not built the same yet
        }
    }
}

fn sink(stream: &Stream<Batch>, record: &Rc<Record>) -> Result<(), Error> {
    let builder = stream.scope().operator("sink")?;
    let input = builder.new_input(stream, Pact::Pipeline)?;
    builder.stateless();
    let record = record.clone();
    builder.build(move || {
        while let Some((capability, batch)) = input.next()? {
            let time = capability.time().coords();
            let records = batch.into_iter().map(|x| (time.to_vec(), x));
            record.out.borrow_mut().extend(records);
        }
        Ok(false)
    });
    Ok(())
}

/// Builds a program on a scope.
pub fn build(
    program: &Program,
    scope: &Scope<Batch>,
    input: &Input<Batch>,
    record: &Rc<Record>,
) -> Result<(), Error> {
    let stream = input.attach(scope)?;
    sink(&apply(&stream, &program.ops)?, record)
}

/// The moment at which main requests a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Never,
    /// In this round, in the middle of it.
    Amid(u64),
    /// Before this round, when no worker has sent anything at its time.
    Before(u64),
    /// In the middle of this round, but the attempt is given up when it begins to count.
    Hopeless(u64),
}

/// The results of a worker's run.
pub struct Ran {
    /// The output before the cut, or of the whole run.
    pub before: Vec<(Vec<u64>, u64)>,
    pub after: Vec<(Vec<u64>, u64)>,
    pub part: Option<Part<Batch>>,
    pub given_up: usize,
    pub view: String,
}

/// Runs a program on a worker, from its beginning or from a cut. `arrived` counts the workers that are where a cut is wanted.
pub fn run(
    worker: &Worker<Batch>,
    program: &Program,
    when: When,
    share: Option<Share<Batch>>,
    arrived: &AtomicUsize,
) -> Result<Ran, Error> {
    let (here, peers) = (worker.index(), worker.peers());
    if let Some(share) = share {
        worker.restore(share)?;
    }
    let record = Rc::new(Record::default());
    record
        .again
        .set(matches!(when, When::Amid(_) | When::Before(_)));
    *record.worker.borrow_mut() = Some(worker.clone());
    let limits = match when {
        When::Hopeless(_) => Limits { rounds: 0, ..LONG },
        _ => LONG,
    };
    worker.set_cuts(limits, record.clone());
    let input = Input::new();
    worker.dataflow("program", 1, |scope| build(program, scope, &input, &record))?;
    let mut rng = Rng::new(program.seed ^ (here as u64 + 1).wrapping_mul(77));
    let (from, skip) = input.resumed().map_or((0, 0), |(time, standing)| {
        (time.last().unwrap(), standing.sent)
    });
    for round in from..program.rounds {
        if when == When::Before(round) {
            cut(worker, &record, arrived)?;
        }
        // The same records however many workers there are.
        let records = (0..12).filter(|i| i % peers == here);
        let records =
            records.map(|i| Rng::new(program.seed ^ (round * 100 + i as u64)).next_u64() % 64);
        let skipped = if round == from { skip } else { 0 };
        let records: Vec<_> = records.skip(usize::try_from(skipped).unwrap()).collect();
        for (number, some) in records.chunks(2).enumerate() {
            input.send(some.to_vec()).unwrap();
            let asks = [When::Amid(round), When::Hopeless(round)].contains(&when);
            if asks && here == 0 && number == 0 {
                worker.request_cut();
            }
            for _ in 0..rng.below(4) {
                worker.step()?;
            }
        }
        input.advance_to(&Point::new(&[round + 1]))?;
    }
    if let When::Amid(_) = when {
        worker.step_while(|| record.part.borrow().is_none())?;
    }
    if let When::Hopeless(_) = when {
        worker.step_while(|| record.given_up.borrow().is_empty())?;
    }
    input.close();
    worker.run()?;
    record.worker.take();
    let out = record.out.take();
    let part = record.part.take();
    let at = part.as_ref().map_or(out.len(), |(_, at)| *at);
    Ok(Ran {
        before: out[..at].to_vec(),
        after: out[at..].to_vec(),
        part: part.map(|(part, _)| part),
        given_up: record.given_up.borrow().len(),
        view: record.view.take(),
    })
}

/// Steps until there is a cut, for which all workers have arrived here.
fn cut(worker: &Worker<Batch>, record: &Record, arrived: &AtomicUsize) -> Result<(), Error> {
    arrived.fetch_add(1, Ordering::SeqCst);
    if worker.index() == 0 {
        while arrived.load(Ordering::SeqCst) < worker.peers() {
            worker.step()?;
            std::thread::yield_now();
        }
        worker.request_cut();
    }
    worker.step_while(|| record.part.borrow().is_none())
}

/// Returns the output, in canonical order.
pub fn output<'a>(parts: impl IntoIterator<Item = &'a Vec<(Vec<u64>, u64)>>) -> Output {
    let mut output = Output::new();
    for one in parts.into_iter().flatten() {
        *output.entry(one.clone()).or_default() += 1;
    }
    output
}
