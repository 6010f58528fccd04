//! The threads that run the user's code, one for each worker of this process, and how they are interrupted.

use parking_lot::{Mutex, MutexGuard};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::errors::WorkerStopped;

/// For each worker of a process that is running Python code of the user's, its thread.
pub(crate) struct Threads(pub(crate) Mutex<Vec<Option<Running>>>);

impl Threads {
    pub(crate) fn all(&self) -> MutexGuard<'_, Vec<Option<Running>>> {
        self.0.lock()
    }

    pub(crate) fn len(&self) -> usize {
        self.all().len()
    }

    /// Sets the thread that runs a worker's code; returns the previous one.
    pub(crate) fn note(&self, index: usize, now: Option<Running>) -> Option<Running> {
        std::mem::replace(&mut self.all()[index], now)
    }

    /// Returns the threads that run, and marks them as interrupted.
    pub(crate) fn interrupted(&self) -> Vec<std::ffi::c_ulong> {
        let mut all = self.all();
        let running = all.iter_mut().flatten();
        running
            .map(|running| {
                running.interrupted = true;
                running.thread
            })
            .collect()
    }
}

/// A thread that runs the user's code, and may be interrupted.
pub(crate) struct Running {
    pub(crate) thread: std::ffi::c_ulong,
    pub(crate) interrupted: bool,
}

impl Running {
    pub(crate) fn new(thread: std::ffi::c_ulong) -> Self {
        Running {
            thread,
            interrupted: false,
        }
    }
}

/// Lets an interruption of this thread, which came too late to stop anything, strike here and nowhere else.
///
/// It has to be raised: the interpreter marks all threads as having something to look after when an exception is sent, and
/// takes the mark away when one is raised, not when it is withdrawn. A mark that stays slows all Python code down,
/// and under a debugger, or anything that traces, CPython 3.11 never gets past it.
pub(crate) fn absorb_interruption(py: Python<'_>, thread: std::ffi::c_ulong) {
    let exception = py.get_type::<WorkerStopped>();
    // Sent once more, so that there is one to raise, whether or not the other has struck.
    // SAFETY: attached, with a live exception type, and `thread` is this one.
    let sent = unsafe { ffi::PyThreadState_SetAsyncExc(thread.cast_signed(), exception.as_ptr()) };
    if sent == 1 {
        let _raised = py.run(c"while True: pass", None, None);
    }
}
