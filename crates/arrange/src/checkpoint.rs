//! The contents of arrangements in checkpoints, and batches of several workers as one.
//!
//! Owns [`Contents`] and [`merged`]. A restored arrangement has the batches that it had, the frontier from which readers
//! read it, and the one before which it is complete. All batches exist before the first reader, so that every reader
//! [begins](crate::Source::seen) behind them. The batches of several workers become one: keys that another worker has
//! now are left out, and times are those that readers see.

use std::sync::Arc;

use pointstamp_order::Antichain;

use crate::batch::Batch;
use crate::builder::{Builder, TimeMap};
use crate::error::Error;
use crate::merge::Merge;
use crate::rows::Rows;
use crate::storage::Storage;
use crate::time::Time;

/// The contents of an arrangement without losses.
#[derive(Clone, Debug)]
pub struct Contents<K, V, T> {
    /// Whether the arrangement has readers. Without readers, it keeps its contents only while no updates have
    /// come, since readers may come.
    pub is_read: bool,
    /// The frontier at or after which all readers read.
    pub since: Antichain<T>,
    /// The frontier before which the arrangement is complete.
    pub upper: Antichain<T>,
    /// The batches, oldest first.
    pub batches: Vec<Batch<K, V, T>>,
    /// The numbers of the batches. They have no meaning for an arrangement that is restored.
    pub numbers: Numbers,
}

/// The numbers of batches. A batch is numbered when it is added, and a merged one has all numbers of its parts.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// For each batch, the last of its numbers.
    pub ends: Vec<u64>,
    /// The number of the last batch that was added, also where it had no updates.
    pub last: u64,
}

impl<K: Rows, V: Rows, T: Time> Batch<K, V, T> {
    /// Returns the updates of the keys for which `keep` is true; the batch itself, where it is true for all.
    ///
    /// # Errors
    ///
    /// When the storage fails.
    pub fn of_keys(
        &self,
        mut keep: impl FnMut(K::Item<'_>) -> bool,
        storage: Option<&Arc<dyn Storage>>,
    ) -> Result<Self, Error> {
        let map = TimeMap::identity(self.times().len());
        let times = self.times().to_vec();
        let mut builder = Builder::stored_in(times, storage, self.decoded_bytes());
        let mut has_all = true;
        for page in 0..self.pages() {
            let page = self.page(page)?;
            let keys = page.keys();
            let kept: Vec<bool> = (0..keys.len()).map(|key| keep(keys.get(key))).collect();
            has_all &= !kept.contains(&false);
            let mut key = 0;
            while key < kept.len() {
                let end = (key..kept.len()).find(|&at| !kept[at]);
                let end = end.unwrap_or(kept.len());
                // The map keeps all times apart: nothing is added up.
                builder.copy_keys(&page.columns, key..end, &map)?;
                builder.store_full_page()?;
                key = end + 1;
            }
        }
        if has_all {
            return Ok(self.clone());
        }
        let bounds = &self.bounds;
        let bounds = (&bounds.lower, &bounds.upper, &bounds.since);
        let (lower, upper, since) = (bounds.0.clone(), bounds.1.clone(), bounds.2.clone());
        Ok(Batch::new(builder.finish()?, lower, upper, since))
    }
}

/// Puts batches together, for readers at or after `since`: the updates from `lower` up to `upper`. `None` where no update is left.
///
/// # Errors
///
/// When differences that add up do not fit, or the storage fails.
pub fn merged<K: Rows, V: Rows, T: Time>(
    batches: impl IntoIterator<Item = Batch<K, V, T>>,
    lower: &Antichain<T>,
    upper: &Antichain<T>,
    since: &Antichain<T>,
    storage: Option<&Arc<dyn Storage>>,
) -> Result<Option<Batch<K, V, T>>, Error> {
    let mut left: Vec<_> = batches.into_iter().collect();
    left.retain(|batch| !batch.is_empty());
    if left.is_empty() {
        return Ok(None);
    }
    // Two at a time, so that an update is copied as often as the number of batches has digits.
    loop {
        let mut next = Vec::with_capacity(left.len().div_ceil(2));
        let mut pairs = left.into_iter();
        while let Some(older) = pairs.next() {
            let nothing = || Batch::empty(Antichain::new(), Antichain::new());
            let newer = pairs.next().unwrap_or_else(nothing);
            let mut merge = Merge::new(older, newer, since.clone(), storage);
            let mut unlimited = usize::MAX;
            merge.work(&mut unlimited)?;
            next.push(merge.finish()?);
        }
        left = next;
        if left.len() == 1
            && let Some(only) = left.pop()
        {
            let only = (!only.is_empty()).then_some(only);
            return Ok(only.map(|only| only.between(lower, upper, since)));
        }
    }
}
