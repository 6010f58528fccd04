//! Reading events: from a file, or from bytes that a thread of Python's brings.
//!
//! One lock guards a feed, and no thread attaches while holding it: batches are decoded after it. It is held while a file is read,
//! which may take long, so no thread waits for it while it is attached, either. What a thread brings is bounded: it waits while
//! [`ROOM`] bytes are there that were not taken.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use parking_lot::{Condvar, Mutex, MutexGuard};
use pointstamp_engine::wakeups::RemoteActivator;
use pointstamp_events::{Contents, Decoder, EncodedEvent, Item, Promise, Start};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::body;
use super::known::KnownFile;
use super::writer::os_error;
use crate::batch::into_python;
use crate::columns::schema::Schema;
use crate::errors::CodecError;
use crate::gil::{Held, attached, detached};
use crate::time::point_to_py;

/// How many bytes a feed holds before a thread that brings more waits, unless the event under way needs more.
const ROOM: usize = 16 << 20;

/// The events of one capture, to be taken once. It may be fed from any thread.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct EventFeed {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    state: Mutex<State>,
    room: Condvar,
    /// For messages.
    pub(super) name: String,
    /// What ends the thread that feeds.
    stop: Mutex<Option<Held>>,
}

pub(super) struct State {
    pub(super) decoder: Decoder,
    pub(super) input: Input,
    pub(super) promise: Option<Promise>,
    pub(super) schema: Option<SchemaRef>,
    /// Whether a replay has it for itself.
    claimed: bool,
    reader: Option<RemoteActivator>,
    /// No more is wanted.
    closed: bool,
    /// What tells the file apart before where the last event ended, of one that was let go of.
    pub(super) mark: Option<u32>,
}

pub(super) enum Input {
    File {
        file: Option<KnownFile>,
        path: PathBuf,
        follow: bool,
    },
    Fed(Feeding),
}

/// What a thread that feeds has said.
pub(super) enum Feeding {
    Going,
    Ended,
    Failed(PyErr),
}

/// What a feed has next.
pub(super) enum Next {
    /// An event, and where it began. It keeps the promise, but for the number of records.
    Event(u64, Contents, EncodedEvent),
    /// Nothing yet; a file is to be asked again later, and who feeds says so by himself.
    Wait { ask: bool },
    /// Nothing any more: the stream was complete, or what there is ends here, before the stream.
    End { complete: bool },
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The error for something that is wrong with the bytes.
    pub(super) fn damaged(&self, offset: u64, what: &str) -> PyErr {
        CodecError::new_err(format!("{}: damaged at byte {offset}: {what}", self.name))
    }

    /// No more is wanted: the thread that feeds stops.
    pub(super) fn close(&self) {
        self.state().close();
        self.room.notify_all();
        let stop = self.stop.lock();
        let stop = { stop }.take();
        if let Some(stop) = stop {
            attached(|py| {
                if let Err(error) = stop.get().bind(py).call0() {
                    error.write_unraisable(py, None); // no caller is left to raise it to
                }
            });
        }
    }

    /// Where the last event that was taken ended.
    pub(super) fn offset(&self) -> u64 {
        self.state().decoder.offset()
    }

