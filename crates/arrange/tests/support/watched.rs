//! Rows that count the operations on them, and an arrangement of them.

use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Range;

use pointstamp_arrange::{Batcher, Rows, TraceWriter, Words};
use pointstamp_order::Antichain;

thread_local! {
    pub(crate) static COPIED: Cell<usize> = const { Cell::new(0) };
    pub(crate) static COMPARED: Cell<usize> = const { Cell::new(0) };
    pub(crate) static FREED: Cell<usize> = const { Cell::new(0) };
}

fn add(counter: &'static std::thread::LocalKey<Cell<usize>>, count: usize) {
    counter.set(counter.get() + count);
}

/// Words whose column counts the operations on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched(Words);

impl Drop for Watched {
    fn drop(&mut self) {
        add(&FREED, self.0.len());
    }
}

impl Rows for Watched {
    type Item<'a> = u64;

    fn is_exact(&self) -> bool {
        true
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> u64 {
        self.0.get(index)
    }

    fn hash(row: u64, memory: &mut Vec<u8>) -> u64 {
        Words::hash(row, memory)
    }

    fn push(&mut self, row: u64) {
        add(&COPIED, 1);
        self.0.push(row);
    }

    fn extend(&mut self, other: &Self, range: Range<usize>) {
        add(&COPIED, range.len());
        self.0.extend(&other.0, range);
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn shrink(&mut self) {
        self.0.shrink();
    }

    fn compare(a: u64, b: u64) -> Ordering {
        add(&COMPARED, 1);
        a.cmp(&b)
    }

    fn prefix(row: u64) -> u64 {
        row
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn write(&self, into: &mut Vec<u8>) {
        self.0.write(into);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Words::read(from).map(Self)
    }
}

pub(crate) struct Arranged {
    pub(crate) batcher: Batcher<Watched, Watched, u64>,
    pub(crate) writer: TraceWriter<Watched, Watched, u64>,
    pub(crate) trace: pointstamp_arrange::Trace<Watched, Watched, u64>,
}

impl Arranged {
    pub(crate) fn new() -> Self {
        let least = Antichain::from_elem(0);
        let (writer, trace) = TraceWriter::new(least.clone());
        Self {
            batcher: Batcher::new(least),
            writer,
            trace,
        }
    }

    /// Everything at one time becomes a batch.
    pub(crate) fn seal(
        &mut self,
        time: u64,
    ) -> Option<pointstamp_arrange::Sealed<Watched, Watched, u64>> {
        let upper = Antichain::from_elem(time + 1);
        let mut sealed = None;
        for (_, batch) in self.batcher.seal(&upper).unwrap() {
            sealed = self.writer.insert(batch).unwrap();
        }
        self.writer.seal(upper.clone());
        self.trace.allow_compaction(&upper);
        sealed
    }
}

/// Pairs that look random and are all different.
pub(crate) fn pair(number: u64) -> (u64, u64) {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20, number)
}
