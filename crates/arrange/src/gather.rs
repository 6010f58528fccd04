//! The output of a reduction, gathered window by window.
//!
//! Owns [`Gathered`]. The keys of a window come after the keys of earlier windows, so that the updates of each are
//! sorted by themselves, and the sorted parts only have to be concatenated, also in instalments. Where memory has no room
//! for them, parts are stored as they come, and their pages are concatenated.

use std::sync::Arc;

use crate::batch::{Body, Sorted};
use crate::builder::{Builder, TimeMap};
use crate::columns::Columns;
use crate::error::Error;
use crate::rows::Rows;
use crate::storage::Storage;
use crate::stored::Stored;
use crate::time::{Time, in_order};
use crate::updates::Updates;

/// Updates of windows are sorted together until there are as many; fewer where tests run.
const PART: usize = if cfg!(debug_assertions) { 16 } else { 1 << 12 };

/// Parts of more bytes go to the storage, where it asks for them; of fewer where tests run.
const SEGMENT: usize = if cfg!(debug_assertions) {
    1 << 9
} else {
    1 << 23
};

/// Updates of one batch of the output.
pub(crate) struct Gathered<K, W, T> {
    /// The updates of the last windows.
    updates: Updates<K, W, T>,
    /// Sorted updates of earlier windows, the keys of each after those of the part before it.
    parts: Vec<(Columns<K, W>, Vec<T>)>,
    /// The bytes of the parts.
    bytes: usize,
    /// Parts before these that are stored.
    stored: Vec<Sorted<K, W, T>>,
    storage: Option<Arc<dyn Storage>>,
    /// The builder into which the parts are joined.
    whole: Option<Builder<K, W, T>>,
    /// The times of all parts, and the parts that have been put together.
    times: Vec<T>,
    done: usize,
}

impl<K: Rows, W: Rows, T: Time> Gathered<K, W, T> {
    pub(crate) fn new(storage: Option<Arc<dyn Storage>>) -> Self {
        Self {
            updates: Updates::default(),
            parts: Vec::new(),
            bytes: 0,
            stored: Vec::new(),
            storage,
            whole: None,
            times: Vec::new(),
            done: 0,
        }
    }

    /// Adds an update, of a key of this window.
    #[inline]
    pub(crate) fn push(&mut self, key: K::Item<'_>, val: W::Item<'_>, time: &T, diff: i64) {
        self.updates.push(key, val, time, diff);
    }

    /// The keys to come are after all so far.
    pub(crate) fn end_window(&mut self) -> Result<(), Error> {
        if self.updates.len() >= PART {
            self.end_part()?;
            self.store()?;
        }
        Ok(())
    }

    fn end_part(&mut self) -> Result<(), Error> {
        if !self.updates.is_empty() {
            let part = self.updates.sorted()?;
            self.bytes += part.0.bytes();
            self.parts.push(part);
            self.updates.clear();
        }
        Ok(())
    }

    /// Stores the parts, if they are large and the storage asks for it.
    fn store(&mut self) -> Result<(), Error> {
        let is_wanted = |storage: &Arc<dyn Storage>| storage.stores(self.bytes);
        if self.bytes < SEGMENT
            || self.whole.is_some()
            || !self.storage.as_ref().is_some_and(is_wanted)
        {
            return Ok(());
        }
        let times = self.parts.iter().flat_map(|(_, times)| times.iter());
        let times = in_order(times.cloned());
        let mut segment = Builder::stored_in(times.clone(), self.storage.as_ref(), self.bytes);
        for (columns, own) in self.parts.drain(..) {
            let map = map_to(&own, &times);
            segment.copy_keys(&columns, 0..columns.keys.len(), &map)?;
            segment.store_full_page()?;
        }
        self.bytes = 0;
        match segment.finish()? {
            (Body::Here(columns), times) => {
                let columns = Arc::unwrap_or_clone(columns);
                self.parts.push((columns, times));
            }
            on_disk => self.stored.push(on_disk),
        }
        Ok(())
    }

    /// Puts parts together until the fuel, in updates, is used up; true when that is done, and nothing was or will be added.
    pub(crate) fn work(&mut self, fuel: &mut usize) -> Result<bool, Error> {
        self.end_part()?;
        if self.parts.len() < 2 && self.stored.is_empty() {
            return Ok(true);
        }
        let Self { parts, times, .. } = self;
        let (storage, bytes) = (self.storage.as_ref(), self.bytes);
        let follows_stored = !self.stored.is_empty();
        let whole = self.whole.get_or_insert_with(|| {
            *times = in_order(parts.iter().flat_map(|(_, times)| times.iter()).cloned());
            match storage {
                Some(storage) if follows_stored => Builder::stored(times.clone(), storage),
                storage => Builder::stored_in(times.clone(), storage, bytes),
            }
        });
        while let Some((columns, own)) = parts.get_mut(self.done) {
            if *fuel == 0 {
                return Ok(false);
            }
            let columns = std::mem::take(columns);
            let map = map_to(own, times);
            whole.copy_keys(&columns, 0..columns.keys.len(), &map)?;
            whole.store_full_page()?;
            *fuel = fuel.saturating_sub(1 + columns.len());
            self.done += 1;
        }
        Ok(true)
    }

    /// The updates in order, once [`work`](Self::work) is done.
    pub(crate) fn finish(mut self) -> Result<Sorted<K, W, T>, Error> {
        let mut unlimited = usize::MAX;
        self.work(&mut unlimited)?;
        let last = if let Some(whole) = self.whole {
            whole.finish()?
        } else {
            let (columns, times) = self.parts.pop().unwrap_or_default();
            (columns.into(), times)
        };
        if self.stored.is_empty() {
            return Ok(last);
        }
        self.stored.push(last);
        let times = self.stored.iter().flat_map(|(_, times)| times.iter());
        let times = in_order(times.cloned());
        // The last is stored, too, unless it has no updates: see `work`.
        let parts = self.stored.iter().filter_map(|(body, own)| match body {
            Body::Stored(stored) => Some((&**stored, map_to(own, &times).into_indices())),
            Body::Here(_) => None,
        });
        let whole = Stored::concatenated(parts);
        Ok((Body::Stored(Arc::new(whole)), times))
    }
}

/// The places of times among others, which contain them.
#[allow(clippy::cast_possible_truncation)] // dictionaries are far smaller than 2^32
fn map_to<T: Time>(own: &[T], times: &[T]) -> TimeMap {
    TimeMap::new(own, |time| {
        times.partition_point(|other| other < time) as u32
    })
}