    /// Takes the next event.
    pub(super) fn next(&self) -> PyResult<Next> {
        let mut state = self.state();
        loop {
            if let Some(promise) = &state.promise
                && promise.is_complete()
            {
                if !state.closed && state.has_more().map_err(Failed::raised)? {
                    let offset = state.decoder.offset();
                    return Err(self.damaged(
                        offset,
                        "the capture is complete, and more follows: read captures from files of their own",
                    ));
                }
                state.close();
                self.room.notify_all();
                return Ok(Next::End { complete: true });
            }
            let offset = state.decoder.offset();
            let item = state.decoder.take();
            match item.map_err(|damage| self.damaged(damage.offset, &damage.what))? {
                Some(Item::Start(start)) => {
                    let begun = state.begin(start);
                    begun.map_err(|what| self.damaged(offset, &what))?;
                }
                Some(Item::Event(event)) => {
                    self.room.notify_all();
                    let contents = state.decoder.start().map(|start| start.contents);
                    let (Some(contents), Some(promise)) = (contents, &mut state.promise) else {
                        return Err(self.damaged(offset, "an event before the beginning"));
                    };
                    let kept = match &event {
                        EncodedEvent::Progress(changes) => promise.progress(changes),
                        EncodedEvent::Messages(runs, _) => {
                            let records =
                                runs.iter().map(|run| u128::from(run.records)).sum::<u128>();
                            promise.message(runs, u64::try_from(records).unwrap_or(u64::MAX))
                        }
                    };
                    kept.map_err(|broken| self.damaged(offset, &broken.to_string()))?;
                    return Ok(Next::Event(offset, contents, event));
                }
                None => {
                    // The event under way may be known to be longer than there is room for others.
                    self.room.notify_all();
                    if let Some(next) = state.more().map_err(Failed::raised)? {
                        return Ok(next);
                    }
                }
            }
        }
    }
}

pub(super) enum Failed {
    File(std::io::Error, PathBuf),
    /// The file is not the one that was read.
    Changed(String, PathBuf),
    Feeder(PyErr),
}

impl Failed {
    pub(super) fn raised(self) -> PyErr {
        match self {
            Failed::File(error, path) => os_error(&error, &path),
            Failed::Changed(what, path) => CodecError::new_err(format!(
                "{}: {what}. A capture may only grow while it is read: what begins anew writes to a path of its own",
                path.display()
            )),
            Failed::Feeder(error) => error,
        }
    }
}

impl State {
    /// Takes what the capture begins with.
    fn begin(&mut self, start: Start) -> Result<(), String> {
        if start.contents == Contents::Columns {
            let schema = body::schema_of(start.schema);
            self.schema = Some(schema.map_err(|why| format!("the schema cannot be read ({why})"))?);
        }
        self.promise = Some(Promise::new(start.dims));
        Ok(())
    }

    /// Whether anything follows in a file.
    fn has_more(&mut self) -> Result<bool, Failed> {
        let Input::File { file, path, .. } = &mut self.input else {
            return Ok(false); // of a connection, what follows may be another program's matter
        };
        if self.decoder.is_amid() {
            return Ok(true);
        }
        let Some(open) = file else { return Ok(false) };
        if !open.is_regular() {
            return Ok(false); // it would be waited for
        }
        let read = self.decoder.read_from(open);
        read.map(|count| count > 0)
            .map_err(|error| Failed::File(error, path.clone()))
    }

    fn close(&mut self) {
        self.closed = true;
        let offset = self.decoder.offset();
        if let Input::File { file, .. } = &mut self.input
            && let Some(mut open) = file.take()
        {
            self.mark = open.mark(offset).unwrap_or(None);
        }
    }

    /// Reads more, or says why there is none.
    fn more(&mut self) -> Result<Option<Next>, Failed> {
        let end = Next::End { complete: false };
        if self.closed {
            return Ok(Some(end));
        }
        match &mut self.input {
            Input::File { file, path, follow } => {
                let open = match file {
                    Some(open) => open,
                    None => match KnownFile::open(path) {
                        Ok(opened) => file.insert(opened),
                        Err(error) if *follow && error.kind() == ErrorKind::NotFound => {
                            return Ok(Some(Next::Wait { ask: true }));
                        }
                        Err(error) => return Err(Failed::File(error, path.clone())),
                    },
                };
                let read = self.decoder.read_from(open);
                // After the read: then what was read is of the file that is known.
                let read = read.and_then(|count| Ok((count, open.changed()?)));
                let changed = match read {
                    Ok((0, None)) if *follow && open.is_replaced(path) => {
                        "it was replaced: the name is another file's, and the capture that was read had not ended"
                            .to_owned()
                    }
                    Ok((0, None)) if *follow => return Ok(Some(Next::Wait { ask: true })),
                    Ok((0, None)) => return Ok(Some(end)),
                    Ok((_, None)) => return Ok(None),
                    Ok((_, Some(what))) => what,
                    Err(error) => return Err(Failed::File(error, path.clone())),
                };
                let failed = Failed::Changed(changed, path.clone());
                self.decoder.buffer().clear(); // of two files
                self.close();
                Err(failed)
            }
            Input::Fed(feeding) => match std::mem::replace(feeding, Feeding::Ended) {
                Feeding::Going => {
                    *feeding = Feeding::Going;
                    Ok(Some(Next::Wait { ask: false }))
                }
                Feeding::Ended => Ok(Some(end)),
                Feeding::Failed(error) => Err(Failed::Feeder(error)),
            },
        }
    }
}

