//! In-memory capture: a stream's events, kept for whoever asks.

use std::sync::{Arc, Mutex, PoisonError};

use pointstamp_engine::operators::Event;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::batch::Batch;
use crate::collections::records::records_of;
use crate::time::point_to_py;

/// The events of a stream on one worker. It may be read from any thread.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct EventQueue {
    events: Arc<Mutex<Vec<Event<Batch>>>>,
}

impl EventQueue {
    /// What the capturing operator does with an event. The lock is held for a push and nothing else.
    pub(crate) fn sink(&self) -> impl FnMut(Event<Batch>) + use<> {
        let events = Arc::clone(&self.events);
        move |event| {
            events
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(event);
        }
    }

    /// The event at an index.
    pub(crate) fn get(&self, index: usize) -> Option<Event<Batch>> {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(index)
            .cloned()
    }
}

#[pymethods]
impl EventQueue {
    #[new]
    fn new() -> Self {
        EventQueue {
            events: Arc::default(),
        }
    }

    /// The event at an index: `(None, changes)` or `(time, records)`; `None` past the last. The records are a copy.
    fn event<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(event) = self.get(index) else {
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
            Event::Messages(time, batch) => (point_to_py(py, &time)?, batch.into_python(py)?)
                .into_pyobject(py)?
                .into_any(),
        }))
    }

    fn __len__(&self) -> usize {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }
}
