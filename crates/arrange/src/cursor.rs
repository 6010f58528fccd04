//! Reading several batches as one.
//!
//! Owns [`Cursor`], which goes through keys in order, or seeks them, and adds a key's values up at a
//! time; and [`Places`], the positions underneath, which operators keep while they pause. Seeking
//! costs, per batch, the logarithm of the distance; batches are few and their lengths geometric.

use std::cmp::Ordering;
use std::ops::Range;

use crate::batch::{Batch, Page};
use crate::error::{Error, Overflow, add};
use crate::pins::Pins;
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
    /// Whether pages were left out by their filters, so that the next keys may be before the one that was sought.
    is_inexact: bool,
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
        self.is_inexact = false;
    }

    /// Moves to `key`, which is not before any earlier one; returns true if a batch has it.
    pub(crate) fn seek<K: Rows, V: Rows, T: Time>(
        &mut self,
        batches: &mut Pins<K, V, T>,
        key: K::Item<'_>,
    ) -> Result<bool, Error> {
        batches.seek(&mut self.at, key)?;
        self.is_inexact = false;
        self.find_at_or_after(batches, key);
        Ok(!self.found.is_empty())
    }

    /// Moves to `key`, as [`seek`](Self::seek), and reads no page of which the filter says that it does not have it.
    /// Whoever wants the keys after it asks [`is_exact`](Self::is_exact).
    pub(crate) fn look_up<K: Rows, V: Rows, T: Time>(
        &mut self,
        batches: &mut Pins<K, V, T>,
        key: K::Item<'_>,
    ) -> Result<bool, Error> {
        self.is_inexact = !batches.look_up(&mut self.at, key)?;
        self.find_at_or_after(batches, key);
        Ok(!self.found.is_empty())
    }

    /// Whether the next keys are at or after the one that was looked up.
    pub(crate) fn is_exact(&self) -> bool {
        !self.is_inexact
    }

    fn find_at_or_after<K: Rows, V: Rows, T: Time>(
        &mut self,
        batches: &Pins<K, V, T>,
        key: K::Item<'_>,
    ) {
        self.found.clear();
        for (index, at) in self.at.iter_mut().enumerate() {
            let keys = batches.current(index).keys();
            *at = keys.seek(*at..keys.len(), key);
            if *at < keys.len() && K::compare(keys.get(*at), key) == Ordering::Equal {
                self.found.push(index);
            }
        }
    }

    /// Finds the batches that have `key`, which is the least of the next keys.
    pub(crate) fn find<K: Rows, V: Rows, T: Time>(
        &mut self,
        batches: &Pins<K, V, T>,
        key: K::Item<'_>,
    ) {
        self.found.clear();
        for (index, at) in self.at.iter().enumerate() {
            let keys = batches.current(index).keys();
            if *at < keys.len() && K::compare(keys.get(*at), key) == Ordering::Equal {
                self.found.push(index);
            }
        }
    }

    /// The position of the least of the next keys: a page and the key in it.
    pub(crate) fn least<K: Rows, V: Rows, T: Time>(
        &mut self,
        batches: &mut Pins<K, V, T>,
    ) -> Result<Option<(usize, usize)>, Error> {
        debug_assert!(self.is_exact());
        batches.turn(&mut self.at)?;
        let nexts = self.at.iter().enumerate();
        let nexts = nexts.map(|(index, at)| (index, *at, batches.current(index).keys()));
        let nexts = nexts.filter(|(_, at, keys)| *at < keys.len());
        let least = nexts.min_by(|(_, i, a), (_, j, b)| K::compare(a.get(*i), b.get(*j)));
        Ok(least.map(|(index, at, _)| (batches.slot(index), at)))
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

    /// The values of the current key: for each batch that has it, the place of the page, and their range.
    pub(crate) fn vals<'a, K: Rows, V: Rows, T: Time>(
        &'a self,
        batches: &'a Pins<K, V, T>,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
        self.found.iter().map(|index| {
            let slot = batches.slot(*index);
            (slot, batches[slot].vals_of(self.at[*index]))
        })
    }

    /// The number of updates of the current key.
    pub(crate) fn updates<K: Rows, V: Rows, T: Time>(&self, batches: &Pins<K, V, T>) -> usize {
        let parts = self.vals(batches);
        parts
            .map(|(page, vals)| batches[page].columns.val_ends.span(&vals).len())
            .sum()
    }
}

