//! Streams, as the lowering of a plan holds them: outputs of operators.

use std::sync::Arc;

use pointstamp_engine::pact::Pact;
use pointstamp_engine::stream::Stream as EngineStream;
use pointstamp_operators::{Content, Error, Kind, Typed, Unary};
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::bound::{Home, ThreadBound};
use crate::capture::EventQueue;
use crate::errors::IntoException;
use crate::kinds::PactKind;
use crate::pact::pact;
use crate::probe::ProbeHandle;

/// A stream whose batches are all of one kind.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Stream {
    kind: Kind,
    stream: ThreadBound<EngineStream<Batch>>,
}

impl Stream {
    /// Wraps a stream of the engine whose batches are of a kind.
    pub(crate) fn plain(home: &Arc<Home>, kind: Kind, stream: EngineStream<Batch>) -> Self {
        Stream {
            kind,
            stream: ThreadBound::new(home, stream),
        }
    }

    /// Wraps a typed stream of the operators. One of any kind carries records.
    pub(crate) fn of<C: Content>(home: &Arc<Home>, stream: Typed<C>) -> Self {
        let kind = C::KIND.unwrap_or(Kind::Host);
        Stream::plain(home, kind, stream.into_stream())
    }

    /// The kind of its batches.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// The stream, for an operator that reads one kind of batches.
    ///
    /// # Errors
    ///
    /// As [`engine`](Self::engine); `GraphError` for a stream of another kind.
    pub(crate) fn typed<C: Content>(&self) -> PyResult<Typed<C>> {
        let (stream, found) = (self.engine()?, self.kind);
        match C::KIND.filter(|expected| *expected != found) {
            Some(expected) => Err(Error::WrongKind { expected, found }.into_exception()),
            None => Ok(Typed::assume(stream.clone())),
        }
    }

    /// The engine's stream.
    ///
    /// # Errors
    ///
    /// `PointstampError` on another thread than the worker's; `GraphError` when the worker has ended.
    pub(crate) fn engine(&self) -> PyResult<&EngineStream<Batch>> {
        self.stream.get_to_build()
    }

    /// An operator that reads the stream, and has one output.
    pub(crate) fn unary<I: Content, O: Content>(
        &self,
        name: &str,
        pact: Pact<Batch>,
    ) -> PyResult<Unary<I, O>> {
        Unary::new(&self.typed()?, name, pact).map_err(IntoException::into_exception)
    }

    /// Wraps the result of an operator that reads the stream.
    ///
    /// # Errors
    ///
    /// The operator's own, as an exception.
    pub(crate) fn made<C: Content>(
        &self,
        made: Result<Typed<C>, impl IntoException>,
    ) -> PyResult<Stream> {
        let made = made.map_err(IntoException::into_exception)?;
        Ok(Stream::of(self.home(), made))
    }

    /// The home of objects made from this stream.
    pub(crate) fn home(&self) -> &Arc<Home> {
        self.stream.home()
    }

    /// A stream of the same kind of batches.
    fn like(&self, stream: EngineStream<Batch>) -> Stream {
        Stream::plain(self.home(), self.kind, stream)
    }
}

#[pymethods]
impl Stream {
    /// Returns a stream of the same records, moved by a pact.
    #[pyo3(signature = (name, kind, key = None))]
    fn forward(&self, name: &str, kind: PactKind, key: Option<Py<PyAny>>) -> PyResult<Stream> {
        let pact = pact(kind, key, name, self.kind)?;
        let forwarded = self.engine()?.forward(name, pact);
        Ok(self.like(forwarded.map_err(IntoException::into_exception)?))
    }

    /// Attaches a probe.
    fn probe_with(&self, handle: &ProbeHandle) -> PyResult<Stream> {
        let probed = handle.probe.attach(self.engine()?);
        let probed = probed.map_err(IntoException::into_exception)?;
        if let Some(operator) = self.home().notes().latest() {
            handle.attached(operator);
        }
        Ok(self.like(probed))
    }

    /// Keeps the stream's events in a queue.
    fn capture(&self, queue: &EventQueue) -> PyResult<()> {
        let captured = queue.queue.capture(self.engine()?);
        captured.map_err(IntoException::into_exception)
    }

    /// Returns the same stream in the scope around its own.
    fn leave(&self) -> PyResult<Stream> {
        let stream = self.engine()?;
        let left = stream.scope().leave(stream);
        Ok(self.like(left.map_err(IntoException::into_exception)?))
    }
}
