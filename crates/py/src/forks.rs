//! Processes that are forked while a computation runs, and come back into it.
//!
//! A forked process has a copy of the engine's memory, and none of the threads that work on it: its actions there
//! would repeat the parent's, or wait for a lock that is never released. Objects of a computation know in which
//! process it was begun, refuse to be used in another, and are not freed when they are dropped there. Where a
//! function of the program's returns into the engine in a forked process, that process reports it and ends, without a
//! destructor. Its own computations are as in any process.

use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The number of forks between the first process and this one.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// The error for the use of a computation in a process that was forked from its own.
pub(crate) const REFUSED: &str = "this process was forked while a computation ran, and has a copy of it that nothing works on: use its objects in \
                                  the process that began it alone, do the rest in other processes of the `spawn` kind, and end a forked one with os._exit()";

/// A process, for as long as it is not forked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(usize);

impl Process {
    /// This process. Forks are counted from the first call on.
    pub(crate) fn this() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the function adds to an atomic, and is there as long as the process. Without memory
            // for it, which is why it can fail, forks are not noticed.
            #[cfg(unix)]
            let _noted = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this is still it.
    pub(crate) fn is_this(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}

#[cfg(unix)]
unsafe extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Ends a forked process whose function has returned into the engine; with the exception that it has raised,
/// if there is one.
pub(crate) fn end(py: Python<'_>, raised: Option<&PyErr>) -> ! {
    let code = if let Some(error) = raised {
        let exit = error.is_instance_of::<pyo3::exceptions::PySystemExit>(py);
        let asked = error
            .value(py)
            .getattr("code")
            .and_then(|code| code.extract::<Option<i32>>());
        if let (true, Ok(code)) = (exit, asked) {
            code.unwrap_or(0)
        } else {
            error.print(py);
            1
        }
    } else {
        let said = py
            .import("pointstamp.observability.stalls")
            .and_then(|module| module.call_method1("say", (REFUSED,)));
        drop(said);
        1
    };
    for name in ["stdout", "stderr"] {
        let flushed = py.import("sys").and_then(|sys| {
            sys.getattr(name)?
                .call_method("flush", PyTuple::empty(py), None)
        });
        drop(flushed); // there may be no such stream
    }
    // SAFETY: it ends the process, and runs nothing of it.
    #[cfg(unix)]
    unsafe {
        libc::_exit(code)
    }
    #[cfg(not(unix))]
    std::process::exit(code)
}
