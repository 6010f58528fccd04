//! Checkpoints, as the Python side drives them: their location, and the state of operators.

use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pointstamp_engine::cluster::Cluster as EngineCluster;
use pointstamp_engine::cut::{Changes, Content, Piece as EnginePiece, State};
use pointstamp_engine::error::{BoxError, UserResult};
use pointstamp_recovery::{
    Error, Faults, Listed, Opened, Options, Recorder as EngineRecorder,
    Recording as EngineRecording, Sink as EngineSink, Turns, open,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::activator::Activator;
use crate::batch::Batch;
use crate::bound::{Home, ThreadBound};
use crate::errors::{CheckpointError, IntoException};
use crate::gil::{Held, attached, detached};
use crate::hints::of_recovery;
use crate::raised::Raised;
use crate::turns::WriterTurns;

impl IntoException for &Error {
    fn into_exception(self) -> PyErr {
        CheckpointError::new_err(of_recovery(self))
    }
}

fn seconds(given: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(given)
        .map_err(|_| PyValueError::new_err(format!("{given} is no number of seconds")))
}

/// The variable by which a test has calls of the location fail in one process.
const FAILPOINT: &str = "POINTSTAMP_FAILPOINT";

/// Returns the faults that a test has planned for a process: `kill@17` is for the first, `1:full@3+` for the second.
fn faults(process: usize) -> PyResult<Option<Faults>> {
    let Ok(text) = std::env::var(FAILPOINT) else {
        return Ok(None);
    };
    let wrong = |why: String| PyValueError::new_err(format!("{FAILPOINT}: {why}"));
    let (of, plan) = match text.split_once(':') {
        None => (0, text.as_str()),
        Some((of, plan)) => {
            let of = of.parse::<usize>();
            (of.map_err(|why| wrong(why.to_string()))?, plan)
        }
    };
    let faults = Faults::planned(plan).map_err(wrong)?;
    Ok((of == process).then_some(faults))
}

/// The checkpoints of a process.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Checkpoints {
    options: Options,
    /// Until the computation begins, in the process that leads.
    opened: Mutex<Option<Opened>>,
    recorder: Mutex<Option<Arc<EngineRecorder<Batch>>>>,
    turns: Option<WriterTurns>,
}

#[pymethods]
impl Checkpoints {
    /// Opens checkpoints at a location. The first `process` begins an execution, after which no earlier program can
    /// make checkpoints there.
    #[new]
    #[pyo3(signature = (place, *, every, keep, at, new, drop, drain, tolerate, process, turns = None))]
    #[allow(clippy::too_many_arguments, reason = "named where it is called")]
    fn new(
        py: Python<'_>,
        place: PathBuf,
        every: Option<f64>,
        keep: usize,
        at: Option<u64>,
        new: Vec<String>,
        drop: Vec<String>,
        drain: f64,
        tolerate: u32,
        process: usize,
        turns: Option<&WriterTurns>,
    ) -> PyResult<Self> {
        let options = Options {
            place,
            every: every.map(seconds).transpose()?,
            keep,
            at,
            changes: Changes {
                new: new.into_iter().collect(),
                dropped: drop.into_iter().collect(),
            },
            drain: seconds(drain)?,
            tolerate,
            faults: match turns {
                Some(turns) => Some(turns.faults()),
                None => faults(process)?,
            },
        };
        let opened = if process == 0 {
            let opened = detached(py, || open(&options));
            Some(refused(opened)?)
        } else {
            None
        };
        Ok(Checkpoints {
            options,
            opened: Mutex::new(opened),
            recorder: Mutex::new(None),
            turns: turns.cloned(),
        })
    }

    /// Requests, on any thread, a checkpoint after which all workers end.
    fn stop(&self, py: Python<'_>) {
        let recorder = self.recorder();
        detached(py, || {
            if let Some(recorder) = recorder {
                recorder.stop();
            }
        });
    }

