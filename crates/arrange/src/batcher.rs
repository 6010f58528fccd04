//! Updates whose times are not complete yet, kept sorted until they are.
//!
//! Owns [`Batcher`]. Updates gather in a buffer; a full one is sorted into a run, and runs are merged so that each is
//! at least twice as long as the next: updates that cancel vanish, and memory follows the rest. Sealing takes the
//! updates before a frontier out of the runs; the rest of a long one with many times is kept in parts, so that
//! updates at many later times are not copied for each. Amortised, an update costs the logarithm of the number of
//! updates, in copies.

use std::sync::Arc;

use pointstamp_order::Antichain;

use crate::batch::Batch;
use crate::error::Error;
use crate::merge::Merge;
use crate::rows::Rows;
use crate::sealing::{Sealing, Timed};
use crate::storage::Storage;
use crate::time::Time;
use crate::updates::Updates;

/// Updates in the buffer before it is sorted: larger ones load faster, and keep others waiting longer; fewer where tests run.
const BUFFER: usize = if cfg!(debug_assertions) { 32 } else { 1 << 18 };

/// The most bytes of the buffer where memory is bounded, in pages: a sixteenth of a small budget.
const PAGES: usize = 64;

/// The bytes of the buffer are counted after so many single updates.
const COUNTED: usize = 256;

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
/// let page = sealed[0].1.page(0)?;
/// assert_eq!(page.iter().collect::<Vec<_>>(), [(7, (), &0, 1)]);
/// assert_eq!(batcher.frontier(), &Antichain::from_elem(2));
/// # Ok::<(), pointstamp_arrange::Error>(())
/// ```
#[derive(Debug)]
pub struct Batcher<K, V, T> {
    buffer: Updates<K, V, T>,
    /// Sorted runs, the longest first.
    runs: Vec<Batch<K, V, T>>,
    /// Runs of later times, which are not merged with others before these.
    parked: Vec<Batch<K, V, T>>,
    /// The frontier of all times in the buffer and in the runs.
    frontier: Antichain<T>,
    /// The frontier up to which updates have been sealed.
    lower: Antichain<T>,
    /// The current seal, with its updates.
    sealing: Option<Sealing<K, V, T>>,
    /// Whether the frontier may be another after it.
    stale: bool,
    storage: Option<Arc<dyn Storage>>,
}

impl<K: Rows, V: Rows, T: Time> Batcher<K, V, T> {
    /// An empty batcher for updates at or after `lower`.
    pub fn new(lower: Antichain<T>) -> Self {
        Self {
            buffer: Updates::default(),
            runs: Vec::new(),
            parked: Vec::new(),
            frontier: Antichain::new(),
            lower,
            sealing: None,
            stale: false,
            storage: None,
        }
    }

    /// Whether the buffer has as many bytes as it may have where memory is bounded.
    fn has_most(&self) -> bool {
        let most = self
            .storage
            .as_ref()
            .map(|storage| PAGES * storage.page_bytes());
        most.is_some_and(|most| self.buffer.bytes() >= most)
    }

    /// Has runs stored where the storage asks for it.
    pub fn store_in(&mut self, storage: Option<Arc<dyn Storage>>) {
        self.storage = storage;
    }

    /// Creates a batcher from [`runs`](Self::runs) of updates at or after `lower`.
    pub fn restored(lower: Antichain<T>, runs: impl IntoIterator<Item = Batch<K, V, T>>) -> Self {
        let mut runs: Vec<_> = runs.into_iter().filter(|run| !run.is_empty()).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
        let times = runs.iter().flat_map(|run| run.times().iter());
        Self {
            frontier: times.cloned().collect(),
            runs,
            ..Self::new(lower)
        }
    }

    /// The updates that are held, sorted in runs whose intervals have no meaning.
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit, or the storage fails.
    ///
    /// # Panics
    ///
    /// When a seal is in progress.
    pub fn runs(&mut self) -> Result<Vec<Batch<K, V, T>>, Error> {
        assert!(
            !self.is_sealing(),
            "a seal is complete before updates are listed"
        );
        self.flush()?;
        Ok(self.runs.iter().chain(&self.parked).cloned().collect())
    }

