//! Updates that readers cannot distinguish any more are compacted without further input, and no more often
//! than it pays.

#[path = "support/stored.rs"]
mod stored;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pointstamp_arrange::{Batcher, Count, Reduce, Trace, TraceWriter, Words};
use pointstamp_order::Antichain;

/// An arrangement that counts its notifications that there is something to compact.
struct Arranged {
    batcher: Batcher<Words, Words, u64>,
    writer: TraceWriter<Words, Words, u64>,
    trace: Trace<Words, Words, u64>,
    told: Arc<AtomicUsize>,
}

impl Arranged {
    fn new() -> Self {
        let least = Antichain::from_elem(0);
        let (mut writer, trace) = TraceWriter::new(least.clone());
        writer.store_in(stored::storage());
        let told = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&told);
        writer.when_stale(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        Self {
            batcher: stored::batcher(least),
            writer,
            trace,
            told,
        }
    }

    fn round(&mut self, time: u64, updates: impl IntoIterator<Item = (u64, i64)>) {
        for (key, diff) in updates {
            self.batcher.push(key, key, &time, diff).unwrap();
        }
        let upper = Antichain::from_elem(time + 1);
        for (_, batch) in self.batcher.seal(&upper).unwrap() {
            self.writer.insert(batch).unwrap();
        }
        self.writer.seal(upper);
    }

    fn told(&self) -> usize {
        self.told.load(Ordering::Relaxed)
    }

    /// Compacts; the fuel that it took, rounded up.
    fn compact(&mut self) -> usize {
        let mut used = 10;
        while !self.writer.compact(&mut 10).unwrap() {
            used += 10;
        }
        used
    }
}

#[test]
fn what_cancels_is_gone_without_further_input() {
    let mut arranged = Arranged::new();
    arranged.round(0, (0..1_000).map(|key| (key, 1)));
    arranged.round(1, (0..1_000).map(|key| (key, -1)));
    assert!(arranged.trace.len() >= 1_000);
    let mut trace = arranged.trace.clone();
    trace.allow_compaction(&Antichain::from_elem(1));
    assert_eq!(arranged.told(), 0, "one reader tells 0 and 1 apart");
    drop(trace);
    assert_eq!(arranged.told(), 0);
    arranged.trace.allow_compaction(&Antichain::from_elem(1));
    assert_eq!(arranged.told(), 1);
    arranged.compact();
    assert_eq!((arranged.trace.len(), arranged.trace.bytes()), (0, 0));
}

#[test]
fn the_last_reader_that_held_it_back_lets_it_be_compacted_when_it_is_dropped() {
    let mut arranged = Arranged::new();
    let slow = arranged.trace.clone();
    for time in 0..100 {
        arranged.round(time, (0..20).map(|key| (key, 1 - 2 * (time as i64 % 2))));
        arranged
            .trace
            .allow_compaction(&Antichain::from_elem(time + 1));
    }
    assert_eq!(arranged.told(), 0);
    drop(slow);
    assert_eq!(arranged.told(), 1);
    arranged.compact();
    assert_eq!(arranged.trace.len(), 0);
}

#[test]
fn a_reader_that_follows_keeps_batches_apart_until_it_has_seen_them() {
    let mut arranged = Arranged::new();
    let mut follower = arranged.trace.clone();
    follower.follow();
    arranged.round(0, (0..100).map(|key| (key, 1)));
    arranged.round(1, (0..100).map(|key| (key, -1)));
    for trace in [&mut arranged.trace, &mut follower] {
        trace.allow_compaction(&Antichain::from_elem(2));
    }
    assert_eq!(arranged.told(), 0);
    follower.acknowledge(2);
    assert_eq!(arranged.told(), 1);
    arranged.compact();
    assert_eq!(arranged.trace.len(), 0);
}

