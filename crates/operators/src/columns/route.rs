//! Exchanges by the hash of key columns.

use arrow_array::RecordBatch;
use pointstamp_columnar::partition::{partition, partition_by_group};
use pointstamp_engine::error::UserResult;
use pointstamp_engine::pact::{Pact, Route};

use crate::batch::{Batch, Content};

/// Returns an exchange by the columns of these numbers.
pub fn by_columns(key: &[usize]) -> Pact<Batch> {
    routed(key, false)
}

/// Returns the pact of an operator with state by key: an exchange, or none where each key's rows are on one worker already.
pub fn placed(key: &[usize], in_place: bool) -> Pact<Batch> {
    if in_place {
        Pact::Pipeline
    } else {
        by_columns(key)
    }
}

/// Returns an exchange by the key groups of the columns of these numbers.
pub fn by_groups_of_columns(key: &[usize]) -> Pact<Batch> {
    routed(key, true)
}

fn routed(key: &[usize], by_group: bool) -> Pact<Batch> {
    let key = key.to_vec();
    Pact::exchange(ColumnRouter { key, by_group })
}

struct ColumnRouter {
    key: Vec<usize>,
    by_group: bool,
}

impl Route<Batch> for ColumnRouter {
    fn route(&mut self, batch: Batch, parts: &mut [Vec<Batch>]) -> UserResult<()> {
        let rows = RecordBatch::from_batch(batch)?;
        let peers = parts.len();
        let emit = |part: usize, rows: RecordBatch| parts[part].push(rows.into_batch());
        if self.by_group {
            partition_by_group(&rows, &self.key, peers, emit)?;
        } else {
            partition(&rows, &self.key, peers, emit)?;
        }
        Ok(())
    }
}
