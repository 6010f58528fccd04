//! The one place where threads attach to and detach from the interpreter.
//!
//! A worker's thread is attached while it runs the user's `main`, detached while it steps, and attaches again for
//! each activation of an operator that calls Python, for the whole batch at once. Nothing holds a Rust lock while it
//! attaches. Python objects inside the engine are in a [`Held`], which attaches to release them, on any thread.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::forks::{self, Process};

/// Runs Rust without the interpreter, so that other threads may use it.
pub(crate) fn detached<T: Send>(py: Python<'_>, run: impl FnOnce() -> T + Send) -> T {
    py.detach(run)
}

/// The time for which a loop that calls no Python code keeps the interpreter from other threads.
const KEPT: Duration = Duration::from_millis(20);

/// The time for which it leaves the interpreter to them: long enough for a waiting thread to wake up.
const LEFT: Duration = Duration::from_micros(100);

/// Leaves the interpreter to other threads for a moment, if this thread has not done so for a while.
///
/// For loops over an iterable that may be C code, such as `itertools.repeat`. To detach around a short call is not enough: the
/// interpreter is taken back before a thread that waits for it is awake, and as the wait was answered, that thread does not ask
/// for a switch, either, as it would after waiting for `sys.getswitchinterval()`.
pub(crate) fn give_way(py: Python<'_>) {
    thread_local!(static SINCE: Cell<Option<Instant>> = const { Cell::new(None) });
    let now = Instant::now();
    match SINCE.get() {
        Some(since) if now.duration_since(since) < KEPT => {}
        // A stretch that begins here has left the interpreter before.
        None => SINCE.set(Some(now)),
        Some(_) => {
            py.detach(|| thread::sleep(LEFT));
            SINCE.set(Some(Instant::now()));
        }
    }
}

/// Runs the engine of this thread's worker without the interpreter.
pub(crate) fn detached_here(py: Python<'_>, run: &mut dyn FnMut()) {
    struct Here<'a>(&'a mut dyn FnMut());
    // SAFETY: `detach` calls the function on this thread. That it must be `Send` keeps it from touching Python objects, and the
    // engine touches those that it holds only when attached again: they are in a `Held`, or in a `ThreadBound`'s Python object.
    unsafe impl Send for Here<'_> {}
    let here = Here(run);
    py.detach(move || {
        let here = here;
        (here.0)();
    });
}

/// Runs Python from inside the engine.
pub(crate) fn attached<R>(run: impl FnOnce(Python<'_>) -> R) -> R {
    let process = Process::this();
    Python::attach(|py| {
        let result = run(py);
        if !process.is_this() {
            forks::end(py, None);
        }
        result
    })
}

/// A Python object that the engine holds and may release on a detached thread.
pub(crate) struct Held<T = PyAny>(Option<Py<T>>);

impl<T> Held<T> {
    pub(crate) fn new(object: Py<T>) -> Self {
        Held(Some(object))
    }

    /// The object.
    pub(crate) fn get(&self) -> &Py<T> {
        self.0
            .as_ref()
            .expect("an object is held until it is taken")
    }

    /// Returns the object, which is no longer held here.
    pub(crate) fn take(mut self) -> Py<T> {
        self.0.take().expect("an object is held until it is taken")
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            let mut object = Some(object);
            // Where the interpreter has ended, the object's heap has, too: leaving the object is right.
            if Python::try_attach(|_| drop(object.take())).is_none() {
                std::mem::forget(object);
            }
        }
    }
}
