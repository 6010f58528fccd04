//! A collection's history as a short list of batches, merged as it grows.
//!
//! Owns [`Spine`]. Batches are in the order of their intervals, oldest first; two that adjoin are merged when the
//! older is less than twice as long as the newer, so that lengths end up geometric. A merge is paid for in
//! instalments: each new batch brings work in proportion to its own length to each merge, so that none costs more
//! than a few times the new updates, and all are done before the next of their size is due. Most of the work that a
//! large batch brings is owed, to be done in parts. The memory of merged batches is freed in parts, too. Every data
//! batch has a number; a reader with a position between two batches keeps them apart by number. Batches without
//! updates extend the last one. Where readers advance and no batches come, updates that they cannot distinguish any
//! more are compacted when they are a good part of all (`compaction`).

use std::sync::Arc;

use pointstamp_order::Antichain;

use crate::batch::Batch;
use crate::compaction::Stale;
use crate::deferred_drop::DeferredDrop;
use crate::demands::Demands;
use crate::error::Error;
use crate::merge::Merge;
use crate::rows::Rows;
use crate::storage::Storage;
use crate::time::{Time, advance, in_order};

/// Updates merged, for each merge in progress, per update that arrives.
const EFFORT: usize = 4;
/// And besides, for each batch that arrives.
const MINIMUM: usize = 64;
/// The part of this work that is done when a batch arrives; the rest is owed.
const AT_ONCE: usize = 1 << 17;

/// A batch of a trace, with its number among the batches of the trace.
#[derive(Clone, Debug)]
pub struct Sealed<K, V, T> {
    /// The updates.
    pub batch: Batch<K, V, T>,
    /// Its number, or the number of the last of the batches that were merged into it.
    pub number: u64,
}

#[derive(Debug)]
pub(crate) struct Spine<K, V, T> {
    entries: Vec<Entry<K, V, T>>,
    /// The number of batches with updates that have come.
    count: u64,
    upper: Antichain<T>,
    /// Fuel for merges that batches brought and that was not used yet.
    owed: usize,
    /// The memory of merged batches, which is freed in steps, and the fuel for it.
    deferred: DeferredDrop,
    fuel: usize,
    stale: Stale<T>,
    /// Batches numbered up to this are being compacted; 0 when none are.
    compacting: u64,
    storage: Option<Arc<dyn Storage>>,
}

/// A batch, and the numbers of the batches merged into it: after `start`, up to `end`.
#[derive(Debug)]
struct Numbered<K, V, T> {
    batch: Batch<K, V, T>,
    start: u64,
    end: u64,
}

#[derive(Debug)]
enum Entry<K, V, T> {
    One(Numbered<K, V, T>),
    /// Two that are being merged, to be read until the merge is complete.
    Two {
        older: Numbered<K, V, T>,
        newer: Numbered<K, V, T>,
        merge: Box<Merge<K, V, T>>,
    },
}

impl<K: Rows, V: Rows, T: Time> Numbered<K, V, T> {
    /// A batch without updates that follows, for a batch that is merged alone.
    fn nothing_after(&self, since: Antichain<T>) -> Self {
        Numbered {
            batch: Batch::empty(self.batch.upper().clone(), since),
            start: self.end,
            end: self.end,
        }
    }
}

impl<K, V, T> Entry<K, V, T> {
    fn start(&self) -> u64 {
        match self {
            Entry::One(one) => one.start,
            Entry::Two { older, .. } => older.start,
        }
    }

    fn end(&self) -> u64 {
        match self {
            Entry::One(one) => one.end,
            Entry::Two { newer, .. } => newer.end,
        }
    }
}

impl<K: Rows, V: Rows, T: Time> Entry<K, V, T> {
    fn merging(
        older: Numbered<K, V, T>,
        newer: Numbered<K, V, T>,
        demands: &Demands<T>,
        storage: Option<&Arc<dyn Storage>>,
    ) -> Self {
        let batches = (older.batch.clone(), newer.batch.clone());
        let since = demands.since.clone();
        let merge = Box::new(Merge::new(batches.0, batches.1, since, storage));
        Entry::Two {
            older,
            newer,
            merge,
        }
    }

