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
use std::time::{Duration, Instant};

use super::Worker;
use crate::cluster::LEADER;
use crate::cut::{CutMessage, Stands};
use crate::payload::Payload;

/// The greatest number of failed searches in a row that still makes the next one later.
const FAILURES: u32 = 6;

/// A search, on the leader.
struct Search {
    /// By worker, where its inputs stand.
    found: Vec<Option<Stands>>,
    /// Until when the leader searches.
    until: Instant,
}

/// A worker's part in a search.
struct Stop {
    round: u64,
    /// By input, the time from which on `main` stops.
    aims: Stands,
    /// Once `main` has stopped, until when.
    until: Option<Instant>,
}

/// The state of a worker in a search.
#[derive(Default)]
pub(super) struct CommonTime {
    search: RefCell<Option<Search>>,
    /// The number of the last round that the leader has begun.
    round: Cell<u64>,
    /// The searches in a row that have failed.
    failures: Cell<u32>,
    /// The attempts that begin without a search.
    skips: Cell<u32>,
    stop: RefCell<Option<Stop>>,
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
    fn is_due(&self) -> bool {
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

    fn ends(&self, is_found: bool) {
        self.search.take();
        let failures = if is_found { 0 } else { self.failures.get() + 1 };
        self.failures.set(failures);
        self.skips.set(2_u32.pow(failures.min(FAILURES)) - 1);
    }
}

/// Whether inputs stand at times, or later.
fn reach(stands: &Stands, aims: &Stands) -> bool {
    let mut both = stands.iter().zip(aims);
    both.all(|both| match both {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(at), Some(aim)) => at.iter().zip(aim).all(|(at, aim)| at >= aim),
    })
}

/// The latest of the times of each input. `None` where workers have other inputs than others.
fn latest(all: &[Stands]) -> Option<Stands> {
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

impl<P: Payload> Worker<P> {
    fn common_limit(&self) -> Duration {
        self.0.cutting.limits.get().common
    }

    /// Begins a search as the leader, where one is due. Returns whether one runs.
    pub(super) fn search_common_time(&self) -> bool {
        let common = &self.0.cutting.common;
        if common.searches() {
            return true;
        }
        let Some(until) = Instant::now().checked_add(self.common_limit()) else {
            return false;
        };
        if self.common_limit().is_zero() || !self.0.open_inputs.are_some() || !common.is_due() {
            return false;
        }
        common.search.replace(Some(Search {
            found: vec![None; self.peers()],
            until,
        }));
        self.try_time(&Stands::new());
        true
    }

    /// Has every worker stop at these times or later.
    fn try_time(&self, aims: &Stands) {
        let common = &self.0.cutting.common;
        let round = common.round.get() + 1;
        common.round.set(round);
        if let Some(search) = &mut *common.search.borrow_mut() {
            search.found.fill(None);
        }
        for worker in 0..self.peers() {
            let message = CutMessage::StopAt(round, aims.clone());
            self.cluster()
                .send_cut_message(self.index(), worker, message);
        }
    }

    /// Takes the answer of a worker that has stopped, as the leader. Returns whether the attempt is to begin.
    pub(super) fn has_stopped(&self, worker: usize, round: u64, stands: Stands) -> bool {
        let common = &self.0.cutting.common;
        if round != common.round.get() {
            return false;
        }
        let all = {
            let mut search = common.search.borrow_mut();
            let Some(search) = &mut *search else {
                return false;
            };
            search.found[worker] = Some(stands);
            search.found.iter().cloned().collect::<Option<Vec<_>>>()
        };
        let Some(all) = all else {
            return false;
        };
        match latest(&all) {
            Some(aims) if all.iter().any(|stands| *stands != aims) => {
                self.try_time(&aims);
                false
            }
            aims => {
                common.ends(aims.is_some());
                true
            }
        }
    }

    /// Takes the order to stop.
    pub(super) fn stop_at(&self, round: u64, aims: Stands) {
        self.0.cutting.common.stop.replace(Some(Stop {
            round,
            aims,
            until: None,
        }));
    }

    /// Whether `main` is to stop where it is.
    pub(super) fn is_to_stop(&self) -> bool {
        let stop = self.0.cutting.common.stop.borrow();
        let Some(stop) = stop.as_ref().filter(|stop| stop.until.is_none()) else {
            return false;
        };
        let stands = self.0.open_inputs.stands();
        stands.is_some_and(|stands| reach(&stands, &stop.aims))
    }

    /// Stops `main` where it is to stop, lets it go on after its time, and ends a search that takes too long. Returns whether the attempt is to begin.
    pub(super) fn attend_common_time(&self) -> bool {
        let common = &self.0.cutting.common;
        let now = Instant::now();
        if self.is_to_stop()
            && let Some(stands) = self.0.open_inputs.stands()
            && let Some(stop) = &mut *common.stop.borrow_mut()
        {
            stop.until = now.checked_add(2 * self.common_limit());
            let message = CutMessage::StoppedAt(stop.round, stands);
            self.cluster()
                .send_cut_message(self.index(), LEADER, message);
        }
        let is_over = |until: Option<Instant>| until.is_some_and(|until| until <= now);
        let stopped = common.stop.borrow().as_ref().and_then(|stop| stop.until);
        if is_over(stopped) {
            common.release();
        }
        let searches = common.search.borrow().as_ref().map(|search| search.until);
        let late = is_over(searches);
        if late {
            common.ends(false);
        }
        late
    }
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
        let mut without = || {
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
