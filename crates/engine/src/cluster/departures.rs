//! The processes of a cluster that have left.

use std::ops::Range;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// The time that a process stays after a failure for the others to leave: during it they can receive the
/// failure from the process itself.
const GRACE: Duration = Duration::from_secs(1);

/// The processes that have left, and whether it makes sense to wait for the rest.
pub(crate) struct Departures {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    left: Vec<bool>,
    failed: Option<Instant>,
}

impl Departures {
    /// None has left, out of so many; `process` does not wait for itself.
    pub(crate) fn new(process: usize, processes: usize) -> Self {
        let mut left = vec![false; processes];
        left[process] = true;
        Departures {
            state: Mutex::new(State { left, failed: None }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Notes that a process has left, or is lost.
    pub(crate) fn left(&self, process: usize) {
        self.state().left[process] = true;
        self.changed.notify_all();
    }

    /// Notes that the computation has failed.
    pub(crate) fn failed(&self) {
        self.state().failed.get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    /// Waits until all have left, or for a moment after a failure, but not longer than until `deadline`. Whether it is
    /// over.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> bool {
        let all = 0..self.state().left.len();
        self.wait_for(all, deadline)
    }

    /// Waits as [`wait`](Self::wait) does, for some processes.
    pub(crate) fn wait_for(&self, processes: Range<usize>, deadline: Option<Instant>) -> bool {
        let mut state = self.state();
        loop {
            if !state.left[processes.clone()].contains(&false) {
                return true;
            }
            let now = Instant::now();
            let end = state.failed.map(|failed| failed + GRACE);
            if end.is_some_and(|end| end <= now) {
                return true;
            }
            if deadline.is_some_and(|deadline| deadline <= now) {
                return false;
            }
            if let Some(until) = [end, deadline].into_iter().flatten().min() {
                self.changed.wait_until(&mut state, until);
            } else {
                self.changed.wait(&mut state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_when_all_have_left_or_a_failure_is_old() {
        let departures = Departures::new(1, 3);
        let soon = || Some(Instant::now() + Duration::from_millis(1));
        departures.left(0);
        assert!(!departures.wait(soon()));
        std::thread::scope(|scope| {
            scope.spawn(|| departures.left(2));
            assert!(departures.wait(None));
        });
        let departures = Departures::new(0, 2);
        departures.failed();
        assert!(!departures.wait(soon()));
        assert!(departures.wait(None), "no process waits for ever");
        assert!(Departures::new(0, 1).wait(None));
        let departures = Departures::new(0, 4);
        departures.left(1);
        assert!(departures.wait_for(1..2, None));
        assert!(!departures.wait_for(1..3, soon()));
    }
}
