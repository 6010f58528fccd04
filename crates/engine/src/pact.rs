//! Parallelization contracts: how records reach the worker that should see them.

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

/// How an edge moves records between workers.
pub enum Pact<P> {
    /// Records stay on their worker.
    Pipeline,
    /// Each record goes to the worker that the router says.
    Exchange(Box<dyn Route<P>>),
    /// Each record goes to every worker.
    Broadcast,
}

impl<P> Pact<P> {
    /// An exchange by a router.
    pub fn exchange(router: impl Route<P> + 'static) -> Self {
        Pact::Exchange(Box::new(router))
    }

    /// The contract's name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Pact::Pipeline => "pipeline",
            Pact::Exchange(_) => "exchange",
            Pact::Broadcast => "broadcast",
        }
    }
}