    fn len(&self) -> usize {
        match self {
            Entry::One(one) => one.batch.len(),
            Entry::Two { merge, .. } => merge.len(),
        }
    }
}

impl<K: Rows, V: Rows, T: Time> Spine<K, V, T> {
    pub(crate) fn new(lower: Antichain<T>) -> Self {
        Self {
            entries: Vec::new(),
            count: 0,
            upper: lower,
            owed: 0,
            deferred: DeferredDrop::default(),
            fuel: 0,
            stale: Stale::default(),
            compacting: 0,
            storage: None,
        }
    }

    /// Has batches stored where the storage asks for it.
    pub(crate) fn store_in(&mut self, storage: Option<Arc<dyn Storage>>) {
        self.storage = storage;
    }

    /// A spine of batches that were there before the first reader.
    pub(crate) fn restored(
        batches: impl IntoIterator<Item = Batch<K, V, T>>,
        upper: Antichain<T>,
    ) -> Self {
        let mut spine = Self::new(upper);
        for batch in batches {
            if batch.is_empty() {
                continue;
            }
            spine.count += 1;
            if !spine.entries.is_empty() || batch.times().len() > 1 {
                spine.stale.add(spine.count, batch.times(), batch.len());
            }
            spine.entries.push(Entry::One(Numbered {
                batch,
                start: spine.count - 1,
                end: spine.count,
            }));
        }
        spine
    }

    pub(crate) fn upper(&self) -> &Antichain<T> {
        &self.upper
    }

    /// The number of the last batch.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds a batch with updates, and works on merges in proportion.
    pub(crate) fn insert(
        &mut self,
        batch: Batch<K, V, T>,
        demands: &Demands<T>,
    ) -> Result<(), Error> {
        self.upper = batch.upper().clone();
        self.count += 1;
        self.owed += EFFORT * batch.len() + MINIMUM;
        if !self.entries.is_empty() || batch.times().len() > 1 {
            self.stale.add(self.count, batch.times(), batch.len());
        }
        self.entries.push(Entry::One(Numbered {
            batch,
            start: self.count - 1,
            end: self.count,
        }));
        self.begin_merges(demands);
        let mut fuel = AT_ONCE;
        self.pay(&mut fuel, demands)
    }

    /// True when batches brought more work on merges than was done when they arrived.
    pub(crate) fn owes(&self) -> bool {
        self.owed > 0
    }

    /// Works on owed merges until the fuel is used up.
    pub(crate) fn pay(&mut self, fuel: &mut usize, demands: &Demands<T>) -> Result<(), Error> {
        let now = self.owed.min(*fuel);
        self.owed -= now;
        *fuel -= now;
        self.fuel += now;
        self.work(now, demands)?;
        if !self
            .entries
            .iter()
            .any(|entry| matches!(entry, Entry::Two { .. }))
        {
            self.owed = 0;
        }
        Ok(())
    }

    /// Declares that there are no more updates before `upper`.
    pub(crate) fn seal(&mut self, upper: Antichain<T>) {
        let mut fuel = std::mem::take(&mut self.fuel) + MINIMUM;
        if upper.is_empty() {
            fuel = usize::MAX;
        }
        self.deferred.release(&mut fuel);
        self.upper = upper;
    }

    /// Counts a batch that no reader needs.
    pub(crate) fn skip(&mut self, batch: &Batch<K, V, T>) {
        self.upper = batch.upper().clone();
        self.count += 1;
    }

    /// Forgets everything: there is no reader.
    pub(crate) fn clear(&mut self) {
        self.entries = Vec::new();
        self.stale = Stale::default();
        self.compacting = 0;
        self.owed = 0;
        self.deferred = DeferredDrop::default();
    }

    /// Begins merges where lengths are not geometric.
    fn begin_merges(&mut self, demands: &Demands<T>) {
        let mut newer = self.entries.len();
        while newer > 1 {
            newer -= 1;
            let (a, b) = (&self.entries[newer - 1], &self.entries[newer]);
            if a.len() < 2 * b.len() && b.end() <= demands.kept_apart {
                self.begin_merge(newer - 1, demands);
            }
        }
    }

