//! Asking a worker of this process for its state, from any thread.
//!
//! A thread that asks leaves a request and wakes the worker; the worker answers between two steps, when the engine is
//! in a consistent state, with its state at that moment. A worker that runs the program's own code answers when that
//! lets it step again, so that the asking thread has a time limit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard};
use pyo3::prelude::*;

/// The requests and answers of one worker.
#[derive(Default)]
pub(crate) struct Inquiry {
    /// Whether a thread waits; looked at before each step.
    wanted: AtomicBool,
    answers: Mutex<Answers>,
    answered: Condvar,
}

#[derive(Default)]
struct Answers {
    /// The number of requests, and the number of the last request that is answered.
    asked: u64,
    given: u64,
    last: Option<Py<PyAny>>,
    /// Whether no more answers come.
    ended: bool,
}

/// The state of a request.
pub(crate) enum Answer {
    Given(Py<PyAny>),
    /// The worker has ended.
    Ended,
    /// It has not answered in time.
    None,
}

impl Inquiry {
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock()
    }

    /// Leaves a request; its number. The worker has to be woken afterwards.
    pub(crate) fn ask(&self) -> u64 {
        let mut answers = self.answers();
        answers.asked += 1;
        self.wanted.store(true, Ordering::Release);
        answers.asked
    }

    /// Whether a thread waits for an answer.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    /// Answers all waiting requests.
    pub(crate) fn answer(&self, look: impl FnOnce() -> Option<Py<PyAny>>) {
        let asked = {
            let answers = self.answers();
            self.wanted.store(false, Ordering::Release);
            answers.asked
        };
        let look = look(); // without the lock: it runs Python code
        let mut answers = self.answers();
        let before = std::mem::replace(&mut answers.last, look);
        answers.given = asked;
        drop(answers);
        drop(before);
        self.answered.notify_all();
    }

    /// Declares that no more answers come.
    pub(crate) fn end(&self) {
        let mut answers = self.answers();
        answers.ended = true;
        let last = answers.last.take();
        drop(answers);
        drop(last);
        self.answered.notify_all();
    }

    /// Waits for the answer to a request; call it detached.
    pub(crate) fn wait(&self, request: u64, deadline: Instant) {
        let mut answers = self.answers();
        while answers.given < request && !answers.ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.answered.wait_for(&mut answers, left);
        }
    }

    /// Returns the state of a request.
    pub(crate) fn take(&self, py: Python<'_>, request: u64) -> Answer {
        let answers = self.answers();
        match &answers.last {
            Some(last) if answers.given >= request => Answer::Given(last.clone_ref(py)),
            _ if answers.ended => Answer::Ended,
            _ => Answer::None,
        }
    }
}
