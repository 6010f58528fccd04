//! Sessions: records gathered to be sent on an output at one time.
//!
//! A session sends when it is full, flushed, closed, or dropped. Sessions of an input that `main` drives are also
//! sent before a step, and those of a held capability before its time changes. Nothing is borrowed while it sends,
//! because that runs user code. Records given to a session are sent, or an error ends the computation, unless its
//! `with` block raised.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pointstamp_columnar::pieces::Merger;
use pointstamp_engine::capability::Capability as EngineCapability;
use pointstamp_engine::error::{BoxError, Error as EngineError};
use pointstamp_engine::port::{MessageCapability, OutputPort as EngineOutput, SendError};
use pointstamp_operators::Content;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};

use crate::batch::{Batch, MAX_BATCH, in_batches};
use crate::bound::{Home, ThreadBound};
use crate::capability::{Capability, CapabilityRef};
use crate::columns::schema::import_conforming;
use crate::errors::IntoException;
use crate::gathering::Gathering;
use crate::generic::generic_alias;
use crate::gil::{attached, detached};
use crate::iterables::{Giver, records_of, refuse_iterator};
use crate::raised::{Raised, exception_of};
use crate::worker_loop::WorkerLoop;

/// A session to send on an output, by whatever gives the right to; `driver` is the worker's, where `main` sends.
pub(crate) fn open_session(
    py: Python<'_>,
    home: &Arc<Home>,
    port: EngineOutput<Batch>,
    capability: &Bound<'_, PyAny>,
    schema: Option<SchemaRef>,
    driver: Option<&Arc<WorkerLoop>>,
) -> PyResult<Session> {
    let authority = Authority::of(capability)?;
    authority.check(py, &port)?;
    let core = Rc::new(SessionCore {
        port,
        authority,
        buffer: RefCell::new(PyList::empty(py).unbind()),
        columns: RefCell::new(Merger::new()),
        driver: driver.map(Arc::clone),
        listed: Cell::new(false),
    });
    if let Authority::Held(held) = &core.authority {
        let opened = Rc::clone(&core) as Rc<dyn Gathering>;
        held.bind(py).get().opened(&opened)?;
    }
    Ok(Session {
        schema,
        state: ThreadBound::new(home, Opened(core)),
    })
}

/// Sends batches by an authority, without a session: they are complete, and nothing waits. A batch that cannot be
/// sent ends the computation.
pub(crate) fn send_now(
    port: &EngineOutput<Batch>,
    capability: &Bound<'_, PyAny>,
    run: impl FnOnce(&mut SendBatch<'_>) -> Result<(), BoxError>,
) -> PyResult<()> {
    let py = capability.py();
    let authority = Authority::of(capability)?;
    let right = authority.right()?;
    right.check(port).map_err(IntoException::into_exception)?;
    let sent = run(&mut |batch| right.send(port, batch));
    sent.map_err(|error| exception_of(py, port.fail(error).into()))
}

/// The capability or input by which a session sends.
enum Authority {
    Held(Py<Capability>),
    Message(Py<CapabilityRef>),
}

impl Authority {
    /// Returns the authority of a capability.
    fn of(capability: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(held) = capability.cast::<Capability>() {
            Ok(Authority::Held(held.clone().unbind()))
        } else if let Ok(message) = capability.cast::<CapabilityRef>() {
            Ok(Authority::Message(message.clone().unbind()))
        } else {
            Err(PyTypeError::new_err(format!(
                "a session needs a Capability or a message's CapabilityRef, not {}",
                capability.get_type().fully_qualified_name()?
            )))
        }
    }

    fn check(&self, py: Python<'_>, port: &EngineOutput<Batch>) -> PyResult<()> {
        match self {
            Authority::Held(held) => held
                .bind(py)
                .get()
                .with(|held| port.check(held).map_err(IntoException::into_exception)),
            Authority::Message(message) => {
                let message = message.bind(py).get().message.get()?;
                port.check(message).map_err(IntoException::into_exception)
            }
        }
    }

    /// The right to send now, for as long as a flush takes. It does not look at Python objects, and nothing stays borrowed: a key
    /// function downstream may drop or move the capability.
    fn right(&self) -> PyResult<Right<'_>> {
        Ok(match self {
            Authority::Held(held) => Right::Held(held.get().with(|held| Ok(Clone::clone(held)))?),
            Authority::Message(message) => Right::Message(message.get().message.get()?),
        })
    }
}

/// The right to send, while a session sends.
enum Right<'a> {
    Held(EngineCapability),
    Message(&'a MessageCapability),
}

impl Right<'_> {
    fn check(&self, port: &EngineOutput<Batch>) -> Result<(), EngineError> {
        port.check_idle()?;
        match self {
            Right::Held(held) => port.check(held),
            Right::Message(message) => port.check(*message),
        }
    }

    fn send(&self, port: &EngineOutput<Batch>, batch: Batch) -> Result<(), BoxError> {
        let sent = match self {
            Right::Held(held) => port.send(held, batch),
            Right::Message(message) => port.send(*message, batch),
        };
        sent.map_err(SendError::into_cause)
    }
}

