//! Comparing two implementations in one run.
//!
//! Owns [`Table`]. Machines are noisy, and noise drifts: samples of both sides alternate, and what is
//! reported is the median of the ratios of neighbours, beside the median of each side.

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::figures::Figure;
use rustix::time::{ClockId, clock_gettime};

/// A sample need not get longer than this to meet rare costs.
const LONGEST: Duration = Duration::from_millis(20);
/// After so many samples, a comparison may stop for time.
const FEWEST: usize = 10;
/// The time for one comparison.
const ENOUGH: Duration = Duration::from_secs(1);
/// The time for one comparison of whole runs.
const ENOUGH_RUNS: Duration = Duration::from_secs(5);

/// Does a number of operations, going on from where the last call stopped.
pub type Side<'a> = &'a mut dyn FnMut(usize);

/// Prints one line per comparison.
pub struct Table {
    subject: String,
    clock: fn() -> Duration,
    filter: Option<String>,
    samples: usize,
    least: Duration,
}

impl Table {
    /// Prints the heading. Understands the arguments of `cargo bench`: a word selects the lines
    /// that contain it. Run otherwise (as `cargo test --benches` does), it takes one short sample
    /// of everything, to see that it runs.
    pub fn new(subject: &str) -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let quick = !arguments.iter().any(|argument| argument == "--bench");
        let filter = arguments
            .into_iter()
            .find(|argument| !argument.starts_with('-'));
        println!("\n{subject}: nanoseconds per operation, medians of alternating samples");
        println!(
            "{:<58} {:>10} {:>10} {:>7}  {:<6}",
            "", "ours", "theirs", "ratio", "aim"
        );
        let (samples, least) = if quick { (1, 0) } else { (51, 2_000) };
        let least = Duration::from_micros(least);
        Self {
            subject: subject.to_owned(),
            clock: wall_time,
            filter,
            samples,
            least,
        }
    }

    /// Measures the processor time of the calling thread instead of the time that passes: right for
    /// what runs on one thread, and not disturbed by other programs on the machine.
    #[must_use]
    pub fn on_one_thread(mut self) -> Self {
        self.clock = thread_time;
        self
    }

    /// Compares two sides. A sample does at least `period` operations, so that it meets costs that
    /// come up only once in so many, unless that takes too long; and as many as take a measurable
    /// time.
    pub fn compare(&self, name: &str, aim: Option<f64>, period: usize, ours: Side, theirs: Side) {
        if self.is_left_out(name) {
            return;
        }
        let our_count = self.calibrate(period, ours);
        let their_count = self.calibrate(period, theirs);
        self.alternate(name, aim, [our_count, their_count], ENOUGH, ours, theirs);
    }

    /// Compares two sides that begin anew with every call, and build something first: both do the same number of
    /// operations, which makes the building small.
    pub fn compare_runs(
        &self,
        name: &str,
        aim: Option<f64>,
        count: usize,
        ours: Side,
        theirs: Side,
    ) {
        if self.is_left_out(name) {
            return;
        }
        let count = if self.least.is_zero() { 1 } else { count };
        self.alternate(name, aim, [count; 2], ENOUGH_RUNS, ours, theirs);
    }

    fn is_left_out(&self, name: &str) -> bool {
        let filter = self.filter.as_ref();
        filter.is_some_and(|filter| !name.contains(filter.as_str()))
    }

    /// Samples both sides in turns and prints what came out.
    fn alternate(
        &self,
        name: &str,
        aim: Option<f64>,
        [our_count, their_count]: [usize; 2],
        enough: Duration,
        ours: Side,
        theirs: Side,
    ) {
        let (mut our_samples, mut their_samples) = (Vec::new(), Vec::new());
        let start = Instant::now();
        for index in 0..self.samples {
            our_samples.push(self.sample(our_count, ours));
            their_samples.push(self.sample(their_count, theirs));
            if index >= FEWEST && start.elapsed() > enough {
                break;
            }
        }
        let pairs = our_samples.iter().zip(&their_samples);
        let ratio = median(pairs.map(|(ours, theirs)| ours / theirs).collect());
        let (our_cost, their_cost) = (median(our_samples), median(their_samples));
        let mut line = format!("{name:<58} {our_cost:>10.1} {their_cost:>10.1} {ratio:>7.2}  ");
        if let Some(aim) = aim {
            let verdict = if ratio <= aim { "met" } else { "MISSED" };
            let _ = write!(line, "{aim:.1} {verdict}");
        }
        println!("{line}");
        Figure {
            subject: &self.subject,
            what: name,
            ours: our_cost,
            peer: "timely",
            theirs: their_cost,
            unit: "ns",
            ratio,
            aim,
        }
        .leave();
    }

    /// Returns the number of operations of a sample.
    fn calibrate(&self, period: usize, side: Side) -> usize {
        let mut count = 1;
        loop {
            let start = (self.clock)();
            side(count);
            let took = (self.clock)().saturating_sub(start);
            if took >= self.least && (count >= period || took >= LONGEST) {
                return count;
            }
            count *= 2;
        }
    }

    fn sample(&self, count: usize, side: Side) -> f64 {
        let start = (self.clock)();
        side(count);
        let took = (self.clock)().saturating_sub(start);
        #[allow(clippy::cast_precision_loss)] // far below 2^52
        let cost = took.as_nanos() as f64 / count as f64;
        cost
    }
}

/// Time since some fixed moment.
fn wall_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
