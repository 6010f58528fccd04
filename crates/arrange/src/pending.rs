//! Times at which keys are to be looked at later.
//!
//! Owns [`Pending`]: keys in order, each with its times in order.

use pointstamp_order::Antichain;

use crate::rows::Rows;
use crate::time::Time;

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
