//! What runs a worker on behalf of `main`: it steps, looks for signals, and sends what inputs still hold before a step.
//!
//! A worker has one driver. Its inputs share it, because sending steps the worker while too much is on its way.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointstamp_engine::error::Error;
use pointstamp_engine::worker::Worker as EngineWorker;
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::bound::{Home, ThreadBound};
use crate::errors::WorkerStopped;
use crate::gil::detached;
use crate::input::Buffered;
use crate::raised::exception;
use crate::worker::record;

/// How long the main thread sleeps at most before it looks whether a signal came: only Python code can say so.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// How many steps the main thread makes without running Python code before it looks for signals.
const STEPS_BETWEEN_SIGNALS: u32 = 64;

/// What runs one worker.
pub(crate) struct Driver {
    engine: ThreadBound<EngineWorker<Batch>>,
    /// Inputs that have something to send before the next step.
    dirty: ThreadBound<RefCell<Vec<Rc<Buffered>>>>,
    /// Whether signals are delivered to this thread.
    signals: bool,
    steps: ThreadBound<Cell<u32>>,
}

impl Driver {
    pub(crate) fn new(home: &Arc<Home>, engine: EngineWorker<Batch>, signals: bool) -> Arc<Self> {
        Arc::new(Driver {
            engine: ThreadBound::new(home, engine),
            dirty: ThreadBound::new(home, RefCell::default()),
            signals,
            steps: ThreadBound::new(home, Cell::new(0)),
        })
    }

    pub(crate) fn home(&self) -> &Arc<Home> {
        self.engine.home()
    }

    /// The worker.
    pub(crate) fn engine(&self) -> PyResult<&EngineWorker<Batch>> {
        self.engine.get()
    }

    /// Notes that an input has something to send.
    pub(crate) fn list(&self, input: &Rc<Buffered>) -> PyResult<()> {
        self.dirty.get()?.borrow_mut().push(Rc::clone(input));
        Ok(())
    }

    /// Gives up what inputs have not sent: the worker has ended.
    pub(crate) fn discard(&self) -> PyResult<()> {
        for input in self.dirty.get()?.take() {
            input.discard();
        }
        Ok(())
    }

    /// What must happen before a step, attached.
    pub(crate) fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        self.home().bury(py);
        let dirty = self.dirty.get()?;
        if dirty.borrow().is_empty() {
            return Ok(());
        }
        for input in dirty.take() {
            input.flush_listed(py)?;
        }
        Ok(())
    }

    /// The result of the engine as Python sees it. A failure stops every worker.
    pub(crate) fn conclude<T>(&self, py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
        result.map_err(|error| {
            if matches!(error, Error::Stopped) {
                return WorkerStopped::new_err(
                    "the computation was stopped: another worker failed, or it was interrupted",
                );
            }
            let fatal = !matches!(error, Error::Reentrant);
            let (error, operator) = exception(error);
            if fatal && let Ok(worker) = self.engine.get() {
                record(
                    py,
                    worker.cluster(),
                    worker.index(),
                    &error,
                    operator.as_deref(),
                );
            }
            error
        })
    }

    /// One step, after sleeping until `deadline` where there is nothing to do.
    pub(crate) fn step_once(
        &self,
        py: Python<'_>,
        park: bool,
        deadline: Option<Instant>,
    ) -> PyResult<bool> {
        self.prepare(py)?;
        let signals = self.signals;
        if signals {
            let steps = self.steps.get()?;
            steps.set(steps.get() + 1);
            if steps.get() >= STEPS_BETWEEN_SIGNALS {
                steps.set(0);
                py.check_signals()?;
            }
        }
        loop {
            let slice = signals.then(|| Instant::now() + SIGNAL_INTERVAL);
            let until = match (deadline, slice) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            let bound = &self.engine;
            let result = detached(py, || {
                // The engine is on its own thread here, only without the interpreter.
                let Ok(worker) = bound.get() else {
                    return Err(Error::Stopped);
                };
                if worker.is_stepping() {
                    return Err(Error::Reentrant); // before it sleeps, for ever, where it is called
                }
                if park && !worker.has_work() && worker.has_dataflows() {
                    worker.park(until);
                    let over = deadline.is_some_and(|end| Instant::now() >= end);
                    if signals && !worker.has_work() && !over && !worker.cluster().is_stopped() {
                        return Ok(None);
                    }
                }
                worker.step().map(Some)
            });
            match self.conclude(py, result)? {
                Some(more) => return Ok(more),
                None => py.check_signals()?,
            }
            self.prepare(py)?;
        }
    }

    /// Steps while too much is on its way for `main` to send more. Inside an operator, which must not wait, it does nothing.
    pub(crate) fn make_room(&self, py: Python<'_>) -> PyResult<()> {
        while self.engine.get()?.is_pressed() {
            self.prepare(py)?;
            // Not for longer at a time: another thread may have let go of what everybody waits for.
            let until = Instant::now() + SIGNAL_INTERVAL;
            let bound = &self.engine;
            let room = detached(py, || match bound.get() {
                // The engine is on its own thread here, only without the interpreter.
                Ok(worker) => worker.make_room(Some(until)),
                Err(_) => Err(Error::Stopped),
            });
            let room = self.conclude(py, room)?;
            py.check_signals()?;
            if room {
                break;
            }
        }
        Ok(())
    }
}
