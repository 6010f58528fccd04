//! The updates of a spine that readers cannot distinguish from earlier ones any more, since the last
//! compaction.
//!
//! Owns [`Stale`]. An update that readers see at another time, or at or before all times that they query, may add up
//! with others, and cancel. Merges for new batches do that on the way; where no more come, it has to be requested.
//! That is due when such updates are a quarter of all: compaction costs a few units for each of them, and after it no
//! more than twice the collection is held, and [`LEAST`] updates. Counting costs a few comparisons a batch.

use crate::demands::Demands;
use crate::time::{Time, advance};

/// Fewer updates are not worth an activation.
const LEAST: usize = 16;
/// So many batches are counted each for itself; further ones with the last.
const APART: usize = 16;

/// Batches, or several as one.
#[derive(Debug)]
struct Came<T> {
    /// The number of the last.
    number: u64,
    /// At or after all of their times.
    latest: T,
    len: usize,
}

/// Updates that came since the last compaction.
#[derive(Debug)]
pub(crate) struct Stale<T> {
    /// The updates that some reader distinguishes from earlier ones, oldest first.
    apart: Vec<Came<T>>,
    /// The number of all updates.
    all: usize,
    /// The number of updates that no reader distinguishes.
    merged: usize,
    /// The number of the last batch of these.
    through: u64,
}

impl<T> Default for Stale<T> {
    fn default() -> Self {
        Self {
            apart: Vec::new(),
            all: 0,
            merged: 0,
            through: 0,
        }
    }
}

impl<T: Time> Stale<T> {
    /// Counts a batch of this number.
    pub(crate) fn add(&mut self, number: u64, times: &[T], len: usize) {
        let latest = times.iter().cloned().reduce(|a, b| a.join(&b));
        let Some(latest) = latest else { return };
        self.all += len;
        if self.apart.len() >= APART
            && let Some(last) = self.apart.last_mut()
        {
            last.number = number;
            last.latest = last.latest.join(&latest);
            last.len += len;
            return;
        }
        self.apart.push(Came {
            number,
            latest,
            len,
        });
    }

    /// True when there may be enough in a spine of so many updates.
    pub(crate) fn is_worth_asking(&self, held: usize) -> bool {
        enough(self.all, held)
    }

    /// The number of the last batch that is to be compacted, if that is worth it in a spine of so many updates; these
    /// are not counted any more.
    pub(crate) fn due(&mut self, held: usize, demands: &Demands<T>) -> Option<u64> {
        if demands.since.is_empty() {
            return None; // no reader asks about any time: nothing adds up
        }
        let (merged, through) = (&mut self.merged, &mut self.through);
        self.apart.retain(|came| {
            let before_all = || {
                let mut since = demands.since.iter();
                since.all(|since| came.latest.less_equal(since))
            };
            let told_apart = came.number > demands.kept_apart
                || (advance(&came.latest, &demands.since) == came.latest && !before_all());
            if !told_apart {
                *merged += came.len;
                *through = came.number.max(*through);
            }
            told_apart
        });
        if !enough(self.merged, held) {
            return None;
        }
        self.all -= std::mem::take(&mut self.merged);
        Some(self.through)
    }
}

fn enough(stale: usize, held: usize) -> bool {
    stale >= LEAST && stale.saturating_mul(4) >= held
}
