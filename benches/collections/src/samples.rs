//! Alternating samples of two sides, the line that is printed of them, and the figure that is left of them.
//!
//! A figure is a line of JSON in the file that `POINTSTAMP_BENCH_FIGURES` names, as `benches/python/figures.py` reads it;
//! none where it is not set.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The library with which the kernels are compared.
pub const PEER: &str = "differential-dataflow";

/// Measures the processor time of this thread: other programs do not disturb it.
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

/// Prints the medians of a part of a program beside differential dataflow's, and leaves them as a figure.
pub fn report(of: &str, part: &str, aim: f64, ours: &mut [Duration], theirs: &mut [Duration]) {
    report_beside(PEER, of, part, aim, ours, theirs);
}

/// The same beside another peer.
pub fn report_beside(
    peer: &str,
    of: &str,
    part: &str,
    aim: f64,
    ours: &mut [Duration],
    theirs: &mut [Duration],
) {
    let (ours, theirs) = (median(ours), median(theirs));
    let seconds = [ours, theirs].map(|side| side.as_secs_f64());
    let ratio = seconds[0] / seconds[1];
    let verdict = match aim {
        f64::INFINITY => String::new(),
        aim if ratio <= aim => format!("aim {aim} met"),
        aim => format!("aim {aim} MISSED"),
    };
    println!("{part:<44} {ours:>12.2?} {theirs:>12.2?} {ratio:>6.2}  {verdict}");
    leave(&format!("{of}: {part}"), aim, peer, seconds, "s");
}

/// Leaves a figure: what both sides took, and the ratio that is aimed at, which is infinite where there is no aim.
pub fn leave(what: &str, aim: f64, peer: &str, [ours, theirs]: [f64; 2], unit: &str) {
    let Some(path) = std::env::var_os("POINTSTAMP_BENCH_FIGURES") else {
        return;
    };
    let aim = if aim.is_finite() {
        aim.to_string()
    } else {
        "null".into()
    };
    let ratio = ours / theirs;
    let line = format!(
        r#"{{"subject": "Collections: the kernels alone", "what": "{what}", "ours": {ours}, "peer": "{peer}", "theirs": {theirs}, "unit": "{unit}", "ratio": {ratio}, "aim": {aim}}}"#
    );
    let file = OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{line}"));
    written.expect("POINTSTAMP_BENCH_FIGURES names a file that can be written");
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
