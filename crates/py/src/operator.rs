//! Building operators whose logic is a Python function.

use std::sync::Arc;

use pointstamp_engine::error::Error;
use pointstamp_engine::observe::OperatorId;
use pointstamp_engine::operator::OperatorBuilder as EngineBuilder;
use pointstamp_engine::retention::Retention as EngineRetention;
use pointstamp_spill::Budget;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::activator::Activator;
use crate::batch::Batch;
use crate::bound::ThreadBound;
use crate::capability::Capability;
use crate::columns::schema::Schema;
use crate::errors::IntoException;
use crate::gil::{Held, attached};
use crate::kinds::PactKind;
use crate::observability::notes::{Kept, Made};
use crate::pact::pact;
use crate::port::{Carries, FrontieredInput, InputPort, OutputPort};
use crate::raised::Raised;
use crate::recovery::{Piece, taking};
use crate::sources::Sources;
use crate::states::Disk;
use crate::stream::Stream;
use crate::time::summaries_from_py;

fn refused(error: Error) -> PyErr {
    error.into_exception()
}

/// The records that an operator has taken and still needs.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Retention {
    pub(crate) says: ThreadBound<EngineRetention>,
    pub(crate) id: OperatorId,
    pub(crate) name: String,
}

#[pymethods]
impl Retention {
    /// The operator, and where it was made, if a source that acknowledges is upstream: known when the dataflow runs.
    fn asked(&self) -> PyResult<Option<Made>> {
        let asked = self.says.get()?.is_asked();
        let notes = self.says.home().notes();
        Ok(asked.then(|| notes.named(self.id, self.name.clone())))
    }

    /// Notes a message that was taken, with the latest event time of its records.
    fn take(&self, time: u64, latest: u64) -> PyResult<()> {
        self.says.get()?.take(time, latest);
        Ok(())
    }

    /// Releases records with an event time before `least` once the results that are sent before `until`, the
    /// frontier of the inputs, have left the dataflow. None: nothing can come any more.
    fn keep(&self, until: Option<u64>, least: u64) -> PyResult<()> {
        self.says.get()?.keep(until, least);
        Ok(())
    }

    /// Says that nothing before `needed`, or nothing at all, is needed once nothing at or before `sent` is in the dataflow.
    fn settle(&self, sent: u64, needed: Option<u64>) -> PyResult<()> {
        self.says.get()?.settle(sent, needed);
        Ok(())
    }
}

/// The engine's builder of one operator.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Builder {
    pub(crate) builder: ThreadBound<EngineBuilder<Batch>>,
}

#[pymethods]
impl Builder {
    /// Connects an input that receives its frontier.
    #[pyo3(signature = (stream, kind, key = None))]
    fn new_frontiered_input(
        &self,
        py: Python<'_>,
        stream: &Stream,
        kind: PactKind,
        key: Option<Py<PyAny>>,
    ) -> PyResult<Py<FrontieredInput>> {
        let input = self.new_input(stream, kind, key)?;
        Py::new(
            py,
            PyClassInitializer::from(input).add_subclass(FrontieredInput),
        )
    }

    /// Connects an input; `key` is the function of an exchange.
    #[pyo3(signature = (stream, kind, key = None))]
    fn new_input(
        &self,
        stream: &Stream,
        kind: PactKind,
        key: Option<Py<PyAny>>,
    ) -> PyResult<InputPort> {
        let builder = self.builder.get()?;
        let pact = pact(kind, key, &builder.name(), stream.kind())?;
        let port = builder.new_input(stream.engine()?, pact).map_err(refused)?;
        let dims = builder.scope().dims();
        Ok(InputPort {
            port: ThreadBound::new(self.builder.home(), port),
            dims,
        })
    }

    /// Adds an output that begins with a capability. With a schema it takes record batches, and with `timed` records at
    /// times of their own.
    #[pyo3(signature = (schema = None, *, timed = false))]
    fn new_output(
        &self,
        schema: Option<&Schema>,
        timed: bool,
    ) -> PyResult<(OutputPort, Stream, Capability)> {
        let carries = match schema {
            Some(schema) => Carries::Columns(schema.schema.clone()),
            None if timed => Carries::Timed,
            None => Carries::Records,
        };
        let kind = carries.kind();
        let home = self.builder.home();
        let (port, stream, capability) = self.builder.get()?.new_held_output().map_err(refused)?;
        Ok((
            OutputPort {
                port: ThreadBound::new(home, port),
                carries,
            },
            Stream::plain(home, kind, stream),
            Capability::new(home, capability),
        ))
    }

