//! Arranging pairs of u64: a load, and then rounds of change.
//!
//! Owns [`Ours`] and [`Theirs`], an arrangement of each side, driven alike.

use std::time::Duration;

use differential_dataflow::batcher::{Batcher as _, Extract as _};
use differential_dataflow::trace::implementations::{ValBatcher, ValSpine};
use differential_dataflow::trace::{Description, Span, Trace as _, TraceReader as _};
use pointstamp_arrange::{Batcher, Trace, TraceWriter, Words};
use pointstamp_order::Antichain;
use timely::dataflow::operators::generic::OperatorInfo;
use timely::progress::Antichain as Frontier;

use crate::samples::{Numbers, report, timed};

/// The number of updates at a time, as in messages.
const CHUNK: usize = 1024;

/// An arrangement of this crate.
pub struct Ours {
    batcher: Batcher<Words, Words, u64>,
    writer: TraceWriter<Words, Words, u64>,
    trace: Trace<Words, Words, u64>,
}

impl Ours {
    pub fn new() -> Self {
        let least = Antichain::from_elem(0);
        let (writer, trace) = TraceWriter::new(least.clone());
        Self {
            batcher: Batcher::new(least),
            writer,
            trace,
        }
    }

    pub fn round(&mut self, time: u64, updates: &[(u64, u64, i64)]) {
        for (key, val, diff) in updates {
            self.batcher
                .push(*key, *val, &time, *diff)
                .expect("small differences");
        }
        let upper = Antichain::from_elem(time + 1);
        for (_, batch) in self.batcher.seal(&upper).expect("small differences") {
            self.writer.insert(batch).expect("small differences");
        }
        self.writer.seal(upper.clone());
        self.trace.allow_compaction(&upper);
    }

    pub fn len(&self) -> usize {
        self.trace.len()
    }

    /// Merges to the end.
    pub fn settle(&mut self) {
        while !self
            .writer
            .exert(&mut 1_000_000)
            .expect("small differences")
        {}
    }
}

/// An arrangement of differential dataflow.
pub struct Theirs {
    batcher: ValBatcher<u64, u64, u64, i64>,
    spine: ValSpine<u64, u64, u64, i64>,
    lower: Frontier<u64>,
}

impl Theirs {
    pub fn new() -> Self {
        Self {
            batcher: ValBatcher::new(None, 0),
            spine: ValSpine::new(OperatorInfo::new(0, 0, [].into()), None, None),
            lower: Frontier::from_elem(0),
        }
    }

    pub fn round(&mut self, time: u64, updates: &[(u64, u64, i64)]) {
        let mut chunk = Vec::new();
        for updates in updates.chunks(CHUNK) {
            chunk.clear();
            chunk.extend(
                updates
                    .iter()
                    .map(|(key, val, diff)| ((*key, *val), time, *diff)),
            );
            self.batcher.insert(&mut chunk);
        }
        let upper = Frontier::from_elem(time + 1);
        let (batch, _) = self.batcher.extract(upper.borrow());
        let lower = std::mem::replace(&mut self.lower, upper.clone());
        let description = Description::new(lower, upper.clone(), Frontier::from_elem(0));
        self.spine
            .insert(Span::new(description, batch.map(Into::into)));
        self.spine.set_logical_compaction(upper.borrow());
        self.spine.set_physical_compaction(upper.borrow());
    }

    pub fn settle(&mut self) {
        self.spine.set_exert_logic(std::sync::Arc::new(|levels| {
            let merging = levels.iter().any(|(_, count, _)| *count > 1);
            let levels = levels.iter().filter(|(_, count, _)| *count > 0).count();
            (merging || levels > 1).then_some(1_000_000)
        }));
        for _ in 0..1_000 {
            self.spine.exert();
        }
    }
}

/// Pairs of random keys and values.
pub fn pairs(count: usize, seed: u64) -> Vec<(u64, u64, i64)> {
    let mut numbers = Numbers(seed);
    let keys = count as u64;
    (0..count)
        .map(|_| (numbers.next() % keys, numbers.next(), 1))
        .collect()
}

/// Rounds that each remove some pairs and add as many others.
fn changes(pairs: &mut [(u64, u64, i64)], rounds: usize, size: usize) -> Vec<Vec<(u64, u64, i64)>> {
    let mut numbers = Numbers(7);
    let count = pairs.len() as u64;
    let mut one = || {
        let mut updates = Vec::with_capacity(size);
        for change in 0..size.div_ceil(2) {
            let place = usize::try_from(numbers.next() % count).expect("an index");
            let (key, val, _) = pairs[place];
            updates.push((key, val, -1));
            if 2 * change + 1 < size {
                pairs[place] = (numbers.next() % count, numbers.next(), 1);
                updates.push(pairs[place]);
            } else {
                // One change: the pair comes back in the next round that takes it.
                pairs[place] = (key, val, 1);
            }
        }
        updates
    };
    (0..rounds).map(|_| one()).collect()
}

pub fn run(count: usize) {
    let what = format!("arrange {count} pairs of u64");
    println!("\n{what}: medians of alternating samples");
    println!("{:<44} {:>12} {:>12} {:>6}", "", "ours", "theirs", "ratio");
    let initial = pairs(count, 1);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut our_state, mut their_state) = (Ours::new(), Theirs::new());
    for _ in 0..3 {
        our_state = Ours::new();
        ours.push(timed(|| our_state.round(0, &initial)).0);
        drop(std::mem::replace(&mut their_state, Theirs::new()));
        theirs.push(timed(|| their_state.round(0, &initial)).0);
    }
    report(&what, "load", 1.0, &mut ours, &mut theirs);
    let mut current = initial;
    let mut time = 1;
    for size in [1, 100, 10_000] {
        let rounds = changes(&mut current, 1_000, size);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let mut totals = [Duration::ZERO; 2];
        for updates in &rounds {
            ours.push(timed(|| our_state.round(time, updates)).0);
            theirs.push(timed(|| their_state.round(time, updates)).0);
            totals[0] += ours.last().copied().unwrap_or_default();
            totals[1] += theirs.last().copied().unwrap_or_default();
            time += 1;
        }
        let longest = [&ours, &theirs].map(|times| times.iter().max().copied().unwrap_or_default());
        report(
            &what,
            &format!("a round of {size} changes"),
            1.2,
            &mut ours,
            &mut theirs,
        );
        report(
            &what,
            &format!("1,000 rounds of {size} changes, in all"),
            1.2,
            &mut totals[..1].to_vec(),
            &mut totals[1..].to_vec(),
        );
        report(
            &what,
            &format!("the longest round of {size} changes"),
            f64::INFINITY,
            &mut longest[..1].to_vec(),
            &mut longest[1..].to_vec(),
        );
    }
    assert!(our_state.len() > 0);
}
