//! Change batches under mixed updates: each update costs a push and its share of consolidation.

use std::hint::black_box;

use pointstamp_bench::harness::Table;
use pointstamp_bench::streams::{OUTSTANDING, Pattern, Stream};
use pointstamp_order::Product;

/// Both sides of one comparison, on one type of time per side.
macro_rules! compare {
    ($table:expr, $name:expr, $stream:expr, $outstanding:expr, $ours:expr, $theirs:expr) => {{
        let mut our_stream = $stream.clone();
        let mut ours = pointstamp_order::ChangeBatch::new();
        ours.extend($stream.initial().map(|(time, diff)| ($ours(time), diff)));
        let mut their_stream = $stream.clone();
        let mut theirs = timely::progress::ChangeBatch::<_>::new();
        theirs.extend($stream.initial().map(|(time, diff)| ($theirs(time), diff)));
        let period = usize::try_from($outstanding * 4).unwrap();
        $table.compare(
            &$name,
            Some(1.0),
            period,
            &mut |count| {
                for (time, diff) in our_stream.by_ref().take(count) {
                    ours.update($ours(time), diff);
                }
                black_box(ours.is_empty());
            },
            &mut |count| {
                for (time, diff) in their_stream.by_ref().take(count) {
                    theirs.update($theirs(time), diff);
                }
                black_box(theirs.is_empty());
            },
        );
    }};
}

fn main() {
    let table = Table::new("ChangeBatch, mixed updates").on_one_thread();
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
