//! The measurements of a bench, as rows that are kept for the table of `make bench`.
//!
//! The same lines as `benches/python/figures.py` writes, which says what they hold. They go to the file that
//! `POINTSTAMP_BENCH_FIGURES` names, and nowhere where it is not set.

use std::fs::OpenOptions;
use std::io::Write as _;

use serde_json::json;

/// A comparison: ours to theirs as a cost, below 1 is faster.
pub struct Figure<'a> {
    /// The subject of the bench: the table has a section for each.
    pub subject: &'a str,
    /// The program, and how much work it had.
    pub what: &'a str,
    /// Our cost, in `unit`.
    pub ours: f64,
    /// The library that it is compared with.
    pub peer: &'a str,
    /// The peer's cost, in `unit`.
    pub theirs: f64,
    /// The unit of both.
    pub unit: &'a str,
    /// The median of the ratios of neighbours, which need not be the ratio of the medians.
    pub ratio: f64,
    /// The ratio that is aimed at, at most.
    pub aim: Option<f64>,
}

impl Figure<'_> {
    /// Leaves it for the table.
    ///
    /// # Panics
    /// If the file that the variable names cannot be written.
    pub fn leave(&self) {
        let Some(path) = std::env::var_os("POINTSTAMP_BENCH_FIGURES") else {
            return;
        };
        let line = json!({
            "subject": self.subject, "what": self.what, "ours": self.ours, "peer": self.peer,
            "theirs": self.theirs, "unit": self.unit, "ratio": self.ratio, "aim": self.aim,
        });
        let file = OpenOptions::new().append(true).create(true).open(path);
        let written = file.and_then(|mut file| writeln!(file, "{line}"));
        written.expect("POINTSTAMP_BENCH_FIGURES names a file that can be written");
    }
}
