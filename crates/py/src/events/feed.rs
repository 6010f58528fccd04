//! Reading events: from a file, or from bytes that a thread of Python's brings.
//!
//! The lock of a feed is held while a file is read, which may take long: no thread waits for it while it is attached.

use std::path::PathBuf;

use pointstamp_events::EncodedEvent;
use pointstamp_operators::captures::{Feed, Next};
use pointstamp_order::Point;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::batch::into_python;
use crate::columns::schema::Schema;
use crate::errors::{CodecError, IntoException};
use crate::gil::{Held, attached, detached};
use crate::raised::Raised;
use crate::time::{point_from_py, point_to_py};

/// The events of one capture, to be taken once. It may be fed from any thread.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct EventFeed {
    pub(super) feed: Feed,
}

/// Times with numbers, as `(time, number)`.
fn pairs_to_py(
    py: Python<'_>,
    pairs: impl IntoIterator<Item = (Point, i64)>,
) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for (time, number) in pairs {
        list.append((point_to_py(py, &time)?, number))?;
    }
    Ok(list)
}

#[pymethods]
impl EventFeed {
    /// Creates the feed of a file, which is opened when it is first read.
    #[staticmethod]
    fn open(name: String, path: PathBuf, follow: bool) -> Self {
        let feed = Feed::open(name, path, follow);
        EventFeed { feed }
    }

    /// Creates the feed of bytes that a thread provides.
    #[staticmethod]
    fn fed(name: String) -> Self {
        let feed = Feed::fed(name);
        EventFeed { feed }
    }

    /// Appends bytes, and waits for space. Returns False when no more bytes are needed.
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn feed(&self, py: Python<'_>, bytes: Bound<'_, PyBytes>) -> bool {
        let bytes = bytes.as_bytes();
        detached(py, || self.feed.feed(bytes))
    }

    /// Says that nothing more comes, or why.
    #[pyo3(signature = (error = None))]
    fn end(&self, py: Python<'_>, error: Option<Bound<'_, PyAny>>) {
        let error = error.map(|error| Raised::here(PyErr::from_value(error)));
        detached(py, || self.feed.end(error));
    }

    /// Takes a function that ends the thread that feeds, for when no more bytes are needed.
    fn on_close(&self, stop: Py<PyAny>) {
        let stop = Held::new(stop);
        self.feed.on_close(Box::new(move || {
            attached(|py| {
                if let Err(error) = stop.get().bind(py).call0() {
                    error.write_unraisable(py, None); // no caller is left to raise it to
                }
            });
        }));
    }

    /// Declares that no more bytes are needed.
    fn close(&self, py: Python<'_>) {
        detached(py, || self.feed.close());
    }

    /// Claims the feed for one replay; false where another has claimed it.
    fn claim(&self, py: Python<'_>) -> bool {
        detached(py, || self.feed.claim())
    }

    /// Whether a replay has claimed the feed.
    #[getter]
    fn claimed(&self, py: Python<'_>) -> bool {
        detached(py, || self.feed.is_claimed())
    }

    /// Whether no more bytes are needed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        detached(py, || self.feed.is_closed())
    }

    /// The beginning of the capture, `(dims, schema)`, with the schema of columns; `None` while it is not
    /// known.
    fn start(&self, py: Python<'_>) -> PyResult<Option<(usize, Option<Schema>)>> {
        let start = detached(py, || self.feed.start());
        let start = start.map_err(IntoException::into_exception)?;
        Ok(start.map(|(dims, schema)| (dims, schema.map(Schema::new))))
    }

    /// The end of the last event that was taken, in bytes from the beginning.
    #[getter]
    fn offset(&self, py: Python<'_>) -> u64 {
        detached(py, || self.feed.offset())
    }

    /// The times that may still come.
    #[getter]
    fn frontier<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for time in detached(py, || self.feed.frontier()) {
            list.append(point_to_py(py, &time)?)?;
        }
        Ok(list)
    }

    /// The sums of the changes so far, `(time, count)`; `None` before the first event. `seek` takes them with
    /// `offset`.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let counts = detached(py, || self.feed.counts());
        counts.map(|counts| pairs_to_py(py, counts)).transpose()
    }

    /// A checksum by which the file up to `offset` is recognised; `None` for a source that is no file.
    fn mark(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        detached(py, || self.feed.mark()).map_err(IntoException::into_exception)
    }

    /// Seeks to the end of the event at `offset` in a file, with the counts and the checksum at that point.
    /// `start` has been called.
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    #[pyo3(signature = (offset, counts, mark = None))]
    fn seek(
        &self,
        py: Python<'_>,
        offset: u64,
        counts: Vec<(Bound<'_, PyAny>, i64)>,
        mark: Option<u32>,
    ) -> PyResult<()> {
        let Some((dims, _)) = self.start(py)? else {
            let text = format!("{} has not said what it holds", self.feed.name());
            return Err(CodecError::new_err(text));
        };
        let counts = counts.iter();
        let counts = counts.map(|(time, count)| Ok((point_from_py(time, dims)?, *count)));
        let counts = counts.collect::<PyResult<Vec<_>>>()?;
        let sought = detached(py, || self.feed.seek(offset, counts, mark));
        sought.map_err(IntoException::into_exception)
    }

    /// The next event: `(offset, None, changes)`, or `(offset, [(time, records)], bytes)` with the batch decoded, or its
    /// length; `None` while there is none, and `complete` at the end.
    fn next<'py>(&self, py: Python<'py>, decode: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = detached(py, || self.feed.next()).map_err(IntoException::into_exception)?;
        match next {
            Next::Wait { .. } => Ok(None),
            Next::End { complete } => Ok(Some(complete.into_pyobject(py)?.to_owned().into_any())),
            Next::Event(offset, _, EncodedEvent::Progress(changes)) => {
                let event = (offset, py.None(), pairs_to_py(py, changes)?);
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
                let batches = self.feed.batches(offset, contents, runs, &bytes);
                for (time, batch) in batches.map_err(IntoException::into_exception)? {
                    list.append((point_to_py(py, &time)?, into_python(batch, py)?))?;
                }
                let event = (offset, list, py.None());
                Ok(Some(event.into_pyobject(py)?.into_any()))
            }
        }
    }
}
