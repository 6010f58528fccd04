//! Growth of progress with the computation: frames and bytes between processes for each round, up to 1,000
//! workers in 250 processes, with and without combining the workers of a process.
//!
//! The engine is the real one. Workers are threads of one process that take turns, a step each, in the order of their numbers;
//! a frame arrives at once. So the counts are those of workers that are equally fast and links without delay, the same in
//! every run, whatever the machine. They are taken as the difference of a longer run and a shorter one, which leaves out forming and ending.
//!
//! * barrier: every worker holds a capability and downgrades it when the frontier reaches it; a round is one of those.
//! * loop: every worker sends a record that goes round a loop 20 times, to the next worker each time; a round is all 20 turns.
//!
//! Frames grow with the square of the processes, as each tells every other. Without combining they grow with the workers as well.
//!
//! The second table has processes of one worker whose progress goes by relays, up to 4,096 of them: the frames that each process
//! sends for a round, on average and at most, and the hops from the last worker that says something to those that
//! receive it. `POINTSTAMP_MOST` bounds the processes (4096).

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "small numbers, which fit"
)]

#[path = "../../crates/engine/examples/programs/barrier.rs"]
mod barrier;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use barrier::barrier;
use bytes::Bytes;
use pointstamp_bench::figures::Figure;
use pointstamp_channels::{Farewell, Receive, Recipient, Transport, group_of};
use pointstamp_engine::cluster::{Cluster, HIGH_WATER};
use pointstamp_engine::error::{BoxError, Error};
use pointstamp_engine::execute::run_worker;
use pointstamp_engine::host::Host;
use pointstamp_engine::operators::{Input, Probe, concatenate};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::worker::Worker;
use pointstamp_order::{Point, Summary};
use pointstamp_progress::Mode;

type Batch = Vec<u64>;

/// Trips of a record round the loop.
const TRIPS: u64 = 20;
/// So long that only the workers decide when progress is sent.
const FOREVER: Duration = Duration::from_secs(3600);

// -------------------------------------------------------------------- links without delay

/// The receiver of the frames of each process.
type Receivers = Arc<Vec<OnceLock<Arc<dyn Receive>>>>;

/// A process's links: a frame is handed over before `send` returns.
struct Direct {
    process: usize,
    receivers: Receivers,
    quiet: Arc<AtomicUsize>,
}

thread_local! {
    /// The frames that are being handed over by this thread, each because of the one before.
    static HOPS: Cell<usize> = const { Cell::new(0) };
    /// The most of them.
    static MOST_HOPS: Cell<usize> = const { Cell::new(0) };
}

impl Direct {
    fn others(&self) -> impl Iterator<Item = &Arc<dyn Receive>> {
        let others = self.receivers.iter().enumerate();
        let others = others.filter(|&(process, _)| process != self.process);
        others.filter_map(|(_, receiver)| receiver.get())
    }
}

impl Transport for Direct {
    fn processes(&self) -> usize {
        self.receivers.len()
    }

    fn process(&self) -> usize {
        self.process
    }

    fn address(&self, process: usize) -> String {
        format!("direct:{process}")
    }

    fn keeps_time(&self) -> bool {
        true
    }

    fn start(&self, receiver: Arc<dyn Receive>) {
        let _once = self.receivers[self.process].set(receiver);
    }

    fn send(&self, process: usize, route: Recipient, body: Vec<Bytes>) -> usize {
        self.quiet.store(0, Ordering::SeqCst);
        if let Some(receiver) = self.receivers[process].get() {
            let hops = HOPS.get() + 1;
            HOPS.set(hops);
            MOST_HOPS.set(MOST_HOPS.get().max(hops));
            receiver.frame(self.process, route, Bytes::from(body.concat()));
            HOPS.set(hops - 1);
        }
        0
    }

    fn farewell(&self, how: Farewell) {
        for receiver in self.others() {
            receiver.left(self.process, how.clone());
        }
    }

    fn close(&self) {}
}

