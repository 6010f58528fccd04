//! Batches of one activation on their way to an output: tiny ones merged, large ones sliced.

use arrow_array::RecordBatch;
use pointstamp_columnar::pieces::Merger;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::port::MessageCapability;
use pointstamp_order::Point;

use crate::typed::Output;

/// Batches on their way to an output. It holds nothing when an activation ends: call [`flush`](Outbox::flush).
#[derive(Debug)]
pub struct Outbox {
    port: usize,
    capability: Option<Capability>,
    merger: Merger,
}

impl Outbox {
    /// Makes an empty outbox for the output of this number.
    pub fn new(port: usize) -> Self {
        Outbox {
            port,
            capability: None,
            merger: Merger::new(),
        }
    }

    /// Sends a batch at the time of a message.
    ///
    /// # Errors
    ///
    /// An error of a kernel; errors of [`Output::send`].
    pub fn give(
        &mut self,
        message: &MessageCapability,
        output: &Output<RecordBatch>,
        batch: RecordBatch,
    ) -> Result<(), BoxError> {
        self.give_at(message.time(), message, output, batch)
    }

    /// Sends a batch at a time that a message's capability allows.
    ///
    /// # Errors
    ///
    /// An error for a time that is not at or after the message's; an error of a kernel; errors of [`Output::send`].
    pub fn give_at(
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
            .push(batch, |batch| output.send(capability, batch))
    }

    /// Sends the batches that wait.
    ///
    /// # Errors
    ///
    /// As [`give`](Self::give).
    pub fn flush(&mut self, output: &Output<RecordBatch>) -> Result<(), BoxError> {
        let Some(capability) = self.capability.take() else {
            return Ok(());
        };
        self.merger.flush(|batch| output.send(&capability, batch))
    }
}
