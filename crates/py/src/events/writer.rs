//! Writing a stream's events: to a file, or to an object of Python's.
//!
//! An event is written whole before the operator goes on, so that a reader sees it at once, and what is there when the process
//! dies ends with a whole event or with a part of one, never with a hole. A file is written without the interpreter.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{IoSlice, Write};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use bytes::Bytes;
use parking_lot::Mutex;
use pointstamp_engine::error::UserResult;
use pointstamp_engine::operators::{self, Event};
use pointstamp_events::{self as events, Contents, MAGIC, Promise, Start};
use pyo3::exceptions::PyOSError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::body;
use crate::batch::Batch;
use crate::columns::schema::Schema;
use crate::errors::{GraphError, IntoException};
use crate::gil::{Held, attached, detached};
use crate::raised::Raised;
use crate::stream::Stream;

/// Where the events of one stream go.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct EventSink(Mutex<Option<Target>>);

/// What is written to.
pub(super) enum Target {
    File(File, PathBuf),
    /// An object with `write(bytes)`, which takes all of them, and `finish()`.
    Object(Held),
}

/// The error of the operating system, with the file's name.
pub(super) fn os_error(error: &std::io::Error, path: &std::path::Path) -> PyErr {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
    PyOSError::new_err((error.raw_os_error(), text, path.to_path_buf()))
}

#[pymethods]
impl EventSink {
    /// A file that is created, or with `overwrite` emptied.
    #[staticmethod]
    fn create(py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<Self> {
        detached(py, || EventSink::file(path, overwrite))
    }

    /// An object with `write(bytes)` and `finish()`.
    #[staticmethod]
    fn to_object(target: Py<PyAny>) -> Self {
        EventSink(Mutex::new(Some(Target::Object(Held::new(target)))))
    }

    /// Captures a stream, from now on.
    #[pyo3(signature = (stream, dims, schema = None))]
    fn capture(
        &self,
        py: Python<'_>,
        stream: &Stream,
        dims: usize,
        schema: Option<&Schema>,
    ) -> PyResult<()> {
        let taken = self.0.lock().take();
        let target = taken.ok_or_else(|| {
            GraphError::new_err(
                "this writer writes the events of a stream already: make one for each stream",
            )
        })?;
        let (contents, bytes) = match schema {
            Some(schema) => (Contents::Columns, body::schema_bytes(&schema.schema)?),
            None => (Contents::Records, Bytes::new()),
        };
        let start = Start {
            contents,
            dims,
            schema: bytes,
        };
        let mut start = start.write().map_err(IntoException::into_exception)?;
        start.insert(0, Bytes::from_static(&MAGIC));
        let target = detached(py, || target.write(&start).map(|()| target))?;
        let (mut target, mut promise) = (Some(target), Promise::new(dims));
        let sink = move |event| {
            let written = write_event(&mut target, &mut promise, event);
            written.map_err(Raised::here) as UserResult<()>
        };
        operators::capture(&stream.engine()?, sink).map_err(IntoException::into_exception)
    }
}

impl EventSink {
    fn file(path: PathBuf, overwrite: bool) -> PyResult<Self> {
        let mut options = OpenOptions::new();
        options.write(true);
        if overwrite {
            options.create(true).truncate(false);
        } else {
            options.create_new(true);
        }
        // A link that lies there was perhaps put there by another, to have what it leads to written over.
        #[cfg(unix)]
        options.custom_flags(libc::O_NOFOLLOW);
        let named = |why: std::io::Error| os_error(&why, &path);
        let file = options.open(&path).map_err(|why| {
            if overwrite && path.is_symlink() {
                let said = "A symbolic link is not written through: name the file that it leads to";
                return PyOSError::new_err((why.raw_os_error(), said, path.clone()));
            }
            named(why)
        })?;
        // Two that write one file would each lose what the other has. A file system without locks does not say so.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(GraphError::new_err(format!(
                "another writer is writing to {}: give each worker and each stream a file of its own",
                path.display()
            )));
        }
        if overwrite && file.metadata().is_ok_and(|there| there.is_file()) {
            file.set_len(0).map_err(named)?;
        }
        Ok(EventSink(Mutex::new(Some(Target::File(file, path)))))
    }
}

fn write_event(
    target: &mut Option<Target>,
    promise: &mut Promise,
    event: Event<Batch>,
) -> PyResult<()> {
    let Some(open) = target else {
        return Ok(()); // nothing comes after the end
    };
    match event {
        Event::Progress(changes) => {
            let frame =
                events::EncodedEvent::progress(&changes).map_err(IntoException::into_exception)?;
            open.write(&frame)?;
            let kept = promise.progress(&changes);
            debug_assert!(kept.is_ok(), "the engine keeps its promise: {kept:?}");
            if promise.is_complete()
                && let Some(ended) = target.take()
            {
                ended.finish()?;
            }
            Ok(())
        }
        Event::Messages(time, batch) => {
            body::frames(&time, &batch, &mut |frame| open.write(&frame))
        }
    }
}

impl Target {
    /// Writes all pieces.
    fn write(&self, pieces: &[Bytes]) -> PyResult<()> {
        match self {
            Target::File(file, path) => {
                write_pieces(file, pieces).map_err(|why| os_error(&why, path))
            }
            Target::Object(object) => attached(|py| {
                let bytes = PyBytes::new(py, &pieces.concat());
                let object = object.get().bind(py);
                object.call_method1(intern!(py, "write"), (bytes,))?;
                Ok(())
            }),
        }
    }

    /// Says that nothing comes any more. A file is closed.
    fn finish(self) -> PyResult<()> {
        match self {
            Target::File(file, _) => {
                let _kept_by_forked_processes_otherwise = file.unlock();
                Ok(())
            }
            Target::Object(object) => attached(|py| {
                let object = object.get().bind(py);
                object.call_method0(intern!(py, "finish"))?;
                Ok(())
            }),
        }
    }
}

/// Writes pieces from where they lie.
fn write_pieces(mut file: &File, pieces: &[Bytes]) -> std::io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut rest = slices.as_mut_slice();
    IoSlice::advance_slices(&mut rest, 0); // leaves out what is empty
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