#[test]
fn what_cancels_in_the_turns_of_a_loop_is_gone_when_the_loop_is_past_them() {
    let least = Antichain::from_elem([0u64, 0]);
    let mut batcher = Batcher::<Words, Words, [u64; 2]>::new(least.clone());
    let (mut writer, mut trace) = TraceWriter::new(least);
    writer.store_in(stored::storage());
    for outer in 0..2 {
        for turn in 0..10 {
            for key in 0..100 {
                let diff = 1 - 2 * i64::try_from(outer).unwrap();
                batcher.push(key, turn, &[outer, turn], diff).unwrap();
            }
        }
        let upper = Antichain::from_elem([outer + 1, 0]);
        for (_, batch) in batcher.seal(&upper).unwrap() {
            writer.insert(batch).unwrap();
        }
        writer.seal(upper.clone());
        trace.allow_compaction(&upper);
    }
    while !writer.compact(&mut 10).unwrap() {}
    assert_eq!(trace.len(), 0);
}

#[test]
fn one_batch_with_several_times_is_compacted_too() {
    let mut arranged = Arranged::new();
    for key in 0..100 {
        arranged.batcher.push(key, key, &0, 1).unwrap();
        arranged.batcher.push(key, key, &1, -1).unwrap();
    }
    arranged.round(1, []);
    assert_eq!(arranged.trace.batches().len(), 1);
    arranged.trace.allow_compaction(&Antichain::from_elem(2));
    assert_eq!(arranged.told(), 1);
    arranged.compact();
    assert_eq!(arranged.trace.len(), 0);
}

#[test]
fn compaction_costs_in_proportion_to_what_came() {
    let mut arranged = Arranged::new();
    let count = 10_000;
    arranged.round(0, (0..count).map(|key| (key, 1)));
    arranged.trace.allow_compaction(&Antichain::from_elem(1));
    let (first, mut used) = (arranged.told(), 0);
    let rounds = 2 * count;
    for time in 1..rounds {
        arranged.round(
            time,
            [
                (time % count, -1),
                (time % count + count * (time / count + 1), 1),
            ],
        );
        let told = arranged.told();
        arranged
            .trace
            .allow_compaction(&Antichain::from_elem(time + 1));
        if arranged.told() > told {
            used += arranged.compact();
        }
    }
    let held = arranged.trace.len();
    assert!(held <= 3 * usize::try_from(count).unwrap(), "{held}");
    let told = arranged.told() - first;
    assert!((1..=32).contains(&told), "{told}");
    assert!(used <= 16 * 2 * usize::try_from(rounds).unwrap(), "{used}");
}

#[test]
fn what_a_reduction_put_out_is_compacted_too() {
    let mut arranged = Arranged::new();
    let mut source = arranged.trace.clone();
    source.follow();
    let mut reduce = Reduce::new(Box::new(source), Antichain::from_elem(0), Count);
    let told = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&told);
    reduce.when_stale(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let mut output = reduce.trace();
    for time in 0..2 {
        let diff = 1 - 2 * (time as i64);
        for key in 0..1_000 {
            arranged.batcher.push(key, key, &time, diff).unwrap();
        }
        let upper = Antichain::from_elem(time + 1);
        for (_, batch) in arranged.batcher.seal(&upper).unwrap() {
            if let Some(sealed) = arranged.writer.insert(batch).unwrap() {
                reduce.push(sealed);
            }
        }
        arranged.writer.seal(upper.clone());
        reduce.advance(&upper);
        while !reduce.is_idle() {
            reduce.work(&mut 1_000).unwrap();
        }
        arranged.trace.allow_compaction(&upper);
    }
    arranged.compact();
    assert_eq!((told.load(Ordering::Relaxed), output.len()), (0, 2_000));
    output.allow_compaction(&Antichain::from_elem(2));
    assert_eq!(told.load(Ordering::Relaxed), 1);
    while !reduce.compact(&mut 10).unwrap() {}
    assert_eq!((arranged.trace.len(), output.len()), (0, 0));
}
