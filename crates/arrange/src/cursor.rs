//! Reading several batches as one.
//!
//! Owns [`Cursor`], which goes through keys in order, or seeks them, and adds a key's values up at a
//! time; and [`Places`], the positions underneath, which operators keep while they pause. Seeking
//! costs, per batch, the logarithm of the distance; batches are few and their lengths geometric.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::batch::Batch;
use crate::error::{Overflow, add};
use crate::rows::Rows;
use crate::time::Time;
use crate::trace::Trace;

/// The reading position in each of a list of batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// The next key of each batch.
    at: Vec<usize>,
    /// The batches that have the key that was sought.
    found: Vec<usize>,
}

impl Places {
    pub(crate) fn new(batches: usize) -> Self {
        let mut places = Self::default();
        places.begin(batches);
        places
    }

    /// Begins anew, with so many batches.
    pub(crate) fn begin(&mut self, batches: usize) {
        self.at.clear();
        self.at.resize(batches, 0);
        self.found.clear();
    }

    /// Moves to `key`, which is not before any earlier one; returns true if a batch has it.
    pub(crate) fn seek<K: Rows, V: Rows, T: Time>(
        &mut self,
        batches: &[Arc<Batch<K, V, T>>],
        key: K::Item<'_>,
    ) -> bool {
        self.found.clear();
        for (index, (batch, at)) in batches.iter().zip(&mut self.at).enumerate() {
            let keys = batch.keys();
            *at = keys.seek(*at..keys.len(), key);
            if *at < keys.len() && K::compare(keys.get(*at), key) == Ordering::Equal {
                self.found.push(index);
            }
        }
        !self.found.is_empty()
    }

    /// The position of the least of the next keys: a batch and the key in it.
    pub(crate) fn least<K: Rows, V: Rows, T: Time>(
        &self,
        batches: &[Arc<Batch<K, V, T>>],
    ) -> Option<(usize, usize)> {
        let nexts = batches.iter().zip(&self.at).enumerate();
        let nexts = nexts.filter(|(_, (batch, at))| **at < batch.keys().len());
        let least = nexts
            .min_by(|(_, (a, i)), (_, (b, j))| K::compare(a.keys().get(**i), b.keys().get(**j)));
        least.map(|(index, (_, at))| (index, *at))
    }

    /// The next key of the first batch.
    pub(crate) fn first(&self) -> usize {
        self.at[0]
    }

    /// Passes the key that was found.
    pub(crate) fn pass(&mut self) {
        for index in self.found.drain(..) {
            self.at[index] += 1;
        }
    }

    /// The values of the current key: for each batch that has it, their range.
    pub(crate) fn vals<'a, K: Rows, V: Rows, T: Time>(
        &'a self,
        batches: &'a [Arc<Batch<K, V, T>>],
    ) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
        self.found
            .iter()
            .map(|index| (*index, batches[*index].vals_of(self.at[*index])))
    }

    /// The number of updates of the current key.
    pub(crate) fn updates<K: Rows, V: Rows, T: Time>(
        &self,
        batches: &[Arc<Batch<K, V, T>>],
    ) -> usize {
        let parts = self.vals(batches);
        parts
            .map(|(batch, vals)| batches[batch].columns.val_ends.span(&vals).len())
            .sum()
    }
}

/// Reads keys, values and counts of a list of batches.
///
/// ```
/// use pointstamp_arrange::{Batcher, Cursor, Units, Words};
/// use pointstamp_order::Antichain;
/// use std::sync::Arc;
///
/// let mut batcher = Batcher::<Words, Units, u64>::new(Antichain::from_elem(0));
/// for (key, time, diff) in [(3, 0, 1), (3, 1, 1), (4, 0, 1), (4, 2, -1)] {
///     batcher.push(key, (), &time, diff)?;
/// }
/// let (_, batch) = batcher.seal(&Antichain::new())?.remove(0);
/// let batches = [Arc::new(batch)];
/// let mut cursor = Cursor::new(&batches);
/// assert!(cursor.seek(3));
/// assert_eq!(cursor.count_at(&0)?, 1);
/// assert_eq!(cursor.count_at(&1)?, 2);
/// cursor.pass();
/// assert_eq!(cursor.key(), Some(4));
/// # Ok::<(), pointstamp_arrange::Overflow>(())
/// ```
#[derive(Debug)]
pub struct Cursor<'a, K, V, T> {
    batches: &'a [Arc<Batch<K, V, T>>],
    places: Places,
    /// The position of the current key.
    key: Option<(usize, usize)>,
}

