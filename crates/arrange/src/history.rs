//! The updates of one key, from several batches, for operators.
//!
//! Owns [`Edit`], [`load`], and [`Values`], which loads a key's values one after the other. An edit says where its value is instead of borrowing it, so that
//! operators can pause between any two. Loading advances times to a time at or before all that will be
//! asked about, and adds up what cannot be told apart then: what is left follows the size of the
//! collection at that time, not its history.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::batch::Batch;
use crate::cursor::Places;
use crate::error::{Overflow, add};
use crate::rows::Rows;
use crate::time::Time;

/// An update of a key's value.
#[derive(Clone, Debug)]
pub(crate) struct Edit<T> {
    /// Equal for equal values and in their order, among the edits of one key.
    pub(crate) rank: u32,
    /// The batch that has the value, and where in it.
    pub(crate) batch: u32,
    pub(crate) val: usize,
    pub(crate) time: T,
    pub(crate) diff: i64,
}

impl<T> Edit<T> {
    /// The value.
    #[inline]
    pub(crate) fn val<'a, K: Rows, V: Rows>(
        &self,
        batches: &'a [Arc<Batch<K, V, T>>],
    ) -> V::Item<'a>
    where
        T: Time,
    {
        batches[self.batch as usize].vals().get(self.val)
    }
}

/// Appends the edits of the key at which `places` are, by value and time, as seen from `from` on.
#[allow(clippy::cast_possible_truncation)] // batches are few, and one key's values fewer than 2^32
pub(crate) fn load<K: Rows, V: Rows, T: Time>(
    batches: &[Arc<Batch<K, V, T>>],
    places: &Places,
    from: Option<&T>,
    edits: &mut Vec<Edit<T>>,
) -> Result<(), Overflow> {
    let start = edits.len();
    let mut several = 0;
    for (index, vals) in places.vals(batches) {
        several += 1;
        let batch = &batches[index];
        for val in vals {
            for (time, diff) in batch.updates_of(val) {
                let time = from.map_or_else(|| time.clone(), |from| time.join(from));
                edits.push(Edit {
                    rank: val as u32,
                    batch: index as u32,
                    val,
                    time,
                    diff,
                });
            }
        }
    }
    let loaded = &mut edits[start..];
    if several > 1 {
        // Stable, for it finds the runs that the batches are.
        loaded.sort_by(|a, b| V::compare(a.val(batches), b.val(batches)));
        rank(loaded, |a, b| {
            V::compare(a.val(batches), b.val(batches)).is_eq()
        });
    }
    add_up(edits, start, by_rank)
}

/// The values of one key in order, merged from several batches as they are asked for: a key may have too many to be
/// loaded at once.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    /// For each batch that has the key, the values that are to come.
    rest: Vec<(usize, Range<usize>)>,
    rank: u32,
}

impl Values {
    /// The values of the key at which `places` are.
    pub(crate) fn new<K: Rows, V: Rows, T: Time>(
        batches: &[Arc<Batch<K, V, T>>],
        places: &Places,
    ) -> Self {
        Self {
            rest: places.vals(batches).collect(),
            rank: 0,
        }
    }

    /// No values, as if all had been loaded.
    pub(crate) fn none(mut self) -> Self {
        self.rest.clear();
        self
    }

    /// How many updates are to come.
    pub(crate) fn updates<K: Rows, V: Rows, T: Time>(
        &self,
        batches: &[Arc<Batch<K, V, T>>],
    ) -> usize {
        let updates = |(batch, vals): &(usize, Range<usize>)| {
            let batch: &Batch<K, V, T> = &batches[*batch];
            batch.columns.val_ends.span(vals).len()
        };
        self.rest.iter().map(updates).sum()
    }

    /// Appends the edits of values until there are `count` more or no values left, as seen from `from` on. Returns how
    /// many updates were looked at, which is 0 at the end.
    #[allow(clippy::cast_possible_truncation)] // batches are few, and one key's values fewer than 2^32
    pub(crate) fn load<K: Rows, V: Rows, T: Time>(
        &mut self,
        count: usize,
        batches: &[Arc<Batch<K, V, T>>],
        from: &T,
        edits: &mut Vec<Edit<T>>,
    ) -> Result<usize, Overflow> {
        let mut looked_at = 0;
        while looked_at < count {
            self.rest.retain(|(_, vals)| !vals.is_empty());
            let first = |(batch, vals): &(usize, Range<usize>)| {
                let batch: &Batch<K, V, T> = &batches[*batch];
                batch.vals().get(vals.start)
            };
            let Some(least) = self
                .rest
                .iter()
                .map(first)
                .min_by(|a, b| V::compare(*a, *b))
            else {
                break;
            };
            let start = edits.len();
            for (index, vals) in &mut self.rest {
                let batch = &batches[*index];
                if V::compare(batch.vals().get(vals.start), least).is_ne() {
                    continue;
                }
                for (time, diff) in batch.updates_of(vals.start) {
                    looked_at += 1;
                    edits.push(Edit {
                        rank: self.rank,
                        batch: *index as u32,
                        val: vals.start,
                        time: time.join(from),
                        diff,
                    });
                }
                vals.start += 1;
            }
            self.rank = self.rank.wrapping_add(1);
            add_up(edits, start, by_rank)?;
        }
        Ok(looked_at)
    }
}

/// Numbers edits that are in the order of their values.
fn rank<T>(edits: &mut [Edit<T>], alike: impl Fn(&Edit<T>, &Edit<T>) -> bool) {
    let mut rank = 0;
    for index in 0..edits.len() {
        if index > 0 && !alike(&edits[index - 1], &edits[index]) {
            rank += 1;
        }
        edits[index].rank = rank;
    }
}

/// Adds up the edits from `start` on that are of one value and time; those that `compare` finds equal
/// are of one value, and are beside each other.
pub(crate) fn add_up<T: Time>(
    edits: &mut Vec<Edit<T>>,
    start: usize,
    compare: impl Fn(&Edit<T>, &Edit<T>) -> Ordering,
) -> Result<(), Overflow> {
    let out_of_order =
        |pair: &[Edit<T>]| pair[0].time >= pair[1].time && compare(&pair[0], &pair[1]).is_eq();
    if !edits[start..].windows(2).any(out_of_order) {
        return Ok(());
    }
    edits[start..].sort_by(|a, b| compare(a, b).then_with(|| a.time.cmp(&b.time)));
    let mut kept = start;
    for index in start..edits.len() {
        if kept > start {
            let (before, rest) = edits.split_at_mut(index);
            let (last, next) = (&mut before[kept - 1], &rest[0]);
            if last.time == next.time && compare(last, next).is_eq() {
                last.diff = add(last.diff, next.diff)?;
                kept -= usize::from(last.diff == 0);
                continue;
            }
        }
        edits.swap(kept, index);
        kept += 1;
    }
    edits.truncate(kept);
    Ok(())
}

/// Compares edits of one key by value.
#[inline]
pub(crate) fn by_rank<T>(a: &Edit<T>, b: &Edit<T>) -> Ordering {
    a.rank.cmp(&b.rank)
}
