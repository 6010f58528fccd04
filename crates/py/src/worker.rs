//! Workers, as `pointstamp.Worker` holds them, and the cluster that they form.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use pointstamp_channels::{LINGER, group_of};
use pointstamp_engine::cluster::{Cluster as EngineCluster, Seed};
use pointstamp_engine::error::Error;
use pointstamp_engine::execute::run_worker;
use pointstamp_engine::host::Host;
use pointstamp_engine::observe::{Observation, Observer};
use pointstamp_engine::worker::Worker as EngineWorker;
use pointstamp_progress::Mode;
use pointstamp_spill::Budget as EngineBudget;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::bound::{Home, ThreadBound};
use crate::connections::Connections;
use crate::errors::{CheckpointError, GraphError, PointstampError, WorkerStopped};
use crate::forks::{self, Process, REFUSED};
use crate::gil::{Held, detached, detached_here};
use crate::kinds::ProgressMode;
use crate::memory::Budget;
use crate::observability::graph::{Collector, Installed};
use crate::observability::inquiry::Answer;
use crate::observability::receiver_threads::ReceiverThreads;
use crate::observability::record::Recorder;
use crate::raised::{Raised, describe_error, exception};
use crate::recovery::{Checkpoints, Recording};
use crate::scope::Scope;
use crate::simulation::Simulation;
use crate::threads::{Running, Threads, absorb_interruption};
use crate::worker_loop::{PythonHost, WorkerLoop};

/// One worker.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Worker(Arc<WorkerLoop>);

/// The error for an operator that asks its own worker.
const ASKED_INSIDE: &str = "a worker cannot be asked from inside one of its operators, because it answers between two steps: return from the \
                            operator first, or ask on another thread";

fn duration(timeout: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = timeout else {
        return Ok(None);
    };
    let timeout = Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!(
            "{seconds} is not a timeout in seconds: it must be 0 or more"
        ))
    })?;
    Ok(Some(timeout))
}

#[pymethods]
impl Worker {
    /// The worker's number.
    #[getter]
    fn index(&self) -> usize {
        self.0.home().worker()
    }

    /// The number of workers.
    #[getter]
    fn peers(&self) -> PyResult<usize> {
        Ok(self.0.engine()?.peers())
    }

    /// Begins a dataflow.
    fn begin_dataflow(&self, name: &str, dims: usize) -> PyResult<Scope> {
        let scope = self.0.engine()?.begin_dataflow(name, dims);
        Ok(Scope {
            scope: ThreadBound::new(self.0.home(), scope),
            driver: Arc::clone(&self.0),
        })
    }

    /// Installs a dataflow; its graph.
    #[pyo3(signature = (scope, described = Vec::new()))]
    fn install(
        &self,
        py: Python<'_>,
        scope: &Scope,
        described: Vec<String>,
    ) -> PyResult<Installed> {
        let scope = scope.scope.get()?;
        let collector = Collector::new();
        let observer = Rc::clone(&collector) as Rc<dyn Observer>;
        let engine = self.0.engine()?;
        engine.observe(Rc::clone(&observer));
        let mut cycle = None;
        let installed = self.0.run(py, |engine| {
            engine
                .install_described(scope, described)
                .inspect_err(|error| {
                    if let Error::Cycle {
                        cycle: found,
                        operators,
                    } = error.shared()
                    {
                        cycle = Some((found.to_string(), operators.clone()));
                    }
                })
        });
        engine.unobserve(&observer);
        let notes = self.0.home().notes();
        if let Some((message, operators)) = cycle {
            let lines = notes.lines(&operators);
            return Err(GraphError::new_err(match lines.as_str() {
                "" => message,
                _ => format!("{message} (made at {lines})"),
            }));
        }
        installed?;
        Ok(collector.take(notes))
    }

    /// Gives up a dataflow that was begun.
    fn discard(&self, scope: &Scope) -> PyResult<()> {
        self.0.engine()?.discard(scope.scope.get()?);
        Ok(())
    }

    /// Runs active dataflows once; false once no dataflow is left.
    fn step(&self, py: Python<'_>) -> PyResult<bool> {
        self.0.run(py, EngineWorker::step)
    }

    /// Steps, after sleeping for at most `timeout` seconds where there is nothing to do.
    #[pyo3(signature = (timeout = None))]
    fn step_or_park(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let timeout = duration(timeout)?;
        self.0.run(py, |engine| engine.step_or_park(timeout))
    }

