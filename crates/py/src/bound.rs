//! Engine objects inside Python objects.
//!
//! The engine is single-threaded per worker: its objects are reference-counted without atomics and must be touched by
//! their worker's thread alone. Python objects may be dropped on any thread (the cyclic collector runs wherever it is
//! triggered), and a program may pass them to another one, or into a forked process. [`ThreadBound`] is the one
//! bridge: it gives access on the home thread, while the worker runs, and nowhere else; whether the caller is
//! attached to the interpreter does not matter. An object that is dropped elsewhere is left at its home, whose worker
//! frees it.
//!
//! Once the worker has ended there is no access any more. Remaining objects are only freed, by one thread at a time:
//! the first one frees for all, and a thread that leaves an object meanwhile passes it on under the lock.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use pointstamp_engine::cluster::Cluster;
use pointstamp_engine::error::Error;
use pointstamp_engine::observe::Latest;
use pointstamp_operators::activity::Recorder;
use pyo3::prelude::*;

use crate::errors::{GraphError, PointstampError};
use crate::forks::{Process, REFUSED};
use crate::gil::attached;
use crate::observability::frames::Line;
use crate::observability::inquiry::Inquiry;
use crate::observability::naming::Naming;
use crate::observability::notes::Notes;

/// The worker that owns objects.
pub(crate) struct Home {
    process: Process,
    thread: usize,
    worker: usize,
    cluster: Arc<Cluster>,
    /// Set by the home thread; it reads its own word.
    ended: AtomicBool,
    left: Mutex<Left>,
    notes: Notes,
    naming: Naming,
    inquiry: Inquiry,
    latest: OnceLock<Latest>,
    recorder: OnceLock<Arc<Recorder>>,
    /// Whether the program asked for its turn, from another thread.
    called: AtomicBool,
}

/// Objects that were dropped on another thread, to be freed on their worker's.
#[derive(Default)]
struct Left {
    orphans: Vec<Orphan>,
    ended: bool,
    /// Whether a thread is dropping orphans after the end.
    burying: bool,
}