// -------------------------------------------------------------------- turns

/// The worker that has the turn: one after the other.
struct Turns {
    holder: AtomicUsize,
    ended: Vec<AtomicBool>,
    threads: Mutex<Vec<Option<Thread>>>,
    receivers: Receivers,
    /// The number of turns since the last frame.
    quiet: Arc<AtomicUsize>,
}

/// Time passes when no worker has sent anything in so many turns.
const QUIET: usize = 3;

impl Turns {
    fn new(workers: usize, receivers: Receivers, quiet: Arc<AtomicUsize>) -> Arc<Turns> {
        Arc::new(Turns {
            receivers,
            quiet,
            holder: AtomicUsize::new(0),
            ended: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            threads: Mutex::new(vec![None; workers]),
        })
    }

    /// Waits for the first turn. Threads start in the order of their numbers, so that the next one is there when it is called.
    fn enter(&self, worker: usize) {
        self.threads.lock().expect("no thread panics")[worker] = Some(std::thread::current());
        self.wait(worker);
    }

    fn wait(&self, worker: usize) {
        while self.holder.load(Ordering::SeqCst) != worker {
            std::thread::park();
        }
    }

    /// Gives the turn to the next worker that has not ended.
    fn pass(&self, worker: usize) {
        let workers = self.ended.len();
        if self.quiet.fetch_add(1, Ordering::SeqCst) > QUIET * workers {
            self.quiet.store(0, Ordering::SeqCst);
            for receiver in self.receivers.iter().filter_map(OnceLock::get) {
                receiver.time_passes();
            }
        }
        let next = (1..=workers)
            .map(|step| (worker + step) % workers)
            .find(|&other| !self.ended[other].load(Ordering::SeqCst));
        let Some(next) = next.filter(|&next| next != worker) else {
            return;
        };
        self.holder.store(next, Ordering::SeqCst);
        if let Some(thread) = &self.threads.lock().expect("no thread panics")[next] {
            thread.unpark();
        }
    }
}

/// A worker that takes a step when it has the turn.
struct Turn {
    turns: Arc<Turns>,
    worker: usize,
}

impl Host for Turn {
    fn before_step(&self) -> Result<(), BoxError> {
        self.turns.pass(self.worker);
        self.turns.wait(self.worker);
        Ok(())
    }

    fn patience(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn ends(&self) {
        self.turns.ended[self.worker].store(true, Ordering::SeqCst);
        self.turns.pass(self.worker);
    }
}

// -------------------------------------------------------------------- a computation

/// The progress of a run.
struct Ran {
    /// The frames of all processes.
    frames: u64,
    bytes: u64,
    /// The frames of the process that sent the most.
    most: u64,
    hops: usize,
}

/// Runs a program on `processes` of `workers` each, in groups of so many.
fn run(
    processes: usize,
    workers: usize,
    linger: Duration,
    group: usize,
    program: impl Fn(&Worker<Batch>) -> Result<(), Error> + Sync,
) -> Ran {
    let quiet = Arc::<AtomicUsize>::default();
    let receivers: Receivers = Arc::new((0..processes).map(|_| OnceLock::new()).collect());
    let (mut clusters, mut seeds) = (Vec::new(), Vec::new());
    for process in 0..processes {
        let transport = Arc::new(Direct {
            process,
            receivers: Arc::clone(&receivers),
            quiet: Arc::clone(&quiet),
        });
        let (cluster, part) = Cluster::in_cluster_of_groups(
            workers,
            Mode::Demand,
            HIGH_WATER,
            transport,
            linger,
            group,
        );
        clusters.push(cluster);
        seeds.extend(part);
    }
    let turns = Turns::new(processes * workers, receivers, quiet);
    let hops = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (worker, seed) in seeds.into_iter().enumerate() {
            let (program, turns, hops) = (&program, Arc::clone(&turns), &hops);
            let thread = std::thread::Builder::new().stack_size(1 << 20);
            let run = move || {
                turns.enter(worker);
                let host: Rc<dyn Host> = Rc::new(Turn { turns, worker });
                run_worker(seed, &host, program);
                hops.fetch_max(MOST_HOPS.get(), Ordering::SeqCst);
            };
            thread.spawn_scoped(scope, run).expect("a thread");
        }
    });
    let each: Vec<_> = clusters.iter().map(|cluster| cluster.traffic()).collect();
    let ran = Ran {
        frames: each.iter().map(|it| it.progress_frames).sum(),
        bytes: each.iter().map(|it| it.progress_bytes).sum(),
        most: each.iter().map(|it| it.progress_frames).max().unwrap_or(0),
        hops: hops.into_inner(),
    };
    for cluster in &clusters {
        cluster.ending().leave();
    }
    for cluster in clusters {
        cluster.close();
        let failure = cluster.ending().take_failure();
        assert!(failure.is_none(), "the computation failed: {failure:?}");
    }
    ran
}

