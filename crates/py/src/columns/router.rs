//! How rows find their worker: by the hash of their key columns, without the interpreter.

use arrow_array::RecordBatch;
use pointstamp_columnar::partition::partition;
use pointstamp_engine::error::UserResult;
use pointstamp_engine::pact::{Pact, Route};
use pointstamp_operators::Content;

use crate::batch::Batch;

/// An exchange by the columns of these numbers.
pub(crate) fn pact_by_columns(key: Vec<usize>) -> Pact<Batch> {
    Pact::exchange(ColumnRouter(key))
}

/// Routes rows by key columns, without the interpreter.
struct ColumnRouter(Vec<usize>);

impl Route<Batch> for ColumnRouter {
    fn route(&mut self, batch: Batch, parts: &mut [Vec<Batch>]) -> UserResult<()> {
        let peers = parts.len();
        let emit = |part: usize, rows| parts[part].push(Batch::Columns(rows));
        Ok(partition(
            &RecordBatch::from_batch(batch)?,
            &self.0,
            peers,
            emit,
        )?)
    }
}
