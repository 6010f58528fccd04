//! The contents of arrangements in checkpoints, and batches of several workers as one.
//!
//! Owns [`Kept`] and [`merged`]. A restored arrangement has the batches that it had, the frontier from which readers
//! read it, and the one before which it is complete. All batches exist before the first reader, so that every reader
//! [begins](crate::Source::seen) behind them. The batches of several workers become one: keys that another worker has
//! now are left out, and times are those that readers see.

use std::sync::Arc;

use pointstamp_order::Antichain;

use crate::batch::Batch;
use crate::builder::{Builder, TimeMap};
use crate::error::Overflow;
use crate::merge::Merge;
use crate::rows::Rows;
use crate::sealing::{Run, run_of};
use crate::time::Time;

/// The contents of an arrangement without losses.
#[derive(Clone, Debug)]
pub struct Kept<K, V, T> {
    /// Whether the arrangement has readers. Without readers, it keeps its contents only while no updates have
    /// come, since readers may come.
    pub is_read: bool,
    /// The frontier at or after which all readers read.
    pub since: Antichain<T>,
    /// The frontier before which the arrangement is complete.
    pub upper: Antichain<T>,
    /// The batches, oldest first.
    pub batches: Vec<Arc<Batch<K, V, T>>>,
}

impl<K: Rows, V: Rows, T: Time> Batch<K, V, T> {
    /// Returns the updates of the keys for which `keep` is true; the batch itself, where it is true for all.
    pub fn of_keys(self: &Arc<Self>, mut keep: impl FnMut(K::Item<'_>) -> bool) -> Arc<Self> {
        let keys = self.keys();
        let kept: Vec<bool> = (0..keys.len()).map(|key| keep(keys.get(key))).collect();
        if !kept.contains(&false) {
            return Arc::clone(self);
        }
        #[allow(clippy::cast_possible_truncation)] // dictionaries are far smaller than 2^32
        let map = TimeMap::new(&self.times, |time| {
            self.times.partition_point(|other| other < time) as u32
        });
        let mut builder = Builder::new(self.times.clone());
        let mut key = 0;
        while key < kept.len() {
            let end = (key..kept.len()).find(|&at| !kept[at]);
            let end = end.unwrap_or(kept.len());
            if key < end {
                // The map keeps all times apart: nothing is added up.
                let copied = builder.copy_keys(&self.columns, key..end, &map);
                debug_assert!(copied.is_ok(), "no differences were added up");
            }
            key = end + 1;
        }
        let (lower, upper) = (self.lower().clone(), self.upper().clone());
        Arc::new(Batch::new(
            builder.finish(),
            lower,
            upper,
            self.since().clone(),
        ))
    }
}

/// Puts batches together, for readers at or after `since`: the updates from `lower` up to `upper`. `None` where no update is left.
///
/// # Errors
///
/// When differences that add up do not fit.
pub fn merged<K: Rows, V: Rows, T: Time>(
    batches: impl IntoIterator<Item = Arc<Batch<K, V, T>>>,
    lower: &Antichain<T>,
    upper: &Antichain<T>,
    since: &Antichain<T>,
) -> Result<Option<Run<K, V, T>>, Overflow> {
    let mut left: Vec<_> = batches.into_iter().collect();
    left.retain(|batch| !batch.is_empty());
    if left.is_empty() {
        return Ok(None);
    }
    let nothing = run_of(Default::default());
    // Two at a time, so that an update is copied as often as the number of batches has digits.
    loop {
        let mut next = Vec::with_capacity(left.len().div_ceil(2));
        let mut pairs = left.into_iter();
        while let Some(older) = pairs.next() {
            let newer = pairs.next().unwrap_or_else(|| Arc::clone(&nothing));
            let mut merge = Merge::new(older, newer, since.clone());
            let mut unlimited = usize::MAX;
            merge.work(&mut unlimited)?;
            next.push(Arc::new(merge.finish()));
        }
        left = next;
        if left.len() == 1
            && let Some(only) = left.pop()
        {
            if only.is_empty() {
                return Ok(None);
            }
            let whole = Arc::unwrap_or_clone(only);
            return Ok(Some(Arc::new(whole.between(lower, upper))));
        }
    }
}
