//! The activity of the workers of a process, as far as they report it.

use crossbeam::utils::CachePadded;

use crate::Doorbell;
use crate::sync::atomic::{AtomicU64, Ordering};

const OUTSIDE: u64 = 0;
const STEPPING: u64 = 1;
const PARKED: u64 = 2;
/// Each step adds this to a worker's word: the lowest bits hold its activity, the others the number of steps
/// that it has begun.
const STEP: u64 = 4;

/// The current activity of each worker.
pub(crate) struct Activity {
    doing: Vec<CachePadded<AtomicU64>>,
    doorbells: Vec<Doorbell>,
}

impl Activity {
    pub(crate) fn new(doorbells: Vec<Doorbell>) -> Self {
        Activity {
            doing: doorbells.iter().map(|_| CachePadded::default()).collect(),
            doorbells,
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.doing.len()
    }

    /// Sets the activity of a worker; only that worker calls it. A thread that reads the activity may have
    /// written something for the worker before: the order is total.
    fn set(&self, worker: usize, doing: u64, steps: u64) {
        let old = self.doing[worker].load(Ordering::Relaxed);
        let new = (old & !(STEP - 1)).wrapping_add(steps * STEP) | doing;
        self.doing[worker].store(new, Ordering::SeqCst);
    }

    /// The worker begins a step.
    pub(crate) fn steps(&self, worker: usize) {
        self.set(worker, STEPPING, 1);
    }

    /// The worker neither steps nor sleeps.
    pub(crate) fn outside(&self, worker: usize) {
        self.set(worker, OUTSIDE, 0);
    }

    /// The worker goes to sleep.
    pub(crate) fn parks(&self, worker: usize) {
        self.set(worker, PARKED, 0);
    }

    /// Whether the worker sleeps, and has not been rung.
    pub(crate) fn sleeps(&self, worker: usize) -> bool {
        self.doing[worker].load(Ordering::SeqCst) % STEP == PARKED
            && !self.doorbells[worker].has_rung()
    }

    /// Notes the activity of the workers, and returns whether one of them is still in the step that it was in
    /// at the last call.
    pub(crate) fn in_a_long_step(&self, last: &mut Vec<u64>) -> bool {
        last.resize(self.workers(), OUTSIDE);
        let mut long = false;
        for (last, doing) in last.iter_mut().zip(&self.doing) {
            let now = doing.load(Ordering::SeqCst);
            long |= now == *last && now % STEP == STEPPING;
            *last = now;
        }
        long
    }

    /// Wakes every worker.
    pub(crate) fn wake_all(&self) {
        self.doorbells.iter().for_each(Doorbell::wake);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::{Mailbox, Ring};

    #[test]
    fn a_step_is_long_that_is_still_the_same() {
        let mailboxes = [Mailbox::new(), Mailbox::new()];
        let activity = Activity::new(mailboxes.iter().map(Mailbox::doorbell).collect());
        let mut last = Vec::new();
        for _ in 0..3 {
            activity.steps(1);
            assert!(!activity.in_a_long_step(&mut last), "it has just begun");
            assert!(activity.in_a_long_step(&mut last));
            activity.outside(1);
            activity.steps(1);
            assert!(!activity.in_a_long_step(&mut last), "another one");
            activity.parks(1);
            assert!(activity.sleeps(1) && !activity.sleeps(0));
            assert!(!activity.in_a_long_step(&mut last));
            assert!(!activity.in_a_long_step(&mut last));
        }
        mailboxes[1].doorbell().ring(Ring::Activate(0));
        assert!(!activity.sleeps(1), "it has been rung");
    }
}
