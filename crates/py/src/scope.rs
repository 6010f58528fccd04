//! Scopes, as `pointstamp.Scope` holds them.

use std::cell::RefCell;
use std::sync::Arc;

use pointstamp_engine::error::Error;
use pointstamp_engine::operators::{self, LoopHandle};
use pointstamp_engine::port::SendError;
use pointstamp_engine::scope::{Found, Scope as EngineScope};
use pointstamp_operators::{Content, Error as OperatorError, Kind};
use pointstamp_order::{PathSummary, Point};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::activator::Activator;
use crate::batch::{Batch, MAX_BATCH, Records};
use crate::bound::ThreadBound;
use crate::capability::Capability;
use crate::columns::schema::{Schema, exact_difference};
use crate::errors::{GraphError, IntoException};
use crate::gil::{Held, attached};
use crate::input::InputHandle;
use crate::iterables::{Giver, records_of};
use crate::kinds::{Resume, StreamKind};
use crate::observability::frames::Line;
use crate::observability::notes::Made;
use crate::operator::Builder;
use crate::position::Given;
use crate::probe::ProbeHandle;
use crate::raised::Raised;
use crate::recovery::Recording;
use crate::stream::Stream;
use crate::time::summary_from_py;
use crate::tools::Tools;
use crate::unordered::{UnorderedInput, place};
use crate::worker_loop::WorkerLoop;

fn refused(error: Error) -> PyErr {
    error.into_exception()
}

/// A scope of a dataflow that is being built.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Scope {
    pub(crate) scope: ThreadBound<EngineScope<Batch>>,
    pub(crate) driver: Arc<WorkerLoop>,
}

impl Scope {
    fn plain(&self, kind: Kind, stream: pointstamp_engine::stream::Stream<Batch>) -> Stream {
        Stream::plain(self.scope.home(), kind, stream)
    }
}

#[pymethods]
impl Scope {
    /// The worker's part in checkpoints; None where none are made.
    #[getter]
    fn recording(&self) -> PyResult<Option<Recording>> {
        self.driver.recording()
    }