impl EventFeed {
    fn new(name: String, input: Input) -> Self {
        let state = State {
            decoder: Decoder::new(),
            input,
            promise: None,
            schema: None,
            claimed: false,
            reader: None,
            closed: false,
            mark: None,
        };
        EventFeed {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                room: Condvar::new(),
                name,
                stop: Mutex::default(),
            }),
        }
    }

    /// Wakes this operator for what comes.
    pub(super) fn play(&self, reader: RemoteActivator) {
        self.shared.state().reader = Some(reader);
    }
}

#[pymethods]
impl EventFeed {
    /// Of a file, which is opened when something of it is wanted.
    #[staticmethod]
    fn open(name: String, path: PathBuf, follow: bool) -> Self {
        let file = None;
        EventFeed::new(name, Input::File { file, path, follow })
    }

    /// Of bytes that a thread brings.
    #[staticmethod]
    fn fed(name: String) -> Self {
        EventFeed::new(name, Input::Fed(Feeding::Going))
    }

    /// Puts bytes behind those that are there; waits for room. False when no more is wanted.
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn feed(&self, py: Python<'_>, bytes: Bound<'_, PyBytes>) -> bool {
        let bytes = bytes.as_bytes();
        detached(py, || {
            let mut state = self.shared.state();
            while !state.closed && !state.decoder.has_room(ROOM) {
                self.shared.room.wait(&mut state);
            }
            state.decoder.buffer().extend_from_slice(bytes);
            if let Some(reader) = &state.reader {
                reader.activate();
            }
            !state.closed
        })
    }

    /// Says that nothing more comes, or why.
    #[pyo3(signature = (error = None))]
    fn end(&self, py: Python<'_>, error: Option<Bound<'_, PyAny>>) {
        let said = error.map_or(Feeding::Ended, |error| {
            Feeding::Failed(PyErr::from_value(error))
        });
        let before = detached(py, || {
            let mut state = self.shared.state();
            let before = match &mut state.input {
                Input::Fed(feeding) => std::mem::replace(feeding, said),
                Input::File { .. } => said,
            };
            if let Some(reader) = &state.reader {
                reader.activate();
            }
            before
        });
        drop(before); // without the lock: letting go of an error may run user code
    }

    /// Takes a function that ends the thread that feeds, for when no more is wanted.
    fn on_close(&self, stop: Py<PyAny>) {
        let mut kept = self.shared.stop.lock();
        let before = kept.replace(Held::new(stop));
        drop(kept);
        drop(before); // without the lock: letting go of it may run user code
    }

    /// No more is wanted.
    fn close(&self, py: Python<'_>) {
        detached(py, || self.shared.close());
    }

    /// Keeps it for one replay; false where another has it.
    fn claim(&self, py: Python<'_>) -> bool {
        detached(py, || {
            !std::mem::replace(&mut self.shared.state().claimed, true)
        })
    }

    /// Whether a replay has it for itself.
    #[getter]
    fn claimed(&self, py: Python<'_>) -> bool {
        detached(py, || self.shared.state().claimed)
    }

