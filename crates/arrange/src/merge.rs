//! Merging two batches, a bit at a time.
//!
//! Owns [`Merge`]. Runs of keys that one batch alone has are copied column by column. Times are
//! advanced to a frontier once per distinct time, through the dictionaries, and updates that then
//! cancel vanish. Work is counted in updates, and may stop between any two values, also of one key. Batches on disk are
//! read a page at a time, and a result that goes there is written as it is made.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use pointstamp_order::Antichain;

use crate::batch::{Batch, Body, Page};
use crate::builder::{Builder, TimeMap};
use crate::error::{Error, Overflow};
use crate::rows::Rows;
use crate::storage::Storage;
use crate::time::{Time, advance, in_order};

/// A merge of two batches whose intervals adjoin.
#[derive(Debug)]
pub(crate) struct Merge<K, V, T> {
    older: Side<K, V, T>,
    newer: Side<K, V, T>,
    since: Antichain<T>,
    builder: Builder<K, V, T>,
    /// The updates of both batches.
    total: usize,
}

#[derive(Debug)]
struct Side<K, V, T> {
    batch: Batch<K, V, T>,
    /// The page that is being merged, and the number of the next one.
    page: Page<K, V, T>,
    next: usize,
    map: TimeMap,
    /// The next key of the page, and the number of its keys.
    key: usize,
    keys: usize,
    /// True inside of the key, which the merge then goes through value by value.
    within: bool,
    /// The values of that key that are to come.
    vals: Range<usize>,
}

/// A key with more updates than this may be merged in several steps; fewer where tests run.
const LARGE: usize = if cfg!(debug_assertions) { 16 } else { 1 << 10 };

impl<K: Rows, V: Rows, T: Time> Side<K, V, T> {
    fn new(batch: Batch<K, V, T>, times: &[T], since: &Antichain<T>) -> Self {
        let place = |time: &T| position(times, &advance(time, since));
        let map = TimeMap::new(batch.times(), place);
        let page = batch.page_here();
        Self {
            keys: page.keys().len(),
            page,
            next: usize::from(!batch.is_stored()),
            batch,
            map,
            key: 0,
            within: false,
            vals: 0..0,
        }
    }

    fn enter_key(&mut self) {
        self.within = true;
        self.vals = self.page.vals_of(self.key);
    }

    fn leave_key(&mut self) {
        self.key += usize::from(self.within);
        self.within = false;
    }

    /// Goes to the next page, at the end of one; true if there is another key.
    #[inline]
    fn has_key(&mut self) -> Result<bool, Error> {
        if self.key == self.keys && self.next < self.batch.pages() {
            self.turn_page()?;
        }
        Ok(self.key < self.keys)
    }

    fn turn_page(&mut self) -> Result<(), Error> {
        self.page = self.batch.page(self.next)?;
        self.next += 1;
        self.key = 0;
        self.keys = self.page.keys().len();
        Ok(())
    }

    /// Copies keys before `end`, for at most about `fuel` updates, or enters a key of more than that. Returns the
    /// number of updates copied.
    fn copy_keys(
        &mut self,
        end: usize,
        fuel: usize,
        into: &mut Builder<K, V, T>,
    ) -> Result<usize, Overflow> {
        let columns = &self.page.columns;
        let mut keys = self.key..end;
        let mut cost = columns.updates_of_keys(&keys).len();
        while cost > fuel && keys.len() > 1 {
            keys.end = keys.start + keys.len() / 2;
            cost = columns.updates_of_keys(&keys).len();
        }
        if cost > fuel.max(LARGE) {
            self.enter_key();
            return Ok(0);
        }
        into.copy_keys(columns, keys.clone(), &self.map)?;
        self.key = keys.end;
        Ok(cost)
    }

    /// Copies values before `end`.
    fn copy_vals(
        &mut self,
        end: usize,
        fuel: usize,
        into: &mut Builder<K, V, T>,
    ) -> Result<usize, Overflow> {
        let columns = &self.page.columns;
        let vals = self.vals.start..end.min(self.vals.start + fuel.max(1));
        let cost = columns.val_ends.span(&vals).len();
        into.copy_vals(columns, vals.clone(), &self.map)?;
        self.vals.start = vals.end;
        Ok(cost)
    }

    /// The updates of the next value.
    fn updates(&self) -> impl Iterator<Item = (u32, i64)> {
        let columns = &self.page.columns;
        let updates = columns.val_ends.range(self.vals.start);
        updates.map(|u| (self.map.get(columns.index.get(u)), columns.diffs.get(u)))
    }
}

#[allow(clippy::cast_possible_truncation)] // dictionaries are far smaller than 2^32
fn position<T: Ord>(times: &[T], time: &T) -> u32 {
    times
        .binary_search(time)
        .expect("every advanced time is in the dictionary") as u32
}

impl<K: Rows, V: Rows, T: Time> Merge<K, V, T> {
    /// Begins to merge `older` with `newer`, which follows it, for readers at or after `since`.
    pub(crate) fn new(
        older: Batch<K, V, T>,
        newer: Batch<K, V, T>,
        since: Antichain<T>,
        storage: Option<&Arc<dyn Storage>>,
    ) -> Self {
        let dictionaries = older.times().iter().chain(newer.times());
        let times = in_order(dictionaries.map(|time| advance(time, &since)));
        let bytes = older.decoded_bytes() + newer.decoded_bytes();
        let mut builder = Builder::stored_in(times.clone(), storage, bytes);
        if let (Body::Here(older), Body::Here(newer)) = (&older.body, &newer.body)
            && !builder.is_storing()
        {
            builder.reserve_for(older, newer);
        }
        Self {
            total: older.len() + newer.len(),
            older: Side::new(older, &times, &since),
            newer: Side::new(newer, &times, &since),
            since,
            builder,
        }
    }