    /// Its name.
    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.scope.get()?.name().to_owned())
    }

    /// The path to it from the worker's root.
    #[getter]
    fn address<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.scope.get()?.address())
    }

    /// The number of coordinates of timestamps in the scope.
    #[getter]
    fn dims(&self) -> PyResult<usize> {
        Ok(self.scope.get()?.dims())
    }

    /// The worker's number.
    #[getter]
    fn index(&self) -> PyResult<usize> {
        Ok(self.scope.get()?.worker().index())
    }

    /// The number of workers.
    #[getter]
    fn peers(&self) -> PyResult<usize> {
        Ok(self.scope.get()?.worker().peers())
    }

    /// The line of the program that runs now.
    fn line(&self, py: Python<'_>) -> Line {
        self.scope.home().notes().line(py)
    }

    /// Begins to lower a node of the plan, after the node before: later operators get its name, where it has
    /// one, and its line, or, without a line, the running one. The operator with the name `title` gets the
    /// name itself, the others have it as a prefix. Where checkpoints are made, `form` describes the node.
    #[pyo3(signature = (title, name, line, form=None))]
    fn lowering(
        &self,
        title: String,
        name: Option<String>,
        line: Option<&Bound<'_, Line>>,
        form: Option<String>,
    ) {
        let line = line.map(|line| line.get().clone());
        self.scope.home().naming().lower(title, name, line, form);
    }

    /// Ends the lowering.
    fn lowered(&self) {
        self.scope.home().naming().lowered();
    }

    /// An input of the worker that has not come to where it stood at the checkpoint; None where all have.
    fn behind(&self) -> Option<String> {
        self.driver.behind()
    }

    /// Connects an input handle.
    #[pyo3(signature = (handle, kind, resume = Resume::Repeat))]
    fn input_from(
        &self,
        py: Python<'_>,
        handle: &InputHandle,
        kind: StreamKind,
        resume: Resume,
    ) -> PyResult<Stream> {
        let stream = handle.attach(py, self.scope.get()?, &self.driver, resume)?;
        Ok(self.plain(kind.into(), stream))
    }

    /// An input driven by capabilities.
    fn unordered_input(&self) -> PyResult<(UnorderedInput, Capability, Stream)> {
        let home = self.scope.home();
        let (input, capability, stream) = self.scope.get()?.unordered_input().map_err(refused)?;
        Ok((
            UnorderedInput {
                input: ThreadBound::new(home, input),
                driver: Arc::clone(&self.driver),
                place: place(home, "unordered input", self.scope.get()?),
            },
            Capability::new(home, capability),
            self.plain(Kind::Host, stream),
        ))
    }

    /// The records of an iterable, at the minimum time, a bounded batch for each activation.
    fn to_stream(&self, items: &Bound<'_, PyAny>) -> PyResult<Stream> {
        let iterator = Held::new(
            records_of(Giver::Call("to_stream"), items)?
                .into_any()
                .unbind(),
        );
        let builder = self.scope.get()?.operator("to_stream").map_err(refused)?;
        let (output, stream, capability) = builder.new_held_output().map_err(refused)?;
        let mut given = Given::default();
        if self.driver.engine_recording()?.is_some() {
            given = Given::keep(&builder);
        }
        let mut capability = Some(capability).filter(|capability| !capability.is_revoked());
        builder.start();
        let activator = builder.activator();
        let mut iterator = Some(iterator);
        builder.build(move || {
            let (Some(held), Some(source)) = (&capability, &iterator) else {
                return Ok(false);
            };
            let more = attached(|py| {
                given.skip(source.get().bind(py)).map_err(Raised::here)?;
                let list = Tools::get(py)
                    .and_then(|tools| tools.take(source.get().bind(py), MAX_BATCH))
                    .map_err(Raised::here)?;
                let len = list.len();
                given.note(&list);
                if len > 0 {
                    output
                        .send(held, Records::new(list).into_batch())
                        .map_err(SendError::into_cause)?;
                }
                Ok::<_, pointstamp_engine::error::BoxError>(len == MAX_BATCH)
            })?;
            if more {
                activator.activate();
            } else {
                capability = None;
                iterator = None;
            }
            Ok(false)
        });
        Ok(self.plain(Kind::Host, stream))
    }

    /// A stream without records, whose frontier is empty from the start.
    fn empty(&self) -> PyResult<Stream> {
        let builder = self.scope.get()?.operator("empty").map_err(refused)?;
        let (_, stream) = builder.new_output().map_err(refused)?;
        builder.stateless();
        Ok(self.plain(Kind::Host, stream))
    }

    /// One stream of many.
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn concatenate(&self, streams: Vec<PyRef<'_, Stream>>) -> PyResult<Stream> {
        let kind = match streams.first() {
            Some(first) => first.kind(),
            None => Kind::Host,
        };
        for stream in &streams {
            let (expected, found) = (kind, stream.kind());
            if expected != found {
                return Err(OperatorError::WrongKind { expected, found }.into_exception());
            }
        }
        let streams = streams
            .iter()
            .map(|stream| Ok(stream.engine()?.clone()))
            .collect::<PyResult<Vec<_>>>()?;
        let made = operators::concatenate(self.scope.get()?, streams).map_err(refused)?;
        Ok(self.plain(kind, made))
    }

    /// A stream of the scope around this one, here.
    fn enter(&self, stream: &Stream) -> PyResult<Stream> {
        let entered = self.scope.get()?.enter(stream.engine()?);
        Ok(self.plain(stream.kind(), entered.map_err(refused)?))
    }

    /// Starts an operator.
    fn operator(&self, name: &str) -> PyResult<Builder> {
        let builder = self.scope.get()?.operator(name).map_err(refused)?;
        Ok(Builder {
            builder: ThreadBound::new(self.scope.home(), builder),
        })
    }

    /// Declares that a source of the dataflow acknowledges records that have left it.
    fn acknowledges(&self) -> PyResult<()> {
        self.scope.get()?.acknowledges();
        Ok(())
    }

    /// The operators downstream of a stream that may need any of its records for as long as they run.
    #[allow(
        clippy::unused_self,
        reason = "a scope's method, like all that look at operators"
    )]
    fn retaining_forever(&self, stream: &Stream) -> PyResult<Retaining> {
        Ok(Retaining {
            found: ThreadBound::new(
                self.scope.home(),
                EngineScope::retaining_forever(stream.engine()?),
            ),
        })
    }

    /// Makes a probe report the times that are anywhere downstream of a stream, and activates an operator when they change.
    /// With `retained`, the times of which operators still need records are there, too.
    #[allow(
        clippy::unused_self,
        reason = "a scope's method, like all that add operators"
    )]
    fn watch_downstream(
        &self,
        stream: &Stream,
        probe: &ProbeHandle,
        reader: &Activator,
        retained: bool,
    ) -> PyResult<()> {
        let reader = reader.engine()?;
        let wake = move || reader.activate();
        EngineScope::watch_downstream(stream.engine()?, &probe.probe, retained, wake)
            .map_err(refused)
    }

    /// Creates a stream that is defined later, by the stream that is connected to the loop's end: of record
    /// batches with a schema, else of records. If it moves times of the outermost scope, these are times of
    /// records: with `retains`, records in the loop may be needed for as long as it runs.
    #[pyo3(signature = (summary, schema = None, retains = false))]
    fn feedback(
        &self,
        summary: &Bound<'_, PyAny>,
        schema: Option<&Schema>,
        retains: bool,
    ) -> PyResult<(LoopEnd, Stream)> {
        let scope = self.scope.get()?;
        let summary = summary_from_py(summary, scope.dims())?;
        let outwards = summary.results_in(&Point::minimum(scope.dims()));
        let (handle, stream) = scope.feedback(summary).map_err(refused)?;
        if retains && outwards.is_none_or(|moved| moved.coords()[0] > 0) {
            handle.retains_forever();
        }
        let handle = ThreadBound::new(self.scope.home(), RefCell::new(Some(handle)));
        let kind = if schema.is_some() {
            Kind::Columns
        } else {
            Kind::Host
        };
        Ok((LoopEnd { handle, kind }, self.plain(kind, stream)))
    }

    /// A scope inside this one.
    fn nested(&self, name: &str, appended: usize) -> PyResult<Scope> {
        let nested = self.scope.get()?.nested(name, appended).map_err(refused)?;
        Ok(Scope {
            scope: ThreadBound::new(self.scope.home(), nested),
            driver: Arc::clone(&self.driver),
        })
    }

    /// Ends the building of a nested scope.
    fn close(&self) -> PyResult<()> {
        self.scope.get()?.close();
        Ok(())
    }

    /// An activator for the operator at an address.
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn activator_for(&self, address: Vec<usize>) -> PyResult<Activator> {
        let activator = self.scope.get()?.activator_for(&address).map_err(refused)?;
        Ok(Activator::new(self.scope.home(), activator, None))
    }
}

