//! Inputs that `main` drives by an `InputHandle`, in the order of time.

use std::rc::Rc;
use std::sync::Arc;

use arrow_array::RecordBatch;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::scope::Scope as EngineScope;
use pointstamp_engine::stream::Stream as EngineStream;
use pointstamp_order::Point;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::{Batch, MAX_BATCH};
use crate::bound::ThreadBound;
use crate::buffered::Buffered;
use crate::collections::given::Given;
use crate::errors::{IntoException, PointstampError};
use crate::gathering::Gathering;
use crate::gil::give_way;
use crate::iterables::{Giver, records_of, refuse_iterator};
use crate::kinds::Resume;
use crate::position::digest_of;
use crate::time::{point_from_py, point_infer, point_to_py};
use crate::unordered::place;
use crate::worker_loop::WorkerLoop;

/// Introduces records at its current time.
///
/// `InputHandle()`, then `to_stream(scope)` or `scope.input_from(handle)`; one handle can feed several
/// dataflows. Records wait until a batch is full, the time advances, `flush()` is called, or the worker
/// steps. While more is on its way than `Config(high_water=)` allows, sending steps the worker. Until the handle
/// advances past a time or is closed, that time stays open downstream, on every worker.
///
/// Examples:
///     >>> import pointstamp as ps
///     >>> def main(worker):
///     ...     numbers = ps.InputHandle()
///     ...     with worker.dataflow() as scope:
///     ...         captured = scope.input_from(numbers).capture()
///     ...     for time in range(2):
///     ...         numbers.send(10 * time)
///     ...         numbers.advance_to(time + 1)
///     ...     numbers.close()
///     ...     worker.run()
///     ...     return captured.extract()
///     >>> ps.execute(main)
///     [[(0, [0]), (1, [10])]]
#[pyclass(frozen, subclass, module = "pointstamp")]
pub(crate) struct InputHandle {
    /// The state of the input, made when the handle is connected: only then is its worker known.
    state: std::sync::OnceLock<ThreadBound<Rc<Buffered>>>,
    closed_early: std::sync::atomic::AtomicBool,
    /// The operator's name and its dataflow's, for people.
    place: std::sync::OnceLock<String>,
}

impl InputHandle {
    fn state(&self) -> PyResult<&Rc<Buffered>> {
        match self.state.get() {
            Some(state) => state.get(),
            None => Err(PointstampError::new_err(
                "the input is connected to no dataflow: call to_stream(scope) while building one",
            )),
        }
    }

    /// The state, while the input is open.
    pub(crate) fn open_state(&self) -> PyResult<&Rc<Buffered>> {
        let state = self.state()?;
        if state.input.is_closed() {
            return Err(pointstamp_engine::error::Error::Closed.into_exception());
        }
        let built = state.input.check_built();
        built.map_err(IntoException::into_exception)?;
        state.check_outside()?;
        Ok(state)
    }

    /// Checks that something can be sent.
    pub(crate) fn check_open(&self) -> PyResult<()> {
        self.open_state().map(drop)
    }

    /// Steps the worker while too much is on its way for more to be sent.
    pub(crate) fn make_room(&self, py: Python<'_>) -> PyResult<()> {
        self.state()?.driver.make_room(py)
    }

    /// Sends a record batch at the current time; it needs no interpreter.
    pub(crate) fn send_columns(&self, columns: RecordBatch) -> PyResult<Result<(), BoxError>> {
        Ok(self.open_state()?.send_columns(columns))
    }

    /// Adds an update of a collection at the current time.
    pub(crate) fn update(&self, record: &Bound<'_, PyAny>, diff: i64) -> PyResult<()> {
        let state = self.open_state()?;
        if state.add_update(record, diff)? {
            state.driver.make_room(record.py())?;
        }
        Ok(())
    }

    /// Adds updates of a collection at the current time: all of them, or none. The worker is stepped behind the last, not
    /// between them, where an interruption or an operator's error would leave part of the call.
    pub(crate) fn update_all(&self, py: Python<'_>, given: Given) -> PyResult<()> {
        let state = self.open_state()?;
        let mut full = false;
        state.count_all(py, &given)?;
        for part in given.into_parts() {
            full |= state.add_part(py, part)?;
            give_way(py);
        }
        if full {
            state.driver.make_room(py)?;
        }
        Ok(())
    }

