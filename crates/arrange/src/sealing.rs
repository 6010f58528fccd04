//! Taking complete updates out of sorted runs, in small steps.
//!
//! Owns [`Sealing`], a batcher's seal in progress: the runs that have updates before its upper are merged, the
//! shortest first, and then cut along the times of held capabilities. Work is counted in updates.

use std::ops::Range;
use std::sync::Arc;

use pointstamp_order::Antichain;

use crate::batch::{Batch, Page, Sorted};
use crate::builder::Builder;
use crate::error::Error;
use crate::merge::Merge;
use crate::rows::Rows;
use crate::storage::Storage;
use crate::time::Time;

/// Batches and, for each, the time of the capability that it is sent with.
pub type Timed<K, V, T> = Vec<(T, Batch<K, V, T>)>;

/// A seal in progress.
#[derive(Debug)]
pub(crate) struct Sealing<K, V, T> {
    upper: Antichain<T>,
    /// The frontier up to which tiles have been cut off.
    lower: Antichain<T>,
    /// Runs to be merged, the shortest last.
    taken: Vec<Batch<K, V, T>>,
    merge: Option<Merge<K, V, T>>,
    /// Intervals to be cut off the merged run, the first last, each with the time of its capability.
    tiles: Vec<(T, Antichain<T>)>,
    all: Option<Batch<K, V, T>>,
    cut: Option<Cut<K, V, T>>,
    sealed: Timed<K, V, T>,
    /// The later half of a long remaining run with many times, and whether it was examined.
    later: Option<Batch<K, V, T>>,
    is_parted: bool,
    /// The number of updates that it is about.
    len: usize,
    storage: Option<Arc<dyn Storage>>,
}

/// A run this long, and with so many times, is kept in parts; a shorter one where tests run.
const LONG: usize = if cfg!(debug_assertions) { 32 } else { 1 << 10 };
const MANY: usize = 4;

/// The remaining updates after a seal.
pub(crate) struct Kept<K, V, T> {
    pub(crate) soon: Option<Batch<K, V, T>>,
    /// Updates of later times, which are not copied again before they are due.
    pub(crate) later: Option<Batch<K, V, T>>,
    /// Up to here everything is sealed.
    pub(crate) upper: Antichain<T>,
}

impl<K: Rows, V: Rows, T: Time> Sealing<K, V, T> {
    /// Begins to seal the runs `taken` from `lower` up to `upper`, where capabilities are held at the times `held`, which
    /// are in order.
    pub(crate) fn new(
        mut taken: Vec<Batch<K, V, T>>,
        held: &[T],
        lower: Antichain<T>,
        upper: Antichain<T>,
        storage: Option<Arc<dyn Storage>>,
    ) -> Self {
        // The shortest first, so that none is copied more often than it has to be.
        taken.sort_by_key(|run| std::cmp::Reverse(run.len()));
        let mut tiles = tiles(held, &upper);
        tiles.reverse();
        Self {
            upper,
            lower,
            len: taken.iter().map(Batch::len).sum(),
            all: taken.pop(),
            taken,
            merge: None,
            tiles,
            cut: None,
            sealed: Vec::new(),
            later: None,
            is_parted: false,
            storage,
        }
    }

    /// The number of updates that it is about.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes of memory held, and those on disk.
    pub(crate) fn size(&self) -> (usize, u64) {
        let sealed = self.sealed.iter().map(|(_, batch)| batch);
        let runs = self.taken.iter().chain(&self.all).chain(&self.later);
        let runs = runs
            .chain(sealed)
            .map(|run| (run.bytes(), run.bytes_on_disk()));
        let merge = self.merge.as_ref().map(Merge::size);
        let cut = self.cut.as_ref().map(Cut::size);
        let all = runs.chain(merge).chain(cut);
        all.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1))
    }

    /// Works until the fuel is used up; true when the seal is done.
    pub(crate) fn work(&mut self, fuel: &mut usize) -> Result<bool, Error> {
        if self.len == 0 {
            // Without fuel: an operator that holds nothing may not run again.
            return Ok(true);
        }
        while *fuel > 0 {
            if let Some(merge) = &mut self.merge {
                if merge.work(fuel)?
                    && let Some(merge) = self.merge.take()
                {
                    self.all = Some(merge.finish()?).filter(|merged| !merged.is_empty());
                }
            } else if let Some(next) = self.taken.pop() {
                if let Some(merged) = self.all.take() {
                    let none = Antichain::new();
                    self.merge = Some(Merge::new(next, merged, none, self.storage.as_ref()));
                } else {
                    self.all = Some(next);
                }
            } else if let Some(cut) = &mut self.cut {
                if cut.work(fuel)?
                    && let Some(cut) = self.cut.take()
                {
                    let [early, late] = cut.finish()?;
                    if self.is_parted {
                        self.later = Some(Batch::unbounded(late));
                        self.all = Some(Batch::unbounded(early));
                    } else {
                        self.all = Some(Batch::unbounded(late));
                        self.end_tile(Some(early));
                    }
                }
            } else if self.is_parted {
                return Ok(true);
            } else if !self.begin_tile() {
                self.part();
            }
        }
        Ok(false)
    }

    /// Begins to cut the next tile off; false if there is nothing left to cut, or to cut it from.
    fn begin_tile(&mut self) -> bool {
        let Some((_, tile)) = self.tiles.last() else {
            return false;
        };
        let Some(run) = self.all.take_if(|run| !run.is_empty()) else {
            return false;
        };
        let late: Vec<bool> = run
            .times()
            .iter()
            .map(|time| tile.less_equal(time))
            .collect();
        if late.iter().all(|late| *late) {
            self.all = Some(run);
            self.end_tile(None);
        } else if !late.contains(&true) {
            self.end_tile(Some((run.body.clone(), run.times().to_vec())));
        } else {
            self.cut = Some(Cut::new(run, late, self.storage.as_ref()));
        }
        true
    }

    fn end_tile(&mut self, ready: Option<Sorted<K, V, T>>) {
        let Some((held, tile)) = self.tiles.pop() else {
            return;
        };
        if let Some(ready) = ready {
            let lower = std::mem::replace(&mut self.lower, tile.clone());
            self.sealed
                .push((held, Batch::new(ready, lower.clone(), tile, lower)));
        }
    }

    /// Begins to set aside the later half of a long run with many times.
    fn part(&mut self) {
        self.is_parted = true;
        if let Some(run) = self
            .all
            .take_if(|run| run.len() >= LONG && run.times().len() >= MANY)
        {
            let middle = run.times().len() / 2;
            let late = (0..run.times().len()).map(|time| time >= middle).collect();
            self.cut = Some(Cut::new(run, late, self.storage.as_ref()));
        }
    }

    /// The batches, and the remaining updates, when the seal is complete.
    pub(crate) fn finish(self) -> (Timed<K, V, T>, Kept<K, V, T>) {
        let some = |run: &Batch<K, V, T>| !run.is_empty();
        let kept = Kept {
            soon: self.all.filter(some),
            later: self.later.filter(some),
            upper: self.upper,
        };
        (self.sealed, kept)
    }
}

