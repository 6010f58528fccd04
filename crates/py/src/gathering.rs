//! The interface of inputs and sessions, which gather records and send them later.

use pyo3::prelude::*;

/// Buffers records until it is full, flushed, or its worker is about to step.
pub(crate) trait Gathering {
    /// Sends the buffered records. A worker that calls this has removed it from its list.
    fn flush_listed(&self, py: Python<'_>) -> PyResult<()>;

    /// Whether it can send nothing now, because earlier records are being routed.
    fn is_busy(&self) -> bool;

    /// Whether it holds something.
    fn has_unsent(&self, py: Python<'_>) -> bool;

    /// The name of an input that has not come to where it stood at the checkpoint.
    fn repeated(&self) -> Option<String> {
        None
    }

    /// Drops the buffered records: the worker has ended.
    fn discard(&self);
}