    /// Ends, after the workers. Where the `whole` computation has come to its end, the last checkpoint says so.
    fn end(&self, py: Python<'_>, whole: bool) -> PyResult<()> {
        let recorder = self.recorder.lock().take();
        let ended = detached(py, || {
            recorder.map_or(Ok(()), |recorder| recorder.end(whole))
        });
        refused(ended)
    }
}

impl Checkpoints {
    /// Takes part in a computation, before its workers begin.
    pub(crate) fn start(&self, cluster: &Arc<EngineCluster>) -> PyResult<()> {
        let opened = self.opened.lock().take();
        let turns = self.turns.clone();
        let turns = turns.map(|turns| Box::new(turns) as Box<dyn Turns>);
        let recorder = EngineRecorder::start(cluster, &self.options, opened, turns);
        *self.recorder.lock() = Some(Arc::new(refused(recorder)?));
        Ok(())
    }

    pub(crate) fn recorder(&self) -> Option<Arc<EngineRecorder<Batch>>> {
        self.recorder.lock().clone()
    }
}

/// A worker's part in checkpoints.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Recording {
    recording: ThreadBound<Rc<EngineRecording<Batch>>>,
}

impl Recording {
    pub(crate) fn new(home: &Arc<Home>, recording: Rc<EngineRecording<Batch>>) -> Self {
        Recording {
            recording: ThreadBound::new(home, recording),
        }
    }
}

#[pymethods]
impl Recording {
    /// The checkpoint from which the computation resumes: its number, its creation time in milliseconds since
    /// 1970, and the number of workers that made it.
    #[getter]
    fn resumed(&self) -> PyResult<Option<(u64, u64, u32)>> {
        let resumed = self.recording.get()?.resumed();
        Ok(resumed.map(|resumed| (resumed.number, resumed.made_ms, resumed.workers)))
    }

    /// The last checkpoint that exists and that all sinks have shown.
    #[getter]
    fn covered(&self) -> PyResult<u64> {
        Ok(self.recording.get()?.covered())
    }

    /// Requests a checkpoint; returns the number of the request.
    fn ask(&self) -> PyResult<u64> {
        Ok(self.recording.get()?.ask())
    }

    /// Requests a checkpoint after which all workers end.
    fn stop(&self) -> PyResult<()> {
        self.recording.get()?.stop();
        Ok(())
    }

    /// The last request that a checkpoint has answered.
    #[getter]
    fn answered(&self) -> PyResult<u64> {
        Ok(self.recording.get()?.answered())
    }

    /// Why the last attempt failed.
    #[getter]
    fn failed(&self) -> PyResult<Option<String>> {
        Ok(self.recording.get()?.failed())
    }

    /// Has an operator run whenever a checkpoint is covered.
    fn subscribe(&self, activator: &Activator) -> PyResult<()> {
        self.recording.get()?.subscribe(activator.engine()?);
        Ok(())
    }

    /// Registers an operator that shows the results that checkpoints cover.
    fn sink(&self, activator: &Activator) -> PyResult<Shows> {
        let sink = self.recording.get()?.sink(activator.engine()?);
        Ok(Shows {
            sink: ThreadBound::new(self.recording.home(), sink),
        })
    }

    /// The random identity of the place where checkpoints are kept.
    #[getter]
    fn lineage(&self) -> PyResult<String> {
        Ok(self.recording.get()?.lineage())
    }
}

/// The handle of an operator that shows the results that checkpoints cover.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Shows {
    sink: ThreadBound<Rc<EngineSink<Batch>>>,
}

#[pymethods]
impl Shows {
    /// The last checkpoint that exists. The operator runs when it changes.
    #[getter]
    fn committed(&self) -> PyResult<u64> {
        Ok(self.sink.get()?.committed())
    }

    /// Notes that the operator has shown the results that a checkpoint covers.
    fn show(&self, number: u64) -> PyResult<()> {
        self.sink.get()?.show(number);
        Ok(())
    }