/// A run that is being taken apart: the updates at times that are not late, and the others.
#[derive(Debug)]
struct Cut<K, V, T> {
    run: Batch<K, V, T>,
    /// The page that is being processed, and the number of the next one.
    page: Page<K, V, T>,
    next: usize,
    is_late: Vec<bool>,
    early: Builder<K, V, T>,
    late: Builder<K, V, T>,
    key: usize,
    /// The remaining values of the key before that, which is being processed.
    vals: Range<usize>,
}

impl<K: Rows, V: Rows, T: Time> Cut<K, V, T> {
    fn new(run: Batch<K, V, T>, is_late: Vec<bool>, storage: Option<&Arc<dyn Storage>>) -> Self {
        let bytes = run.decoded_bytes();
        Self {
            early: Builder::stored_in(run.times().to_vec(), storage, bytes),
            late: Builder::stored_in(run.times().to_vec(), storage, bytes),
            page: run.page_here(),
            next: usize::from(!run.is_stored()),
            run,
            is_late,
            key: 0,
            vals: 0..0,
        }
    }

    /// The bytes of memory held, and those on disk but for the results.
    fn size(&self) -> (usize, u64) {
        let results = self.early.bytes() + self.late.bytes();
        (self.run.bytes() + results, self.run.bytes_on_disk())
    }

    /// Works until the fuel is used up; true when all is done.
    fn work(&mut self, fuel: &mut usize) -> Result<bool, Error> {
        while *fuel > 0 {
            let mut step = self.early.step(*fuel);
            *fuel -= step;
            let done = self.work_on_page(&mut step);
            *fuel += step;
            if done {
                if self.next == self.run.pages() {
                    return Ok(true);
                }
                self.page = self.run.page(self.next)?;
                self.next += 1;
                self.key = 0;
            }
            let is_between = self.key == 0 || {
                let vals = self.page.vals_of(self.key - 1);
                self.vals.is_empty() || self.vals == vals
            };
            if is_between {
                self.early.store_full_page()?;
                self.late.store_full_page()?;
            }
        }
        Ok(false)
    }

    /// Works until the fuel is used up, or the page is done.
    fn work_on_page(&mut self, fuel: &mut usize) -> bool {
        let (page, columns) = (&self.page, &self.page.columns);
        while *fuel > 0 {
            if let Some(val) = self.vals.next() {
                let updates = columns.val_ends.range(val);
                *fuel = fuel.saturating_sub(updates.len());
                for update in updates {
                    let time = columns.index.get(update);
                    let into = if self.is_late[time as usize] {
                        &mut self.late
                    } else {
                        &mut self.early
                    };
                    into.update(time, columns.diffs.get(update));
                }
                self.early.end_val(page.vals().get(val));
                self.late.end_val(page.vals().get(val));
                if !self.vals.is_empty() {
                    continue;
                }
                self.early.end_key(page.keys().get(self.key - 1));
                self.late.end_key(page.keys().get(self.key - 1));
            }
            if self.key == page.keys().len() {
                return true;
            }
            self.vals = page.vals_of(self.key);
            self.key += 1;
        }
        false
    }

    /// The updates that are not late, and the others.
    fn finish(self) -> Result<[Sorted<K, V, T>; 2], Error> {
        Ok([self.early.finish()?, self.late.finish()?])
    }
}

/// Divides the times before `upper` by the times of the held capabilities, `held` in order: each part, before
/// its frontier and not before the frontier of the part before it, is at or after the time beside it.
pub(crate) fn tiles<T: Time>(held: &[T], upper: &Antichain<T>) -> Vec<(T, Antichain<T>)> {
    let cut = |(index, time): (usize, &T)| {
        let mut tile = upper.clone();
        tile.extend(held[index + 1..].iter().cloned());
        (time.clone(), tile)
    };
    held.iter().enumerate().map(cut).collect()
}
