//! Times at which keys are to be looked at later.
//!
//! Owns [`Pending`]: keys in order, each with its times in order.

use pointstamp_order::Antichain;

use crate::batch::{Batch, Page};
use crate::builder::Builder;
use crate::error::Error;
use crate::rows::{Rows, Units};
use crate::time::{Time, in_order};

#[derive(Debug)]
pub(crate) struct Pending<K, T> {
    keys: K,
    ends: Vec<usize>,
    times: Vec<T>,
}

impl<K: Rows, T: Time> Default for Pending<K, T> {
    fn default() -> Self {
        Self {
            keys: K::default(),
            ends: Vec::new(),
            times: Vec::new(),
        }
    }
}

impl<K: Rows, T: Time> Pending<K, T> {
    /// Adds a key after all others, with its times; nothing happens if there are none.
    pub(crate) fn push(&mut self, key: K::Item<'_>, times: &[T]) {
        if !times.is_empty() {
            self.keys.push(key);
            self.times.extend_from_slice(times);
            self.ends.push(self.times.len());
        }
    }

    /// The keys and their times as updates, to be kept.
    pub(crate) fn to_batch(&self) -> Batch<K, Units, T> {
        let times = in_order(self.times.iter().cloned());
        let mut builder = Builder::new(times.clone());
        for key in 0..self.keys.len() {
            for time in self.times_of(key) {
                #[allow(clippy::cast_possible_truncation)] // dictionaries are far smaller than 2^32
                let place = times.partition_point(|other| other < time) as u32;
                builder.update(place, 1);
            }
            builder.end_val(());
            builder.end_key(self.keys.get(key));
        }
        let (columns, times) = builder.finish_here();
        Batch::unbounded((columns.into(), times))
    }

    /// Restores the pending keys from a batch of [`to_batch`](Self::to_batch).
    pub(crate) fn of_batch(batch: &Batch<K, Units, T>) -> Result<Self, Error> {
        let mut pending = Self::default();
        for page in 0..batch.pages() {
            pending.extend(&batch.page(page)?);
        }
        Ok(pending)
    }

    fn extend(&mut self, batch: &Page<K, Units, T>) {
        for key in 0..batch.keys().len() {
            let vals = batch.vals_of(key);
            let times = vals.flat_map(|val| batch.updates_of(val));
            let times: Vec<T> = times.map(|(time, _)| time.clone()).collect();
            self.push(batch.keys().get(key), &times);
        }
    }

    pub(crate) fn keys(&self) -> &K {
        &self.keys
    }

    /// The times of the key at `index`.
    pub(crate) fn times_of(&self, index: usize) -> &[T] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.times[start..self.ends[index]]
    }

    /// Every time, of any key.
    pub(crate) fn times(&self) -> &[T] {
        &self.times
    }

    pub(crate) fn frontier(&self) -> Antichain<T> {
        let mut frontier = Antichain::new();
        for time in &self.times {
            if !frontier.less_equal(time) {
                frontier.insert(time.clone());
            }
        }
        frontier
    }
}