    /// Requests a checkpoint.
    fn ask(&self) -> PyResult<()> {
        self.sink.get()?.ask();
        Ok(())
    }
}

/// A piece of an operator's state: bytes that do not change. The next checkpoint does not write a piece again that the last one has.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Piece(EnginePiece);

/// Contents that Python makes while they are written, a part at a time. Between two parts other threads run.
struct Parts(Held<PyAny>);

impl Content for Parts {
    fn write(&self, out: &mut dyn Write) -> UserResult<()> {
        for number in 0_usize.. {
            let part = attached(|py| {
                let part = self.0.get().bind(py).call_method1("part", (number,))?;
                let part: Option<PyBackedBytes> = part.extract()?;
                Ok::<_, PyErr>(part)
            });
            match part.map_err(Raised::here)? {
                None => break,
                Some(part) => out.write_all(&part)?,
            }
        }
        Ok(())
    }

    fn settle(&self) {
        attached(|py| {
            let parts = self.0.get().bind(py);
            if let Err(error) = parts.call_method0("settle") {
                error.write_unraisable(py, Some(parts));
            }
        });
    }
}

/// The exception for a piece that cannot be read.
fn unread(py: Python<'_>, error: &(dyn std::error::Error + Send + Sync + 'static)) -> PyErr {
    match error.downcast_ref::<Raised>() {
        Some(raised) => raised.error.clone_ref(py),
        None => CheckpointError::new_err(error.to_string()),
    }
}

/// The bytes of the length in front of a part.
const LENGTH: usize = 8;

/// Splits what is written to it into parts, and passes each to a function of Python's.
struct Split {
    take: Held,
    /// The beginning of a part whose end has not come.
    begun: Vec<u8>,
    written: usize,
    error: Option<PyErr>,
}

