//! The extension module `pointstamp._core`: everything of `pointstamp` that runs in Rust, as Python
//! sees it.
//!
//! Owns nothing itself: each concept has a file, named for it, and this one lists what is public.
//! `python/pointstamp/_core.pyi` states the same list with types; `make lint` compares the two.
//! Importing the module starts no thread and opens no file.

#![allow(
    clippy::doc_markdown,
    reason = "docstrings of Python names are written for Python's readers"
)]

mod errors;
mod hash;
mod order;
mod progress;
mod time;

/// The compiled half of the package; its names are re-exported by `pointstamp` and its modules.
#[pyo3::pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::hash::stable_hash;

    // pointstamp.order
    #[pymodule_export]
    use crate::order::{Antichain, MutableAntichain, followed_by, less_equal, results_in};

    // pointstamp.progress
    #[pymodule_export]
    use crate::progress::{Graph, Scheduler, Tracker};

    // The engine: workers, scopes, streams, and what an operator touches when it runs.
}
