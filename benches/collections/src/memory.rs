//! The bytes that an arrangement keeps, of either side, as the allocator counts them.

use peak_alloc::PeakAlloc;

use crate::arrange::{Ours, Theirs, pairs};
use crate::samples::{PEER, leave};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Bytes allocated now and by the time that `make` has made something, per one of `count`.
fn kept<R>(count: usize, make: impl FnOnce() -> R) -> (f64, R) {
    let before = ALLOCATED.current_usage();
    let made = make();
    #[allow(clippy::cast_precision_loss)]
    let kept = (ALLOCATED.current_usage() - before) as f64 / count as f64;
    (kept, made)
}

pub fn run(count: usize) {
    println!("\nbytes kept for each of {count} arranged pairs of u64");
    let initial = pairs(count, 1);
    let (ours, arranged) = kept(count, || {
        let mut arranged = Ours::new();
        arranged.round(0, &initial);
        arranged.settle();
        arranged
    });
    drop(arranged);
    let (theirs, arranged) = kept(count, || {
        let mut arranged = Theirs::new();
        arranged.round(0, &initial);
        arranged.settle();
        arranged
    });
    drop(arranged);
    let ratio = ours / theirs;
    let verdict = if ratio <= 1.2 { "met" } else { "MISSED" };
    println!(
        "{:<44} {ours:>12.1} {theirs:>12.1} {ratio:>6.2}  aim 1.2 {verdict}",
        "loaded at one time"
    );
    let what = format!("bytes kept for each of {count} arranged pairs of u64");
    leave(&what, 1.2, PEER, [ours, theirs], "bytes");
}