    /// Connects the handle to a scope.
    pub(crate) fn attach(
        &self,
        py: Python<'_>,
        scope: &EngineScope<Batch>,
        driver: &Arc<WorkerLoop>,
        resume: Resume,
    ) -> PyResult<EngineStream<Batch>> {
        if self.closed_early.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(pointstamp_engine::error::Error::Closed.into_exception());
        }
        let state = self
            .state
            .get_or_init(|| ThreadBound::new(driver.home(), Buffered::new(driver)));
        let state = state.get()?;
        state.drain(py)?; // earlier records are not for this dataflow
        let is_first = state.dims.get().is_none();
        let recording = driver.engine_recording()?;
        if recording.is_some() {
            state.keep_ledger(scope.dims(), resume);
        }
        let stream = state
            .input
            .attach(scope)
            .map_err(IntoException::into_exception)?;
        driver.home().notes().latest_is_input();
        state.dims.set(Some(scope.dims()));
        let place = self
            .place
            .get_or_init(|| place(driver.home(), "input", scope));
        if is_first {
            state.place.replace(place.clone());
            if state.resume(recording, resume)? {
                let state = Rc::clone(state) as Rc<dyn Gathering>;
                driver.repeat(state)?;
            }
            if resume != Resume::Repeat && state.input.had_ended() {
                state.input.close(); // main gets an error, and does not send again
            }
        }
        Ok(stream)
    }
}

#[pymethods]
impl InputHandle {
    #[new]
    fn new() -> Self {
        InputHandle {
            state: std::sync::OnceLock::new(),
            closed_early: false.into(),
            place: std::sync::OnceLock::new(),
        }
    }

