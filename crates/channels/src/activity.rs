//! What the workers of a process are doing, as far as they tell.

use std::sync::atomic::{AtomicU8, Ordering};

use crossbeam::utils::CachePadded;

use crate::Doorbell;

const OUTSIDE: u8 = 0;
const STEPPING: u8 = 1;
const PARKED: u8 = 2;

/// What each worker is doing.
pub(crate) struct Activity {
    doing: Vec<CachePadded<AtomicU8>>,
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

    /// Who reads this may have written something for the worker to see before: the order is total.
    fn set(&self, worker: usize, doing: u8) {
        self.doing[worker].store(doing, Ordering::SeqCst);
    }

    /// The worker begins a step.
    pub(crate) fn steps(&self, worker: usize) {
        self.set(worker, STEPPING);
    }

    /// The worker neither steps nor sleeps.
    pub(crate) fn outside(&self, worker: usize) {
        self.set(worker, OUTSIDE);
    }

    /// The worker goes to sleep.
    pub(crate) fn parks(&self, worker: usize) {
        self.set(worker, PARKED);
    }

    /// Whether the worker sleeps, and has not been rung.
    pub(crate) fn sleeps(&self, worker: usize) -> bool {
        self.doing[worker].load(Ordering::SeqCst) == PARKED && !self.doorbells[worker].has_rung()
    }

    /// Whether some worker is in a step.
    pub(crate) fn any_steps(&self) -> bool {
        let mut doing = self.doing.iter();
        doing.any(|doing| doing.load(Ordering::SeqCst) == STEPPING)
    }

    /// Wakes every worker.
    pub(crate) fn wake_all(&self) {
        self.doorbells.iter().for_each(Doorbell::wake);
    }
}
