//! In-memory capture: a stream's events, kept to be read.

use std::sync::Arc;

use parking_lot::Mutex;
use pointstamp_engine::operators::Event;
use pointstamp_engine::wakeups::RemoteActivator;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::batch::{Batch, into_python};
use crate::collections::records::records_of;
use crate::time::point_to_py;

/// The events of a stream on one worker. It may be read from any thread.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct EventQueue {
    shared: Arc<Mutex<Events>>,
}

#[derive(Default)]
struct Events {
    list: Vec<Event<Batch>>,
    /// Those who play the events, to be run when there is another.
    readers: Vec<RemoteActivator>,
    /// Whether the capturing operator is gone.
    ended: bool,
}

/// What a queue has at an index.
pub(crate) enum Taken {
    /// An event.
    Event(Event<Batch>),
    /// Nothing yet.
    Nothing,
    /// Nothing any more.
    End,
}

/// What the capturing operator has; when that is gone, nothing more comes.
struct Sink(Arc<Mutex<Events>>);

impl Sink {
    /// The lock is held for a push and for asking the readers to run.
    fn push(&self, event: Event<Batch>) {
        let mut events = self.0.lock();
        events.list.push(event);
        events.readers.iter().for_each(RemoteActivator::activate);
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let mut events = self.0.lock();
        events.ended = true;
        events.readers.iter().for_each(RemoteActivator::activate);
    }
}

impl EventQueue {
    /// What the capturing operator does with an event.
    pub(crate) fn sink(&self) -> impl FnMut(Event<Batch>) + use<> {
        let sink = Sink(Arc::clone(&self.shared));
        move |event| sink.push(event)
    }

    /// The event at an index.
    pub(crate) fn get(&self, index: usize) -> Option<Event<Batch>> {
        self.shared.lock().list.get(index).cloned()
    }

    /// The same, or whether there will be one.
    pub(crate) fn take(&self, index: usize) -> Taken {
        let events = self.shared.lock();
        match events.list.get(index) {
            Some(event) => Taken::Event(event.clone()),
            None if events.ended => Taken::End,
            None => Taken::Nothing,
        }
    }

    /// The same queue.
    pub(crate) fn share(&self) -> EventQueue {
        EventQueue {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Asks for an operator to run whenever there is another event.
    pub(crate) fn watch(&self, reader: RemoteActivator) {
        self.shared.lock().readers.push(reader);
    }
}

#[pymethods]
impl EventQueue {
    #[new]
    fn new() -> Self {
        EventQueue {
            shared: Arc::default(),
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
            Event::Messages(time, batch) => (point_to_py(py, &time)?, into_python(batch, py)?)
                .into_pyobject(py)?
                .into_any(),
        }))
    }

    fn __len__(&self) -> usize {
        self.shared.lock().list.len()
    }
}
