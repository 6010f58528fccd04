//! A batch of an arrangement as a message carries it, whatever the type of its times.

use std::any::Any;
use std::sync::Arc;

use pointstamp_arrange::Sealed;

use super::time::ScopeTime;
use pointstamp_rows::Cells;

/// A batch of an arrangement on its way to those who read the arrangement, on this worker.
#[derive(Clone)]
pub(crate) struct SealedBatch {
    batch: Arc<dyn Any + Send + Sync>,
    /// How many updates it has.
    pub(crate) len: usize,
}

impl SealedBatch {
    pub(crate) fn new<T: ScopeTime>(sealed: Sealed<Cells, Cells, T>) -> Self {
        let len = sealed.batch.len();
        SealedBatch {
            batch: Arc::new(sealed),
            len,
        }
    }

    /// The batch, in a scope with such times.
    pub(crate) fn get<T: ScopeTime>(&self) -> Sealed<Cells, Cells, T> {
        let sealed = self.batch.downcast_ref::<Sealed<Cells, Cells, T>>();
        sealed.expect("the times of a scope have one type").clone()
    }
}