    /// Steps while the condition holds and a dataflow is left, for at most so many seconds; whether that is over.
    ///
    /// A function is called, once, where the wait lasts for so many seconds in which nothing happens.
    #[pyo3(signature = (condition, timeout = None, lasting = None))]
    fn step_while(
        &self,
        condition: &Bound<'_, PyAny>,
        timeout: Option<f64>,
        lasting: Option<(f64, Py<PyAny>)>,
    ) -> PyResult<bool> {
        let py = condition.py();
        let holds = || {
            let holds = condition.call0().and_then(|holds| holds.is_truthy());
            holds.map_err(|error| Error::Host {
                cause: Raised::here(error),
            })
        };
        let deadline = duration(timeout)?.and_then(|wait| Instant::now().checked_add(wait));
        let Some(deadline) = deadline else {
            self.0
                .wait(py, lasting, |engine| engine.try_step_while(holds))?;
            return Ok(true);
        };
        self.0.run(py, |engine| {
            while holds()? {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(false);
                }
                if !engine.step_or_park(Some(left))? {
                    break;
                }
            }
            Ok(true)
        })
    }

    /// Records all later events of this worker.
    fn record(&self, recorder: &Recorder) -> PyResult<()> {
        let recorder = Arc::clone(&recorder.0);
        let _first = self.0.home().recorder().set(Arc::clone(&recorder));
        let observe = move |observation: &Observation<'_>| recorder.observe(observation);
        self.0.engine()?.observe(Rc::new(observe));
        Ok(())
    }

    /// Answers threads that have asked for this worker's state, as it does before each step.
    fn answer(&self, py: Python<'_>) {
        self.0.answer(py);
    }

    /// Asks all workers of this process for their state, and answers meanwhile; returns the answer or None,
    /// by worker.
    fn ask(
        &self,
        py: Python<'_>,
        cluster: &Cluster,
        seconds: f64,
    ) -> PyResult<Vec<Option<Py<PyAny>>>> {
        if self.0.engine()?.is_stepping() {
            return Err(PointstampError::new_err(ASKED_INSIDE));
        }
        cluster.ask_all(py, seconds, || self.0.answer(py))
    }

    /// Steps until every dataflow is complete; `lasting` as for `step_while`.
    #[pyo3(signature = (lasting = None))]
    fn run(&self, py: Python<'_>, lasting: Option<(f64, Py<PyAny>)>) -> PyResult<()> {
        self.0.wait(py, lasting, EngineWorker::run)
    }

    /// The traffic of this process to others so far: frames and bytes of records, and of progress.
    fn traffic(&self) -> PyResult<(u64, u64, u64, u64)> {
        Ok(traffic(self.0.engine()?.cluster()))
    }

    /// The worker's part in checkpoints; None where none are made.
    #[getter]
    fn recording(&self) -> PyResult<Option<Recording>> {
        self.0.recording()
    }

    /// The number of dataflows that were begun, here or before the checkpoint from which the computation resumes.
    fn begun(&self) -> PyResult<usize> {
        Ok(self.0.engine()?.begun())
    }

    /// Takes the identities of operators with state whose functions differ from those at the checkpoint.
    fn changed(&self) -> PyResult<Vec<String>> {
        Ok(self.0.engine()?.changed())
    }

    /// The numbers of the dataflows of the checkpoint that have yet to be built.
    fn unrestored(&self) -> PyResult<Vec<usize>> {
        Ok(self.0.engine()?.unrestored())
    }

    /// The numbers of the dataflows that are not complete.
    fn installed_dataflows(&self) -> PyResult<Vec<usize>> {
        Ok(self.0.engine()?.installed_dataflows())
    }

    /// Removes a dataflow, complete or not.
    fn drop_dataflow(&self, dataflow: usize) -> PyResult<()> {
        self.0.engine()?.drop_dataflow(dataflow);
        Ok(())
    }
}