/// The state of a session.
pub(crate) struct SessionCore {
    port: EngineOutput<Batch>,
    authority: Authority,
    buffer: RefCell<Py<PyList>>,
    /// Record batches that are too small to be sent alone.
    columns: RefCell<Merger>,
    /// The driver of `main`, which waits while too many bytes are in flight.
    driver: Option<Arc<WorkerLoop>>,
    /// Whether the driver sends it before the next step.
    listed: Cell<bool>,
}

/// Sends a batch.
type SendBatch<'a> = dyn FnMut(Batch) -> Result<(), BoxError> + 'a;

/// Sends a record batch.
type SendColumns<'a> = dyn FnMut(RecordBatch) -> Result<(), BoxError> + 'a;

impl SessionCore {
    /// Sends the buffered records, if there are any.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        if !self.columns.borrow().is_empty() {
            let sent = self.feed(|merger, send| merger.flush(send));
            sent.map_err(|error| exception_of(py, error))?;
        }
        self.flush_records(py)
    }

    fn flush_records(&self, py: Python<'_>) -> PyResult<()> {
        if self.buffer.borrow().bind(py).is_empty() {
            return Ok(());
        }
        self.sending(|send| {
            let full = self.take(py);
            in_batches(full.into_bound(py), |records| send(records.into_batch()))
        })
        .map_err(|error| exception_of(py, error))
    }

    /// Takes the records out.
    fn take(&self, py: Python<'_>) -> Py<PyList> {
        let empty = PyList::empty(py).unbind(); // before the borrow: an allocation may collect garbage
        self.buffer.replace(empty)
    }

    /// Takes records out and sends them, where that is possible now. Records that cannot be sent once they were taken
    /// out end the computation.
    fn sending(
        &self,
        run: impl FnOnce(&mut SendBatch<'_>) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let right = self.authority.right()?;
        right.check(&self.port)?;
        let mut send = |batch: Batch| {
            if let Some(driver) = &self.driver {
                driver.engine()?.sends(&batch)?;
            }
            right.send(&self.port, batch)
        };
        run(&mut send).map_err(|error| self.port.fail(error).into())
    }

    /// Calls a function that puts batches into the merger, and sends the ready ones.
    fn feed(
        &self,
        feed: impl FnOnce(&mut Merger, &mut SendColumns<'_>) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        self.sending(|send| {
            let mut send = |columns| send(Batch::Columns(columns));
            let mut merger = self.columns.take();
            feed(&mut merger, &mut send)?;
            if !self.columns.borrow().is_empty() {
                return merger.flush(send); // something was given meanwhile
            }
            self.columns.replace(merger);
            Ok(())
        })
    }

    /// Makes sure that it is sent before the next step, where `main` gives.
    fn list(self: &Rc<Self>) -> PyResult<()> {
        match &self.driver {
            Some(driver) if !self.listed.replace(true) => driver.list(Rc::clone(self) as _),
            _ => Ok(()),
        }
    }

    fn forget(&self, py: Python<'_>) {
        let (columns, records) = (self.columns.take(), self.take(py));
        drop((columns, records)); // after the borrows: dropping records may run user code
    }
}

impl Gathering for SessionCore {
    fn flush_listed(&self, py: Python<'_>) -> PyResult<()> {
        self.listed.set(false);
        self.flush(py)
    }

    fn is_busy(&self) -> bool {
        self.port.check_idle().is_err()
    }

    fn has_unsent(&self, py: Python<'_>) -> bool {
        !self.columns.borrow().is_empty() || !self.buffer.borrow().bind(py).is_empty()
    }

    fn discard(&self) {
        attached(|py| self.forget(py));
    }
}

/// The session's own reference to its records; it is dropped on its worker's thread, wherever the session is
/// dropped.
struct Opened(Rc<SessionCore>);

impl Drop for Opened {
    /// Sends the records of a session that was not used in a `with` block when its last reference is dropped.
    fn drop(&mut self) {
        attached(|py| {
            if let Err(error) = self.0.flush(py)
                && self.0.has_unsent(py)
            {
                let _sent = self.0.port.fail(Raised::here(error)); // it was not sent, and there is no later
            }
        });
    }
}

/// Sends records at one time; flushed at the end of its `with` block.
///
/// Examples:
///     >>> import pointstamp as ps
///     >>> def main(worker):
///     ...     with worker.dataflow() as scope:
///     ...         numbers, capability, stream = scope.new_unordered_input()
///     ...         captured = stream.capture()
///     ...     with capability, numbers.session(capability) as session:
///     ...         session.give(1)
///     ...         session.give_all([2, 3])
///     ...     worker.run()
///     ...     return captured.extract()
///     >>> ps.execute(main)
///     [[(0, [1, 2, 3])]]
#[pyclass(frozen, module = "pointstamp")]
pub(crate) struct Session {
    state: ThreadBound<Opened>,
    /// The schema of batches that an `ArrowStream` accepts.
    schema: Option<SchemaRef>,
}