/// Reads keys, values and counts of a list of batches.
///
/// ```
/// use pointstamp_arrange::{Batcher, Cursor, Units, Words};
/// use pointstamp_order::Antichain;
///
/// let mut batcher = Batcher::<Words, Units, u64>::new(Antichain::from_elem(0));
/// for (key, time, diff) in [(3, 0, 1), (3, 1, 1), (4, 0, 1), (4, 2, -1)] {
///     batcher.push(key, (), &time, diff)?;
/// }
/// let (_, batch) = batcher.seal(&Antichain::new())?.remove(0);
/// let mut cursor = Cursor::new(vec![batch])?;
/// assert!(cursor.seek(3)?);
/// assert_eq!(cursor.count_at(&0)?, 1);
/// assert_eq!(cursor.count_at(&1)?, 2);
/// cursor.pass()?;
/// assert_eq!(cursor.key(), Some(4));
/// # Ok::<(), pointstamp_arrange::Error>(())
/// ```
#[derive(Debug)]
pub struct Cursor<K, V, T> {
    batches: Pins<K, V, T>,
    places: Places,
    /// The position of the current key.
    key: Option<(usize, usize)>,
}

impl<K: Rows, V: Rows, T: Time> Cursor<K, V, T> {
    /// A cursor at the first key.
    ///
    /// # Errors
    ///
    /// When a page on disk cannot be read, as of all functions that move.
    pub fn new(batches: Vec<Batch<K, V, T>>) -> Result<Self, Error> {
        let mut cursor = Self {
            places: Places::new(batches.len()),
            batches: Pins::new(batches),
            key: None,
        };
        cursor.find()?;
        Ok(cursor)
    }

    fn find(&mut self) -> Result<(), Error> {
        self.batches.release();
        self.key = self.places.least(&mut self.batches)?;
        if let Some((page, key)) = self.key {
            let key = self.batches[page].keys().get(key);
            self.places.find(&self.batches, key);
        }
        Ok(())
    }

    /// The current key; `None` after the last.
    pub fn key(&self) -> Option<K::Item<'_>> {
        self.key
            .map(|(page, key)| self.batches[page].keys().get(key))
    }

    /// Goes to the next key.
    ///
    /// # Errors
    ///
    /// See [`new`](Self::new).
    pub fn pass(&mut self) -> Result<(), Error> {
        self.places.pass();
        self.find()
    }

    /// Goes to `key`, or to the first after it; true if it is there. Does not go back.
    ///
    /// # Errors
    ///
    /// See [`new`](Self::new).
    pub fn seek(&mut self, key: K::Item<'_>) -> Result<bool, Error> {
        let found = self.places.seek(&mut self.batches, key)?;
        self.find()?;
        Ok(found)
    }

    /// Calls `f` for each value of the current key, in order, with its count at `time`, unless that is
    /// zero.
    ///
    /// # Errors
    ///
    /// When a count does not fit.
    pub fn vals_at<'a>(
        &'a self,
        time: &T,
        mut f: impl FnMut(V::Item<'a>, i64),
    ) -> Result<(), Overflow> {
        let count = |page: &Page<K, V, T>, val| {
            let updates = page.updates_of(val);
            let mut before = updates.filter(|(at, _)| at.less_equal(time));
            before.try_fold(0, |sum, (_, diff)| add(sum, diff))
        };
        let mut rest: Vec<(usize, Range<usize>)> = self.places.vals(&self.batches).collect();
        loop {
            rest.retain(|(_, vals)| !vals.is_empty());
            let firsts = rest
                .iter()
                .map(|(page, vals)| self.batches[*page].vals().get(vals.start));
            let Some(least) = firsts.min() else {
                return Ok(());
            };
            let mut sum = 0;
            for (page, vals) in &mut rest {
                let page = &self.batches[*page];
                if page.vals().get(vals.start) == least {
                    sum = add(sum, count(page, vals.start)?)?;
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
        for (page, vals) in self.places.vals(&self.batches) {
            let page = &self.batches[page];
            for update in page.columns.val_ends.span(&vals) {
                let (at, diff) = page.update(update);
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
    /// When a count does not fit, or a page on disk cannot be read.
    pub fn get(&self, key: K::Item<'_>, time: &T) -> Result<Counted<V>, Error> {
        let batches = self.batches();
        let mut cursor = Cursor {
            places: Places::new(batches.len()),
            batches: Pins::new(batches),
            key: None,
        };
        let mut counted: Counted<V> = Counted::default();
        if cursor.places.look_up(&mut cursor.batches, key)? {
            cursor.vals_at(time, |val, count| {
                counted.vals.push(val);
                counted.counts.push(count);
            })?;
        }
        Ok(counted)
    }
}