fn trips(worker: &Worker<Batch>, rounds: u64) -> Result<(), Error> {
    let (input, probe) = (Input::new(), Probe::new());
    let (index, peers) = (worker.index(), worker.peers());
    worker.dataflow("loop", 1, |scope| {
        let numbers = input.attach(scope)?;
        let inner = scope.nested("trips", 1)?;
        let (handle, cycle) = inner.feedback(Summary::step(2, 1))?;
        let entered = inner.enter(&numbers)?;
        let to_next = move |batch: Batch, parts: &mut [Vec<Batch>]| {
            parts[(index + 1) % peers].push(batch);
            Ok(())
        };
        let moved =
            concatenate(&inner, [entered, cycle])?.forward("exchange", Pact::exchange(to_next))?;
        let builder = inner.operator("trip")?;
        let trip = builder.new_input(&moved, Pact::Pipeline)?;
        let (again, round) = builder.new_output()?;
        let (done, out) = builder.new_output()?;
        builder.build(move || {
            while let Some((capability, batch)) = trip.next()? {
                let port = if capability.time().get(1) < Some(TRIPS - 1) {
                    &again
                } else {
                    &done
                };
                port.send(&capability, batch)?;
            }
            Ok(false)
        });
        handle.connect(&round)?;
        let left = inner.leave(&out)?;
        inner.close();
        probe.attach(&left).map(drop)
    })?;
    for round in 1..=rounds {
        input.send(vec![index as u64]).expect("the input is open");
        let time = Point::new(&[round]);
        input.advance_to(&time)?;
        while probe.less_than(&time) {
            worker.step()?;
        }
    }
    Ok(())
}

// -------------------------------------------------------------------- the table

type Program = fn(&Worker<Batch>, u64) -> Result<(), Error>;

/// The progress of one round.
struct Round {
    /// Over all processes.
    frames: f64,
    bytes: f64,
    /// The frames of the process that sends the most.
    most: f64,
    hops: usize,
}

fn for_a_round(
    (processes, workers): (usize, usize),
    linger: Duration,
    group: usize,
    program: Program,
    rounds: [u64; 2],
) -> Round {
    let [short, long] = rounds.map(|rounds| {
        let program = |worker: &Worker<Batch>| program(worker, rounds);
        run(processes, workers, linger, group, program)
    });
    let a_round = |short: u64, long: u64| (long - short) as f64 / (rounds[1] - rounds[0]) as f64;
    Round {
        frames: a_round(short.frames, long.frames),
        bytes: a_round(short.bytes, long.bytes),
        most: a_round(short.most, long.most),
        hops: long.hops,
    }
}

