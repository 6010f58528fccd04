//! Updates whose times are not complete yet, kept sorted until they are.
//!
//! Owns [`Batcher`]. Updates gather in a buffer; a full one is sorted into a run, and runs are merged
//! so that each is at least twice as long as the next: what cancels vanishes, and memory follows what
//! is left. Sealing takes the updates before a frontier out of the runs. Amortised, an update costs
//! the logarithm of the number of updates, in copies.

use std::sync::Arc;

use pointstamp_order::Antichain;

use crate::batch::Batch;
use crate::builder::Builder;
use crate::columns::Columns;
use crate::error::Overflow;
use crate::merge::Merge;
use crate::rows::Rows;
use crate::time::Time;
use crate::updates::Updates;

/// Updates in the buffer before it is sorted: as many as the sort's second-level cache holds.
const BUFFER: usize = 1 << 16;

/// Batches and, for each, the time of the capability that it is sent with.
pub type Timed<K, V, T> = Vec<(T, Batch<K, V, T>)>;

/// Turns updates in any order into batches of consecutive intervals of times.
///
/// ```
/// use pointstamp_arrange::{Batcher, Units, Words};
/// use pointstamp_order::Antichain;
///
/// let mut batcher = Batcher::<Words, Units, u64>::new(Antichain::from_elem(0));
/// batcher.push(7, (), &0, 1)?;
/// batcher.push(8, (), &2, 1)?;
/// let sealed = batcher.seal(&Antichain::from_elem(1))?;
/// assert_eq!(sealed[0].0, 0); // sent at time 0
/// assert_eq!(sealed[0].1.iter().collect::<Vec<_>>(), [(7, (), &0, 1)]);
/// assert_eq!(batcher.frontier(), &Antichain::from_elem(2));
/// # Ok::<(), pointstamp_arrange::Overflow>(())
/// ```
#[derive(Debug)]
pub struct Batcher<K, V, T> {
    buffer: Updates<K, V, T>,
    /// Sorted runs, the longest first.
    runs: Vec<Arc<Batch<K, V, T>>>,
    /// The frontier of all times in the buffer and in the runs.
    frontier: Antichain<T>,
    /// What has been sealed already.
    lower: Antichain<T>,
}

impl<K: Rows, V: Rows, T: Time> Batcher<K, V, T> {
    /// An empty batcher for updates at or after `lower`.
    pub fn new(lower: Antichain<T>) -> Self {
        Self {
            buffer: Updates::default(),
            runs: Vec::new(),
            frontier: Antichain::new(),
            lower,
        }
    }

    /// Adds an update, at a time at or after what has been sealed.
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit.
    #[inline]
    pub fn push(
        &mut self,
        key: K::Item<'_>,
        val: V::Item<'_>,
        time: &T,
        diff: i64,
    ) -> Result<(), Overflow> {
        debug_assert!(self.lower.less_equal(time), "{time:?} has been sealed");
        if diff != 0 && !self.frontier.less_equal(time) {
            self.frontier.insert(time.clone());
        }
        self.buffer.push(key, val, time, diff);
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds updates, and takes the whole list over where that spares a copy; it is empty afterwards.
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit.
    pub fn append(&mut self, updates: &mut Updates<K, V, T>) -> Result<(), Overflow> {
        debug_assert!(
            updates
                .times()
                .iter()
                .all(|time| self.lower.less_equal(time))
        );
        self.frontier.extend(updates.times().iter().cloned());
        if self.buffer.is_empty() {
            std::mem::swap(&mut self.buffer, updates);
        } else {
            self.buffer.append(updates);
        }
        updates.clear();
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(())
    }

    /// The least times of the updates that are not sealed: capabilities for them are to be kept. It
    /// may be earlier than it needs to be until [`seal`](Self::seal) is called.
    pub fn frontier(&self) -> &Antichain<T> {
        &self.frontier
    }

    /// The frontier before which everything has been sealed.
    pub fn lower(&self) -> &Antichain<T> {
        &self.lower
    }

    /// The number of updates held.
    pub fn len(&self) -> usize {
        self.buffer.len() + self.runs.iter().map(|run| run.len()).sum::<usize>()
    }

    /// True when nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sorts the buffer into a run, and merges runs of similar lengths.
    fn flush(&mut self) -> Result<(), Overflow> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let sorted = self.buffer.sorted()?;
        self.buffer.clear();
        self.add_run(sorted);
        while let [.., older, newer] = &self.runs[..]
            && older.len() < 2 * newer.len()
        {
            self.merge_last()?;
        }
        Ok(())
    }

    fn add_run(&mut self, columns: (Columns<K, V>, Vec<T>)) {
        if columns.0.len() > 0 {
            let none = Antichain::new;
            self.runs
                .push(Arc::new(Batch::new(columns, none(), none(), none())));
        }
    }

