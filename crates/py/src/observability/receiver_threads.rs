//! The threads that receive the messages of other processes, and their end.
//!
//! Each runs Python code. A thread that still runs while the interpreter is shut down would end the whole process, so
//! a computation waits for its last before it is over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// The maximum time that a computation waits for these threads. They wait for workers, which have ended, and
/// for the interpreter.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of threads of one computation that call a listener.
#[derive(Default)]
pub(crate) struct ReceiverThreads {
    count: Mutex<usize>,
    over: Condvar,
}

/// One of them, until it is dropped.
pub(crate) struct ReceiverThread(Arc<ReceiverThreads>);

impl ReceiverThreads {
    fn count(&self) -> MutexGuard<'_, usize> {
        self.count.lock()
    }

    /// One more is about to begin.
    pub(crate) fn begin(this: &Arc<Self>) -> ReceiverThread {
        *this.count() += 1;
        ReceiverThread(Arc::clone(this))
    }

    /// Waits until there is none; call it detached.
    pub(crate) fn wait(&self) {
        let end = Instant::now() + PATIENCE;
        let mut count = self.count();
        while *count > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.over.wait_for(&mut count, left);
        }
    }
}

impl Drop for ReceiverThread {
    fn drop(&mut self) {
        *self.0.count() -= 1;
        self.0.over.notify_all();
    }
}