    /// Begins to merge the entry at `index` with the next, unless one of them is in a merge; true if
    /// it was begun.
    fn begin_merge(&mut self, index: usize, demands: &Demands<T>) -> bool {
        let pair = &self.entries[index..index + 2];
        if !matches!(pair, [Entry::One(_), Entry::One(_)]) {
            return false;
        }
        let newer = self.entries.remove(index + 1);
        let older = self.entries.remove(index);
        if let (Entry::One(older), Entry::One(newer)) = (older, newer) {
            let two = Entry::merging(older, newer, demands, self.storage.as_ref());
            self.entries.insert(index, two);
        }
        true
    }

    /// Gives each merge so much fuel; completed ones may begin others.
    fn work(&mut self, fuel: usize, demands: &Demands<T>) -> Result<(), Error> {
        let mut index = self.entries.len();
        while index > 0 {
            index -= 1;
            let mut fuel = fuel;
            if let Entry::Two { merge, .. } = &mut self.entries[index]
                && merge.work(&mut fuel)?
            {
                self.complete(index)?;
                self.begin_merges(demands);
                index = self.entries.len();
            }
        }
        Ok(())
    }

    /// Replaces a complete merge by its result.
    fn complete(&mut self, index: usize) -> Result<(), Error> {
        if let Entry::Two {
            older,
            newer,
            merge,
        } = self.entries.remove(index)
        {
            let batch = merge.finish()?;
            if !batch.is_empty() {
                let merged = Numbered {
                    batch,
                    start: older.start,
                    end: newer.end,
                };
                self.entries.insert(index, Entry::One(merged));
            }
            self.deferred.add(older.batch);
            self.deferred.add(newer.batch);
        }
        Ok(())
    }

    /// Begins to store the largest batch in memory, if the storage asks for it; the work is owed.
    pub(crate) fn store(&mut self) {
        let Some(storage) = &self.storage else { return };
        let here = self.entries.iter().enumerate();
        let here = here.filter_map(|(index, entry)| match entry {
            Entry::One(one) if !one.batch.is_stored() => Some((one.batch.decoded_bytes(), index)),
            _ => None,
        });
        let Some((bytes, index)) = here.max() else {
            return;
        };
        if storage.stores(bytes)
            && let Entry::One(older) = self.entries.remove(index)
        {
            self.owed += older.batch.len();
            let two = Entry::Two {
                merge: Box::new(Merge::storing(older.batch.clone(), storage)),
                newer: older.nothing_after(Antichain::new()),
                older,
            };
            self.entries.insert(index, two);
        }
    }

    /// True when there is nothing for [`compact`](Self::compact) to do.
    pub(crate) fn is_compact(&self) -> bool {
        self.compacting == 0 && self.deferred.is_empty()
    }

    /// True when it may be worth asking whether [`begins_compaction`](Self::begins_compaction).
    pub(crate) fn may_compact(&self) -> bool {
        self.compacting == 0 && self.stale.is_worth_asking(self.len())
    }

    /// Decides to compact updates that readers cannot distinguish any more, where they are a good part of
    /// all; true if so.
    pub(crate) fn begins_compaction(&mut self, demands: &Demands<T>) -> bool {
        let held = self.len();
        if self.compacting == 0
            && let Some(through) = self.stale.due(held, demands)
        {
            self.compacting = through;
            return true;
        }
        false
    }

    /// Continues a compaction that was decided, and the freeing of merged batches, until the fuel is used up;
    /// true when nothing is left to do.
    pub(crate) fn compact(&mut self, fuel: &mut usize, demands: Demands<T>) -> Result<bool, Error> {
        if self.compacting > 0 {
            let kept_apart = demands.kept_apart.min(self.compacting);
            let demands = Demands {
                since: demands.since,
                kept_apart,
            };
            if !self.exert(fuel, &demands)? {
                return Ok(false);
            }
            self.compacting = 0;
        }
        self.deferred.release(fuel);
        Ok(self.deferred.is_empty())
    }

