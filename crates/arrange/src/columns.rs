//! The columns of a batch: keys, their values, and the updates of each.
//!
//! Owns [`Columns`] and the sparse columns [`Diffs`] and [`Index`]. Invariants: keys are distinct and ascend; so do
//! the values of each key; every key has a value, and every value an update. Updates of a value ascend by the index
//! of their time, without two of one index and without a difference of zero. A part that is equal in all updates, a
//! difference of one or the only time, is not stored.

use std::ops::Range;

use crate::offsets::Offsets;
use crate::rows::Rows;

/// Differences; none are stored while all are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Diffs {
    len: usize,
    stored: Vec<i64>,
}

impl From<Vec<i64>> for Diffs {
    fn from(diffs: Vec<i64>) -> Self {
        let len = diffs.len();
        let is_stored = diffs.iter().any(|diff| *diff != 1);
        Self {
            len,
            stored: if is_stored { diffs } else { Vec::new() },
        }
    }
}

impl Diffs {
    /// So many differences of one.
    pub(crate) fn ones(len: usize) -> Self {
        Self {
            len,
            stored: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> i64 {
        if self.stored.is_empty() {
            1
        } else {
            self.stored[index]
        }
    }

    /// The differences, unless all are one.
    pub(crate) fn stored(&self) -> Option<&[i64]> {
        (!self.stored.is_empty()).then_some(&self.stored)
    }

    #[inline]
    pub(crate) fn push(&mut self, diff: i64) {
        if !self.stored.is_empty() {
            self.stored.push(diff);
        } else if diff != 1 {
            self.store(diff);
        }
        self.len += 1;
    }

    #[cold]
    fn store(&mut self, diff: i64) {
        self.stored.reserve((self.len + 1).next_power_of_two());
        self.stored.resize(self.len, 1);
        self.stored.push(diff);
    }

    pub(crate) fn extend(&mut self, other: &Self, range: Range<usize>) {
        if self.stored.is_empty() && other.stored.is_empty() {
            self.len += range.len();
        } else if other.stored.is_empty() {
            self.len += range.len();
            self.stored.resize(self.len, 1);
        } else if self.stored.is_empty() && other.stored[range.clone()].iter().all(|d| *d == 1) {
            self.len += range.len();
        } else {
            self.stored.resize(self.len, 1);
            self.len += range.len();
            self.stored.extend_from_slice(&other.stored[range]);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.stored.clear();
    }

    pub(crate) fn shrink(&mut self) {
        self.stored.shrink_to_fit();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.stored.capacity() * size_of::<i64>()
    }
}

/// Indices of times; none are stored while all are zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    len: usize,
    stored: Vec<u32>,
}

impl From<Vec<u32>> for Index {
    fn from(times: Vec<u32>) -> Self {
        let len = times.len();
        let is_stored = times.iter().any(|time| *time != 0);
        Self {
            len,
            stored: if is_stored { times } else { Vec::new() },
        }
    }
}

impl Index {
    /// So many times the same index.
    pub(crate) fn constant(len: usize, time: u32) -> Self {
        let stored = if time == 0 {
            Vec::new()
        } else {
            vec![time; len]
        };
        Self { len, stored }
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> u32 {
        if self.stored.is_empty() {
            0
        } else {
            self.stored[index]
        }
    }

    /// The indices, unless all are zero.
    pub(crate) fn stored(&self) -> Option<&[u32]> {
        (!self.stored.is_empty()).then_some(&self.stored)
    }

    #[inline]
    pub(crate) fn push(&mut self, time: u32) {
        if !self.stored.is_empty() {
            self.stored.push(time);
        } else if time != 0 {
            self.store();
            self.stored.push(time);
        }
        self.len += 1;
    }

    #[cold]
    fn store(&mut self) {
        self.stored.reserve((self.len + 1).next_power_of_two());
        self.stored.resize(self.len, 0);
    }

    /// Appends a range of another index, each through `map`.
    pub(crate) fn extend(&mut self, other: &Self, range: Range<usize>, map: &[u32]) {
        let constant = match other.stored() {
            None => map.first().copied(),
            Some(_) => None,
        };
        match (constant, other.stored()) {
            (Some(0), _) if self.stored.is_empty() => self.len += range.len(),
            (Some(time), _) => {
                self.store();
                self.len += range.len();
                self.stored.resize(self.len, time);
            }
            (None, Some(stored)) => {
                self.store();
                self.len += range.len();
                self.stored
                    .extend(stored[range].iter().map(|time| map[*time as usize]));
            }
            (None, None) => {}
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Replaces at most `count` indices from `start` on by their images under `map`; returns how many.
    pub(crate) fn remap(&mut self, start: usize, count: usize, map: &[u32]) -> usize {
        if self.stored.is_empty() {
            return self.len - start; // all are zero, which stays the first
        }
        let end = self.len.min(start.saturating_add(count));
        for time in &mut self.stored[start..end] {
            *time = map[*time as usize];
        }
        end - start
    }

    /// Makes all indices zero: there is one time left.
    pub(crate) fn forget(&mut self) {
        self.stored = Vec::new();
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.stored.clear();
    }

    pub(crate) fn shrink(&mut self) {
        self.stored.shrink_to_fit();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.stored.capacity() * size_of::<u32>()
    }
}

/// Updates by key and value; their times are indices into a dictionary that is kept elsewhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns<K, V> {
    pub(crate) keys: K,
    /// The values of each key.
    pub(crate) key_ends: Offsets,
    pub(crate) vals: V,
    /// The updates of each value.
    pub(crate) val_ends: Offsets,
    pub(crate) index: Index,
    pub(crate) diffs: Diffs,
}

impl<K: Rows, V: Rows> Columns<K, V> {
    /// The number of updates.
    pub(crate) fn len(&self) -> usize {
        self.diffs.len()
    }

    /// The updates of a range of keys.
    #[inline]
    pub(crate) fn updates_of_keys(&self, keys: &Range<usize>) -> Range<usize> {
        self.val_ends.span(&self.key_ends.span(keys))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.keys.bytes()
            + self.key_ends.bytes()
            + self.vals.bytes()
            + self.val_ends.bytes()
            + self.index.bytes()
            + self.diffs.bytes()
    }

    /// Reserves memory for the contents of two others.
    pub(crate) fn reserve_for(&mut self, older: &Self, newer: &Self) {
        let larger = if older.len() < newer.len() {
            newer
        } else {
            older
        };
        self.keys
            .reserve_for(&larger.keys, older.keys.len() + newer.keys.len());
        self.vals
            .reserve_for(&larger.vals, older.vals.len() + newer.vals.len());
    }

    /// The columns one by one, with the bytes of each, to be freed one after the other.
    pub(crate) fn into_parts(self) -> [(usize, Box<dyn Send + Sync>); 6] {
        [
            (self.keys.bytes(), Box::new(self.keys)),
            (self.key_ends.bytes(), Box::new(self.key_ends)),
            (self.vals.bytes(), Box::new(self.vals)),
            (self.val_ends.bytes(), Box::new(self.val_ends)),
            (self.index.bytes(), Box::new(self.index)),
            (self.diffs.bytes(), Box::new(self.diffs)),
        ]
    }

    pub(crate) fn shrink(&mut self) {
        self.keys.shrink();
        self.key_ends.shrink();
        self.vals.shrink();
        self.val_ends.shrink();
        self.index.shrink();
        self.diffs.shrink();
    }
}