struct Orphan(#[allow(dead_code, reason = "held to be dropped")] Box<dyn Any>);

// SAFETY: an orphan is put here by a thread that does not touch it any more, and taken out and dropped by its home
// thread while the worker runs. Once it has ended, no thread but the one that has set `burying`, under the lock, touches
// anything of the worker's, and it is unset under the lock, too.
unsafe impl Send for Orphan {}

/// A number that differs between living threads.
fn this_thread() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

impl Home {
    /// Makes this thread the home of a worker's objects.
    pub(crate) fn here(cluster: &Arc<Cluster>, worker: usize) -> Arc<Home> {
        let (ended, left) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Home {
            process: Process::this(),
            thread: this_thread(),
            worker,
            cluster: Arc::clone(cluster),
            ended,
            left,
            notes: Notes::new(),
            naming: Naming::default(),
            inquiry: Inquiry::default(),
            latest: OnceLock::new(),
            recorder: OnceLock::new(),
            called: AtomicBool::new(false),
        })
    }

    /// The worker's number.
    pub(crate) fn worker(&self) -> usize {
        self.worker
    }

    /// The notes of the worker.
    pub(crate) fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The names that the operators get which the program makes now.
    pub(crate) fn naming(&self) -> &Naming {
        &self.naming
    }

    /// The line of the program that makes objects now: the line of the node that is being lowered, or else
    /// the running one.
    pub(crate) fn line(&self) -> Line {
        let node = self.naming.line();
        node.unwrap_or_else(|| attached(|py| self.notes.line(py)))
    }

    /// The inquiry by which any thread asks for the worker's state.
    pub(crate) fn inquiry(&self) -> &Inquiry {
        &self.inquiry
    }

    /// The engine's handle to the operator that runs, once the worker has begun.
    pub(crate) fn latest(&self) -> &OnceLock<Latest> {
        &self.latest
    }

    /// The name of the operator that has begun to run last, if it is known.
    pub(crate) fn at_work(&self) -> Option<String> {
        let noted = self.notes.operator(self.latest.get()?.operator())?;
        noted.name().map(str::to_owned)
    }

    /// The recorder of the worker, once there is one.
    pub(crate) fn recorder(&self) -> &OnceLock<Arc<Recorder>> {
        &self.recorder
    }

    /// Gives the program its turn, if the worker sleeps between two steps.
    pub(crate) fn call(&self) {
        self.called.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether the program is to have its turn; answered once.
    pub(crate) fn is_called(&self) -> bool {
        self.called.swap(false, Ordering::AcqRel)
    }

    /// Wakes the worker, if it sleeps.
    pub(crate) fn wake(&self) {
        self.cluster.wake_worker(self.worker);
    }

    /// Whether the worker has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn is_here(&self) -> bool {
        self.thread == this_thread() && !self.has_ended() && self.process.is_this()
    }

    /// The process that the worker runs in.
    pub(crate) fn process(&self) -> Process {
        self.process
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock()
    }

    /// Frees objects that were dropped on other threads, where this is the home thread.
    pub(crate) fn drop_orphans(&self, _py: Python<'_>) {
        if self.is_here() {
            let orphans = std::mem::take(&mut self.left().orphans);
            drop(orphans); // after the lock: dropping may run user code
        }
    }

    /// Says that the worker has ended. Call it on the home thread, attached, when it holds nothing of the worker's any more.
    pub(crate) fn end(&self, _py: Python<'_>) {
        self.ended.store(true, Ordering::Release);
        self.left().ended = true;
        self.notes.clear();
        self.drop_orphans_after_the_end();
    }

    /// Takes an object that was dropped on another thread, or after the end.
    fn take_in(&self, orphan: Orphan) {
        let mut left = self.left();
        left.orphans.push(orphan);
        let ended = left.ended;
        drop(left);
        if ended {
            self.drop_orphans_after_the_end();
        } else {
            // It may be a capability that all workers wait for, and the worker asleep.
            self.cluster.wake_worker(self.worker);
        }
    }

    fn drop_orphans_after_the_end(&self) {
        let mut left = self.left();
        if std::mem::replace(&mut left.burying, true) {
            return; // another thread is at it, and will find this, too
        }
        while !left.orphans.is_empty() {
            let orphans = std::mem::take(&mut left.orphans);
            drop(left);
            drop(orphans); // without the lock: dropping may run user code, and leave more
            left = self.left();
        }
        left.burying = false;
    }
}

/// An engine object that only its worker's thread may touch.
pub(crate) struct ThreadBound<T: 'static> {
    value: ManuallyDrop<T>,
    home: Arc<Home>,
}

// SAFETY: `get` gives access to the value on its home thread while the worker runs, and nowhere else. `drop` keeps to
// the same rule and passes the value to its home otherwise.
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
    /// `PointstampError` on another thread than the worker's, and when the worker has ended.
    pub(crate) fn get(&self) -> PyResult<&T> {
        if self.home.is_here() {
            return Ok(&self.value);
        }
        let worker = self.home.worker;
        if !self.home.process.is_this() {
            return Err(PointstampError::new_err(REFUSED));
        }
        Err(PointstampError::new_err(if self.home.has_ended() {
            Error::Ended { worker }.to_string()
        } else {
            format!(
                "this object belongs to worker {worker}, which runs on another thread: only an Activator, a ProbeHandle and a \
                 Capture may be used from any thread"
            )
        }))
    }

    /// The value, to build with.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); when the worker has ended, a `GraphError`.
    pub(crate) fn get_to_build(&self) -> PyResult<&T> {
        if self.home.has_ended() {
            let worker = self.home.worker;
            return Err(GraphError::new_err(Error::Ended { worker }.to_string()));
        }
        self.get()
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
        if self.home.is_here() {
            drop(value);
        } else if !self.home.process.is_this() {
            std::mem::forget(value); // a copy, whose locks may be held for ever
        } else {
            self.home.take_in(Orphan(Box::new(value)));
        }
    }
}
