//! Mutexes that stay usable after a panic.

use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard};

/// What a mutex guards, also after a thread has panicked with it: a panic ends the computation, and what ends it needs this still.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