/// The workers of one computation in this process.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Cluster {
    engine: Arc<EngineCluster>,
    seeds: Mutex<Vec<Option<Seed>>>,
    /// The home of each worker's objects, once it has begun.
    homes: Mutex<Vec<Option<Arc<Home>>>>,
    /// For each worker that is running Python code of the user's, the interpreter's number of its thread.
    threads: Arc<Threads>,
    receiver_threads: Arc<ReceiverThreads>,
    process: Process,
    /// The bound of the memory of operators' state, if there is one.
    budget: Option<Arc<EngineBudget>>,
}

#[pymethods]
impl Cluster {
    #[new]
    /// With [`ProgressMode::Tree`], `group` is the number of processes in a group.
    #[pyo3(signature = (workers, progress_mode, high_water, connections = None, budget = None, group = None))]
    fn new(
        workers: usize,
        progress_mode: ProgressMode,
        high_water: usize,
        connections: Option<&Connections>,
        budget: Option<&Budget>,
        group: Option<usize>,
    ) -> PyResult<Self> {
        let mode = match progress_mode {
            ProgressMode::Demand | ProgressMode::Tree => Mode::Demand,
            ProgressMode::Eager => Mode::Eager,
        };
        let most = budget.map_or(usize::MAX, |budget| budget.0.most_in_flight());
        let high_water = high_water.min(most);
        let (cluster, seeds) = match connections {
            None => EngineCluster::in_process(workers, mode, high_water),
            Some(connections) => {
                let transport = connections.take()?;
                let group = match progress_mode {
                    ProgressMode::Tree => group.unwrap_or_else(|| group_of(transport.processes())),
                    ProgressMode::Demand | ProgressMode::Eager => 1,
                };
                EngineCluster::in_cluster_of_groups(
                    workers, mode, high_water, transport, LINGER, group,
                )
            }
        };
        if let Some(budget) = budget {
            let counted = Arc::downgrade(&cluster);
            let in_flight = move || counted.upgrade().map_or(0, |cluster| cluster.in_flight());
            budget.0.count_in_flight(in_flight);
        }
        let seeds = Mutex::new(seeds.into_iter().map(Some).collect());
        Ok(Cluster {
            engine: cluster,
            seeds,
            homes: Mutex::new((0..workers).map(|_| None).collect()),
            threads: Arc::new(Threads(Mutex::new((0..workers).map(|_| None).collect()))),
            receiver_threads: Arc::default(),
            process: Process::this(),
            budget: budget.map(|budget| Arc::clone(&budget.0)),
        })
    }

