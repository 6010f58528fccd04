//! How much an operator of collections does in one activation before others get their turn.
//!
//! Owns one number for the whole process. Operators read it when they are activated, so that what they do with it is the
//! same however small it is: tests set it to a few updates, to stop the work at every place where it can be stopped.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::updates::MAX_UPDATES;

/// How many updates an activation receives, and how many it looks at.
static FUEL: AtomicUsize = AtomicUsize::new(1 << 17);

/// The updates of one activation.
pub(crate) fn fuel() -> usize {
    FUEL.load(Ordering::Relaxed)
}

/// The updates of one instalment, which is one message, where an activation works on several.
pub(crate) fn instalment() -> usize {
    fuel().min(MAX_UPDATES)
}

/// The instalments of one activation.
pub(crate) fn instalments() -> usize {
    fuel().div_ceil(MAX_UPDATES)
}

/// Sets how many updates an activation works on, in all workers of the process, and returns what it was: for tests.
#[pyfunction]
pub(crate) fn set_collections_fuel(updates: usize) -> PyResult<usize> {
    if updates == 0 {
        return Err(PyValueError::new_err(
            "without fuel nothing is done: give 1 or more",
        ));
    }
    Ok(FUEL.swap(updates, Ordering::Relaxed))
}
