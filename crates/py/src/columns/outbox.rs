//! What an operator sends in one activation, merged where it is tiny and sliced where it is large.

use arrow_array::RecordBatch;
use pointstamp_columnar::pieces::Merger;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::port::{Authority, MessageCapability};
use pointstamp_operators::Output;
use pointstamp_order::Point;

/// Batches on their way to an output. It holds nothing back when the activation ends: call [`flush`](Outbox::flush).
pub(crate) struct Outbox {
    port: usize,
    capability: Option<Capability>,
    merger: Merger,
}

impl Outbox {
    /// For the output of this number.
    pub(crate) fn new(port: usize) -> Self {
        Outbox {
            port,
            capability: None,
            merger: Merger::new(),
        }
    }

    /// Sends a batch at the time of a message.
    pub(crate) fn give(
        &mut self,
        message: &MessageCapability,
        output: &Output<RecordBatch>,
        batch: RecordBatch,
    ) -> Result<(), BoxError> {
        self.give_at(message.time(), message, output, batch)
    }

    /// Sends a batch at a time that a message's capability allows.
    pub(crate) fn give_at(
        &mut self,
        time: &Point,
        message: &MessageCapability,
        output: &Output<RecordBatch>,
        batch: RecordBatch,
    ) -> Result<(), BoxError> {
        if self
            .capability
            .as_ref()
            .is_none_or(|held| held.time() != time)
        {
            self.flush(output)?;
            self.capability = Some(message.delayed(time, self.port)?);
        }
        let Some(capability) = &self.capability else {
            return Ok(());
        };
        self.merger
            .push(batch, |batch| send(output, capability, batch))
    }

    /// Sends what waits.
    pub(crate) fn flush(&mut self, output: &Output<RecordBatch>) -> Result<(), BoxError> {
        let Some(capability) = self.capability.take() else {
            return Ok(());
        };
        self.merger.flush(|batch| send(output, &capability, batch))
    }
}

pub(crate) fn send(
    output: &Output<RecordBatch>,
    authority: &impl Authority,
    batch: RecordBatch,
) -> Result<(), BoxError> {
    output.send(authority, batch)
}