impl<'a, K: Rows, V: Rows, T: Time> Cursor<'a, K, V, T> {
    /// A cursor at the first key.
    pub fn new(batches: &'a [Arc<Batch<K, V, T>>]) -> Self {
        let mut cursor = Self {
            batches,
            places: Places::new(batches.len()),
            key: None,
        };
        cursor.find();
        cursor
    }

    fn find(&mut self) {
        self.key = self.places.least(self.batches);
        if let Some(key) = self.key() {
            self.places.seek(self.batches, key);
        }
    }

    /// The current key; `None` after the last.
    pub fn key(&self) -> Option<K::Item<'a>> {
        self.key
            .map(|(batch, key)| self.batches[batch].keys().get(key))
    }

    /// Goes to the next key.
    pub fn pass(&mut self) {
        self.places.pass();
        self.find();
    }

    /// Goes to `key`, or to the first after it; true if it is there. Does not go back.
    pub fn seek(&mut self, key: K::Item<'_>) -> bool {
        let found = self.places.seek(self.batches, key);
        if found {
            self.key = self.places.least(self.batches);
        } else {
            self.find();
        }
        found
    }

    /// Calls `f` for each value of the current key, in order, with its count at `time`, unless that is
    /// zero.
    ///
    /// # Errors
    ///
    /// When a count does not fit.
    pub fn vals_at(&self, time: &T, mut f: impl FnMut(V::Item<'a>, i64)) -> Result<(), Overflow> {
        let count = |batch: &Batch<K, V, T>, val| {
            let updates = batch.updates_of(val);
            let mut before = updates.filter(|(at, _)| at.less_equal(time));
            before.try_fold(0, |sum, (_, diff)| add(sum, diff))
        };
        let mut rest: Vec<(usize, Range<usize>)> = self.places.vals(self.batches).collect();
        loop {
            rest.retain(|(_, vals)| !vals.is_empty());
            let firsts = rest
                .iter()
                .map(|(batch, vals)| self.batches[*batch].vals().get(vals.start));
            let Some(least) = firsts.min() else {
                return Ok(());
            };
            let mut sum = 0;
            for (batch, vals) in &mut rest {
                let batch = &self.batches[*batch];
                if batch.vals().get(vals.start) == least {
                    sum = add(sum, count(batch, vals.start)?)?;
                    vals.start += 1;
                }
            }
            if sum != 0 {
                f(least, sum);
            }
        }
    }

    /// The sum of the counts of all values of the current key at `time`.
    ///
    /// # Errors
    ///
    /// When that does not fit.
    pub fn count_at(&self, time: &T) -> Result<i64, Overflow> {
        let mut sum = 0;
        for (batch, vals) in self.places.vals(self.batches) {
            let batch = &self.batches[batch];
            for update in batch.columns.val_ends.span(&vals) {
                let (at, diff) = batch.update(update);
                if at.less_equal(time) {
                    sum = add(sum, diff)?;
                }
            }
        }
        Ok(sum)
    }
}

/// Values and how often each occurs.
#[derive(Clone, Debug, Default)]
pub struct Counted<V> {
    /// The values, in order.
    pub vals: V,
    /// The count of each.
    pub counts: Vec<i64>,
}

impl<V: Rows> Counted<V> {
    /// The values with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (V::Item<'_>, i64)> {
        self.counts
            .iter()
            .enumerate()
            .map(|(index, count)| (self.vals.get(index), *count))
    }
}

impl<K: Rows, V: Rows, T: Time> Trace<K, V, T> {
    /// The values of `key` and their counts at `time`, which has to be at or after
    /// [`since`](Self::since).
    ///
    /// # Errors
    ///
    /// When a count does not fit.
    pub fn get(&self, key: K::Item<'_>, time: &T) -> Result<Counted<V>, Overflow> {
        let batches = self.batches();
        let mut cursor = Cursor::new(&batches);
        let mut counted: Counted<V> = Counted::default();
        if cursor.seek(key) {
            cursor.vals_at(time, |val, count| {
                counted.vals.push(val);
                counted.counts.push(count);
            })?;
        }
        Ok(counted)
    }
}
