//! In-memory capture: a stream's events, kept to be read.

use pointstamp_engine::operators::Event;
use pointstamp_operators::captures::Queue;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::batch::{Batch, into_python};
use crate::collections::records::records_of;
use crate::time::point_to_py;

/// The events of a stream on one worker. It may be read from any thread.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct EventQueue {
    pub(crate) queue: Queue,
}

#[pymethods]
impl EventQueue {
    #[new]
    fn new() -> Self {
        EventQueue {
            queue: Queue::default(),
        }
    }

    /// The event at an index: `(None, changes)` or `(time, records)`; `None` past the last. The records are a copy.
    fn event<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(event) = self.queue.get(index) else {
            return Ok(None);
        };
        Ok(Some(match event {
            Event::Progress(changes) => {
                let list = PyList::empty(py);
                for (time, diff) in changes {
                    list.append((point_to_py(py, &time)?, diff))?;
                }
                (py.None(), list).into_pyobject(py)?.into_any()
            }
            Event::Messages(time, Batch::Updates(updates)) => {
                let list = records_of(py, &updates, &time)?;
                (point_to_py(py, &time)?, list)
                    .into_pyobject(py)?
                    .into_any()
            }
            Event::Messages(time, batch) => (point_to_py(py, &time)?, into_python(batch, py)?)
                .into_pyobject(py)?
                .into_any(),
        }))
    }

    /// Whether the stream had ended at the checkpoint, when the program had no reference to its capture.
    #[getter]
    fn lost(&self) -> bool {
        self.queue.is_lost()
    }

    fn __len__(&self) -> usize {
        self.queue.len()
    }
}
