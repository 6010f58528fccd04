//! Arrangements of an outer scope, seen from an inner one.

use pointstamp_order::Antichain;

use crate::batch::Batch;
use crate::rows::Rows;
use crate::time::Time;
use crate::trace::Source;

/// An arrangement of an outer scope, seen from an inner one: the columns are the same, and only the
/// few distinct times of each batch are mapped.
pub struct Entered<K, V, T0, T> {
    source: Box<dyn Source<K, V, T0>>,
    enter: Box<dyn Fn(&T0) -> T + Send>,
    leave: Box<dyn Fn(&T) -> T0 + Send>,
}

impl<K: Rows, V: Rows, T0: Time, T: Time> Entered<K, V, T0, T> {
    /// Wraps `source`, with each time `enter`ed: a time whose further coordinates are zero. `leave` drops
    /// these again.
    pub fn new(
        source: Box<dyn Source<K, V, T0>>,
        enter: impl Fn(&T0) -> T + Send + 'static,
        leave: impl Fn(&T) -> T0 + Send + 'static,
    ) -> Self {
        Self {
            source,
            enter: Box::new(enter),
            leave: Box::new(leave),
        }
    }
}

impl<K: Rows, V: Rows, T0: Time, T: Time> Source<K, V, T> for Entered<K, V, T0, T> {
    fn batches_through(&self, number: u64) -> Vec<Batch<K, V, T>> {
        let batches = self.source.batches_through(number);
        batches
            .iter()
            .map(|batch| batch.map_times(&self.enter))
            .collect()
    }

    fn allow_compaction(&mut self, since: &Antichain<T>) {
        self.source
            .allow_compaction(&since.iter().map(&self.leave).collect());
    }

    fn follow(&mut self) {
        self.source.follow();
    }

    fn seen(&self) -> u64 {
        self.source.seen()
    }

    fn acknowledge(&mut self, number: u64) {
        self.source.acknowledge(number);
    }

    fn since(&self) -> Antichain<T> {
        self.source.since().iter().map(&self.enter).collect()
    }
}