    fn merge_last(&mut self) -> Result<(), Overflow> {
        let (Some(newer), Some(older)) = (self.runs.pop(), self.runs.pop()) else {
            return Ok(());
        };
        let mut merge = Merge::new(older, newer, Antichain::new());
        let mut unlimited = usize::MAX;
        merge.work(&mut unlimited)?;
        let merged = merge.finish();
        if !merged.is_empty() {
            self.runs.push(Arc::new(merged));
        }
        Ok(())
    }

    /// Takes out the updates before `upper`, as batches whose intervals adjoin.
    ///
    /// Each batch comes with a time of the [`frontier`](Self::frontier) that is at or before all of
    /// its updates: it is sent with the capability for it. Where the frontier has one element there is
    /// at most one batch. A batch without updates is left out, so that the last one's upper may be
    /// before `upper`: tell the spine by [`TraceWriter::seal`](crate::TraceWriter::seal).
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit.
    pub fn seal(&mut self, upper: &Antichain<T>) -> Result<Timed<K, V, T>, Overflow> {
        let mut sealed = Vec::new();
        if self.frontier.iter().all(|time| upper.less_equal(time)) {
            self.lower = upper.clone();
            return Ok(sealed);
        }
        self.flush()?;
        while self.runs.len() > 1 {
            self.merge_last()?;
        }
        let mut held: Vec<T> = self.frontier.elements().to_vec();
        held.sort_unstable();
        for (time, tile) in tiles(&held, upper) {
            let Some(all) = self.runs.pop() else { break };
            let (ready, kept) = split(all, &tile);
            if let Some(kept) = kept {
                self.runs.push(Arc::new(kept));
            }
            if let Some((columns, times)) = ready {
                let lower = std::mem::replace(&mut self.lower, tile.clone());
                let batch = Batch::new((columns, times), lower.clone(), tile, lower);
                sealed.push((time, batch));
            }
        }
        self.lower = upper.clone();
        self.frontier = self
            .runs
            .iter()
            .flat_map(|run| run.times.iter().cloned())
            .collect();
        Ok(sealed)
    }
}

/// Cuts what is before `upper` along times at which capabilities are held, `held` in order: the part
/// before each frontier, and not before the one before it, is at or after the time beside it.
pub(crate) fn tiles<T: Time>(held: &[T], upper: &Antichain<T>) -> Vec<(T, Antichain<T>)> {
    let cut = |(index, time): (usize, &T)| {
        let mut tile = upper.clone();
        tile.extend(held[index + 1..].iter().cloned());
        (time.clone(), tile)
    };
    held.iter().enumerate().map(cut).collect()
}

type Parts<K, V, T> = (Option<(Columns<K, V>, Vec<T>)>, Option<Batch<K, V, T>>);

/// The updates before `upper`, and the others.
fn split<K: Rows, V: Rows, T: Time>(
    all: Arc<Batch<K, V, T>>,
    upper: &Antichain<T>,
) -> Parts<K, V, T> {
    let kept: Vec<bool> = all
        .times
        .iter()
        .map(|time| upper.less_equal(time))
        .collect();
    if kept.iter().all(|kept| *kept) {
        return (None, Some(Arc::unwrap_or_clone(all)));
    }
    if !kept.iter().any(|kept| *kept) {
        let all = Arc::unwrap_or_clone(all);
        return (Some((Arc::unwrap_or_clone(all.columns), all.times)), None);
    }
    let mut early = Builder::new(all.times.clone());
    let mut late = Builder::new(all.times.clone());
    let columns = &all.columns;
    for key in 0..all.keys().len() {
        for val in all.vals_of(key) {
            for update in columns.val_ends.range(val) {
                let time = columns.index.get(update);
                let into = if kept[time as usize] {
                    &mut late
                } else {
                    &mut early
                };
                into.update(time, columns.diffs.get(update));
            }
            early.end_val(all.vals().get(val));
            late.end_val(all.vals().get(val));
        }
        early.end_key(all.keys().get(key));
        late.end_key(all.keys().get(key));
    }
    let none = Antichain::new;
    let kept = Batch::new(late.finish(), none(), none(), none());
    (Some(early.finish()), Some(kept))
}

/// Sorted, added-up updates as one batch of `[lower, upper)`.
pub(crate) fn batch_of<K: Rows, V: Rows, T: Time>(
    updates: &Updates<K, V, T>,
    lower: Antichain<T>,
    upper: Antichain<T>,
) -> Result<Batch<K, V, T>, Overflow> {
    let since = lower.clone();
    Ok(Batch::new(updates.sorted()?, lower, upper, since))
}