impl Split {
    /// The bytes of the part in front, with its length; without the length, the bytes of that.
    fn needed(bytes: &[u8]) -> usize {
        let length = bytes
            .first_chunk()
            .map_or(0, |length| u64::from_le_bytes(*length));
        LENGTH.saturating_add(usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn pass(&self, part: &[u8]) -> PyResult<()> {
        attached(|py| {
            let part = PyBytes::new(py, &part[LENGTH..]);
            self.take.get().bind(py).call1((part,)).map(drop)
        })
    }

    fn split(&mut self, mut bytes: &[u8]) -> PyResult<()> {
        self.written += bytes.len();
        while !self.begun.is_empty() {
            let needed = Self::needed(&self.begun);
            if needed == self.begun.len() {
                self.pass(&self.begun)?;
                self.begun.clear();
                break;
            }
            if bytes.is_empty() {
                return Ok(());
            }
            let (some, behind) = bytes.split_at(bytes.len().min(needed - self.begun.len()));
            self.begun.extend_from_slice(some);
            bytes = behind;
        }
        // What lies whole in these bytes is passed as it is.
        while bytes.len() >= LENGTH && bytes.len() >= Self::needed(bytes) {
            let (part, behind) = bytes.split_at(Self::needed(bytes));
            self.pass(part)?;
            bytes = behind;
        }
        self.begun.extend_from_slice(bytes);
        Ok(())
    }
}

impl Write for Split {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.split(bytes).map_err(|error| {
            self.error = Some(error);
            std::io::Error::other("a part was not taken")
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[pymethods]
impl Piece {
    #[new]
    fn new(contents: &[u8]) -> Self {
        Piece(contents.to_vec().into())
    }

    /// A piece of the bytes that `contents.part(0)`, `part(1)` and so on return, until one is None. The methods are called when the piece is written, on a
    /// thread of checkpoints, and give the same bytes each time; `contents.settle()` is called once a checkpoint has the piece.
    #[staticmethod]
    fn of_parts(contents: Py<PyAny>) -> Self {
        Piece(EnginePiece::new(Parts(Held::new(contents))))
    }

    /// Passes each part to a function, without the length that is in front of it, and returns the bytes that the piece has.
    fn split_into(&self, py: Python<'_>, take: Py<PyAny>) -> PyResult<usize> {
        let mut parts = Split {
            take: Held::new(take),
            begun: Vec::new(),
            written: 0,
            error: None,
        };
        let read = detached(py, || self.0.write(&mut parts));
        match parts.error {
            Some(error) => Err(error),
            None => read.map_err(|error| unread(py, &*error)),
        }?;
        Ok(parts.written)
    }

    /// The bytes.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let read = detached(py, || self.0.to_bytes());
        Ok(PyBytes::new(
            py,
            &read.map_err(|error| unread(py, &*error))?,
        ))
    }
}

impl Piece {
    pub(crate) fn restored(piece: &EnginePiece) -> Self {
        Piece(piece.clone())
    }
}

/// Returns the constructor of a state whose pieces are divided among workers by the named division.
pub(crate) fn division(name: &str) -> PyResult<fn(Vec<EnginePiece>) -> State> {
    match name {
        "workers" => Ok(State::Workers),
        "groups" => Ok(State::Groups),
        "parts" => Ok(State::Parts),
        _ => Err(PyValueError::new_err(format!("no division: {name:?}"))),
    }
}

/// Wraps a Python function that returns the state as a list of pieces.
pub(crate) fn taking(
    division: fn(Vec<EnginePiece>) -> State,
    take: Py<PyAny>,
) -> impl FnMut() -> Result<State, BoxError> + 'static {
    let take = Held::new(take);
    move || {
        attached(|py| {
            let taken = take.get().bind(py).call0()?;
            let pieces = taken.extract::<Vec<PyRef<'_, Piece>>>()?;
            let pieces = pieces.iter().map(|piece| piece.0.clone()).collect();
            Ok(division(pieces))
        })
        .map_err(Raised::here)
    }
}

/// A checkpoint in a list: number, milliseconds since 1970, workers, packs, bytes, bytes that are needed, and why it cannot be read.
type Line = (
    u64,
    u64,
    u32,
    Option<String>,
    usize,
    u64,
    u64,
    Option<String>,
);

fn refused<T>(made: Result<T, Error>) -> PyResult<T> {
    made.map_err(|error| (&error).into_exception())
}

/// Lists the checkpoints that are kept at a place.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn checkpoints_list(py: Python<'_>, place: PathBuf) -> PyResult<Vec<Line>> {
    let listed = refused(detached(py, || pointstamp_recovery::list(&place)))?;
    let line = |one: Listed| {
        (
            one.number,
            one.made_ms,
            one.workers,
            one.fixed_workers,
            one.packs,
            one.bytes,
            one.live,
            one.damage,
        )
    };
    Ok(listed.into_iter().map(line).collect())
}

/// Lists the sections of a checkpoint: operator, part and bytes.
#[pyfunction]
#[pyo3(signature = (place, number = None))]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn checkpoints_show(
    py: Python<'_>,
    place: PathBuf,
    number: Option<u64>,
) -> PyResult<Vec<(String, String, u64)>> {
    refused(detached(py, || {
        pointstamp_recovery::sections(&place, number)
    }))
}

/// Reads every byte of the checkpoints at a location: their numbers, packs, bytes, and the damage found.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn checkpoints_verify(
    py: Python<'_>,
    place: PathBuf,
) -> PyResult<(Vec<u64>, usize, u64, Vec<String>)> {
    let verified = refused(detached(py, || pointstamp_recovery::verify(&place)))?;
    Ok((
        verified.checkpoints,
        verified.packs,
        verified.bytes,
        verified.damage,
    ))
}

/// Removes objects that no kept checkpoint at a location needs; returns how many.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn checkpoints_prune(py: Python<'_>, place: PathBuf) -> PyResult<usize> {
    refused(detached(py, || pointstamp_recovery::prune(&place)))
}