/// Programs, with the rounds of the shorter run and the longer one.
const PROGRAMS: [(&str, Program, [u64; 2]); 2] =
    [("barrier", barrier, [4, 12]), ("loop", trips, [1, 3])];

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let shapes: &[(usize, usize)] = if full {
        &[(2, 1), (2, 4), (4, 4), (16, 4), (64, 4), (250, 4)]
    } else {
        &[(2, 1), (3, 2)]
    };
    println!("\nProgress between processes, for each round and process");
    println!(
        "{:<8} {:>9} {:>8} {:>12} {:>12} {:>12} {:>12} {:>7}",
        "", "processes", "workers", "frames", "bytes", "uncombined", "bytes", "ratio"
    );
    for (name, program, rounds) in PROGRAMS {
        for &(processes, workers) in shapes {
            let shape = (processes, workers);
            let count = |linger| {
                let round = for_a_round(shape, linger, 1, program, rounds);
                [round.frames, round.bytes]
            };
            let (with, without) = (count(FOREVER), count(Duration::ZERO));
            let each = processes as f64;
            let ratio = with[0] / without[0];
            println!(
                "{name:<8} {processes:>9} {:>8} {:>12.1} {:>12.0} {:>12.1} {:>12.0} {ratio:>7.2}",
                processes * workers,
                with[0] / each,
                with[1] / each,
                without[0] / each,
                without[1] / each,
            );
            for (unit, index) in [("frames", 0), ("bytes", 1)] {
                Figure {
                    subject: "Progress between processes, simulated",
                    what: &format!(
                        "{name}, {} workers in {processes} processes: {unit} for each round and process",
                        processes * workers
                    ),
                    ours: with[index] / each,
                    peer: "without combining",
                    theirs: without[index] / each,
                    unit,
                    ratio: with[index] / without[index],
                    aim: None,
                }
                .leave();
            }
        }
    }
    relayed(full);
}

/// Up to so many processes are measured without relays, too.
const STRAIGHT: usize = 256;

/// The second table: processes of one worker, with relays.
fn relayed(full: bool) {
    let most =
        std::env::var("POINTSTAMP_MOST").map_or(4096, |text| text.parse().expect("a number"));
    let shapes: &[usize] = if full {
        &[2, 4, 16, 64, 256, 1024, 4096]
    } else {
        &[2, 20]
    };
    println!("\nProgress by relays, processes of one worker, for each round and process");
    println!(
        "{:<8} {:>9} {:>6} {:>12} {:>12} {:>12} {:>5} {:>12}",
        "", "processes", "group", "frames", "bytes", "of a relay", "hops", "straight"
    );
    for (name, program, rounds) in PROGRAMS {
        for &processes in shapes.iter().filter(|&&processes| processes <= most) {
            if name == "loop" && processes > STRAIGHT {
                continue; // a round is twenty turns of every worker
            }
            let (shape, each, group) = ((processes, 1), processes as f64, group_of(processes));
            let round = for_a_round(shape, FOREVER, group, program, rounds);
            let straight = (processes <= STRAIGHT)
                .then(|| for_a_round(shape, FOREVER, 1, program, rounds).frames / each);
            println!(
                "{name:<8} {processes:>9} {group:>6} {:>12.2} {:>12.0} {:>12.0} {:>5} {:>12}",
                round.frames / each,
                round.bytes / each,
                round.most,
                round.hops,
                straight.map_or(String::new(), |frames| format!("{frames:.1}")),
            );
            for (what, unit, ours, theirs) in [
                (
                    "frames for each round and process",
                    "frames",
                    round.frames / each,
                    straight,
                ),
                (
                    "frames for each round of a relay",
                    "frames",
                    round.most,
                    straight,
                ),
                (
                    "bytes for each round and process",
                    "bytes",
                    round.bytes / each,
                    None,
                ),
                ("hops", "hops", round.hops as f64, straight.map(|_| 1.0)),
            ] {
                // Where there is none, the row has no comparison.
                let theirs = theirs.unwrap_or(f64::NAN);
                Figure {
                    subject: "Progress between processes, by relays, simulated",
                    what: &format!("{name}, {processes} processes: {what}"),
                    ours,
                    peer: "without relays",
                    theirs,
                    unit,
                    ratio: ours / theirs,
                    aim: None,
                }
                .leave();
            }
        }
    }
}
