//! What an operator's function touches when it runs: inputs, outputs and sessions.

use std::cell::RefCell;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pointstamp_columnar::pieces::Merger;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::port::{InputPort as EngineInput, OutputPort as EngineOutput, SendError};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};

use crate::batch::{Batch, MAX_BATCH, in_batches};
use crate::bound::{Home, ThreadBound};
use crate::capability::{Capability, CapabilityRef};
use crate::columns::schema::import_conforming;
use crate::driver::Driver;
use crate::errors::IntoException;
use crate::gil::detached;
use crate::order::Antichain;
use crate::raised::exception_of;

/// One input of an operator: iterating yields `(capability, records)` for each message that has arrived.
///
/// It can be read only while its operator runs. The list of records is the reader's own; an input connected to an
/// `ArrowStream` yields a `pyarrow.RecordBatch` instead.
#[pyclass(frozen, subclass, module = "pointstamp")]
pub(crate) struct InputPort {
    pub(crate) port: ThreadBound<EngineInput<Batch>>,
    pub(crate) dims: usize,
}

#[pymethods]
impl InputPort {
    /// The next message, or `None` when no more have arrived. It ends the last message's capability.
    ///
    /// Raises:
    ///     CapabilityError: If the operator is not running.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<(CapabilityRef, Bound<'py, PyAny>)>> {
        let next = self
            .port
            .get()?
            .next()
            .map_err(IntoException::into_exception)?;
        next.map(|(message, batch)| {
            let message = ThreadBound::new(self.port.home(), message);
            Ok((CapabilityRef { message }, batch.into_python(py)?))
        })
        .transpose()
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(CapabilityRef, Bound<'py, PyAny>)>> {
        self.next(py)
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        generic_alias(class, item)
    }
}

/// An input of an operator that is told of the times that may still arrive there.
#[pyclass(frozen, extends = InputPort, module = "pointstamp")]
pub(crate) struct FrontieredInput;

#[pymethods]
impl FrontieredInput {
    /// The times that may still arrive, as known when this run of the operator began; a copy. The operator runs
    /// whenever it changes.
    #[getter]
    fn frontier(slf: &Bound<'_, Self>) -> PyResult<Antichain> {
        let input = slf.as_super().get();
        let port = input.port.get()?;
        let frontier = port.frontier();
        Ok(Antichain::from_points(
            input.dims,
            frontier.frontier().iter().cloned(),
        ))
    }
}

/// `class[item]`, as annotations write generic classes.
pub(crate) fn generic_alias<'py>(
    class: &Bound<'py, PyType>,
    item: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    class
        .py()
        .import("types")?
        .getattr("GenericAlias")?
        .call1((class, item))
}

/// One output of an operator.
#[pyclass(frozen, module = "pointstamp")]
pub(crate) struct OutputPort {
    pub(crate) port: ThreadBound<EngineOutput<Batch>>,
    /// Of an `ArrowStream`: what it carries.
    pub(crate) schema: Option<SchemaRef>,
}

#[pymethods]
impl OutputPort {
    /// Opens a session to send at a capability's time: `with output.session(cap) as session:`.
    ///
    /// Args:
    ///     capability: Held, or of the message that the operator just took.
    ///
    /// Raises:
    ///     CapabilityError: If the capability was dropped, has expired, or is for another output.
    fn session(&self, py: Python<'_>, capability: &Bound<'_, PyAny>) -> PyResult<Session> {
        let port = self.port.get()?.clone();
        open_session(py, self.port.home(), port, capability, self.schema.clone())
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        generic_alias(class, item)
    }
}

