//! Builds the columns of a batch from updates in order.
//!
//! Owns [`Builder`]. Updates are added before their value, and values before their key, so that a value whose updates
//! cancelled, or a key whose values did, is never written. Parts of other batches are copied column by column. An
//! update costs a few appends. Used times are noted on the way; where some are unused, indices are rewritten at the
//! end, in instalments.

use std::ops::Range;
use std::sync::Arc;

use crate::batch::{Body, Sorted};
use crate::columns::Columns;
use crate::error::{Error, Overflow, add};
use crate::rows::Rows;
use crate::storage::Storage;
use crate::stored::Storing;
use crate::time::Time;

/// Columns that grow at their end.
#[derive(Debug)]
pub(crate) struct Builder<K, V, T> {
    columns: Columns<K, V>,
    /// The times that indices refer to, ascending.
    times: Vec<T>,
    /// Flags of the times that are used.
    used: Vec<bool>,
    /// The new indices of times after unused ones are removed, and the number of indices that were replaced.
    settling: Option<(Vec<u32>, usize)>,
    /// The pages that are full, where the columns do not stay in memory.
    storing: Option<Storing<K>>,
    /// Whether the columns are stored although they are no full page.
    stores_all: bool,
}

impl<K: Rows, V: Rows, T: Time> Builder<K, V, T> {
    /// An empty builder for updates at `times`, which ascend.
    pub(crate) fn new(times: Vec<T>) -> Self {
        debug_assert!(times.is_sorted_by(|a, b| a < b));
        let several = if times.len() > 1 { times.len() } else { 0 };
        Self {
            columns: Columns::default(),
            times,
            used: vec![false; several],
            settling: None,
            storing: None,
            stores_all: false,
        }
    }

    /// A builder of columns that go to the storage, however few they are.
    pub(crate) fn stored(times: Vec<T>, storage: &Arc<dyn Storage>) -> Self {
        Self {
            storing: Some(Storing::new(Arc::clone(storage))),
            stores_all: true,
            ..Self::new(times)
        }
    }

    /// A builder of about so many bytes, which go to the storage if that asks for them.
    pub(crate) fn stored_in(
        times: Vec<T>,
        storage: Option<&Arc<dyn Storage>>,
        bytes: usize,
    ) -> Self {
        let storage = storage.filter(|storage| storage.stores(bytes));
        Self {
            storing: storage.cloned().map(Storing::new),
            ..Self::new(times)
        }
    }

    /// The columns so far, except those that are stored.
    pub(crate) fn columns(&self) -> &Columns<K, V> {
        &self.columns
    }

    /// Whether full pages go to the storage.
    #[inline]
    pub(crate) fn is_storing(&self) -> bool {
        self.storing.is_some()
    }

    /// The fuel that may be used before [`store_full_page`](Self::store_full_page) is called again.
    #[inline]
    pub(crate) fn step(&self, fuel: usize) -> usize {
        match &self.storing {
            Some(storing) => storing.step().min(fuel),
            None => fuel,
        }
    }

