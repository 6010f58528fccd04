//! Streams, as `pointstamp.Stream` holds them: an output of an operator, or a part of a chain that may get one.

use std::sync::Arc;

use pointstamp_engine::operators;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::stream::Stream as EngineStream;
use pointstamp_operators::collections::Updates;
use pointstamp_operators::{Content, Error, Kind, Typed, Unary};
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::bound::{Home, ThreadBound};
use crate::capture::EventQueue;
use crate::chain::records;
use crate::chain::tap::Tap;
use crate::errors::IntoException;
use crate::kinds::{CollectionStageKind, PactKind, StageKind};
use crate::pact::pact;
use crate::probe::ProbeHandle;

/// A stream of records.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Stream {
    inner: ThreadBound<Inner>,
}

enum Inner {
    Plain(EngineStream<Batch>, Kind),
    Tap(Tap<StageKind, Batch>),
    /// Of a collection.
    Changes(Changes),
}

type Changes = Tap<CollectionStageKind, Updates>;

impl Stream {
    /// A stream whose batches are all of one kind.
    pub(crate) fn plain(home: &Arc<Home>, kind: Kind, stream: EngineStream<Batch>) -> Self {
        Stream {
            inner: ThreadBound::new(home, Inner::Plain(stream, kind)),
        }
    }

    /// A typed stream of the operators. One of any kind carries records.
    pub(crate) fn of<C: Content>(home: &Arc<Home>, stream: Typed<C>) -> Self {
        let kind = C::KIND.unwrap_or(Kind::Host);
        Stream::plain(home, kind, stream.into_stream())
    }

    /// The kind of its batches.
    pub(crate) fn kind(&self) -> PyResult<Kind> {
        Ok(match self.inner.get_to_build()? {
            Inner::Plain(_, kind) => *kind,
            Inner::Tap(tap) => tap.kind(),
            Inner::Changes(_) => Kind::Updates,
        })
    }

    /// The stream, for an operator that reads one kind of batches.
    ///
    /// # Errors
    ///
    /// `GraphError` for a stream of another kind.
    pub(crate) fn typed<C: Content>(&self) -> PyResult<Typed<C>> {
        let found = self.kind()?;
        if let Some(expected) = C::KIND.filter(|expected| *expected != found) {
            return Err(Error::WrongKind { expected, found }.into_exception());
        }
        Ok(Typed::assume(self.engine()?))
    }

    /// The engine's stream; a part of a chain gets an output for it.
    pub(crate) fn engine(&self) -> PyResult<EngineStream<Batch>> {
        match self.inner.get_to_build()? {
            Inner::Plain(stream, _) => Ok(stream.clone()),
            Inner::Tap(tap) => tap.stream(),
            Inner::Changes(tap) => tap.stream(),
        }
    }

    /// An operator that reads the stream, and has one output.
    pub(crate) fn unary<I: Content, O: Content>(
        &self,
        name: &str,
        pact: Pact<Batch>,
    ) -> PyResult<Unary<I, O>> {
        Unary::new(&self.typed()?, name, pact).map_err(IntoException::into_exception)
    }

    /// A part of a collection's chain.
    pub(crate) fn changes(home: &Arc<Home>, tap: Changes) -> Self {
        Stream {
            inner: ThreadBound::new(home, Inner::Changes(tap)),
        }
    }

    /// The part of a collection's chain that this is, if it is one.
    pub(crate) fn changes_tap(&self) -> PyResult<Option<Changes>> {
        Ok(match self.inner.get()? {
            Inner::Changes(tap) => Some(tap.clone()),
            Inner::Plain(..) | Inner::Tap(_) => None,
        })
    }

    /// Where objects made from this stream live.
    pub(crate) fn home(&self) -> &Arc<Home> {
        self.inner.home()
    }
}

#[pymethods]
impl Stream {
    /// Applies a function of records as a stage of a chain; returns the parts of its result.
    fn stage(
        &self,
        kind: StageKind,
        function: Py<PyAny>,
        name: &str,
        parts: usize,
    ) -> PyResult<Vec<Stream>> {
        let name = &*self.home().naming().named(name);
        let taps = match self.inner.get_to_build()? {
            Inner::Tap(tap) => {
                let made = records::made_of(kind, tap.kind(), tap.dims())?;
                tap.then((kind, name, function, parts, made))?
            }
            Inner::Plain(..) | Inner::Changes(_) => {
                let stream = self.engine()?;
                let made = records::made_of(kind, self.kind()?, stream.scope().dims())?;
                let added = (kind, name, function, parts, made);
                Tap::begin(&Typed::assume(stream), added, records::run)?
            }
        };
        let home = self.home();
        Ok(taps
            .into_iter()
            .map(|tap| Stream {
                inner: ThreadBound::new(home, Inner::Tap(tap)),
            })
            .collect())
    }

    /// The same records, moved by a pact.
    #[pyo3(signature = (name, kind, key = None))]
    fn forward(&self, name: &str, kind: PactKind, key: Option<Py<PyAny>>) -> PyResult<Stream> {
        let pact = pact(kind, key, name, self.kind()?)?;
        let stream = self
            .engine()?
            .forward(name, pact)
            .map_err(IntoException::into_exception)?;
        Ok(Stream::plain(self.home(), self.kind()?, stream))
    }

    /// Attaches a probe.
    fn probe_with(&self, handle: &ProbeHandle) -> PyResult<Stream> {
        let stream = handle
            .probe
            .attach(&self.engine()?)
            .map_err(IntoException::into_exception)?;
        if let Some(operator) = self.home().notes().latest() {
            handle.attached(operator);
        }
        Ok(Stream::plain(self.home(), self.kind()?, stream))
    }

    /// Keeps the stream's events in a queue.
    fn capture(&self, queue: &EventQueue) -> PyResult<()> {
        let mut sink = queue.queue.sink();
        operators::capture(&self.engine()?, move |event| {
            sink(event);
            Ok(())
        })
        .map_err(IntoException::into_exception)
    }

    /// Which of some streams of the dataflow the records come from, through no other of them: their indices.
    fn comes_from(&self, streams: Vec<PyRef<'_, Stream>>) -> PyResult<Vec<usize>> {
        let streams: Vec<_> = streams
            .into_iter()
            .map(|stream| stream.engine())
            .collect::<PyResult<_>>()?;
        Ok(self.engine()?.comes_from(&streams))
    }

    /// The same stream in the scope around its own.
    fn leave(&self) -> PyResult<Stream> {
        let stream = self.engine()?;
        let left = stream
            .scope()
            .leave(&stream)
            .map_err(IntoException::into_exception)?;
        Ok(Stream::plain(self.home(), self.kind()?, left))
    }
}
