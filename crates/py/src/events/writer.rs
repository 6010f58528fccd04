//! Writing a stream's events: to a file, or to an object of Python's.

use std::path::PathBuf;

use bytes::Bytes;
use parking_lot::Mutex;
use pointstamp_operators::captures::{self, CaptureError, FileTarget, Target};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::columns::schema::Schema;
use crate::errors::{GraphError, IntoException};
use crate::gil::{Held, attached, detached};
use crate::raised::Raised;
use crate::stream::Stream;

/// The destination of the events of one stream.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct EventSink(Mutex<Option<Box<dyn Target>>>);

#[pymethods]
impl EventSink {
    /// A file that is created, or with `overwrite` emptied.
    #[staticmethod]
    fn create(py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<Self> {
        let file = detached(py, || FileTarget::create(path, overwrite));
        let file = file.map_err(IntoException::into_exception)?;
        Ok(EventSink(Mutex::new(Some(Box::new(file)))))
    }

    /// An object with `write(bytes)` and `finish()`.
    #[staticmethod]
    fn to_object(target: Py<PyAny>) -> Self {
        EventSink(Mutex::new(Some(Box::new(ObjectTarget(Held::new(target))))))
    }

    /// Captures a stream.
    #[pyo3(signature = (stream, schema = None))]
    fn capture(&self, stream: &Stream, schema: Option<&Schema>) -> PyResult<()> {
        let taken = self.0.lock().take();
        let target = taken.ok_or_else(|| {
            GraphError::new_err(
                "this writer writes the events of a stream already: make one for each stream",
            )
        })?;
        let schema = schema.map(|schema| &schema.schema);
        let captured = captures::capture(stream.engine()?, schema, target);
        captured.map_err(IntoException::into_exception)
    }
}

/// An object with `write(bytes)`, which takes all of them, and `finish()`.
struct ObjectTarget(Held);

impl Target for ObjectTarget {
    fn write(&mut self, pieces: &[Bytes]) -> Result<(), CaptureError> {
        let written = attached(|py| {
            let bytes = PyBytes::new(py, &pieces.concat());
            let object = self.0.get().bind(py);
            object
                .call_method1(intern!(py, "write"), (bytes,))
                .map(drop)
        });
        written.map_err(|error| CaptureError::Host(Raised::here(error)))
    }

    fn finish(self: Box<Self>) -> Result<(), CaptureError> {
        let finished = attached(|py| {
            let object = self.0.get().bind(py);
            object.call_method0(intern!(py, "finish")).map(drop)
        });
        finished.map_err(|error| CaptureError::Host(Raised::here(error)))
    }
}
