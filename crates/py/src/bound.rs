//! Engine objects inside Python objects.
//!
//! The engine is single-threaded per worker: its objects are reference-counted without atomics and must be
//! touched by their worker's thread alone. Python objects may be dropped on any thread (the cyclic collector
//! runs wherever it is triggered), and a program may carry them to another one. [`ThreadBound`] is the one
//! bridge: it gives access on the home thread only, and an object that dies elsewhere is left at its home, whose
//! worker drops it. Once the worker has ended, nothing runs there any more, and whoever holds the GIL has
//! the object to himself.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use pointstamp_engine::cluster::Cluster;
use pyo3::prelude::*;

use crate::errors::PointstampError;

/// Where a worker's objects live.
pub(crate) struct Home {
    thread: usize,
    worker: usize,
    cluster: Arc<Cluster>,
    ended: AtomicBool,
    orphans: Mutex<Vec<Orphan>>,
}

struct Orphan(#[allow(dead_code, reason = "held to be dropped")] Box<dyn Any>);

// SAFETY: an orphan is put here by a thread that does not touch it any more, and taken out and dropped by its home
// thread, or, once the worker has ended, by a thread that holds the GIL.
unsafe impl Send for Orphan {}

/// A number that differs between the threads that are alive.
fn this_thread() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

impl Home {
    /// Makes this thread the home of a worker's objects.
    pub(crate) fn here(cluster: &Arc<Cluster>, worker: usize) -> Arc<Home> {
        let (ended, orphans) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Home {
            thread: this_thread(),
            worker,
            cluster: Arc::clone(cluster),
            ended,
            orphans,
        })
    }

    /// The worker's number.
    pub(crate) fn worker(&self) -> usize {
        self.worker
    }

    fn is_open(&self) -> bool {
        self.thread == this_thread() || self.ended.load(Ordering::Acquire)
    }

    /// Drops what died elsewhere. Call it on the home thread, attached.
    pub(crate) fn bury(&self, _py: Python<'_>) {
        let orphans =
            std::mem::take(&mut *self.orphans.lock().unwrap_or_else(PoisonError::into_inner));
        drop(orphans); // after the lock: dropping may run user code
    }

    /// Says that the worker has ended. Call it on the home thread, attached: every other access holds the GIL, so
    /// that it sees either a running worker or one that no longer touches anything.
    pub(crate) fn end(&self, py: Python<'_>) {
        self.ended.store(true, Ordering::Release);
        self.bury(py);
    }
}

/// An engine object that only its worker's thread may touch.
pub(crate) struct ThreadBound<T: 'static> {
    value: ManuallyDrop<T>,
    home: Arc<Home>,
}

// SAFETY: `get` hands out the value on its home thread, or after the worker has ended, when nothing else touches what it
// refers to and the caller holds the GIL (it lives in a Python object, and is reached through one). `drop`
// keeps to the same rule and hands the value to the home thread otherwise.
unsafe impl<T> Send for ThreadBound<T> {}
// SAFETY: as above; a shared reference gives no other access than `get`.
unsafe impl<T> Sync for ThreadBound<T> {}

impl<T> ThreadBound<T> {
    /// Binds a value to the home of the worker that made it.
    pub(crate) fn new(home: &Arc<Home>, value: T) -> Self {
        ThreadBound {
            value: ManuallyDrop::new(value),
            home: Arc::clone(home),
        }
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// `PointstampError` on another thread than the worker's, while the worker runs.
    pub(crate) fn get(&self) -> PyResult<&T> {
        if self.home.is_open() {
            Ok(&self.value)
        } else {
            Err(PointstampError::new_err(format!(
                "this object belongs to worker {}, which runs on another thread: only an Activator, a ProbeHandle and a \
                 Capture may be used from any thread",
                self.home.worker
            )))
        }
    }

    /// The home of the value, for others that are made from it.
    pub(crate) fn home(&self) -> &Arc<Home> {
        &self.home
    }
}

impl<T> Drop for ThreadBound<T> {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and nothing uses the value after it was taken here.
        let value = unsafe { ManuallyDrop::take(&mut self.value) };
        if self.home.is_open() {
            drop(value);
        } else {
            let mut orphans = self
                .home
                .orphans
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            orphans.push(Orphan(Box::new(value)));
            drop(orphans);
            // It may be a capability that everybody waits for, and the worker asleep.
            self.home.cluster.wake_worker(self.home.worker);
        }
    }
}
