//! The words that wait for the workers of a process.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::cut::Word;

/// The words that wait for the workers of a process, by the worker's number in it, each with its sender.
pub(super) struct Words(Vec<Inbox>);

#[derive(Default)]
struct Inbox {
    /// Looked at in every step, so that a step without words takes no lock.
    some: AtomicBool,
    words: Mutex<VecDeque<(usize, Word)>>,
}

impl Words {
    pub(super) fn new(workers: usize) -> Self {
        Words((0..workers).map(|_| Inbox::default()).collect())
    }

    pub(super) fn put(&self, worker: usize, from: usize, word: Word) {
        let inbox = &self.0[worker];
        inbox.words.lock().push_back((from, word));
        inbox.some.store(true, Ordering::Release);
    }

    #[inline]
    pub(super) fn are_some(&self, worker: usize) -> bool {
        self.0[worker].some.load(Ordering::Acquire)
    }

    pub(super) fn next(&self, worker: usize) -> Option<(usize, Word)> {
        let inbox = &self.0[worker];
        let mut words = inbox.words.lock();
        let next = words.pop_front();
        inbox.some.store(!words.is_empty(), Ordering::Release);
        next
    }
}
