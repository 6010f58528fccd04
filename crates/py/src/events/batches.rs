//! The batches of a message of a feed, which are decoded without its lock.

use bytes::Bytes;
use pointstamp_engine::payload::Payload;
use pointstamp_events::{Contents, Run};
use pointstamp_order::Point;
use pyo3::prelude::*;

use super::body;
use super::feed::Shared;
use crate::batch::Batch;
use crate::errors::CodecError;
use crate::gil::attached;

impl Shared {
    /// The batches of a message.
    pub(super) fn batches(
        &self,
        offset: u64,
        contents: Contents,
        runs: Vec<Run>,
        bytes: Bytes,
    ) -> PyResult<Vec<(Point, Batch)>> {
        let batch = body::batch(contents, bytes).map_err(|error| {
            attached(|py| {
                if error.is_instance_of::<CodecError>(py) {
                    self.damaged(offset, &error.value(py).to_string())
                } else {
                    error // what a record's own class raised
                }
            })
        })?;
        let records: u64 = runs.iter().map(|run| run.records).sum();
        if records != batch.len() as u64 {
            let what = format!("a message of {records} records has {}", batch.len());
            return Err(self.damaged(offset, &what));
        }
        let schema = self.state().schema.clone();
        if let (Batch::Columns(columns), Some(schema)) = (&batch, schema) {
            // As a file of one stream has it; the batches of another are not let in under its schema.
            if columns.schema() != schema {
                return Err(self.damaged(offset, "a batch of another schema than the capture's"));
            }
        }
        body::by_time(runs, batch)
    }
}
