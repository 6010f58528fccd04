//! Sharing one worker's batch between two threads, beside aggregating it on one: what it would bring where a core is
//! idle. Two tables, a half of every batch for each, merged in the end: the best that sharing can do.

use std::sync::Arc;
use std::thread::scope;
use std::time::Instant;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use pointstamp_bench::figures::Figure;
use pointstamp_columnar::Error;
use pointstamp_columnar::aggregate::{Plan, Table};

const ROWS: usize = 20_000_000;
const TURNS: usize = 5;

fn pool(size: usize, keys: u64) -> Vec<RecordBatch> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let batch = |_| {
        let keys: Int64Array = (0..size)
            .map(|_| Some((random() % keys).cast_signed()))
            .collect();
        let values: Float64Array = (0_u32..).map(f64::from).map(Some).take(size).collect();
        let columns: [(&str, ArrayRef); 2] = [("k", Arc::new(keys)), ("x", Arc::new(values))];
        RecordBatch::try_from_iter(columns).expect("the columns are of one length")
    };
    (0..8).map(batch).collect()
}

/// The least seconds of a few turns.
fn best(mut run: impl FnMut()) -> f64 {
    let turn = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..TURNS).map(turn).fold(f64::INFINITY, f64::min)
}

fn fill(table: &mut Table, batch: &RecordBatch) {
    table.update(batch).expect("a batch of the plan's schema");
}

fn main() {
    for (size, keys) in [
        (16_384, 1_000),
        (131_072, 1_000),
        (131_072, 50_000),
        (131_072, 200_000),
    ] {
        let pool = pool(size, keys);
        let wanted =
            ["sum", "min", "max", "mean"].map(|function| ("x".to_owned(), function.to_owned()));
        let plan = Plan::new(&pool[0].schema(), &["k"], &wanted).expect("the columns are there");
        let table = || Table::new(&plan).expect("the key is an integer");
        let batches = || pool.iter().cycle().take(ROWS / size);

        let alone = best(|| {
            let mut table = table();
            batches().for_each(|batch| fill(&mut table, batch));
        });
        let shared = best(|| {
            let (mut first, mut second) = (table(), table());
            for batch in batches() {
                let half = size / 2;
                scope(|threads| {
                    threads.spawn(|| fill(&mut second, &batch.slice(half, size - half)));
                    fill(&mut first, &batch.slice(0, half));
                });
            }
            let merged = second.states(|states| first.merge(&states));
            merged.unwrap_or_else(|error: Error| panic!("states of the same plan: {error}"));
        });
        println!(
            "batches of {size} rows, {keys} keys: {alone:.3} s on one thread, {shared:.3} s on two, {:.2} times",
            alone / shared
        );
        Figure {
            subject: "Sharing one worker's batch between two threads",
            what: &format!("aggregate {ROWS} rows in batches of {size}, {keys} keys"),
            ours: shared,
            peer: "one thread",
            theirs: alone,
            unit: "s",
            ratio: shared / alone,
            aim: None,
        }
        .leave();
    }
}
