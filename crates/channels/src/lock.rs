//! Mutexes that stay usable after a panic.

use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard};

/// Locks a mutex, also after a thread has panicked with it: a panic ends the computation, and ending it needs
/// the guarded state.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