    /// Works towards one batch with times as readers need them, until the fuel is used up; true when
    /// nothing is left to do.
    pub(crate) fn exert(&mut self, fuel: &mut usize, demands: &Demands<T>) -> Result<bool, Error> {
        while *fuel > 0 {
            let merging = self
                .entries
                .iter()
                .rposition(|entry| matches!(entry, Entry::Two { .. }));
            if let Some(index) = merging {
                if let Entry::Two { merge, .. } = &mut self.entries[index]
                    && merge.work(fuel)?
                {
                    self.complete(index)?;
                }
            } else if !self.begin_any(demands) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Begins the cheapest merge that there is; false if none is possible or of use.
    fn begin_any(&mut self, demands: &Demands<T>) -> bool {
        let may = |index: &usize| self.entries[index + 1].end() <= demands.kept_apart;
        let pairs = (0..self.entries.len().saturating_sub(1)).filter(may);
        let cost = |index: &usize| self.entries[*index].len() + self.entries[index + 1].len();
        if let Some(index) = pairs.min_by_key(cost) {
            return self.begin_merge(index, demands);
        }
        // Alone, a batch is merged with nothing where readers cannot distinguish some of its times.
        let stale = self.entries.iter().position(|entry| match entry {
            Entry::One(one) => one.end <= demands.kept_apart && stale(one.batch.times(), demands),
            Entry::Two { .. } => false,
        });
        let Some(index) = stale else { return false };
        if let Entry::One(one) = self.entries.remove(index) {
            let newer = one.nothing_after(demands.since.clone());
            let two = Entry::merging(one, newer, demands, self.storage.as_ref());
            self.entries.insert(index, two);
        }
        true
    }

    /// The batches numbered up to `end`, oldest first; batches in a merge as they were before it.
    ///
    /// # Panics
    ///
    /// When a batch contains one numbered up to `end` and one after: the reader has not held its place.
    pub(crate) fn batches_through(&self, end: u64) -> Vec<Batch<K, V, T>> {
        let mut batches = Vec::with_capacity(self.entries.len() + 1);
        for entry in &self.entries {
            if entry.end() > end {
                assert!(entry.start() >= end, "the reader has not held its place");
                break;
            }
            match entry {
                Entry::One(one) => batches.push(one.batch.clone()),
                Entry::Two { older, newer, .. } => {
                    batches.extend([older.batch.clone(), newer.batch.clone()]);
                }
            }
        }
        batches.retain(|batch| !batch.is_empty());
        batches
    }

    /// The batches numbered after `start`, oldest first, with their numbers; batches in a merge as they were
    /// before it.
    ///
    /// # Panics
    ///
    /// As [`batches_through`](Self::batches_through).
    pub(crate) fn batches_after(&self, start: u64) -> Vec<Sealed<K, V, T>> {
        let mut batches = Vec::new();
        let mut add = |of: &Numbered<K, V, T>| {
            batches.push(Sealed {
                batch: of.batch.clone(),
                number: of.end,
            });
        };
        for entry in self.entries.iter().filter(|entry| entry.end() > start) {
            assert!(entry.start() >= start, "the reader has not held its place");
            match entry {
                Entry::One(one) => add(one),
                Entry::Two { older, newer, .. } => {
                    add(older);
                    add(newer);
                }
            }
        }
        batches.retain(|sealed| !sealed.batch.is_empty());
        batches
    }

    /// The number of updates held, counting both sides of a merge.
    pub(crate) fn len(&self) -> usize {
        self.entries.iter().map(Entry::len).sum()
    }

    /// The bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |entry: &Entry<K, V, T>| match entry {
            Entry::One(one) => one.batch.bytes(),
            Entry::Two {
                older,
                newer,
                merge,
            } => older.batch.bytes() + newer.batch.bytes() + merge.bytes(),
        };
        self.deferred.bytes() + self.entries.iter().map(bytes).sum::<usize>()
    }

    /// The bytes on disk, but for the result of a merge in progress.
    pub(crate) fn bytes_on_disk(&self) -> u64 {
        let bytes = |entry: &Entry<K, V, T>| match entry {
            Entry::One(one) => one.batch.bytes_on_disk(),
            Entry::Two { older, newer, .. } => {
                older.batch.bytes_on_disk() + newer.batch.bytes_on_disk()
            }
        };
        self.entries.iter().map(bytes).sum()
    }
}

/// True when readers cannot distinguish two of the times.
fn stale<T: Time>(times: &[T], demands: &Demands<T>) -> bool {
    if times.len() < 2 {
        return false;
    }
    let advanced = in_order(times.iter().map(|time| advance(time, &demands.since)));
    advanced.len() < times.len()
}
