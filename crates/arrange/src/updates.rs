//! Updates as they come: in any order, with repetitions.
//!
//! Owns [`Updates`], the form in which operators hand updates to each other and to a batcher, and the
//! sort that makes columns of them. Times are kept as indices into a dictionary in order of first
//! sight. Appending costs a comparison with the last time and a few appends; sorting the usual
//! `n log n`, on prefixes of eight bytes of key and value where they decide.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use crate::builder::Builder;
use crate::columns::{Columns, Diffs, Index};
use crate::error::Overflow;
use crate::rows::Rows;
use crate::time::Time;

/// A list of updates `(key, value, time, difference)`, column by column.
///
/// ```
/// use pointstamp_arrange::{Updates, Words};
///
/// let mut updates = Updates::<Words, Words, u64>::default();
/// updates.push(7, 1, &0, 1);
/// updates.push(7, 1, &3, -1);
/// assert_eq!(updates.iter().collect::<Vec<_>>(), [(7, 1, &0, 1), (7, 1, &3, -1)]);
/// ```
#[derive(Clone, Debug)]
pub struct Updates<K, V, T> {
    keys: K,
    vals: V,
    index: Index,
    diffs: Diffs,
    /// Times in order of first sight.
    times: Vec<T>,
    /// The positions of the times, once there are several.
    positions: FxHashMap<T, u32>,
    /// The index of the last update's time.
    last: u32,
}

impl<K: Default, V: Default, T> Default for Updates<K, V, T> {
    fn default() -> Self {
        Self {
            keys: K::default(),
            vals: V::default(),
            index: Index::default(),
            diffs: Diffs::default(),
            times: Vec::new(),
            positions: FxHashMap::default(),
            last: 0,
        }
    }
}

impl<K: Rows, V: Rows, T: Time> Updates<K, V, T> {
    /// The number of updates.
    pub fn len(&self) -> usize {
        self.diffs.len()
    }

    /// True without updates.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends an update. One with a difference of zero is dropped.
    #[inline]
    pub fn push(&mut self, key: K::Item<'_>, val: V::Item<'_>, time: &T, diff: i64) {
        if diff == 0 {
            return;
        }
        if self.times.get(self.last as usize) != Some(time) {
            self.last = self.find_or_insert(time);
        }
        self.keys.push(key);
        self.vals.push(val);
        self.index.push(self.last);
        self.diffs.push(diff);
    }

    /// Appends updates of one time, from whole columns. Updates with a difference of zero are dropped.
    ///
    /// # Panics
    ///
    /// When the columns differ in length.
    pub fn extend_at(&mut self, keys: &K, vals: &V, time: &T, diffs: &[i64]) {
        assert_eq!(keys.len(), vals.len(), "columns of one length");
        assert_eq!(keys.len(), diffs.len(), "columns of one length");
        if diffs.contains(&0) {
            for (index, diff) in diffs.iter().enumerate() {
                self.push(keys.get(index), vals.get(index), time, *diff);
            }
            return;
        }
        if keys.is_empty() {
            return;
        }
        self.last = self.find_or_insert(time);
        self.keys.extend(keys, 0..keys.len());
        self.vals.extend(vals, 0..vals.len());
        for diff in diffs {
            self.index.push(self.last);
            self.diffs.push(*diff);
        }
    }

    /// Moves the updates of `other` to the end of these.
    pub fn append(&mut self, other: &mut Self) {
        let map: Vec<u32> = other
            .times
            .iter()
            .map(|time| self.find_or_insert(time))
            .collect();
        let all = 0..other.len();
        self.keys.extend(&other.keys, all.clone());
        self.vals.extend(&other.vals, all.clone());
        self.index.extend(&other.index, all.clone(), &map);
        self.diffs.extend(&other.diffs, all);
        other.clear();
    }

    #[allow(clippy::cast_possible_truncation)] // more than 2^32 distinct times do not fit in memory
    fn find_or_insert(&mut self, time: &T) -> u32 {
        match self.times.len() {
            0 => {
                self.times.push(time.clone());
                0
            }
            1 if self.times[0] == *time => 0,
            len => {
                if len == 1 {
                    self.positions.insert(self.times[0].clone(), 0);
                }
                let times = &mut self.times;
                *self.positions.entry(time.clone()).or_insert_with(|| {
                    times.push(time.clone());
                    len as u32
                })
            }
        }
    }