    /// Whether no more is wanted.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        detached(py, || self.shared.state().closed)
    }

    /// How the capture begins, `(dims, schema)`, with the schema of columns; `None` while that is not known.
    fn start(&self, py: Python<'_>) -> PyResult<Option<(usize, Option<Schema>)>> {
        detached(py, || {
            let mut state = self.shared.state();
            loop {
                if let Some(start) = state.decoder.start() {
                    let dims = start.dims;
                    return Ok(Some((dims, state.schema.clone().map(Schema::new))));
                }
                let offset = state.decoder.offset();
                let item = state.decoder.take();
                match item.map_err(|damage| self.shared.damaged(damage.offset, &damage.what))? {
                    Some(Item::Start(start)) => {
                        let begun = state.begin(start);
                        begun.map_err(|what| self.shared.damaged(offset, &what))?;
                    }
                    Some(Item::Event(_)) => {
                        return Err(self.shared.damaged(offset, "an event before the beginning"));
                    }
                    None => match {
                        self.shared.room.notify_all();
                        state.more()
                    }
                    .map_err(Failed::raised)?
                    {
                        None => {}
                        Some(Next::Wait { .. } | Next::Event(..)) => return Ok(None),
                        Some(Next::End { .. }) => {
                            let end = state.decoder.offset();
                            return Err(self.shared.damaged(
                                end,
                                "it ends before it says what it holds: nothing was captured",
                            ));
                        }
                    },
                }
            }
        })
    }

    /// Where the last event that was taken ended, in bytes from the beginning.
    #[getter]
    fn offset(&self, py: Python<'_>) -> u64 {
        detached(py, || self.shared.offset())
    }

    /// The times that may still come.
    #[getter]
    fn frontier<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let promise = detached(py, || self.shared.state().promise.clone());
        let list = PyList::empty(py);
        for time in promise.iter().flat_map(Promise::frontier) {
            list.append(point_to_py(py, time)?)?;
        }
        Ok(list)
    }

    /// What the changes so far add up to, `(time, count)`; `None` before the first event. With `offset`, where `seek` goes on.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        self.shared.counts(py)
    }

    /// A checksum by which the file up to `offset` is told apart from others; `None` of what is no file.
    fn mark(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        detached(py, || self.shared.state().mark().map_err(Failed::raised))
    }

    /// Goes on in a file behind the event that ended at `offset`, when `counts` were these, and the file had this mark. `start`
    /// has been called.
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    #[pyo3(signature = (offset, counts, mark = None))]
    fn seek(
        &self,
        py: Python<'_>,
        offset: u64,
        counts: Vec<(Bound<'_, PyAny>, i64)>,
        mark: Option<u32>,
    ) -> PyResult<()> {
        self.shared.seek(py, offset, &counts, mark)
    }

    /// The next event: `(offset, None, changes)`, or `(offset, [(time, records)], bytes)` with the batch decoded, or its
    /// length; `None` while there is none, and `complete` at the end.
    fn next<'py>(&self, py: Python<'py>, decode: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        match detached(py, || self.shared.next())? {
            Next::Wait { .. } => Ok(None),
            Next::End { complete } => Ok(Some(complete.into_pyobject(py)?.to_owned().into_any())),
            Next::Event(offset, _, EncodedEvent::Progress(changes)) => {
                let list = PyList::empty(py);
                for (time, diff) in changes {
                    list.append((point_to_py(py, &time)?, diff))?;
                }
                let event = (offset, py.None(), list);
                Ok(Some(event.into_pyobject(py)?.into_any()))
            }
            Next::Event(offset, contents, EncodedEvent::Messages(runs, bytes)) => {
                let list = PyList::empty(py);
                if !decode {
                    for run in runs {
                        list.append((point_to_py(py, &run.time)?, run.records))?;
                    }
                    let event = (offset, list, bytes.len());
                    return Ok(Some(event.into_pyobject(py)?.into_any()));
                }
                for (time, batch) in self.shared.batches(offset, contents, runs, bytes)? {
                    list.append((point_to_py(py, &time)?, into_python(batch, py)?))?;
                }
                let event = (offset, list, py.None());
                Ok(Some(event.into_pyobject(py)?.into_any()))
            }
        }
    }
}
