//! A worker's part in the search for a common time before a cut; see [`common_time`](super::common_time).

use std::time::{Duration, Instant};

use super::Worker;
use super::common_time::{Search, Stop, latest, reach};
use crate::cluster::LEADER;
use crate::cut::{CutMessage, Stands};
use crate::payload::Payload;

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