/// A session to send on an output, by whatever gives the right to.
pub(crate) fn open_session(
    py: Python<'_>,
    home: &Arc<Home>,
    port: EngineOutput<Batch>,
    capability: &Bound<'_, PyAny>,
    schema: Option<SchemaRef>,
) -> PyResult<Session> {
    let authority = if let Ok(held) = capability.cast::<Capability>() {
        Authority::Held(held.clone().unbind())
    } else if let Ok(message) = capability.cast::<CapabilityRef>() {
        Authority::Message(message.clone().unbind())
    } else {
        return Err(PyTypeError::new_err(format!(
            "a session needs a Capability or a message's CapabilityRef, not {}",
            capability.get_type().fully_qualified_name()?
        )));
    };
    authority.check(py, &port)?;
    let state = SessionState {
        port,
        authority,
        buffer: PyList::empty(py).unbind(),
        columns: Merger::new(),
    };
    Ok(Session {
        schema,
        driver: None,
        state: ThreadBound::new(home, RefCell::new(state)),
    })
}

/// What gives a session the right to send.
enum Authority {
    Held(Py<Capability>),
    Message(Py<CapabilityRef>),
}

impl Authority {
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

    fn send(&self, py: Python<'_>, port: &EngineOutput<Batch>, batch: Batch) -> PyResult<()> {
        self.send_detached(port, batch)
            .map_err(|error| exception_of(py, error))
    }

    /// Sends without looking at Python objects.
    fn send_detached(&self, port: &EngineOutput<Batch>, batch: Batch) -> Result<(), BoxError> {
        let sent = match self {
            Authority::Held(held) => {
                // The capability is not borrowed while a key function downstream runs: it may use it.
                let held = held.get().with(|held| Ok(Clone::clone(held)))?;
                port.send(&held, batch)
            }
            Authority::Message(message) => port.send(message.get().message.get()?, batch),
        };
        sent.map_err(SendError::into_cause)
    }
}

/// Sends records at one time; flushed at the end of its `with` block.
#[pyclass(frozen, module = "pointstamp")]
pub(crate) struct Session {
    state: ThreadBound<RefCell<SessionState>>,
    /// Of an `ArrowStream`: what may be given.
    schema: Option<SchemaRef>,
    /// Where `main` sends, which waits while too much is on its way.
    driver: Option<Arc<Driver>>,
}

struct SessionState {
    port: EngineOutput<Batch>,
    authority: Authority,
    buffer: Py<PyList>,
    /// Record batches that are too small to be sent alone.
    columns: Merger,
}

impl Session {
    /// The session of an input: giving steps the worker while too much is on its way.
    pub(crate) fn driven_by(mut self, driver: &Arc<Driver>) -> Self {
        self.driver = Some(Arc::clone(driver));
        self
    }

    /// Sends the records that wait, and makes room for more.
    fn flush_records(&self, py: Python<'_>) -> PyResult<()> {
        let state = self.state.get()?;
        let Some(driver) = &self.driver else {
            return flush(py, state, |_| ());
        };
        let worker = driver.engine()?;
        flush(py, state, |batch| worker.sends(batch))?;
        driver.make_room(py)
    }

    /// Sends record batches, or keeps them for the next flush where they are small.
    fn give_columns(&self, data: &Bound<'_, PyAny>, schema: &SchemaRef) -> PyResult<()> {
        let py = data.py();
        self.state.get()?;
        import_conforming(data, schema, |columns| {
            self.send_columns(py, |merger, send| merger.push(columns, send))
        })
    }

    fn flush_columns(&self, py: Python<'_>) -> PyResult<()> {
        if self.state.get()?.borrow().columns.is_empty() {
            return Ok(());
        }
        self.send_columns(py, |merger, send| merger.flush(send))
    }