    /// Makes this thread a worker, by its number in this process; `interrupted` is called with the exception
    /// of a signal's handler between steps. Runs `main(wrap(worker))`, closes the inputs that it left open,
    /// and steps until its dataflows are complete. Returns the result of `main`. Failures are kept, for
    /// `raise_failure`. In a simulation the worker takes turns with the others.
    #[allow(
        clippy::too_many_arguments,
        reason = "called in two places, by position"
    )]
    #[pyo3(signature = (index, wrap, main, thread, signals, interrupted = None, simulation = None, checkpoints = None))]
    fn run(
        &self,
        index: usize,
        wrap: &Bound<'_, PyAny>,
        main: &Bound<'_, PyAny>,
        thread: std::ffi::c_ulong,
        signals: bool,
        interrupted: Option<Py<PyAny>>,
        simulation: Option<&Simulation>,
        checkpoints: Option<&Checkpoints>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let py = main.py();
        let seed = self.seeds.lock().get_mut(index).and_then(Option::take);
        let Some(seed) = seed else {
            return Err(PyValueError::new_err(format!(
                "worker {index} does not exist, or was run already"
            )));
        };
        let number = seed.index();
        let home = Home::here(&self.engine, number);
        self.homes()[index] = Some(Arc::clone(&home));
        let threads = Arc::clone(&self.threads);
        let at_the_end = move |py: Python<'_>| {
            if let Some(running) = threads.note(index, None)
                && running.interrupted
            {
                absorb_interruption(py, running.thread);
            }
        };
        let host = PythonHost::new(&home, &self.engine, signals, interrupted, at_the_end);
        let recorder = checkpoints.and_then(Checkpoints::recorder);
        let run_main = |engine: &EngineWorker<Batch>| {
            if let Some(budget) = &self.budget {
                engine.set_resource(Arc::clone(budget) as _);
                let budget = Arc::clone(budget);
                engine.give_way_while(move || budget.is_over());
            }
            let driver = WorkerLoop::new(&home, engine.clone(), &host);
            if let Some(recorder) = &recorder {
                let mut begun = None;
                detached_here(py, &mut || begun = Some(recorder.begin(engine)));
                if let Some(recording) = begun.transpose()? {
                    driver.records(recording);
                }
            }
            self.threads.note(index, Some(Running::new(thread)));
            let of_main = Arc::clone(&driver);
            let worker = Bound::new(py, Worker(driver));
            let returned = worker
                .and_then(|worker| wrap.call1((worker,)))
                .and_then(|worker| main.call1((worker,)));
            if !home.process().is_this() {
                forks::end(py, returned.err().as_ref());
            }
            let returned = returned.and_then(|returned| match of_main.behind() {
                None => Ok(returned),
                Some(place) => Err(CheckpointError::new_err(format!(
                    "main returned before it has sent again what input {place} of worker {} had been sent at the checkpoint: let \
                     it send the same, or take new_input(resume=\"continue\"), and send only what comes after its position",
                    home.worker()
                ))),
            });
            returned.map(Bound::unbind).map_err(|error| {
                if error.is_instance_of::<WorkerStopped>(py) && self.engine.ending().is_stopped() {
                    Error::Stopped
                } else {
                    let cause = Raised::here(error);
                    Error::Host { cause }
                }
            })
        };
        let hosting = match simulation {
            Some(simulation) => simulation.host(number, &host),
            None => Rc::clone(&host) as Rc<dyn Host>,
        };
        let result = run_worker(seed, &hosting, run_main);
        host.discard();
        drop((hosting, host)); // nothing is held here any more: only Python objects refer to the worker
        home.end(py);
        Ok(result)
    }

    /// Has the workers of this process take part in checkpoints: to be called before they begin.
    fn records(&self, checkpoints: &Checkpoints) -> PyResult<()> {
        checkpoints.start(&self.engine)
    }

    /// Ends the computation because the thread of a worker of this process, by its number here, failed outside of it.
    fn fail(&self, py: Python<'_>, index: usize, error: &Bound<'_, PyAny>) {
        let worker = self.engine.process() * self.threads.len() + index;
        let cause = Raised::here(PyErr::from_value(error.clone()));
        let others = self.engine.processes() > 1;
        let (error, reason) = describe_error(py, worker, &Error::Host { cause }, others);
        detached(py, || {
            self.engine.ending().fail_because(worker, error, reason);
        });
    }

    /// Stops every worker: sleeping ones wake, and running Python code is interrupted.
    fn interrupt(&self, py: Python<'_>) {
        self.engine.ending().stop();
        let exception = py.get_type::<WorkerStopped>();
        for thread in self.threads.interrupted() {
            // SAFETY: attached, with a live exception type. The thread runs the user's code: `run` takes its
            // number out before it ends, attached, so that no other thread of that number is struck.
            unsafe { ffi::PyThreadState_SetAsyncExc(thread.cast_signed(), exception.as_ptr()) };
        }
    }

    /// Stops every worker of every process, for a reason that is not a worker's failure.
    fn abandon(&self, py: Python<'_>, reason: String) {
        detached(py, || self.engine.ending().abandon(reason));
    }

    /// Says to the other processes that the workers of this one have ended.
    fn leave(&self, py: Python<'_>) {
        detached(py, || self.engine.ending().leave());
    }

    /// Waits until the other processes have left, for at most so many seconds; whether that is over.
    fn wait_for_others(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let deadline = duration(Some(seconds))?.and_then(|wait| Instant::now().checked_add(wait));
        Ok(detached(py, || {
            self.engine.ending().wait_for_others(deadline)
        }))
    }

    /// Ends the connections to other processes. Returns when their last messages were handled.
    fn close(&self, py: Python<'_>) {
        detached(py, || {
            self.engine.close();
            self.receiver_threads.wait();
        });
    }

    /// The traffic to other processes so far: frames and bytes of records, and of progress.
    fn traffic(&self) -> (u64, u64, u64, u64) {
        traffic(&self.engine)
    }

    /// Wakes a worker of this process, by its number here, where it sleeps: its program has its turn.
    fn wake(&self, index: usize) {
        let home = self.homes()[index].clone();
        if let Some(home) = home {
            home.call();
        }
    }

    /// Asks all workers of this process for their state, from a thread that runs none of them; returns the
    /// answer or None, by worker.
    fn ask(&self, py: Python<'_>, seconds: f64) -> PyResult<Vec<Option<Py<PyAny>>>> {
        self.ask_all(py, seconds, || ())
    }

    /// For each worker of this process, the interpreter's number of the thread that runs its Python code, while it does.
    fn running(&self) -> Vec<Option<std::ffi::c_ulong>> {
        let all = self.threads.all();
        let running = all.iter().map(|running| running.as_ref());
        running
            .map(|running| running.map(|running| running.thread))
            .collect()
    }

    /// For each worker of this process, the name of the operator that has begun to run last.
    fn at_work(&self) -> Vec<Option<String>> {
        let homes = self.homes().clone();
        let names = homes.iter().map(|home| home.as_ref()?.at_work());
        names.collect()
    }

    /// Sends a message to all other processes, for the function that they gave to `listen`.
    fn say(&self, py: Python<'_>, what: Vec<u8>) {
        detached(py, || self.engine.say(what));
    }

    /// Calls a function with each message of another process, and its number, on a thread of its own.
    fn listen(&self, handler: Py<PyAny>) {
        let handler = Arc::new(Held::new(handler));
        let receiver_threads = Arc::clone(&self.receiver_threads);
        self.engine.listen(Box::new(move |from, what| {
            let handler = Arc::clone(&handler);
            let running = ReceiverThreads::begin(&receiver_threads);
            std::thread::spawn(move || {
                // Where the interpreter has ended, no question comes any more.
                let _running =
                    Python::try_attach(|py| handler.get().bind(py).call1((from, what)).map(drop));
                drop(handler); // attached, for the last time
                drop(running);
            });
        }));
    }

    /// Whether the workers were stopped.
    #[getter]
    fn stopped(&self) -> bool {
        self.engine.ending().is_stopped()
    }

    /// Raises the failure that ended the computation, if one did.
    fn raise_failure(&self, py: Python<'_>) -> PyResult<()> {
        match self.engine.ending().take_failure() {
            Some(failure) => Err(exception(py, &failure.error).0),
            None => Ok(()),
        }
    }
}