    /// The stream of the handle in a scope, from the handle's current time on.
    ///
    /// Raises:
    ///     TimeError: If the handle's times have another number of coordinates than the scope's.
    ///     CapabilityError: If the handle is closed.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     numbers = ps.InputHandle()
    ///     ...     with worker.dataflow() as scope:
    ///     ...         captured = numbers.to_stream(scope, name="numbers").capture()
    ///     ...     numbers.send(1)
    ///     ...     numbers.close()
    ///     ...     worker.run()
    ///     ...     return captured.extract()
    ///     >>> ps.execute(main)
    ///     [[(0, [1])]]
    #[pyo3(signature = (scope, *, name = None))]
    fn to_stream<'py>(
        slf: &Bound<'py, Self>,
        scope: &Bound<'py, PyAny>,
        name: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = PyDict::new(slf.py());
        given.set_item("name", name)?;
        scope.call_method("input_from", (slf,), Some(&given))
    }

    /// The time of the records sent now. 0 before the handle is connected.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.state.get() {
            Some(state) => match state.get()?.time() {
                Some(time) => point_to_py(py, &time),
                None => Ok(0_u64.into_pyobject(py)?.into_any()),
            },
            None => Ok(0_u64.into_pyobject(py)?.into_any()),
        }
    }

    /// The position of the input, where checkpoints are made, as the time and the number of records that this
    /// worker has sent at it.
    ///
    /// After a resumption it is where the input stood at the checkpoint, until `main` has come there.
    ///
    /// Raises:
    ///     PointstampError: If no checkpoints are made, or the handle is connected to no dataflow.
    #[getter]
    fn position<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some((time, sent)) = self.state()?.position() else {
            return Err(PointstampError::new_err(
                "an input has a position where checkpoints are made: give execute a config=Config(checkpoint=Checkpoint('state/'))",
            ));
        };
        let class = py.import("pointstamp.checkpoint")?.getattr("Position")?;
        class.call1((point_to_py(py, &time)?, sent))
    }

    /// Whether nothing can be sent any more.
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        match self.state.get() {
            Some(state) if state.home().has_ended() => Ok(true),
            Some(state) => Ok(state.get()?.input.is_closed()),
            None => Ok(self.closed_early.load(std::sync::atomic::Ordering::Relaxed)),
        }
    }

    /// Sends one record at the current time.
    ///
    /// Raises:
    ///     TypeError: If the record is an iterator, which `send_batch` takes.
    ///     PointstampError: If the handle is closed, or connected to no dataflow.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         words, stream = scope.new_input()
    ///     ...         captured = stream.capture()
    ///     ...     words.send("tick")
    ///     ...     words.send("tock")
    ///     ...     words.close()
    ///     ...     worker.run()
    ///     ...     return captured.extract()
    ///     >>> ps.execute(main)
    ///     [[(0, ['tick', 'tock'])]]
    fn send(&self, record: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = record.py();
        let state = self.open_state()?;
        refuse_iterator("send", "send_batch", record)?;
        if state.counts() && !state.note(digest_of(record))? {
            return Ok(());
        }
        let buffer = state.gathered(py);
        buffer.append(record)?;
        if buffer.len() >= MAX_BATCH && !state.is_busy() {
            state.flush(py)?;
            return state.driver.make_room(py);
        }
        state.list()
    }

    /// Sends every record of an iterable at the current time, in bounded batches.
    ///
    /// Raises:
    ///     TypeError: If it is no iterable of records: text, a dict and a data frame iterate over parts of one.
    ///     PointstampError: If the handle is closed, or connected to no dataflow.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         numbers, stream = scope.new_input()
    ///     ...         captured = stream.capture()
    ///     ...     numbers.send_batch(range(3))
    ///     ...     numbers.close()
    ///     ...     worker.run()
    ///     ...     return captured.extract()
    ///     >>> ps.execute(main)
    ///     [[(0, [0, 1, 2])]]
    fn send_batch(&self, records: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = records.py();
        let tools = crate::tools::Tools::get(py)?;
        self.check_open()?;
        let iterator = records_of(Giver::Call("send_batch"), records)?.into_any();
        loop {
            let chunk = tools.take(&iterator, MAX_BATCH)?;
            if chunk.is_empty() {
                return Ok(());
            }
            let state = self.open_state()?;
            state.input.check().map_err(IntoException::into_exception)?;
            let mut before = 0;
            if state.counts() {
                for record in chunk.iter() {
                    if !state.note(digest_of(&record))? {
                        before += 1;
                    }
                }
            }
            let chunk = match before {
                0 => chunk,
                before if before == chunk.len() => continue,
                before => chunk.get_slice(before, chunk.len()),
            };
            let buffer = state.gathered(py);
            buffer.set_slice(usize::MAX >> 1, usize::MAX >> 1, &chunk)?;
            state.flush(py)?;
            state.driver.make_room(py)?;
            py.check_signals()?; // the iterable may have no end, and be no Python code
            give_way(py);
        }
    }

    /// Moves to a later time: nothing will be sent before it any more.
    ///
    /// Raises:
    ///     TimeError: Unless `time` is at or after `self.time`.
    ///     PointstampError: If the handle is closed, or connected to no dataflow.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         words, stream = scope.new_input()
    ///     ...         captured = stream.capture()
    ///     ...     words.send("tick")
    ///     ...     words.advance_to(5)
    ///     ...     words.send("tock")
    ///     ...     words.close()
    ///     ...     worker.run()
    ///     ...     return captured.extract()
    ///     >>> ps.execute(main)
    ///     [[(0, ['tick']), (5, ['tock'])]]
    fn advance_to(&self, time: &Bound<'_, PyAny>) -> PyResult<()> {
        let state = self.open_state()?;
        let point = match state.dims.get() {
            Some(dims) => point_from_py(time, dims)?,
            None => point_infer(time)?,
        };
        state.advance_to(time.py(), &point)
    }

    /// Sends the buffered records.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         words, stream = scope.new_input()
    ///     ...         stream.inspect(print)
    ///     ...     words.send("tick")
    ///     ...     words.flush()
    ///     ...     worker.step()
    ///     >>> ps.execute(main) and None
    ///     tick
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        match self.state.get() {
            Some(state) => {
                let state = state.get()?;
                state.flush(py)?;
                state.driver.make_room(py)
            }
            None => Ok(()),
        }
    }

    /// Closes the input: nothing will be sent any more. Closing it twice does nothing.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         words, stream = scope.new_input()
    ///     ...     words.close()
    ///     ...     return words.closed
    ///     >>> ps.execute(main)
    ///     [True]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.state.get() {
            Some(state) if state.home().has_ended() => {}
            Some(state) => {
                let state = state.get()?;
                if !state.input.is_closed() {
                    state.drain(py)?;
                    state.input.close();
                }
            }
            None => self
                .closed_early
                .store(true, std::sync::atomic::Ordering::Relaxed),
        }
        Ok(())
    }

    /// The name of the input and its dataflow, for people; None before it is connected.
    #[getter]
    fn place(&self) -> Option<&str> {
        self.place.get().map(String::as_str)
    }

    fn __repr__(&self) -> PyResult<String> {
        let Some(place) = self.place() else {
            let state = ["connected to no dataflow", "closed"][usize::from(self.closed()?)];
            return Ok(format!("<InputHandle {state}>"));
        };
        let time = |state: &Rc<Buffered>| state.time().unwrap_or_else(|| Point::new(&[]));
        Ok(match self.closed() {
            Ok(true) => format!("<InputHandle {place} closed>"),
            Ok(false) => format!("<InputHandle {place} at {}>", time(self.state()?)),
            Err(_) => format!("<InputHandle {place}>"), // on another thread than the worker's
        })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, pyo3::types::PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        crate::generic::generic_alias(class, item)
    }
}