    /// The updates in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (K::Item<'_>, V::Item<'_>, &T, i64)> {
        (0..self.len()).map(|i| {
            let time = &self.times[self.index.get(i) as usize];
            (self.keys.get(i), self.vals.get(i), time, self.diffs.get(i))
        })
    }

    /// The keys, one for each update.
    pub fn keys(&self) -> &K {
        &self.keys
    }

    /// The values, one for each update.
    pub fn vals(&self) -> &V {
        &self.vals
    }

    /// The distinct times, in order of first sight.
    pub fn times(&self) -> &[T] {
        &self.times
    }

    /// Removes every update and keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.vals.clear();
        self.index.clear();
        self.diffs.clear();
        self.times.clear();
        self.positions.clear();
        self.last = 0;
    }

    /// The bytes of memory held.
    pub fn bytes(&self) -> usize {
        self.keys.bytes() + self.vals.bytes() + self.index.bytes() + self.diffs.bytes()
    }

    /// The updates in order and added up, as columns, and the times of these.
    pub(crate) fn sorted(&self) -> Result<(Columns<K, V>, Vec<T>), Overflow> {
        let (times, ranks) = self.ranked_times();
        let exact = Exact {
            keys: self.keys.is_exact(),
            vals: self.vals.is_exact(),
        };
        let order = self.order(&ranks, exact);
        let mut builder = Builder::<K, V, T>::new(times);
        let mut at = 0;
        while at < order.len() {
            let first = &order[at];
            let mut sum = self.diffs.get(first.position as usize);
            let mut next = at + 1;
            while next < order.len()
                && self.alike(first, &order[next], exact)
                && first.time == order[next].time
            {
                sum = crate::error::add(sum, self.diffs.get(order[next].position as usize))?;
                next += 1;
            }
            if sum != 0 {
                builder.update(first.time, sum);
            }
            let position = first.position as usize;
            let follows = order.get(next);
            if !follows.is_some_and(|other| self.alike(first, other, exact)) {
                builder.end_val(self.vals.get(position));
            }
            if !follows.is_some_and(|other| self.of_one_key(first, other, exact)) {
                builder.end_key(self.keys.get(position));
            }
            at = next;
        }
        Ok(builder.finish_here())
    }

    /// The times in order, and for each index the rank of its time among them.
    #[allow(clippy::cast_possible_truncation)]
    fn ranked_times(&self) -> (Vec<T>, Vec<u32>) {
        let mut by_time: Vec<u32> = (0..self.times.len() as u32).collect();
        by_time.sort_unstable_by_key(|index| &self.times[*index as usize]);
        let mut ranks = vec![0; by_time.len()];
        for (rank, index) in by_time.iter().enumerate() {
            ranks[*index as usize] = rank as u32;
        }
        let times = by_time
            .iter()
            .map(|index| self.times[*index as usize].clone());
        (times.collect(), ranks)
    }

    /// The updates by key, value and time.
    #[allow(clippy::cast_possible_truncation)] // batchers sort chunks of far fewer updates
    fn order(&self, ranks: &[u32], exact: Exact) -> Vec<Place> {
        assert!(
            u32::try_from(self.len()).is_ok(),
            "fewer than 2^32 updates are sorted at a time"
        );
        let mut order: Vec<Place> = (0..self.len())
            .map(|i| Place {
                key: K::prefix(self.keys.get(i)),
                val: V::prefix(self.vals.get(i)),
                time: ranks[self.index.get(i) as usize],
                position: i as u32,
            })
            .collect();
        if exact.keys && exact.vals {
            order.sort_unstable_by_key(|place| (place.key, place.val, place.time));
        } else {
            order.sort_unstable_by(|a, b| {
                let keys = || self.keys_of(a, b, exact);
                let vals = || {
                    let (a, b) = (a.position as usize, b.position as usize);
                    V::compare(self.vals.get(a), self.vals.get(b))
                };
                let by_key = a.key.cmp(&b.key).then_with(keys);
                let by_val = by_key.then_with(|| a.val.cmp(&b.val).then_with(vals));
                by_val.then_with(|| a.time.cmp(&b.time))
            });
        }
        order
    }

    #[inline]
    fn keys_of(&self, a: &Place, b: &Place, exact: Exact) -> Ordering {
        if exact.keys {
            return a.key.cmp(&b.key);
        }
        K::compare(
            self.keys.get(a.position as usize),
            self.keys.get(b.position as usize),
        )
    }

    #[inline]
    fn of_one_key(&self, a: &Place, b: &Place, exact: Exact) -> bool {
        a.key == b.key && self.keys_of(a, b, exact) == Ordering::Equal
    }

    /// True for updates of the same key and value.
    #[inline]
    fn alike(&self, a: &Place, b: &Place, exact: Exact) -> bool {
        let vals = |place: &Place| self.vals.get(place.position as usize);
        self.of_one_key(a, b, exact)
            && a.val == b.val
            && (exact.vals || V::compare(vals(a), vals(b)) == Ordering::Equal)
    }
}

/// The columns whose order is decided by prefixes.
#[derive(Clone, Copy)]
struct Exact {
    keys: bool,
    vals: bool,
}

/// An update as the sort sees it.
struct Place {
    key: u64,
    val: u64,
    time: u32,
    position: u32,
}
