//! Sharing one worker's load between two threads, beside arranging it on one: what it would bring where a core is idle.
//!
//! Each thread sorts and merges half of the keys, which are told apart before the clock starts and never put together: the
//! best that sharing the sorting and merging of one arrangement can do. It is measured in the time that passes, so it says
//! something on an idle machine of two cores or more alone.

use std::thread::scope;
use std::time::{Duration, Instant};

use crate::arrange::{Ours, pairs};
use crate::samples::report_beside;

const TURNS: usize = 5;

fn passed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

pub fn run(count: usize) {
    let what = format!("load {count} pairs of u64, seconds that pass");
    println!("\n{what}: medians of alternating samples");
    println!("{:<44} {:>12} {:>12} {:>6}", "", "shared", "alone", "ratio");
    let all = pairs(count, 1);
    let (even, odd): (Vec<_>, Vec<_>) = all.iter().copied().partition(|(key, _, _)| key % 2 == 0);
    let (mut shared, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let mut halves = [Ours::new(), Ours::new()];
        shared.push(passed(|| {
            scope(|threads| {
                let [first, second] = &mut halves;
                threads.spawn(|| first.round(0, &even));
                second.round(0, &odd);
            });
        }));
        let mut whole = Ours::new();
        alone.push(passed(|| whole.round(0, &all)));
        assert_eq!(halves[0].len() + halves[1].len(), whole.len());
    }
    report_beside(
        "one thread",
        &what,
        "on two threads",
        f64::INFINITY,
        &mut shared,
        &mut alone,
    );
}
