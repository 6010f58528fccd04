//! An arrangement by hand.

use pointstamp_arrange::{Batcher, Sealed, Time, Trace, TraceWriter, Words};
use pointstamp_order::Antichain;

/// A batch of numbers.
pub(crate) type Pairs<T> = Sealed<Words, Words, T>;

/// An arrangement at the end of a batcher.
pub(crate) struct Arranged<T: Time> {
    pub(crate) batcher: Batcher<Words, Words, T>,
    pub(crate) writer: TraceWriter<Words, Words, T>,
    pub(crate) trace: Trace<Words, Words, T>,
}

impl<T: Time> Arranged<T> {
    pub(crate) fn new(least: T) -> Self {
        let least = Antichain::from_elem(least);
        let (mut writer, trace) = TraceWriter::new(least.clone());
        writer.store_in(super::stored::storage());
        Self {
            batcher: super::stored::batcher(least),
            writer,
            trace,
        }
    }

    pub(crate) fn push(&mut self, key: u64, val: u64, time: &T, diff: i64) {
        self.batcher.push(key, val, time, diff).unwrap();
    }

    pub(crate) fn seal(&mut self, upper: &Antichain<T>) -> Vec<(T, Pairs<T>)> {
        let mut sealed = Vec::new();
        for (time, batch) in self.batcher.seal(upper).unwrap() {
            sealed.extend(
                self.writer
                    .insert(batch)
                    .unwrap()
                    .map(|batch| (time, batch)),
            );
        }
        self.writer.seal(upper.clone());
        sealed
    }

    pub(crate) fn settle(&mut self) {
        while !self.writer.exert(&mut 1000).unwrap() {}
    }
}