/// Operators that may need any record of a source for as long as they run; found when the dataflow is installed.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Retaining {
    found: ThreadBound<Found>,
}

#[pymethods]
impl Retaining {
    /// Each with its name, and the file and the line of the program that made it, if they are known.
    fn operators(&self) -> PyResult<Vec<Made>> {
        let (home, found) = (self.found.home(), self.found.get()?);
        let operators = found.operators();
        Ok(operators
            .into_iter()
            .map(|(id, name)| home.notes().named(id, name))
            .collect())
    }
}

/// Returns the reason why a stream of one schema cannot define a loop variable of another; without a schema, of records.
#[pyfunction]
#[pyo3(signature = (own, given))]
pub(crate) fn loop_difference(own: Option<&Schema>, given: Option<&Schema>) -> Option<String> {
    match (own, given) {
        (None, None) => None,
        (Some(own), Some(given)) => exact_difference(&given.schema, &own.schema),
        (Some(_), None) => {
            Some("it carries record batches, and the stream records: use to_arrow".into())
        }
        (None, Some(_)) => Some(
            "it carries records, and the stream record batches: give feedback or loop_variable the schema".into(),
        ),
    }
}

/// The end of a loop that is still open.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct LoopEnd {
    handle: ThreadBound<RefCell<Option<LoopHandle<Batch>>>>,
    /// The kind of batches that go round.
    kind: Kind,
}

#[pymethods]
impl LoopEnd {
    /// Closes the loop with the stream that defines it.
    fn connect(&self, stream: &Stream) -> PyResult<()> {
        let (expected, found) = (self.kind, stream.kind());
        if expected != found {
            return Err(OperatorError::WrongKind { expected, found }.into_exception());
        }
        let handle = self.handle.get()?.borrow_mut().take();
        let handle = handle.ok_or_else(|| GraphError::new_err("this loop is closed already"))?;
        handle.connect(stream.engine()?).map_err(refused)
    }
}