    /// Stores a page if there is enough for one. To be called between two keys.
    #[inline]
    pub(crate) fn store_full_page(&mut self) -> Result<(), Error> {
        match &mut self.storing {
            Some(storing) => storing.append_if_full(&mut self.columns),
            None => Ok(()),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.columns.bytes()
    }

    /// Reserves memory for the merge of two others.
    pub(crate) fn reserve_for(&mut self, older: &Columns<K, V>, newer: &Columns<K, V>) {
        self.columns.reserve_for(older, newer);
    }

    /// Adds an update of the value that comes next.
    #[inline]
    pub(crate) fn update(&mut self, time: u32, diff: i64) {
        debug_assert!(diff != 0);
        if let Some(used) = self.used.get_mut(time as usize) {
            *used = true;
        }
        self.columns.index.push(time);
        self.columns.diffs.push(diff);
    }

    /// Ends the value that the last updates were of; nothing happens if there were none.
    #[inline]
    pub(crate) fn end_val(&mut self, val: V::Item<'_>) {
        let columns = &mut self.columns;
        if columns.val_ends.start(columns.val_ends.len()) < columns.diffs.len() {
            columns.vals.push(val);
            columns.val_ends.push(columns.diffs.len());
        }
    }

    /// Ends the key that the last values were of; nothing happens if there were none.
    #[inline]
    pub(crate) fn end_key(&mut self, key: K::Item<'_>) {
        let columns = &mut self.columns;
        if columns.key_ends.start(columns.key_ends.len()) < columns.vals.len() {
            columns.keys.push(key);
            columns.key_ends.push(columns.vals.len());
        }
    }

    /// Adds the updates of values of another batch, with indices of times mapped by `map`; updates whose
    /// indices become equal are added up.
    pub(crate) fn copy_vals(
        &mut self,
        from: &Columns<K, V>,
        vals: Range<usize>,
        map: &TimeMap,
    ) -> Result<(), Overflow> {
        if vals.len() == 1 {
            let updates = from.val_ends.range(vals.start);
            if updates.len() == 1 {
                let (time, diff) = (from.index.get(updates.start), from.diffs.get(updates.start));
                self.update(map.get(time), diff);
                self.end_val(from.vals.get(vals.start));
                return Ok(());
            }
        }
        if map.is_strict() || from.val_ends.is_each() {
            self.copy_updates(from, vals, map);
            return Ok(());
        }
        for val in vals {
            let updates = from.val_ends.range(val);
            if updates.len() == 1 {
                self.update(
                    map.get(from.index.get(updates.start)),
                    from.diffs.get(updates.start),
                );
            } else {
                self.added_up(updates.map(|u| (map.get(from.index.get(u)), from.diffs.get(u))))?;
            }
            self.end_val(from.vals.get(val));
        }
        Ok(())
    }

    /// Copies as [`copy_vals`](Self::copy_vals) does, where no two indices of a value become equal.
    fn copy_updates(&mut self, from: &Columns<K, V>, vals: Range<usize>, map: &TimeMap) {
        let updates = from.val_ends.span(&vals);
        if !self.used.is_empty() && !updates.is_empty() {
            match from.index.stored() {
                Some(stored) => stored[updates.clone()]
                    .iter()
                    .for_each(|time| self.used[map.get(*time) as usize] = true),
                None => self.used[map.get(0) as usize] = true,
            }
        }
        let columns = &mut self.columns;
        let base = columns.diffs.len();
        columns
            .index
            .extend(&from.index, updates.clone(), &map.indices);
        columns.diffs.extend(&from.diffs, updates);
        columns.val_ends.extend(&from.val_ends, vals.clone(), base);
        columns.vals.extend(&from.vals, vals);
    }

    /// Adds keys of another batch, with all they have.
    pub(crate) fn copy_keys(
        &mut self,
        from: &Columns<K, V>,
        keys: Range<usize>,
        map: &TimeMap,
    ) -> Result<(), Overflow> {
        if keys.len() == 1 {
            // Most frequent where the keys of two batches take turns.
            self.copy_vals(from, from.key_ends.range(keys.start), map)?;
            self.end_key(from.keys.get(keys.start));
            return Ok(());
        }
        if map.is_strict() || from.val_ends.is_each() {
            let vals = from.key_ends.span(&keys);
            let base = self.columns.vals.len();
            self.copy_updates(from, vals, map);
            self.columns
                .key_ends
                .extend(&from.key_ends, keys.clone(), base);
            self.columns.keys.extend(&from.keys, keys);
            return Ok(());
        }
        for key in keys {
            self.copy_vals(from, from.key_ends.range(key), map)?;
            self.end_key(from.keys.get(key));
        }
        Ok(())
    }

    /// Adds updates of one value in any order, added up by time.
    pub(crate) fn added_up(
        &mut self,
        updates: impl Iterator<Item = (u32, i64)>,
    ) -> Result<(), Overflow> {
        let mut updates: Vec<(u32, i64)> = updates.collect();
        updates.sort_unstable_by_key(|(time, _)| *time);
        let mut updates = updates.into_iter();
        let Some((mut time, mut sum)) = updates.next() else {
            return Ok(());
        };
        for (next, diff) in updates {
            if next == time {
                sum = add(sum, diff)?;
            } else {
                if sum != 0 {
                    self.update(time, sum);
                }
                (time, sum) = (next, diff);
            }
        }
        if sum != 0 {
            self.update(time, sum);
        }
        Ok(())
    }

    /// Forgets times that are not used, for so much fuel in indices written anew; true when that is done. Where pages are
    /// stored nothing is written anew: the indices in them are mapped when they are read.
    pub(crate) fn settle(&mut self, fuel: &mut usize) -> bool {
        if self.used.iter().all(|used| *used)
            || self
                .storing
                .as_ref()
                .is_some_and(|storing| !storing.is_empty())
        {
            return true;
        }
        let index = &mut self.columns.index;
        let (map, at) = self.settling.get_or_insert_with(|| (places(&self.used), 0));
        let left = self.used.iter().filter(|used| **used).count();
        if left > 1 {
            let done = index.remap(*at, fuel.saturating_mul(REMAPPED), map);
            *at += done;
            *fuel = fuel.saturating_sub(1 + done / REMAPPED);
            if *at < index.len() {
                return false;
            }
        } else {
            index.forget();
        }
        self.forget_unused();
        true
    }

    /// Returns the columns, and the times that their indices refer to: the used ones, in order.
    pub(crate) fn finish(mut self) -> Result<Sorted<K, V, T>, Error> {
        let is_stored = |storing: &Storing<K>| !storing.is_empty() || self.stores_all;
        let has_rows = self.columns.len() > 0;
        if let Some(mut storing) = self.storing.take()
            && is_stored(&storing)
            && (has_rows || !storing.is_empty())
        {
            if has_rows {
                storing.append(&self.columns)?;
            }
            let map = self.forget_unused();
            let stored = storing.finish(map)?;
            return Ok((Body::Stored(Arc::new(stored)), self.times));
        }
        let (columns, times) = self.finish_here();
        Ok((columns.into(), times))
    }

    /// Finishes columns that are in memory.
    pub(crate) fn finish_here(mut self) -> (Columns<K, V>, Vec<T>) {
        let mut unlimited = usize::MAX;
        self.settle(&mut unlimited);
        if self.columns.len() == 0 {
            self.times.clear();
        }
        self.columns.shrink();
        (self.columns, self.times)
    }

    /// Forgets times that are not used; returns the new indices of the others, unless all are used.
    fn forget_unused(&mut self) -> Option<Vec<u32>> {
        if self.used.iter().all(|used| *used) {
            return None;
        }
        let map = places(&self.used);
        let mut kept = std::mem::take(&mut self.used).into_iter();
        self.times.retain(|_| kept.next().unwrap_or(false));
        Some(map)
    }
}

/// The new index of each time, when those that are not used are left out.
fn places(used: &[bool]) -> Vec<u32> {
    let mut next = 0;
    let places = used.iter().map(|used| {
        let place = next;
        next += u32::from(*used);
        place
    });
    places.collect()
}

/// So many indices are written anew for a unit of fuel; fewer where tests run.
const REMAPPED: usize = if cfg!(debug_assertions) { 1 } else { 16 };

/// The mapping of the indices of a batch's times to indices in another batch.
#[derive(Clone, Debug)]
pub(crate) struct TimeMap {
    indices: Vec<u32>,
    strict: bool,
}

impl TimeMap {
    /// Creates the mapping of `times` by which each becomes the time at the index that `find` returns.
    pub(crate) fn new<T>(times: &[T], find: impl Fn(&T) -> u32) -> Self {
        let indices: Vec<u32> = times.iter().map(find).collect();
        let strict = indices.is_sorted_by(|a, b| a < b);
        Self { indices, strict }
    }

    /// The mapping of so many indices to themselves.
    #[allow(clippy::cast_possible_truncation)] // dictionaries are far smaller than 2^32
    pub(crate) fn identity(times: usize) -> Self {
        Self {
            indices: (0..times as u32).collect(),
            strict: true,
        }
    }

    /// The indices.
    pub(crate) fn into_indices(self) -> Vec<u32> {
        self.indices
    }

    /// The number of indices.
    pub(crate) fn len(&self) -> usize {
        self.indices.len()
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> u32 {
        self.indices[index as usize]
    }

    /// True when the order is kept and no two indices become one.
    #[inline]
    pub(crate) fn is_strict(&self) -> bool {
        self.strict
    }
}
