//! Workers whose interleaving is determined by a seed: the base of `pointstamp.testing.simulate`.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointstamp_engine::error::{BoxError, Error};
use pointstamp_engine::host::{Host, StateSize};
use pointstamp_engine::observe::OperatorId;
use pointstamp_simulate::{Found, Link, World};
use pyo3::prelude::*;

use crate::connections::{Connections, seconds};
use crate::gil::{Held, attached, detached, detached_here};
use crate::raised::Raised;
use crate::turns::WriterTurns;
use crate::worker_loop::PythonHost;

/// The workers and processes of one simulated computation.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Simulation {
    world: Arc<World>,
    /// The function that is called with the number of a worker that cannot continue, because no worker can,
    /// or all are killed; it raises the error.
    stalled: Arc<Held>,
}

#[pymethods]
impl Simulation {
    #[new]
    fn new(
        processes: usize,
        workers: usize,
        seed: u64,
        loses: bool,
        patience: f64,
        stalled: Py<PyAny>,
    ) -> PyResult<Self> {
        let patience = seconds(patience)?;
        Ok(Simulation {
            world: World::new(processes, workers, seed, loses, patience),
            stalled: Arc::new(Held::new(stalled)),
        })
    }

    /// Lets waiting workers answer questions, until `asked` is called as often.
    fn ask(&self, py: Python<'_>) {
        detached(py, || self.world.ask());
    }

    /// Ends the period that `ask` began.
    fn asked(&self, py: Python<'_>) {
        detached(py, || self.world.asked());
    }

    /// The connections of one process to all others.
    fn connections(&self, process: usize) -> Connections {
        let link = Link::new(Arc::clone(&self.world), process);
        Connections::of(Arc::new(link))
    }

    /// Adds the threads that write checkpoints, and kills all at a step: to be called before anything else.
    fn records(&self, kill: Option<u64>) {
        self.world.records(kill);
    }

    /// The turns of the thread of a process that writes checkpoints.
    fn turns(&self, process: usize) -> WriterTurns {
        WriterTurns::new(&self.world, process)
    }

    /// The number of steps so far.
    #[getter]
    fn steps(&self) -> u64 {
        self.world.steps()
    }

    /// Whether all was killed.
    #[getter]
    fn killed(&self) -> bool {
        self.world.is_killed()
    }

    /// The process that was lost, if one was.
    fn lost(&self) -> Option<usize> {
        self.world.lost()
    }

    /// Waits for the first turn of a worker, which the calling thread runs.
    fn enter(&self, py: Python<'_>, worker: usize) {
        detached(py, || self.world.enter(worker));
    }

    /// Gives the worker's last turn away.
    fn leave(&self, py: Python<'_>, worker: usize) {
        detached(py, || self.world.leave(worker));
    }
}

impl Simulation {
    /// Has a worker take turns with the others.
    pub(crate) fn host(&self, worker: usize, inner: &Rc<PythonHost>) -> Rc<dyn Host> {
        Rc::new(SimulatedHost {
            world: Arc::clone(&self.world),
            stalled: Arc::clone(&self.stalled),
            worker,
            inner: Rc::clone(inner),
            found: Cell::default(),
        })
    }
}

/// A worker that does something when it has the turn, and never sleeps.
struct SimulatedHost {
    world: Arc<World>,
    stalled: Arc<Held>,
    worker: usize,
    inner: Rc<PythonHost>,
    /// The work since the last turn.
    found: Cell<Found>,
}

impl SimulatedHost {
    fn turn(&self) -> Result<(), BoxError> {
        let found = self.found.take();
        let (world, worker) = (&self.world, self.worker);
        let answer = || self.inner.answer_if_asked();
        attached(|py| {
            let mut turn = Ok(());
            detached_here(py, &mut || turn = world.turn(worker, found, &answer));
            turn.or_else(|_none_can_go_on| self.stalled.get().bind(py).call1((worker,)).map(drop))
        })
        .map_err(Raised::here)
    }
}

impl Host for SimulatedHost {
    fn before_step(&self) -> Result<(), BoxError> {
        self.turn()?;
        self.inner.before_step()
    }

    fn while_held(&self) -> Result<(), BoxError> {
        self.turn()?;
        self.inner.while_held()
    }

    fn before_end(&self) -> Result<(), BoxError> {
        self.inner.before_end()
    }

    fn apart(&self, run: &mut dyn FnMut()) {
        self.inner.apart(run);
    }

    fn patience(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn interrupted(&self, due: Option<Instant>) -> Result<(), BoxError> {
        let is_due = due.is_some();
        self.found.set(Found::Nothing { is_due });
        self.inner.interrupted(due)
    }

    fn begins(&self, operator: OperatorId) {
        self.inner.begins(operator);
    }

    fn keeps(&self, operator: OperatorId, size: StateSize) {
        self.inner.keeps(operator, size);
    }

    fn describes(&self) -> Option<String> {
        self.inner.describes()
    }

    fn renames(&self, name: &str) -> Option<String> {
        self.inner.renames(name)
    }

    fn describe_error(&self, worker: usize, error: Error) -> (Error, String) {
        self.inner.describe_error(worker, error)
    }

    fn ends(&self) {
        self.inner.ends();
    }
}
