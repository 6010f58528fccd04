//! The Python part of a worker's loop: before a step it sends the buffered records of inputs and sessions,
//! and checks for signals; the engine works and sleeps without the interpreter.
//!
//! A worker has one driver. Its inputs share it, because sending steps the worker while too much is on its way.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use pointstamp_engine::cluster::Cluster;
use pointstamp_engine::error::{BoxError, Error};
use pointstamp_engine::host::{Host, StateSize};
use pointstamp_engine::observe::OperatorId;
use pointstamp_engine::worker::Worker as EngineWorker;
use pointstamp_recovery::Recording as EngineRecording;
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::bound::{Home, ThreadBound};
use crate::gathering::Gathering;
use crate::gil::{Held, attached, detached_here};
use crate::observability::diagnostics::pass_on;
use crate::observability::notes::Kept;
use crate::observability::statistics::statistics;
use crate::raised::{Raised, describe_error, exception};
use crate::recovery::Recording;

/// The maximum time that the main thread sleeps before it checks for signals: only Python code can detect
/// them.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// The number of steps that the main thread makes without running Python code before it checks for signals.
const STEPS_BETWEEN_SIGNALS: u32 = 64;

/// Python, as the host of a worker's loop.
pub(crate) struct PythonHost {
    home: Arc<Home>,
    cluster: Arc<Cluster>,
    /// The objects that have records to send before the next step.
    dirty: RefCell<Vec<Rc<dyn Gathering>>>,
    /// Whether signals are delivered to this thread.
    signals: bool,
    steps: Cell<u32>,
    /// The worker, while its program runs.
    engine: RefCell<Option<EngineWorker<Batch>>>,
    /// The function that is called with the exception of a signal's handler.
    on_interruption: Option<Held>,
    /// Called when the user's code has had its last turn.
    at_the_end: Box<dyn Fn(Python<'_>)>,
    /// The program's wait, if it has requested a report when it lasts.
    wait: RefCell<Option<Rc<Wait>>>,
    /// Whether the last turn was a sleep that nothing ended.
    slept: Cell<bool>,
    /// Inputs that have not reached their position at the checkpoint, including those whose handle was
    /// dropped.
    repeating: RefCell<Vec<Rc<dyn Gathering>>>,
}

/// A wait of the program's for its dataflows. Where the worker sleeps for a while and no timer is going to wake it, a function
/// is called; once more after twice as long each time, until it returns true.
struct Wait {
    after: Cell<Duration>,
    call: Held,
    since: Cell<Option<Instant>>,
    is_over: Cell<bool>,
}

impl PythonHost {
    pub(crate) fn new(
        home: &Arc<Home>,
        cluster: &Arc<Cluster>,
        signals: bool,
        on_interruption: Option<Py<PyAny>>,
        at_the_end: impl Fn(Python<'_>) + 'static,
    ) -> Rc<Self> {
        Rc::new(PythonHost {
            home: Arc::clone(home),
            cluster: Arc::clone(cluster),
            dirty: RefCell::default(),
            signals,
            steps: Cell::new(0),
            engine: RefCell::new(None),
            on_interruption: on_interruption.map(Held::new),
            at_the_end: Box::new(at_the_end),
            wait: RefCell::new(None),
            slept: Cell::new(false),
            repeating: RefCell::default(),
        })
    }

    /// The current wait, while it is not reported.
    fn unreported_wait(&self) -> Option<Rc<Wait>> {
        let wait = self.wait.borrow();
        wait.as_ref().filter(|wait| !wait.is_over.get()).cloned()
    }

    /// Reports a wait that has lasted.
    fn tell_of_wait(&self, py: Python<'_>, due: Option<Instant>) -> PyResult<()> {
        let Some(wait) = self.unreported_wait() else {
            return Ok(());
        };
        let lasted = |since: Instant| since.elapsed() >= wait.after.get();
        if due.is_none() && wait.since.get().is_some_and(lasted) {
            let said = wait.call.get().bind(py).call0()?.is_truthy()?;
            wait.is_over.set(said);
            wait.after.set(wait.after.get().saturating_mul(2));
            wait.since.set(None);
        }
        Ok(())
    }

    /// Answers threads that have asked for the worker's state.
    pub(crate) fn answer(&self, py: Python<'_>) {
        let inquiry = self.home.inquiry();
        if inquiry.is_wanted()
            && let Some(engine) = &*self.engine.borrow()
            && !engine.is_stepping()
        {
            inquiry.answer(|| statistics(py, &self.home, engine).ok());
        }
    }

    /// The same, on a thread that has released the interpreter.
    pub(crate) fn answer_if_asked(&self) {
        if self.home.inquiry().is_wanted() {
            attached(|py| self.answer(py));
        }
    }

    /// Runs the handlers of pending signals. An exception of one is passed to the listener that may add a note to it.
    fn check_signals(&self, py: Python<'_>) -> PyResult<()> {
        py.check_signals().inspect_err(|error| {
            if let Some(handler) = &self.on_interruption {
                let handled = handler.get().bind(py).call1((error.value(py),));
                drop(handled); // whatever it raises, the interruption counts
            }
        })
    }

    /// Drops records that have not been sent: the worker has ended.
    pub(crate) fn discard(&self) {
        drop(self.repeating.take());
        for gathering in self.dirty.take() {
            gathering.discard();
        }
    }

    /// Sends the objects that were listed when this began. Records that are being routed, by a function that
    /// steps the worker, stay for later.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        if self.dirty.borrow().is_empty() {
            return Ok(());
        }
        let mut listed = self.dirty.take().into_iter();
        while let Some(gathering) = listed.next() {
            if gathering.is_busy() {
                self.dirty.borrow_mut().push(gathering);
            } else if let Err(error) = gathering.flush_listed(py) {
                self.dirty.borrow_mut().extend(listed);
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Host for PythonHost {
    fn before_step(&self) -> Result<(), BoxError> {
        if !self.slept.take()
            && let Some(wait) = self.unreported_wait()
        {
            wait.since.set(None); // something has happened
        }
        attached(|py| {
            self.home.drop_orphans(py);
            self.flush(py)?;
            self.answer(py);
            pass_on(py);
            if self.signals {
                self.steps.set(self.steps.get() + 1);
                if self.steps.get() >= STEPS_BETWEEN_SIGNALS {
                    self.steps.set(0);
                    self.check_signals(py)?;
                }
            }
            Ok(())
        })
        .map_err(Raised::here)
    }

    /// Sends repeatedly, because functions that route records may add more.
    fn before_end(&self) -> Result<(), BoxError> {
        attached(|py| {
            self.home.drop_orphans(py);
            while !self.dirty.borrow().is_empty() {
                self.flush(py)?;
                self.home.drop_orphans(py);
            }
            Ok(())
        })
        .map_err(Raised::here)
    }

    fn apart(&self, run: &mut dyn FnMut()) {
        attached(|py| detached_here(py, run));
    }

    fn patience(&self) -> Option<Duration> {
        let signals = self.signals.then_some(SIGNAL_INTERVAL);
        let wait = self.unreported_wait().map(|wait| {
            let now = Instant::now();
            let since = wait.since.get().unwrap_or(now);
            wait.since.set(Some(since));
            wait.after
                .get()
                .saturating_sub(now - since)
                .max(SIGNAL_INTERVAL)
        });
        signals.into_iter().chain(wait).min()
    }

    fn interrupted(&self, due: Option<Instant>) -> Result<(), BoxError> {
        self.slept.set(true);
        let signals: PyResult<()> = attached(|py| {
            self.answer(py);
            self.check_signals(py)?;
            self.tell_of_wait(py, due)
        });
        signals.map_err(Raised::here)
    }

    fn is_called(&self) -> bool {
        self.home.is_called()
    }

    fn begins(&self, operator: OperatorId) {
        let made = self.home.line();
        self.home.notes().operator_made(operator, made);
    }

    fn keeps(&self, operator: OperatorId, size: StateSize) {
        if let Some(noted) = self.home.notes().operator(operator) {
            noted.keeps(Kept::Native(size));
        }
    }

    fn renames(&self, name: &str) -> Option<String> {
        self.home.naming().renamed(name)
    }

    fn describes(&self) -> Option<String> {
        self.home.naming().form()
    }

    fn describe_error(&self, worker: usize, error: Error) -> (Error, String) {
        attached(|py| describe_error(py, worker, &error, self.cluster.processes() > 1))
    }

    fn ends(&self) {
        let engine = self.engine.take();
        self.home.inquiry().end();
        attached(|py| (self.at_the_end)(py));
        drop(engine);
    }
}

/// The driver of one worker.
pub(crate) struct WorkerLoop {
    engine: ThreadBound<EngineWorker<Batch>>,
    host: ThreadBound<Rc<PythonHost>>,
    /// The worker's part in checkpoints, where some are made.
    recording: OnceLock<ThreadBound<Rc<EngineRecording<Batch>>>>,
}

impl WorkerLoop {
    pub(crate) fn new(
        home: &Arc<Home>,
        engine: EngineWorker<Batch>,
        host: &Rc<PythonHost>,
    ) -> Arc<Self> {
        host.engine.replace(Some(engine.clone()));
        home.latest().get_or_init(|| engine.latest());
        Arc::new(WorkerLoop {
            engine: ThreadBound::new(home, engine),
            host: ThreadBound::new(home, Rc::clone(host)),
            recording: OnceLock::new(),
        })
    }

    pub(crate) fn home(&self) -> &Arc<Home> {
        self.engine.home()
    }

    /// The worker.
    pub(crate) fn engine(&self) -> PyResult<&EngineWorker<Batch>> {
        self.engine.get()
    }

    /// Notes the worker's part in checkpoints.
    pub(crate) fn records(&self, recording: Rc<EngineRecording<Batch>>) {
        let recording = ThreadBound::new(self.home(), recording);
        let _first = self.recording.set(recording);
    }

    /// The worker's part in checkpoints, if some are made, as the engine has it.
    pub(crate) fn engine_recording(&self) -> PyResult<Option<Rc<EngineRecording<Batch>>>> {
        let recording = self.recording.get();
        let recording = recording.map(|recording| recording.get().map(Rc::clone));
        recording.transpose()
    }

    /// The worker's part in checkpoints, if some are made, for Python.
    pub(crate) fn recording(&self) -> PyResult<Option<Recording>> {
        let recording = self.engine_recording()?;
        Ok(recording.map(|recording| Recording::new(self.home(), recording)))
    }

    /// Notes an input that has not come to where it stood at the checkpoint.
    pub(crate) fn repeat(&self, input: Rc<dyn Gathering>) -> PyResult<()> {
        self.host.get()?.repeating.borrow_mut().push(input);
        Ok(())
    }

    /// An input that has not come to where it stood at the checkpoint, for people; None where all have, and on other threads.
    pub(crate) fn behind(&self) -> Option<String> {
        let host = self.host.get().ok()?;
        let mut repeating = host.repeating.borrow_mut();
        let over = repeating.extract_if(.., |input| input.repeated().is_none());
        let over: Vec<_> = over.collect();
        let behind = repeating.first().and_then(|input| input.repeated());
        drop((repeating, over)); // the last reference to an input may go
        behind
    }

    /// Notes that something is to be sent before the next step.
    pub(crate) fn list(&self, gathering: Rc<dyn Gathering>) -> PyResult<()> {
        self.host.get()?.dirty.borrow_mut().push(gathering);
        Ok(())
    }

    /// Does something with the engine; its errors as Python sees them.
    pub(crate) fn run<T>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&EngineWorker<Batch>) -> Result<T, Error>,
    ) -> PyResult<T> {
        run(self.engine()?).map_err(|error| exception(py, &error).0)
    }

    /// Runs as [`run`](Self::run) does, for a wait that the program wants to have reported if it lasts for so
    /// many seconds.
    pub(crate) fn wait<T>(
        &self,
        py: Python<'_>,
        lasting: Option<(f64, Py<PyAny>)>,
        run: impl FnOnce(&EngineWorker<Batch>) -> Result<T, Error>,
    ) -> PyResult<T> {
        let host = self.host.get()?;
        let wait = lasting.and_then(|(seconds, call)| {
            let after = Duration::try_from_secs_f64(seconds).ok()?;
            Some(Rc::new(Wait {
                after: Cell::new(after),
                call: Held::new(call),
                since: Cell::new(None),
                is_over: Cell::new(false),
            }))
        });
        let before = host.wait.replace(wait);
        let result = self.run(py, run);
        let _ended = host.wait.replace(before);
        result
    }

    /// Answers threads that have asked for the worker's state.
    pub(crate) fn answer(&self, py: Python<'_>) {
        if let Ok(host) = self.host.get() {
            host.answer(py);
        }
    }

    /// Steps while too much is on its way for `main` to send more. Inside an operator, which must not wait, it does nothing.
    pub(crate) fn make_room(&self, py: Python<'_>) -> PyResult<()> {
        let engine = self.engine()?;
        self.run(py, EngineWorker::check)?;
        if engine.is_pressed() {
            self.run(py, |engine| engine.make_room(None))?;
        }
        Ok(())
    }
}