impl Session {
    fn core(&self) -> PyResult<&Rc<SessionCore>> {
        Ok(&self.state.get()?.0)
    }

    /// Sends the records that wait, and makes room for more.
    fn flush_records(&self, py: Python<'_>) -> PyResult<()> {
        let core = self.core()?;
        core.flush_records(py)?;
        match &core.driver {
            Some(driver) => driver.make_room(py),
            None => Ok(()),
        }
    }

    /// Sends record batches, or keeps them for the next flush where they are small.
    fn give_columns(&self, data: &Bound<'_, PyAny>, schema: &SchemaRef) -> PyResult<()> {
        let py = data.py();
        let core = self.core()?;
        import_conforming(data, schema, |columns| {
            self.send_columns(py, |merger, send| merger.push(columns, send))
        })?;
        core.list()
    }

    /// Sends the ready batches of a merger, without the interpreter: operators downstream hash and partition
    /// them.
    fn send_columns(
        &self,
        py: Python<'_>,
        feed: impl FnOnce(&mut Merger, &mut SendColumns<'_>) -> Result<(), BoxError> + Send,
    ) -> PyResult<()> {
        // The engine is on its own thread here, only without the interpreter.
        let sent = detached(py, || self.core()?.feed(feed));
        sent.map_err(|error| exception_of(py, error))
    }
}

#[pymethods]
impl Session {
    /// Sends one record; on an `ArrowStream`, the rows of a record batch or table.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         words, capability, stream = scope.new_unordered_input()
    ///     ...         captured = stream.capture()
    ///     ...     with capability, words.session(capability) as session:
    ///     ...         session.give("tick")
    ///     ...     worker.run()
    ///     ...     return captured.extract()
    ///     >>> ps.execute(main)
    ///     [[(0, ['tick'])]]
    fn give(&self, record: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = record.py();
        if let Some(schema) = &self.schema {
            return self.give_columns(record, schema);
        }
        let core = self.core()?;
        refuse_iterator("give", "give_all", record)?;
        let len = {
            let buffer = core.buffer.borrow();
            let buffer = buffer.bind(py);
            buffer.append(record)?;
            buffer.len()
        };
        if len >= MAX_BATCH && !core.is_busy() {
            self.flush_records(py)
        } else {
            core.list()
        }
    }

    /// Sends every record of an iterable; on an `ArrowStream`, of an iterable of record batches or tables.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         words, capability, stream = scope.new_unordered_input()
    ///     ...         captured = stream.capture()
    ///     ...     with capability, words.session(capability) as session:
    ///     ...         session.give_all(["tick", "tock"])
    ///     ...     worker.run()
    ///     ...     return captured.extract()
    ///     >>> ps.execute(main)
    ///     [[(0, ['tick', 'tock'])]]
    fn give_all(&self, records: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = records.py();
        if let Some(schema) = &self.schema {
            for columns in records.try_iter()? {
                self.give_columns(&columns?, schema)?;
            }
            return Ok(());
        }
        let core = self.core()?;
        let add = |records: &Bound<'_, PyList>| {
            let buffer = core.buffer.borrow().clone_ref(py);
            let buffer = buffer.bind(py);
            buffer.set_slice(usize::MAX >> 1, usize::MAX >> 1, records)?;
            if buffer.len() >= MAX_BATCH && !core.is_busy() {
                self.flush_records(py)
            } else {
                core.list()
            }
        };
        if let Ok(list) = records.cast::<PyList>() {
            return add(list);
        }
        let tools = crate::tools::Tools::get(py)?;
        let iterator = records_of(Giver::Call("give_all"), records)?.into_any();
        loop {
            let chunk = tools.take(&iterator, MAX_BATCH)?;
            if chunk.is_empty() {
                return Ok(());
            }
            add(&chunk)?;
        }
    }

    /// Sends the records that were given so far.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         words, capability, stream = scope.new_unordered_input()
    ///     ...         stream.inspect(print)
    ///     ...     with capability, words.session(capability) as session:
    ///     ...         session.give("tick")
    ///     ...         session.flush()
    ///     ...         worker.step()
    ///     >>> ps.execute(main) and None
    ///     tick
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        if !self.core()?.columns.borrow().is_empty() {
            self.send_columns(py, |merger, send| merger.flush(send))?;
        }
        self.flush_records(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if kind.is_none() {
            return self.flush(py);
        }
        self.core()?.forget(py); // the block raised: its records are not sent
        Ok(())
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        generic_alias(class, item)
    }
}
