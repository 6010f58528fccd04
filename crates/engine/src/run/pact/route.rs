//! The function that splits batches over the workers.

use crate::error::UserResult;

/// Splits a batch over the workers.
///
/// A router sees whole batches, so that it can do its work once per batch (take the GIL once, hash a column at a
/// time). Nothing may be lost or invented: the parts together hold the records of the batch.
pub trait Route<P> {
    /// Appends the records of `batch` for worker `i` to `parts[i]`; `parts.len()` is the number of workers.
    ///
    /// # Errors
    ///
    /// Whatever the user's routing function raises; it stops the computation.
    fn route(&mut self, batch: P, parts: &mut [Vec<P>]) -> UserResult<()>;
}

impl<P, F: FnMut(P, &mut [Vec<P>]) -> UserResult<()>> Route<P> for F {
    fn route(&mut self, batch: P, parts: &mut [Vec<P>]) -> UserResult<()> {
        self(batch, parts)
    }
}
