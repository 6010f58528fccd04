//! An input whose times are capabilities that the caller holds.

use std::rc::Rc;

use crate::build::scope::Scope;
use crate::build::stream::Stream;
use crate::error::Error;
use crate::payload::Payload;
use crate::run::arrival::Close;
use crate::run::capability::{Capability, OutputCore};
use crate::run::port::{OutputPort, SendError};
use crate::worker::Worker;

/// Introduces batches at any time for which there is a capability, in any order.
pub struct UnorderedInput<P: Payload> {
    output: OutputPort<P>,
    worker: Worker<P>,
}

impl<P: Payload> Scope<P> {
    /// An input and the capability to send on it, from the minimum time. When `main` ends, the worker takes back the
    /// capabilities that are left.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the scope is no longer being built.
    pub fn unordered_input(&self) -> Result<(UnorderedInput<P>, Capability, Stream<P>), Error> {
        let builder = self.operator("unordered input")?;
        let (output, stream, capability) = builder.new_revocable_output()?;
        let closer = Rc::clone(&output.core) as Rc<dyn Close>;
        self.worker().open_inputs().add(Rc::downgrade(&closer));
        let worker = self.worker().clone();
        Ok((UnorderedInput { output, worker }, capability, stream))
    }
}

impl<P: Payload> UnorderedInput<P> {
    /// Sends a batch at the capability's time. While too much is on its way, this steps the worker, as
    /// [`Input::send`](crate::operators::Input::send) does.
    ///
    /// # Errors
    ///
    /// As [`OutputPort::send`], or as [`Worker::step`].
    pub fn send(&self, capability: &Capability, data: P) -> Result<(), SendError> {
        self.worker.sends(&data)?;
        self.output.send(capability, data)?;
        self.worker.make_room(None)?;
        Ok(())
    }

    /// The worker that the input is on.
    pub fn worker(&self) -> &Worker<P> {
        &self.worker
    }

    /// The output that the batches go to.
    pub fn output(&self) -> &OutputPort<P> {
        &self.output
    }
}

impl Close for OutputCore {
    fn close(&self) {
        self.revoke();
    }
}
