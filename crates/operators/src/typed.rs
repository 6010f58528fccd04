//! Streams and ports whose batches are of one kind.

use std::marker::PhantomData;

use pointstamp_engine::error::{BoxError, Error as EngineError};
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::{Authority, InputPort, MessageCapability, OutputPort, SendError};
use pointstamp_engine::scope::Scope;
use pointstamp_engine::stream::Stream;

use crate::batch::{Batch, Content};

/// A stream of batches of one kind.
pub struct Typed<C> {
    stream: Stream<Batch>,
    content: PhantomData<fn() -> C>,
}

impl<C> Clone for Typed<C> {
    fn clone(&self) -> Self {
        Typed {
            stream: self.stream.clone(),
            content: PhantomData,
        }
    }
}

impl<C: Content> Typed<C> {
    /// Wraps a stream all of whose batches are of this kind. A batch of another kind is an error of the operator that
    /// receives it.
    pub fn assume(stream: Stream<Batch>) -> Self {
        Typed {
            stream,
            content: PhantomData,
        }
    }

    /// Returns the engine's stream.
    pub fn stream(&self) -> &Stream<Batch> {
        &self.stream
    }

    /// Returns the engine's stream.
    pub fn into_stream(self) -> Stream<Batch> {
        self.stream
    }

    /// Returns the scope of the stream.
    pub fn scope(&self) -> &Scope<Batch> {
        self.stream.scope()
    }
}

/// An input of batches of one kind.
pub struct Input<C> {
    port: InputPort<Batch>,
    content: PhantomData<fn() -> C>,
}

impl<C: Content> Input<C> {
    /// Adds an input to an operator, before its logic is given.
    ///
    /// # Errors
    ///
    /// Errors of [`OperatorBuilder::new_input`].
    pub fn new(
        builder: &OperatorBuilder<Batch>,
        stream: &Typed<C>,
        pact: Pact<Batch>,
    ) -> Result<Self, EngineError> {
        Ok(Input {
            port: builder.new_input(stream.stream(), pact)?,
            content: PhantomData,
        })
    }

    /// Takes the next message: its capability and its contents.
    ///
    /// # Errors
    ///
    /// Errors of [`InputPort::next`]; [`Error::WrongKind`](crate::Error::WrongKind) for a message of another kind.
    #[allow(clippy::should_implement_trait, reason = "it can fail")]
    pub fn next(&self) -> Result<Option<(MessageCapability, C)>, BoxError> {
        match self.port.next()? {
            Some((message, batch)) => Ok(Some((message, C::from_batch(batch)?))),
            None => Ok(None),
        }
    }

    /// Returns the engine's port.
    pub fn port(&self) -> &InputPort<Batch> {
        &self.port
    }
}

/// An output of batches of one kind.
pub struct Output<C> {
    port: OutputPort<Batch>,
    content: PhantomData<fn() -> C>,
}

impl<C: Content> Output<C> {
    /// Adds an output to an operator, before its logic is given; returns its stream, too.
    ///
    /// # Errors
    ///
    /// Errors of [`OperatorBuilder::new_output`].
    pub fn new(builder: &OperatorBuilder<Batch>) -> Result<(Self, Typed<C>), EngineError> {
        let (port, stream) = builder.new_output()?;
        Ok((Output::assume(port), Typed::assume(stream)))
    }

    /// Wraps an output all of whose readers take this kind.
    pub fn assume(port: OutputPort<Batch>) -> Self {
        Output {
            port,
            content: PhantomData,
        }
    }

    /// Sends a batch at the time of a capability.
    ///
    /// # Errors
    ///
    /// Errors of [`OutputPort::send`].
    pub fn send(&self, authority: &impl Authority, contents: C) -> Result<(), BoxError> {
        self.port
            .send(authority, contents.into_batch())
            .map_err(SendError::into_cause)
    }

    /// Returns the engine's port.
    pub fn port(&self) -> &OutputPort<Batch> {
        &self.port
    }
}
