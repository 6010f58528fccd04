//! Immutable batches of updates.
//!
//! Owns [`Batch`]: all updates at times at or after `lower` and not at or after `upper`, with times
//! that are exact for readers at or after `since`. It is columns and a dictionary of times, and refers
//! to nothing that lives; columns are shared with the same batch seen from an inner scope.

use std::ops::Range;
use std::sync::Arc;

use pointstamp_order::Antichain;

use crate::columns::Columns;
use crate::rows::Rows;
use crate::time::Time;

/// Sorted, consolidated updates of an interval of times.
#[derive(Clone, Debug)]
pub struct Batch<K, V, T> {
    pub(crate) columns: Arc<Columns<K, V>>,
    /// The distinct times, ascending in their linear order.
    pub(crate) times: Vec<T>,
    lower: Antichain<T>,
    upper: Antichain<T>,
    since: Antichain<T>,
}

impl<K: Rows, V: Rows, T: Time> Batch<K, V, T> {
    pub(crate) fn new(
        (columns, times): (Columns<K, V>, Vec<T>),
        lower: Antichain<T>,
        upper: Antichain<T>,
        since: Antichain<T>,
    ) -> Self {
        Self {
            columns: Arc::new(columns),
            times,
            lower,
            upper,
            since,
        }
    }

    /// The same updates as a batch of another interval.
    pub(crate) fn between(self, lower: &Antichain<T>, upper: &Antichain<T>) -> Self {
        Self {
            lower: lower.clone(),
            upper: upper.clone(),
            ..self
        }
    }

    /// The number of updates.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// True without updates.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frontier at which the batch starts.
    pub fn lower(&self) -> &Antichain<T> {
        &self.lower
    }

    /// The frontier before which this batch and the batches before it are complete.
    pub fn upper(&self) -> &Antichain<T> {
        &self.upper
    }

    /// Times are exact for readers at or after this frontier.
    pub fn since(&self) -> &Antichain<T> {
        &self.since
    }

    /// The distinct times of the updates, ascending in their linear order.
    pub fn times(&self) -> &[T] {
        &self.times
    }

    /// The keys, distinct and in order.
    pub fn keys(&self) -> &K {
        &self.columns.keys
    }

    /// The values of all keys, one after another.
    pub fn vals(&self) -> &V {
        &self.columns.vals
    }

    /// The range in [`vals`](Self::vals) of the values of the key at `key`, distinct and in order.
    #[inline]
    pub fn vals_of(&self, key: usize) -> Range<usize> {
        self.columns.key_ends.range(key)
    }

    /// The updates of the value at `val`: each time once, in order, none with a difference of zero.
    #[inline]
    pub fn updates_of(&self, val: usize) -> impl ExactSizeIterator<Item = (&T, i64)> {
        self.columns
            .val_ends
            .range(val)
            .map(|update| self.update(update))
    }

    #[inline]
    pub(crate) fn update(&self, update: usize) -> (&T, i64) {
        let time = self.columns.index.get(update);
        (&self.times[time as usize], self.columns.diffs.get(update))
    }

    /// The bytes of memory held, both the batch's own and shared ones.
    pub fn bytes(&self) -> usize {
        self.columns.bytes() + self.times.capacity() * size_of::<T>()
    }

    /// Every update, in order of key, value and time.
    pub fn iter(&self) -> impl Iterator<Item = (K::Item<'_>, V::Item<'_>, &T, i64)> {
        (0..self.keys().len()).flat_map(move |key| {
            self.vals_of(key).flat_map(move |val| {
                let row = (self.keys().get(key), self.vals().get(val));
                self.updates_of(val)
                    .map(move |(time, diff)| (row.0, row.1, time, diff))
            })
        })
    }

    /// The same updates at other times, such as times of an inner scope; the columns are shared.
    ///
    /// `map` has to keep the linear order of times strictly.
    pub fn map_times<T2: Time>(&self, map: impl Fn(&T) -> T2) -> Batch<K, V, T2> {
        let frontier = |times: &Antichain<T>| times.iter().map(&map).collect();
        let times: Vec<T2> = self.times.iter().map(&map).collect();
        debug_assert!(times.is_sorted_by(|a, b| a < b));
        Batch {
            columns: self.columns.clone(),
            times,
            lower: frontier(&self.lower),
            upper: frontier(&self.upper),
            since: frontier(&self.since),
        }
    }
}
