//! Alternating samples of two sides, and the line that is printed of them.

use std::time::{Duration, Instant};

/// How long something took.
pub fn timed<R>(run: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = run();
    (start.elapsed(), result)
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
