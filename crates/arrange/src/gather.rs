//! The output of a reduction, gathered window by window.
//!
//! Owns [`Gathered`]. The keys of a window come after the keys of earlier windows, so that the updates of each are
//! sorted by themselves, and the sorted parts only have to be concatenated, also in instalments.

use crate::batch::Sorted;
use crate::builder::{Builder, TimeMap};
use crate::columns::Columns;
use crate::error::{Error, Overflow};
use crate::rows::Rows;
use crate::time::Time;
use crate::updates::Updates;

/// Updates of windows are sorted together until there are as many; fewer where tests run.
const PART: usize = if cfg!(debug_assertions) { 16 } else { 1 << 12 };

/// Updates of one batch of the output.
pub(crate) struct Gathered<K, W, T> {
    /// The updates of the last windows.
    updates: Updates<K, W, T>,
    /// Sorted updates of earlier windows, the keys of each after those of the part before it.
    parts: Vec<(Columns<K, W>, Vec<T>)>,
    /// The builder into which the parts are joined.
    whole: Option<Builder<K, W, T>>,
    /// The times of all parts, and the parts that have been put together.
    times: Vec<T>,
    done: usize,
}

impl<K: Rows, W: Rows, T: Time> Default for Gathered<K, W, T> {
    fn default() -> Self {
        Self {
            updates: Updates::default(),
            parts: Vec::new(),
            whole: None,
            times: Vec::new(),
            done: 0,
        }
    }
}

impl<K: Rows, W: Rows, T: Time> Gathered<K, W, T> {
    /// Adds an update, of a key of this window.
    #[inline]
    pub(crate) fn push(&mut self, key: K::Item<'_>, val: W::Item<'_>, time: &T, diff: i64) {
        self.updates.push(key, val, time, diff);
    }

    /// The keys to come are after all so far.
    pub(crate) fn end_window(&mut self) -> Result<(), Overflow> {
        if self.updates.len() >= PART {
            self.end_part()?;
        }
        Ok(())
    }

    fn end_part(&mut self) -> Result<(), Overflow> {
        if !self.updates.is_empty() {
            self.parts.push(self.updates.sorted()?);
            self.updates.clear();
        }
        Ok(())
    }

    /// Puts parts together until the fuel, in updates, is used up; true when that is done, and nothing was or will be added.
    pub(crate) fn work(&mut self, fuel: &mut usize) -> Result<bool, Overflow> {
        self.end_part()?;
        if self.parts.len() < 2 {
            return Ok(true);
        }
        let Self { parts, times, .. } = self;
        let whole = self.whole.get_or_insert_with(|| {
            times.extend(parts.iter().flat_map(|(_, times)| times.iter().cloned()));
            times.sort_unstable();
            times.dedup();
            Builder::new(times.clone())
        });
        while let Some((columns, own)) = parts.get_mut(self.done) {
            if *fuel == 0 {
                return Ok(false);
            }
            let columns = std::mem::take(columns);
            // Every time of a part is among the times of all.
            #[allow(clippy::cast_possible_truncation)] // dictionaries are far smaller than 2^32
            let place = |time: &T| times.partition_point(|other| other < time) as u32;
            let map = TimeMap::new(own, place);
            whole.copy_keys(&columns, 0..columns.keys.len(), &map)?;
            *fuel = fuel.saturating_sub(1 + columns.len());
            self.done += 1;
        }
        Ok(true)
    }

    /// The updates in order, once [`work`](Self::work) is done.
    pub(crate) fn finish(mut self) -> Result<Sorted<K, W, T>, Error> {
        let mut unlimited = usize::MAX;
        self.work(&mut unlimited)?;
        match self.whole {
            Some(whole) => whole.finish(),
            None => {
                let (columns, times) = self.parts.pop().unwrap_or_default();
                Ok((columns.into(), times))
            }
        }
    }
}
