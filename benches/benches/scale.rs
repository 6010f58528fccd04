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

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "small numbers, which fit"
)]

#[path = "../../crates/engine/examples/programs/barrier.rs"]
mod barrier;

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use barrier::barrier;
use bytes::Bytes;
use pointstamp_bench::figures::Figure;
use pointstamp_channels::{Farewell, Receive, Recipient, Traffic, Transport};
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

    fn start(&self, receiver: Arc<dyn Receive>) {
        let _once = self.receivers[self.process].set(receiver);
    }

    fn send(&self, process: usize, route: Recipient, body: Vec<Bytes>) -> usize {
        if let Some(receiver) = self.receivers[process].get() {
            receiver.frame(self.process, route, Bytes::from(body.concat()));
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
}

impl Turns {
    fn new(workers: usize) -> Arc<Turns> {
        Arc::new(Turns {
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

/// Runs a program on `processes` of `workers` each; what its progress came to, over all processes.
fn run(
    processes: usize,
    workers: usize,
    linger: Duration,
    program: impl Fn(&Worker<Batch>) -> Result<(), Error> + Sync,
) -> Traffic {
    let receivers: Receivers = Arc::new((0..processes).map(|_| OnceLock::new()).collect());
    let (mut clusters, mut seeds) = (Vec::new(), Vec::new());
    for process in 0..processes {
        let transport = Arc::new(Direct {
            process,
            receivers: Arc::clone(&receivers),
        });
        let (cluster, part) =
            Cluster::in_cluster_lingering(workers, Mode::Demand, HIGH_WATER, transport, linger);
        clusters.push(cluster);
        seeds.extend(part);
    }
    let turns = Turns::new(processes * workers);
    std::thread::scope(|scope| {
        for (worker, seed) in seeds.into_iter().enumerate() {
            let (program, turns) = (&program, Arc::clone(&turns));
            let thread = std::thread::Builder::new().stack_size(1 << 20);
            let run = move || {
                turns.enter(worker);
                let host: Rc<dyn Host> = Rc::new(Turn { turns, worker });
                run_worker(seed, &host, program);
            };
            thread.spawn_scoped(scope, run).expect("a thread");
        }
    });
    let mut sum = Traffic::default();
    for cluster in &clusters {
        let traffic = cluster.traffic();
        sum.progress_frames += traffic.progress_frames;
        sum.progress_bytes += traffic.progress_bytes;
    }
    for cluster in &clusters {
        cluster.ending().leave();
    }
    for cluster in clusters {
        cluster.close();
        let failure = cluster.ending().take_failure();
        assert!(failure.is_none(), "the computation failed: {failure:?}");
    }
    sum
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

/// Frames and bytes of progress for one round, over all processes.
fn for_a_round(
    processes: usize,
    workers: usize,
    linger: Duration,
    program: Program,
    rounds: [u64; 2],
) -> [f64; 2] {
    let [short, long] =
        rounds.map(|rounds| run(processes, workers, linger, |worker| program(worker, rounds)));
    let count = (rounds[1] - rounds[0]) as f64;
    [
        (long.progress_frames - short.progress_frames) as f64 / count,
        (long.progress_bytes - short.progress_bytes) as f64 / count,
    ]
}

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
    for (name, program, rounds) in [
        ("barrier", barrier as Program, [4, 12]),
        ("loop", trips as Program, [1, 3]),
    ] {
        for &(processes, workers) in shapes {
            let count = |linger| for_a_round(processes, workers, linger, program, rounds);
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
}