    /// Begins to write a batch to the storage as it is.
    pub(crate) fn storing(batch: Batch<K, V, T>, storage: &Arc<dyn Storage>) -> Self {
        let since = batch.since().clone();
        let nothing = Batch::empty(batch.upper().clone(), Antichain::new());
        let builder = Builder::stored(batch.times().to_vec(), storage);
        Self {
            since,
            builder,
            ..Self::new(batch, nothing, Antichain::new(), None)
        }
    }

    /// The updates of both batches.
    pub(crate) fn len(&self) -> usize {
        self.total
    }

    /// The bytes of memory held, with both batches, and those on disk but for the result.
    pub(crate) fn size(&self) -> (usize, u64) {
        let (older, newer) = (&self.older.batch, &self.newer.batch);
        let bytes = older.bytes() + newer.bytes() + self.bytes();
        (bytes, older.bytes_on_disk() + newer.bytes_on_disk())
    }

    /// The bytes of memory that the merged part holds.
    pub(crate) fn bytes(&self) -> usize {
        self.builder.bytes()
    }

    /// Merges until `fuel` is used up, in updates; true when the merge is complete.
    pub(crate) fn work(&mut self, fuel: &mut usize) -> Result<bool, Error> {
        while *fuel > 0 {
            let most = self.builder.step(*fuel);
            let cost = if self.inside() {
                self.step_inside(most)?
            } else {
                self.builder.store_full_page()?;
                match (self.older.has_key()?, self.newer.has_key()?) {
                    (true, true) => self.step(most)?,
                    (true, false) => {
                        self.older
                            .copy_keys(self.older.keys, most, &mut self.builder)?
                    }
                    (false, true) => {
                        self.newer
                            .copy_keys(self.newer.keys, most, &mut self.builder)?
                    }
                    (false, false) => return Ok(self.builder.settle(fuel)),
                }
            };
            *fuel = fuel.saturating_sub(cost);
        }
        Ok(false)
    }

    /// Copies the keys that one of the batches alone has next, or enters a key that both have.
    fn step(&mut self, fuel: usize) -> Result<usize, Overflow> {
        let (older, newer) = (&mut self.older, &mut self.newer);
        let keys = (older.page.keys(), newer.page.keys());
        let (ours, theirs) = (keys.0.get(older.key), keys.1.get(newer.key));
        match K::compare(ours, theirs) {
            Ordering::Less => {
                let end = keys.0.seek(older.key + 1..keys.0.len(), theirs);
                older.copy_keys(end, fuel, &mut self.builder)
            }
            Ordering::Greater => {
                let end = keys.1.seek(newer.key + 1..keys.1.len(), ours);
                newer.copy_keys(end, fuel, &mut self.builder)
            }
            Ordering::Equal => {
                older.enter_key();
                newer.enter_key();
                Ok(0)
            }
        }
    }

    fn inside(&self) -> bool {
        self.older.within || self.newer.within
    }

    /// Merges values of one key.
    fn step_inside(&mut self, fuel: usize) -> Result<usize, Overflow> {
        let (older, newer, builder) = (&mut self.older, &mut self.newer, &mut self.builder);
        match (older.vals.is_empty(), newer.vals.is_empty()) {
            (true, true) => {
                let side = if older.within { &older } else { &newer };
                builder.end_key(side.page.keys().get(side.key));
                older.leave_key();
                newer.leave_key();
                Ok(0)
            }
            (true, false) => newer.copy_vals(newer.vals.end, fuel, builder),
            (false, true) => older.copy_vals(older.vals.end, fuel, builder),
            (false, false) => {
                let vals = (older.page.vals(), newer.page.vals());
                let (ours, theirs) = (vals.0.get(older.vals.start), vals.1.get(newer.vals.start));
                match V::compare(ours, theirs) {
                    Ordering::Less => {
                        let end = vals.0.seek(older.vals.start + 1..older.vals.end, theirs);
                        older.copy_vals(end, fuel, builder)
                    }
                    Ordering::Greater => {
                        let end = vals.1.seek(newer.vals.start + 1..newer.vals.end, ours);
                        newer.copy_vals(end, fuel, builder)
                    }
                    Ordering::Equal => {
                        let updates = older.updates().chain(newer.updates());
                        let mut cost = 0;
                        builder.added_up(updates.inspect(|_| cost += 1))?;
                        builder.end_val(ours);
                        older.vals.start += 1;
                        newer.vals.start += 1;
                        Ok(cost)
                    }
                }
            }
        }
    }

    /// The merged batch; the merge has to be complete. Finishing is cheap: the owners of the two batches free them.
    pub(crate) fn finish(self) -> Result<Batch<K, V, T>, Error> {
        let lower = self.older.batch.lower().clone();
        let upper = self.newer.batch.upper().clone();
        Ok(Batch::new(self.builder.finish()?, lower, upper, self.since))
    }
}
