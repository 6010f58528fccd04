//! The inputs and outputs that an operator's function touches when it runs.

use arrow_schema::SchemaRef;
use std::sync::Arc;

use pointstamp_engine::port::{InputPort as EngineInput, OutputPort as EngineOutput};
use pointstamp_operators::{Content, Error, Kind};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::batch::{Batch, into_python, timed_from_py};
use crate::bound::ThreadBound;
use crate::capability::CapabilityRef;
use crate::errors::IntoException;
use crate::generic::generic_alias;
use crate::order::Antichain;
use crate::raised::{Raised, exception};
use crate::session::{Session, open_session, send_now};

/// One input of an operator: iterating yields `(capability, records)` for each message that has arrived.
///
/// It can be read only while its operator runs. The list of records is the reader's own; an input connected to an
/// `ArrowStream` yields a `pyarrow.RecordBatch` instead.
///
/// Examples:
///     >>> import pointstamp as ps
///     >>> def show(info):
///     ...     def logic(input):
///     ...         for message, records in input:
///     ...             print(message.time, records)
///     ...     return logic
///     >>> ps.example(lambda scope: scope.to_stream([1, 2]).sink(ps.Pipeline(), "show", show))
///     0 [1, 2]
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
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def show(info):
    ///     ...     def logic(input):
    ///     ...         while (message := input.next()) is not None:
    ///     ...             capability, records = message
    ///     ...             print(capability.time, records)
    ///     ...     return logic
    ///     >>> ps.example(lambda scope: scope.to_stream([1, 2]).sink(ps.Pipeline(), "show", show))
    ///     0 [1, 2]
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<(CapabilityRef, Bound<'py, PyAny>)>> {
        let port = self.port.get()?;
        let Some((message, batch)) = port.next().map_err(IntoException::into_exception)? else {
            return Ok(None);
        };
        let records = into_python(batch, py)
            .map_err(|error| exception(py, &port.fail(Raised::here(error))).0)?;
        let message = ThreadBound::new(self.port.home(), message);
        Ok(Some((CapabilityRef { message }, records)))
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

/// An input of an operator that receives the frontier of times that may still arrive there.
///
/// Examples:
///     >>> import pointstamp as ps
///     >>> def ends(info):
///     ...     def logic(input):
///     ...         for _ in input:
///     ...             pass
///     ...         if not input.frontier:
///     ...             print("complete")
///     ...     return logic
///     >>> ps.example(lambda scope: scope.to_stream([1, 2]).sink(ps.Pipeline(), "ends", ends))
///     complete
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

/// The error of a send that the output was not made for.
fn wrong_kind(found: Kind, expected: Kind) -> PyErr {
    Error::WrongKind { expected, found }.into_exception()
}

/// One output of an operator.
///
/// Examples:
///     >>> import pointstamp as ps
///     >>> def double(input, output, notificator):
///     ...     for message, numbers in input:
///     ...         with output.session(message) as session:
///     ...             session.give_all(2 * n for n in numbers)
///     >>> def build(scope):
///     ...     return scope.to_stream([1, 2]).unary_notify(ps.Pipeline(), "double", [], double).capture()
///     >>> ps.example(build).extract()
///     [(0, [2, 4])]
#[pyclass(frozen, module = "pointstamp")]
pub(crate) struct OutputPort {
    pub(crate) port: ThreadBound<EngineOutput<Batch>>,
    pub(crate) carries: Carries,
}

/// The contents of an output's batches.
pub(crate) enum Carries {
    /// Python objects.
    Records,
    /// The record batches of an `ArrowStream`.
    Columns(SchemaRef),
    /// Records at times of their own.
    Timed,
}

impl Carries {
    /// The kind of the batches.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Carries::Records => Kind::Host,
            Carries::Columns(_) => Kind::Columns,
            Carries::Timed => Kind::Timed,
        }
    }
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
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def first(input, output, notificator):
    ///     ...     for message, records in input:
    ///     ...         with output.session(message) as session:
    ///     ...             session.give(records[0])
    ///     >>> def build(scope):
    ///     ...     return scope.to_stream([1, 2]).unary_notify(ps.Pipeline(), "first", [], first).capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [1])]
    fn session(&self, py: Python<'_>, capability: &Bound<'_, PyAny>) -> PyResult<Session> {
        let port = self.port.get()?.clone();
        let schema = match &self.carries {
            Carries::Columns(schema) => Some(Arc::clone(schema)),
            Carries::Records => None,
            Carries::Timed => return Err(wrong_kind(Kind::Host, Kind::Timed)),
        };
        open_session(py, self.port.home(), port, capability, schema, None)
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        generic_alias(class, item)
    }
}

/// Sends records at times of their own, none of which is before the capability's, in messages at the capability's time.
///
/// `columns` is `(times, records)` or `(times, keys, records)`, lists of one length that are given away; `times` may be an int
/// for all.
#[pyfunction]
pub(crate) fn give_timed(
    output: &OutputPort,
    capability: &Bound<'_, PyAny>,
    columns: &Bound<'_, PyTuple>,
) -> PyResult<()> {
    let found = output.carries.kind();
    if found != Kind::Timed {
        return Err(wrong_kind(Kind::Timed, found));
    }
    let timed = timed_from_py(columns, None)?;
    send_now(output.port.get()?, capability, |send| {
        timed.in_bounds(|piece| send(piece.into_batch()))
    })
}