    /// Sets the path summary of an input and an output.
    fn set_summary(&self, input: usize, output: usize, summary: &Bound<'_, PyAny>) -> PyResult<()> {
        let builder = self.builder.get()?;
        let summaries = summaries_from_py(summary, builder.scope().dims())?;
        builder
            .set_summary(input, output, summaries)
            .map_err(refused)
    }

    /// The operator's address.
    #[getter]
    fn address<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.builder.get()?.address())
    }

    /// An activator for the operator.
    fn activator(&self) -> PyResult<Activator> {
        let (home, builder) = (self.builder.home(), self.builder.get()?);
        let noted = home.notes().operator(builder.id());
        Ok(Activator::new(home, builder.activator(), noted))
    }

    /// The retention of the operator, whose results are in `streams`; None where there is none.
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn retention(&self, streams: Vec<PyRef<'_, Stream>>) -> PyResult<Option<Retention>> {
        let streams = streams
            .iter()
            .map(|stream| stream.engine())
            .collect::<PyResult<Vec<_>>>()?;
        let builder = self.builder.get()?;
        let made = builder.retention(&streams).map_err(refused)?;
        Ok(made.map(|made| Retention {
            says: ThreadBound::new(self.builder.home(), made),
            id: builder.id(),
            name: builder.name(),
        }))
    }

    /// Says that the operator may need any record for as long as it runs.
    fn retains_forever(&self) -> PyResult<()> {
        self.builder.get()?.retains_forever();
        Ok(())
    }

    /// Notes the function that returns the size of the operator's state: `size()` returns rows, and bytes in memory and on disk.
    fn note_kept(&self, size: Py<PyAny>) -> PyResult<()> {
        let noted = self
            .builder
            .home()
            .notes()
            .operator(self.builder.get()?.id());
        if let Some(noted) = noted {
            noted.keeps(Kept::Python(Arc::new(Held::new(size))));
        }
        Ok(())
    }

    /// The place for the operator's state outside of memory; None where memory is not bounded.
    fn disk(&self, name: &str) -> PyResult<Option<Disk>> {
        let worker = self.builder.get()?.scope().worker();
        let budget = worker.resource::<Budget>();
        Ok(budget.map(|budget| Disk::new(&budget, name)))
    }

    /// Says that the operator keeps nothing from one run to the next.
    fn stateless(&self) -> PyResult<()> {
        self.builder.get()?.stateless();
        Ok(())
    }

    /// Says by the digest what functions the operator has; `maker` names the maker of digests.
    fn functions(&self, maker: &str, digest: &str) -> PyResult<()> {
        self.builder.get()?.functions(maker, digest);
        Ok(())
    }

    /// Says how the operator's state is taken: `take()` returns a list of pieces, which are divided among "workers", "groups" of keys or "parts".
    fn keeps(&self, division: &str, take: Py<PyAny>) -> PyResult<()> {
        let division = crate::recovery::division(division)?;
        self.builder.get()?.keeps(taking(division, take));
        Ok(())
    }

    /// The operator's contents, where the computation resumes from a checkpoint: its pieces, and the
    /// capabilities that it held except for those with which its outputs began. To be called once, after its
    /// outputs were made.
    fn restored(&self) -> PyResult<Option<(Vec<Piece>, Vec<Capability>)>> {
        let Some(restored) = self.builder.get()?.restored() else {
            return Ok(None);
        };
        let home = self.builder.home();
        let pieces = restored.state.pieces().iter().map(Piece::restored);
        let pieces = pieces.collect();
        let held = restored.held.into_iter();
        let held = held.map(|held| Capability::new(home, held));
        Ok(Some((pieces, held.collect())))
    }

    /// The sources of the computation, which the operator may hold back.
    fn sources(&self) -> PyResult<Sources> {
        let builder = self.builder.get()?;
        Ok(Sources::new(builder.scope().worker().cluster()))
    }

    /// Ends the construction: `logic(*arguments)` runs whenever the operator does.
    fn build(
        &self,
        logic: Py<PyAny>,
        arguments: Py<PyTuple>,
        notify: bool,
        start: bool,
    ) -> PyResult<()> {
        let builder = self.builder.get()?;
        if notify {
            builder.notify();
        }
        if start {
            builder.start();
        }
        let (logic, arguments) = (Held::new(logic), Held::new(arguments));
        let noted = self.builder.home().notes().operator(builder.id());
        builder.build(move || {
            if let Some(noted) = &noted {
                noted.runs();
            }
            attached(|py| {
                let called = logic.get().bind(py).call1(arguments.get().bind(py));
                called.map(drop).map_err(Raised::here)
            })?;
            Ok(false)
        });
        Ok(())
    }
}
