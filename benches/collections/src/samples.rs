//! Alternating samples of two sides, and the line that is printed of them.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How much of the processor's time something took on this thread: other programs do not disturb it.
pub fn timed<R>(run: impl FnOnce() -> R) -> (Duration, R) {
    let start = clock();
    let result = run();
    (clock().saturating_sub(start), result)
}

fn clock() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn median(samples: &mut [Duration]) -> Duration {
    samples.sort_unstable();
    samples[samples.len() / 2]
}

/// Prints the medians and their ratio.
pub fn report(name: &str, aim: f64, ours: &mut [Duration], theirs: &mut [Duration]) {
    let (ours, theirs) = (median(ours), median(theirs));
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    let verdict = if ratio <= aim { "met" } else { "MISSED" };
    println!("{name:<44} {ours:>12.2?} {theirs:>12.2?} {ratio:>6.2}  aim {aim} {verdict}");
}

/// A generator of numbers, the same for both sides.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