    /// Adds an update, at a time at or after the sealed frontier.
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit, or the storage fails.
    #[inline]
    pub fn push(
        &mut self,
        key: K::Item<'_>,
        val: V::Item<'_>,
        time: &T,
        diff: i64,
    ) -> Result<(), Error> {
        debug_assert!(self.lower.less_equal(time), "{time:?} has been sealed");
        if diff != 0 && !self.frontier.less_equal(time) {
            self.frontier.insert(time.clone());
        }
        self.buffer.push(key, val, time, diff);
        let len = self.buffer.len();
        if len >= BUFFER || len.is_multiple_of(COUNTED) && self.has_most() {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds updates of one time, at or after the sealed frontier, from whole columns.
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit, or the storage fails.
    ///
    /// # Panics
    ///
    /// When the columns differ in length.
    pub fn extend_at(&mut self, keys: &K, vals: &V, time: &T, diffs: &[i64]) -> Result<(), Error> {
        debug_assert!(self.lower.less_equal(time), "{time:?} has been sealed");
        if diffs.iter().any(|diff| *diff != 0) && !self.frontier.less_equal(time) {
            self.frontier.insert(time.clone());
        }
        self.buffer.extend_at(keys, vals, time, diffs);
        if self.buffer.len() >= BUFFER || self.has_most() {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds updates, and takes the whole list over where that spares a copy; it is empty afterwards.
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit, or the storage fails.
    pub fn append(&mut self, updates: &mut Updates<K, V, T>) -> Result<(), Error> {
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
        if self.buffer.len() >= BUFFER || self.has_most() {
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
        let runs = self.held_runs();
        let sealing = self.sealing.as_ref().map_or(0, Sealing::len);
        self.buffer.len() + sealing + runs.map(Batch::len).sum::<usize>()
    }

    /// Stores the largest run in memory, if the storage asks for it.
    ///
    /// # Errors
    ///
    /// When the storage fails.
    pub fn store(&mut self) -> Result<(), Error> {
        let runs = self.runs.iter_mut().chain(&mut self.parked);
        let here = runs.filter(|run| !run.is_stored());
        if let Some(run) = here.max_by_key(|run| run.bytes()) {
            *run = stored(run.clone(), self.storage.as_ref())?;
        }
        Ok(())
    }

    fn held_runs(&self) -> impl Iterator<Item = &Batch<K, V, T>> {
        self.runs.iter().chain(&self.parked)
    }

    /// The bytes of memory held, and those on disk but for results of a seal in progress.
    pub fn size(&self) -> (usize, u64) {
        let sealing = self.sealing.as_ref();
        let (mut bytes, mut on_disk) = sealing.map_or((0, 0), Sealing::size);
        bytes += self.buffer.bytes();
        for run in self.held_runs() {
            bytes += run.bytes();
            on_disk += run.bytes_on_disk();
        }
        (bytes, on_disk)
    }

    /// True when nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sorts the buffer into a run, and merges runs of similar lengths.
    fn flush(&mut self) -> Result<(), Error> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let (columns, times) = self.buffer.sorted()?;
        self.buffer.clear();
        if columns.len() > 0 {
            let run = Batch::unbounded((columns.into(), times));
            self.runs.push(stored(run, self.storage.as_ref())?);
        }
        while let [.., older, newer] = &self.runs[..]
            && older.len() < 2 * newer.len()
        {
            self.merge_last()?;
        }
        Ok(())
    }

    fn merge_last(&mut self) -> Result<(), Error> {
        let (Some(newer), Some(older)) = (self.runs.pop(), self.runs.pop()) else {
            return Ok(());
        };
        let mut merge = Merge::new(older, newer, Antichain::new(), self.storage.as_ref());
        let mut unlimited = usize::MAX;
        merge.work(&mut unlimited)?;
        let merged = merge.finish()?;
        if !merged.is_empty() {
            self.runs.push(merged);
        }
        Ok(())
    }

    /// Takes out the updates before `upper`, as batches whose intervals adjoin.
    ///
    /// Each batch comes with a time of the [`frontier`](Self::frontier) that is at or before all of its updates: it
    /// is sent with the capability for it. Where the frontier has one element there is at most one batch. A batch
    /// without updates is left out, so that the last one's upper may be before `upper`: pass it to the spine by
    /// [`TraceWriter::seal`](crate::TraceWriter::seal).
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit, or the storage fails.
    pub fn seal(&mut self, upper: &Antichain<T>) -> Result<Timed<K, V, T>, Error> {
        self.begin_seal(upper)?;
        let mut unlimited = usize::MAX;
        Ok(self.work(&mut unlimited)?.unwrap_or_default())
    }

    /// Begins a [`seal`](Self::seal) that is made by [`work`](Self::work). A previous one has to be complete.
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit, or the storage fails.
    pub fn begin_seal(&mut self, upper: &Antichain<T>) -> Result<(), Error> {
        debug_assert!(self.sealing.is_none(), "one seal at a time");
        let mut taken = Vec::new();
        self.stale = !self.frontier.iter().all(|time| upper.less_equal(time));
        if self.stale {
            self.flush()?;
            let ready =
                |run: &mut Batch<K, V, T>| !run.times().iter().all(|time| upper.less_equal(time));
            taken.extend(self.parked.extract_if(.., ready));
            taken.extend(self.runs.extract_if(.., ready));
        }
        let mut held: Vec<T> = self.frontier.elements().to_vec();
        held.sort_unstable();
        self.sealing = Some(Sealing::new(
            taken,
            &held,
            self.lower.clone(),
            upper.clone(),
            self.storage.clone(),
        ));
        Ok(())
    }

    /// Continues the seal that was begun until the fuel, in updates, is used up. Returns its batches when it
    /// is complete; `None` before, and when none is in progress. Meanwhile updates at or after its upper may
    /// be added, and the updates being sealed still count for the [`frontier`](Self::frontier).
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit, or the storage fails.
    pub fn work(&mut self, fuel: &mut usize) -> Result<Option<Timed<K, V, T>>, Error> {
        let Some(sealing) = &mut self.sealing else {
            return Ok(None);
        };
        if !sealing.work(fuel)? {
            return Ok(None);
        }
        let Some(sealing) = self.sealing.take() else {
            return Ok(None);
        };
        let (sealed, kept) = sealing.finish();
        self.runs.extend(kept.soon);
        self.parked.extend(kept.later);
        self.lower = kept.upper;
        if self.stale {
            let runs = self.runs.iter().chain(&self.parked);
            let times = runs.flat_map(|run| run.times().iter());
            self.frontier = times.chain(self.buffer.times()).cloned().collect();
        }
        Ok(Some(sealed))
    }

    /// True while a seal is in progress.
    pub fn is_sealing(&self) -> bool {
        self.sealing.is_some()
    }
}

/// A run in the storage, if that asks for it.
fn stored<K: Rows, V: Rows, T: Time>(
    run: Batch<K, V, T>,
    storage: Option<&Arc<dyn Storage>>,
) -> Result<Batch<K, V, T>, Error> {
    match storage {
        Some(storage) if storage.stores(run.decoded_bytes()) => {
            let mut merge = Merge::storing(run, storage);
            let mut unlimited = usize::MAX;
            merge.work(&mut unlimited)?;
            merge.finish()
        }
        _ => Ok(run),
    }
}
