//! The common time at which inputs of `main` stop before a cut.
//!
//! Another number of workers can resume where each input stands at one time on all workers, and nothing was sent at it. So before it
//! begins an attempt, the leader searches for such a time. Each worker stops `main` in the first step, or move of an input, at which nothing
//! was sent at the times of its inputs, and says where they stand. Where they stand at different times, all workers but the ones at the
//! latest of these go on to it, and stop again.
//!
//! Invariant: nothing waits without a limit. The leader begins the attempt when [`Limits::common`](crate::cut::Limits::common) is over, and
//! a worker lets `main` go on after twice that, whatever the leader does. A search decides nothing else: an attempt without a common time is a cut
//! that needs as many workers as before. After a search that failed, attempts begin without one: 1, 3, 7 and so on, at most 63.
//!
//! Costs without a search: nothing in a step. A search takes a word from the leader to each worker and back for each time that is tried.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use crate::cut::Stands;

/// The greatest number of failed searches in a row that still makes the next one later.
const FAILURES: u32 = 6;

/// A search, on the leader.
pub(super) struct Search {
    /// By worker, where its inputs stand.
    pub(super) found: Vec<Option<Stands>>,
    /// Until when the leader searches.
    pub(super) until: Instant,
}

/// A worker's part in a search.
pub(super) struct Stop {
    pub(super) round: u64,
    /// By input, the time from which on `main` stops.
    pub(super) aims: Stands,
    /// Once `main` has stopped, until when.
    pub(super) until: Option<Instant>,
}

/// The state of a worker in a search.
#[derive(Default)]
pub(super) struct CommonTime {
    pub(super) search: RefCell<Option<Search>>,
    /// The number of the last round that the leader has begun.
    pub(super) round: Cell<u64>,
    /// The searches in a row that have failed.
    failures: Cell<u32>,
    /// The attempts that begin without a search.
    skips: Cell<u32>,
    pub(super) stop: RefCell<Option<Stop>>,
}

impl CommonTime {
    /// Whether there is something to do in a step.
    pub(super) fn attends(&self) -> bool {
        self.search.borrow().is_some() || self.stop.borrow().is_some()
    }

    /// Whether the leader searches.
    pub(super) fn searches(&self) -> bool {
        self.search.borrow().is_some()
    }

    /// Whether `main` has stopped.
    pub(super) fn is_stopped(&self) -> bool {
        let stop = self.stop.borrow();
        stop.as_ref().is_some_and(|stop| stop.until.is_some())
    }

    /// When there is something to do, if nothing else happens.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let search = self.search.borrow().as_ref().map(|search| search.until);
        let stop = self.stop.borrow().as_ref().and_then(|stop| stop.until);
        [search, stop].into_iter().flatten().min()
    }

    /// Whether an attempt is to begin with a search.
    pub(super) fn is_due(&self) -> bool {
        let skips = self.skips.get();
        self.skips.set(skips.saturating_sub(1));
        skips == 0
    }

    /// Lets `main` go on.
    pub(super) fn release(&self) {
        self.stop.take();
    }

    /// Lets `main` go on where it has not stopped: the attempt begins.
    pub(super) fn begins(&self) {
        if !self.is_stopped() {
            self.release();
        }
    }

    pub(super) fn ends(&self, is_found: bool) {
        self.search.take();
        let failures = if is_found { 0 } else { self.failures.get() + 1 };
        self.failures.set(failures);
        self.skips.set(2_u32.pow(failures.min(FAILURES)) - 1);
    }
}

/// Whether inputs stand at times, or later.
pub(super) fn reach(stands: &Stands, aims: &Stands) -> bool {
    let mut both = stands.iter().zip(aims);
    both.all(|both| match both {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(at), Some(aim)) => at.iter().zip(aim).all(|(at, aim)| at >= aim),
    })
}

/// The latest of the times of each input. `None` where workers have other inputs than others.
pub(super) fn latest(all: &[Stands]) -> Option<Stands> {
    let mut aims = all.first()?.clone();
    for stands in all {
        if stands.len() != aims.len() {
            return None;
        }
        for (aim, at) in aims.iter_mut().zip(stands) {
            match (&mut *aim, at) {
                (Some(aim), Some(at)) if aim.len() == at.len() => {
                    for (aim, at) in aim.iter_mut().zip(at) {
                        *aim = (*aim).max(*at);
                    }
                }
                (Some(_), Some(_)) => return None,
                (_, None) => *aim = None,
                (None, Some(_)) => {}
            }
        }
    }
    Some(aims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_times_are_where_all_can_come() {
        let at = |times: &[u64]| {
            times
                .iter()
                .map(|time| Some(vec![*time]))
                .collect::<Stands>()
        };
        let aims = latest(&[at(&[3, 5]), at(&[4, 2]), at(&[1, 1])]).unwrap();
        assert_eq!(aims, at(&[4, 5]));
        assert!(reach(&at(&[4, 5]), &aims) && reach(&at(&[9, 5]), &aims));
        assert!(!reach(&at(&[4, 4]), &aims) && reach(&at(&[0]), &Stands::new()));
        let closed = latest(&[at(&[3]), vec![None]]).unwrap();
        assert_eq!(closed, vec![None]);
        assert!(!reach(&at(&[3]), &closed) && reach(&closed, &at(&[3])));
        assert_eq!(latest(&[at(&[3]), at(&[3, 4])]), None);
        assert_eq!(latest(&[vec![Some(vec![1, 2])], at(&[3])]), None);
    }

    #[test]
    fn searches_are_rarer_where_they_fail() {
        let common = CommonTime::default();
        let without = || {
            let mut count = 0;
            while !common.is_due() {
                count += 1;
            }
            common.ends(false);
            count
        };
        let counts: Vec<_> = (0..9).map(|_| without()).collect();
        assert_eq!(counts, [0, 1, 3, 7, 15, 31, 63, 63, 63]);
        common.ends(true);
        assert!(common.is_due());
    }
}