    /// Sends what a merger has ready, without the interpreter: what is downstream hashes and partitions it.
    fn send_columns(
        &self,
        py: Python<'_>,
        feed: impl FnOnce(&mut Merger, &mut SendColumns<'_>) -> Result<(), BoxError> + Send,
    ) -> PyResult<()> {
        // The engine is on its own thread here, only without the interpreter.
        let sent = detached(py, || {
            let state = self.state.get()?;
            let mut merger = std::mem::take(&mut state.borrow_mut().columns);
            let sent = {
                let state = state.borrow();
                feed(&mut merger, &mut |columns| {
                    state
                        .authority
                        .send_detached(&state.port, Batch::Arrow(columns))
                })
            };
            state.borrow_mut().columns = merger;
            sent
        });
        sent.map_err(|error| exception_of(py, error))
    }
}

/// Sends a record batch.
type SendColumns<'a> = dyn FnMut(RecordBatch) -> Result<(), BoxError> + 'a;

/// Sends what a buffer holds; the borrow of the state ends before anything is called. `note` sees each batch before.
fn flush(py: Python<'_>, state: &RefCell<SessionState>, note: impl Fn(&Batch)) -> PyResult<()> {
    let (port, full, authority) = {
        let mut state = state.borrow_mut();
        if state.buffer.bind(py).is_empty() {
            return Ok(());
        }
        let full = std::mem::replace(&mut state.buffer, PyList::empty(py).unbind());
        let authority = match &state.authority {
            Authority::Held(held) => Authority::Held(held.clone_ref(py)),
            Authority::Message(message) => Authority::Message(message.clone_ref(py)),
        };
        (state.port.clone(), full, authority)
    };
    in_batches(full.into_bound(py), |batch| {
        note(&batch);
        authority
            .send(py, &port, batch)
            .map_err(|error| -> BoxError { Box::new(error) })
    })
    .map_err(|error| exception_of(py, error))
}

#[pymethods]
impl Session {
    /// Sends one record; on an `ArrowStream`, the rows of a record batch or table.
    fn give(&self, record: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = record.py();
        if let Some(schema) = &self.schema {
            return self.give_columns(record, schema);
        }
        let state = self.state.get()?;
        let full = {
            let state = state.borrow();
            let buffer = state.buffer.bind(py);
            buffer.append(record)?;
            buffer.len() >= MAX_BATCH
        };
        if full { self.flush_records(py) } else { Ok(()) }
    }

    /// Sends every record of an iterable; on an `ArrowStream`, of an iterable of record batches or tables.
    fn give_all(&self, records: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = records.py();
        if let Some(schema) = &self.schema {
            for columns in records.try_iter()? {
                self.give_columns(&columns?, schema)?;
            }
            return Ok(());
        }
        let state = self.state.get()?;
        if let Ok(list) = records.cast::<PyList>() {
            let buffer = state.borrow().buffer.clone_ref(py);
            buffer
                .bind(py)
                .set_slice(usize::MAX >> 1, usize::MAX >> 1, list)?;
            return if buffer.bind(py).len() >= MAX_BATCH {
                self.flush_records(py)
            } else {
                Ok(())
            };
        }
        let tools = crate::tools::Tools::get(py)?;
        let iterator = records.try_iter()?.into_any();
        loop {
            let chunk = tools.take(&iterator, MAX_BATCH)?;
            if chunk.is_empty() {
                return Ok(());
            }
            let buffer = state.borrow().buffer.clone_ref(py);
            buffer
                .bind(py)
                .set_slice(usize::MAX >> 1, usize::MAX >> 1, &chunk)?;
            if buffer.bind(py).len() >= MAX_BATCH {
                self.flush_records(py)?;
            }
        }
    }

    /// Sends what has been given so far.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.flush_columns(py)?;
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
        let state = self.state.get()?;
        if kind.is_none() {
            self.flush_columns(py)?;
            return self.flush_records(py);
        }
        // The block raised: what it gave is not sent.
        state.borrow_mut().columns.clear();
        let discarded =
            std::mem::replace(&mut state.borrow_mut().buffer, PyList::empty(py).unbind());
        drop(discarded);
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

impl Drop for Session {
    /// A session that was not used in a `with` block sends what it holds when the last reference goes.
    fn drop(&mut self) {
        let Ok(state) = self.state.get() else { return };
        crate::gil::attached(|py| {
            if let Err(error) = self
                .flush_columns(py)
                .and_then(|()| flush(py, state, |_| ()))
            {
                error.write_unraisable(py, None);
            }
        });
    }
}