impl Cluster {
    fn homes(&self) -> MutexGuard<'_, Vec<Option<Arc<Home>>>> {
        self.homes.lock()
    }

    /// Asks all workers, and waits for so many seconds at most; `meanwhile` is called now and then.
    fn ask_all(
        &self,
        py: Python<'_>,
        seconds: f64,
        meanwhile: impl Fn(),
    ) -> PyResult<Vec<Option<Py<PyAny>>>> {
        if !self.process.is_this() {
            return Err(PointstampError::new_err(REFUSED));
        }
        let wait = duration(Some(seconds))?.unwrap_or_default();
        let deadline = Instant::now() + wait;
        let ask = |index: usize| {
            let home = self.homes()[index].clone()?;
            let request = home.inquiry().ask();
            home.wake();
            Some((home, request))
        };
        let mut asked: Vec<_> = (0..self.threads.len()).map(ask).collect();
        let mut answers = Vec::new();
        for (index, asked) in asked.iter_mut().enumerate() {
            let answer = loop {
                meanwhile();
                if asked.is_none() {
                    *asked = ask(index); // it may have begun by now
                }
                let answer = match asked {
                    Some((home, request)) => home.inquiry().take(py, *request),
                    None => Answer::None,
                };
                if Instant::now() >= deadline || !matches!(answer, Answer::None) {
                    break answer;
                }
                let soon = deadline.min(Instant::now() + SLICE);
                detached(py, || match asked {
                    Some((home, request)) => home.inquiry().wait(*request, soon),
                    None => std::thread::sleep(SLICE),
                });
                py.check_signals()?;
            };
            answers.push(match answer {
                Answer::Given(given) => Some(given),
                Answer::Ended => Some("ended".into_pyobject(py)?.into_any().unbind()),
                Answer::None => None,
            });
        }
        Ok(answers)
    }
}

/// The interval at which a thread that asks checks whether it is asked itself.
const SLICE: Duration = Duration::from_millis(5);

fn traffic(cluster: &EngineCluster) -> (u64, u64, u64, u64) {
    let sent = cluster.traffic();
    (
        sent.data_frames,
        sent.data_bytes,
        sent.progress_frames,
        sent.progress_bytes,
    )
}
