//! Mutable antichains under mixed updates, one update and a look at the changes at a time.

use std::hint::black_box;

use pointstamp_bench::harness::Table;
use pointstamp_bench::streams::{OUTSTANDING, Pattern, Stream};
use pointstamp_order::Product;

/// Both sides of one comparison, on one type of time per side.
macro_rules! compare {
    ($table:expr, $name:expr, $stream:expr, $outstanding:expr, $ours:expr, $theirs:expr) => {{
        let mut our_stream = $stream.clone();
        let mut ours = pointstamp_order::MutableAntichain::new();
        ours.update_iter($stream.initial().map(|(time, diff)| ($ours(time), diff)));
        let mut their_stream = $stream.clone();
        let mut theirs = timely::progress::frontier::MutableAntichain::new();
        theirs.update_iter($stream.initial().map(|(time, diff)| ($theirs(time), diff)));
        let period = usize::try_from($outstanding * 4).unwrap();
        $table.compare(
            &$name,
            Some(1.0),
            period,
            &mut |count| {
                let mut changes = Vec::new();
                for (time, diff) in our_stream.by_ref().take(count) {
                    ours.update_into($ours(time), diff, &mut changes);
                    black_box(changes.drain(..).count());
                }
                black_box(ours.frontier());
            },
            &mut |count| {
                for (time, diff) in their_stream.by_ref().take(count) {
                    black_box(theirs.update_iter(Some(($theirs(time), diff))).count());
                }
                black_box(theirs.frontier());
            },
        );
    }};
}

fn main() {
    let table = Table::new("MutableAntichain, mixed updates").on_one_thread();
    for pattern in [Pattern::Window, Pattern::Churn] {
        for outstanding in OUTSTANDING {
            let stream = Stream::new(pattern, outstanding);
            let name = format!("u64, {}, {outstanding} outstanding", pattern.name());
            let number = |(outer, _): (u64, u64)| outer;
            compare!(table, name, stream, outstanding, number, number);
        }
        for outstanding in OUTSTANDING {
            let stream = Stream::new(pattern, outstanding);
            let name = format!("product, {}, {outstanding} outstanding", pattern.name());
            let ours = |(outer, inner): (u64, u64)| Product::new(outer, inner);
            let theirs = |(outer, inner): (u64, u64)| timely::order::Product::new(outer, inner);
            compare!(table, name, stream, outstanding, ours, theirs);
        }
    }
}
