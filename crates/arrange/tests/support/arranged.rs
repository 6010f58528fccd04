//! An arrangement by hand, and what a join of two makes of them.

use pointstamp_arrange::{Batcher, Join, JoinStep, Sealed, Time, Trace, TraceWriter, Words};
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
        let (writer, trace) = TraceWriter::new(least.clone());
        Self {
            batcher: Batcher::new(least),
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

/// Keys, values of both sides, times and differences.
pub(crate) type Joined<T> = Vec<(u64, u64, u64, T, i64)>;

/// What a join that does so much in a step puts out until it is idle.
pub(crate) fn finish<T: Time>(
    join: &mut Join<Words, Words, Words, T, T>,
    fuel: usize,
) -> Joined<T> {
    let mut joined = Vec::new();
    loop {
        let mut fuel = fuel;
        let emit = |key, a, b, time: &T, diff| joined.push((key, a, b, time.clone(), diff));
        if matches!(join.work(&mut fuel, emit).unwrap(), JoinStep::Idle) {
            return joined;
        }
    }
}
