//! The inboxes of workers for messages of a cut.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::cut::CutMessage;

/// The messages that wait for the workers of a process, by the worker's number in it, each with its sender.
pub(super) struct CutInboxes(Vec<Inbox>);

#[derive(Default)]
struct Inbox {
    /// Looked at in every step, so that a step without messages takes no lock.
    some: AtomicBool,
    messages: Mutex<VecDeque<(usize, CutMessage)>>,
}

impl CutInboxes {
    pub(super) fn new(workers: usize) -> Self {
        CutInboxes((0..workers).map(|_| Inbox::default()).collect())
    }

    pub(super) fn put(&self, worker: usize, from: usize, message: CutMessage) {
        let inbox = &self.0[worker];
        inbox.messages.lock().push_back((from, message));
        inbox.some.store(true, Ordering::Release);
    }

    #[inline]
    pub(super) fn are_some(&self, worker: usize) -> bool {
        self.0[worker].some.load(Ordering::Acquire)
    }

    pub(super) fn next(&self, worker: usize) -> Option<(usize, CutMessage)> {
        let inbox = &self.0[worker];
        let mut messages = inbox.messages.lock();
        let next = messages.pop_front();
        inbox.some.store(!messages.is_empty(), Ordering::Release);
        next
    }
}
