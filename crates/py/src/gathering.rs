//! The interface of inputs and sessions, which gather records and send them later.

use pyo3::prelude::*;

/// Holds records until it is full, told to send, or its worker is about to step.
pub(crate) trait Gathering {
    /// Sends what it holds. A worker that calls this has taken it off its list.
    fn flush_listed(&self, py: Python<'_>) -> PyResult<()>;

    /// Whether it can send nothing now, because what it sent before is being routed.
    fn is_busy(&self) -> bool;

    /// Whether it holds something.
    fn has_unsent(&self, py: Python<'_>) -> bool;

    /// The name of an input that has not come to where it stood at the checkpoint.
    fn repeated(&self) -> Option<String> {
        None
    }

    /// Gives up what it holds: the worker has ended.
    fn discard(&self);
}
