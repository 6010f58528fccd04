//! Taking complete updates out of sorted runs, in small steps.
//!
//! Owns [`Sealing`], a batcher's seal in progress: the runs that have updates before its upper are merged, the
//! shortest first, and then cut along the times of held capabilities. Work is counted in updates.

use std::ops::Range;
use std::sync::Arc;

use pointstamp_order::Antichain;

use crate::batch::Batch;
use crate::builder::Builder;
use crate::columns::Columns;
use crate::error::Overflow;
use crate::merge::Merge;
use crate::rows::Rows;
use crate::time::Time;

/// Batches and, for each, the time of the capability that it is sent with.
pub type Timed<K, V, T> = Vec<(T, Batch<K, V, T>)>;

/// Sorted updates that have not been sealed yet.
pub(crate) type Run<K, V, T> = Arc<Batch<K, V, T>>;

/// Sorted columns, and their times.
type Sorted<K, V, T> = (Columns<K, V>, Vec<T>);

pub(crate) fn run_of<K: Rows, V: Rows, T: Time>((columns, times): Sorted<K, V, T>) -> Run<K, V, T> {
    let none = Antichain::new;
    Arc::new(Batch::new((columns, times), none(), none(), none()))
}

/// A seal in progress.
#[derive(Debug)]
pub(crate) struct Sealing<K, V, T> {
    upper: Antichain<T>,
    /// The frontier up to which tiles have been cut off.
    lower: Antichain<T>,
    /// Runs to be merged, the shortest last.
    taken: Vec<Run<K, V, T>>,
    merge: Option<Merge<K, V, T>>,
    /// Intervals to be cut off the merged run, the first last, each with the time of its capability.
    tiles: Vec<(T, Antichain<T>)>,
    all: Option<Run<K, V, T>>,
    cut: Option<Cut<K, V, T>>,
    sealed: Timed<K, V, T>,
    /// The later half of a long remaining run with many times, and whether it was examined.
    later: Option<Run<K, V, T>>,
    is_parted: bool,
    /// The number of updates that it is about.
    len: usize,
}

/// A run this long, and with so many times, is kept in parts; a shorter one where tests run.
const LONG: usize = if cfg!(debug_assertions) { 32 } else { 1 << 10 };
const MANY: usize = 4;

/// The remaining updates after a seal.
pub(crate) struct Kept<K, V, T> {
    pub(crate) soon: Option<Run<K, V, T>>,
    /// Updates of later times, which are not copied again before they are due.
    pub(crate) later: Option<Run<K, V, T>>,
    /// Up to here everything is sealed.
    pub(crate) upper: Antichain<T>,
}

impl<K: Rows, V: Rows, T: Time> Sealing<K, V, T> {
    /// Begins to seal the runs `taken` from `lower` up to `upper`, where capabilities are held at the times `held`, which
    /// are in order.
    pub(crate) fn new(
        mut taken: Vec<Run<K, V, T>>,
        held: &[T],
        lower: Antichain<T>,
        upper: Antichain<T>,
    ) -> Self {
        // The shortest first, so that none is copied more often than it has to be.
        taken.sort_by_key(|run| std::cmp::Reverse(run.len()));
        let mut tiles = tiles(held, &upper);
        tiles.reverse();
        Self {
            upper,
            lower,
            len: taken.iter().map(|run| run.len()).sum(),
            all: taken.pop(),
            taken,
            merge: None,
            tiles,
            cut: None,
            sealed: Vec::new(),
            later: None,
            is_parted: false,
        }
    }

    /// The number of updates that it is about.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Works until the fuel is used up; true when the seal is done.
    pub(crate) fn work(&mut self, fuel: &mut usize) -> Result<bool, Overflow> {
        while *fuel > 0 {
            if let Some(merge) = &mut self.merge {
                if merge.work(fuel)?
                    && let Some(merge) = self.merge.take()
                {
                    let merged = merge.finish();
                    self.all = (!merged.is_empty()).then(|| Arc::new(merged));
                }
            } else if let Some(next) = self.taken.pop() {
                if let Some(merged) = self.all.take() {
                    self.merge = Some(Merge::new(next, merged, Antichain::new()));
                } else {
                    self.all = Some(next);
                }
            } else if let Some(cut) = &mut self.cut {
                if cut.work(fuel)
                    && let Some(cut) = self.cut.take()
                {
                    let (early, late) = cut.finish();
                    if self.is_parted {
                        self.later = Some(run_of(late));
                        self.all = Some(run_of(early));
                    } else {
                        self.all = Some(run_of(late));
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
        let late: Vec<bool> = run.times.iter().map(|time| tile.less_equal(time)).collect();
        if late.iter().all(|late| *late) {
            self.all = Some(run);
            self.end_tile(None);
        } else if !late.contains(&true) {
            let run = Arc::unwrap_or_clone(run);
            self.end_tile(Some((Arc::unwrap_or_clone(run.columns), run.times)));
        } else {
            self.cut = Some(Cut::new(run, late));
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
            .take_if(|run| run.len() >= LONG && run.times.len() >= MANY)
        {
            let middle = run.times.len() / 2;
            let late = (0..run.times.len()).map(|time| time >= middle).collect();
            self.cut = Some(Cut::new(run, late));
        }
    }

    /// The batches, and the remaining updates, when the seal is complete.
    pub(crate) fn finish(self) -> (Timed<K, V, T>, Kept<K, V, T>) {
        let some = |run: &Run<K, V, T>| !run.is_empty();
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
    run: Run<K, V, T>,
    is_late: Vec<bool>,
    early: Builder<K, V, T>,
    late: Builder<K, V, T>,
    key: usize,
    /// The remaining values of the key before that, which is being processed.
    vals: Range<usize>,
}

impl<K: Rows, V: Rows, T: Time> Cut<K, V, T> {
    fn new(run: Run<K, V, T>, is_late: Vec<bool>) -> Self {
        Self {
            early: Builder::new(run.times.clone()),
            late: Builder::new(run.times.clone()),
            run,
            is_late,
            key: 0,
            vals: 0..0,
        }
    }

    /// Works until the fuel is used up; true when all is done.
    fn work(&mut self, fuel: &mut usize) -> bool {
        let columns = &self.run.columns;
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
                self.early.end_val(self.run.vals().get(val));
                self.late.end_val(self.run.vals().get(val));
                if !self.vals.is_empty() {
                    continue;
                }
                self.early.end_key(self.run.keys().get(self.key - 1));
                self.late.end_key(self.run.keys().get(self.key - 1));
            }
            if self.key == self.run.keys().len() {
                return true;
            }
            self.vals = self.run.vals_of(self.key);
            self.key += 1;
        }
        false
    }

    /// The updates that are not late, and the others.
    fn finish(self) -> (Sorted<K, V, T>, Sorted<K, V, T>) {
        (self.early.finish(), self.late.finish())
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
