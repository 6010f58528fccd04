//! Comparing two implementations in one run.
//!
//! Owns [`Table`]. Machines are noisy, and noise drifts: samples of both sides alternate, each side
//! is judged by the median of its samples, and what is reported is the ratio of the two.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Does a number of operations, going on from where the last call stopped.
pub type Side<'a> = &'a mut dyn FnMut(usize);

/// Prints one line per comparison.
pub struct Table {
    quick: bool,
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
        let (samples, least) = if quick { (1, 0) } else { (11, 5_000) };
        let least = Duration::from_micros(least);
        Self {
            quick,
            filter,
            samples,
            least,
        }
    }

    /// Compares two sides. A sample of ours does at least `period` operations, so that it meets
    /// costs that come up only once in so many; both do as many as take a measurable time.
    pub fn compare(&self, name: &str, aim: Option<f64>, period: usize, ours: Side, theirs: Side) {
        if self.is_left_out(name) {
            return;
        }
        let period = if self.quick { 1 } else { period };
        let our_count = self.calibrate(period, ours);
        let their_count = self.calibrate(1, theirs);
        let (mut our_samples, mut their_samples) = (Vec::new(), Vec::new());
        for _ in 0..self.samples {
            our_samples.push(sample(our_count, ours));
            their_samples.push(sample(their_count, theirs));
        }
        report(name, aim, median(our_samples), median(their_samples));
    }

    /// Compares two sides that begin anew with every call, over the same number of operations.
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
        let count = if self.quick { 1 } else { count };
        let (mut our_samples, mut their_samples) = (Vec::new(), Vec::new());
        for _ in 0..self.samples {
            our_samples.push(sample(count, ours));
            their_samples.push(sample(count, theirs));
        }
        report(name, aim, median(our_samples), median(their_samples));
    }

    fn is_left_out(&self, name: &str) -> bool {
        let filter = self.filter.as_ref();
        filter.is_some_and(|filter| !name.contains(filter.as_str()))
    }

    /// How many operations make up a sample.
    fn calibrate(&self, at_least: usize, side: Side) -> usize {
        let mut count = at_least.max(1);
        loop {
            let start = Instant::now();
            side(count);
            if start.elapsed() >= self.least {
                return count;
            }
            count *= 2;
        }
    }
}

fn report(name: &str, aim: Option<f64>, our_cost: f64, their_cost: f64) {
    let ratio = our_cost / their_cost;
    let mut line = format!("{name:<58} {our_cost:>10.1} {their_cost:>10.1} {ratio:>7.2}  ");
    if let Some(aim) = aim {
        let verdict = if ratio <= aim { "met" } else { "MISSED" };
        let _ = write!(line, "{aim:.1} {verdict}");
    }
    println!("{line}");
}

fn sample(count: usize, side: Side) -> f64 {
    let start = Instant::now();
    side(count);
    #[allow(clippy::cast_precision_loss)] // far below 2^52
    let cost = start.elapsed().as_nanos() as f64 / count as f64;
    cost
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
