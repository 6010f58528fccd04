//! Capabilities in Python: held ones, and those of a message.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use pointstamp_engine::capability::Capability as EngineCapability;
use pointstamp_engine::port::MessageCapability;
use pointstamp_order::Point;
use pyo3::prelude::*;

use crate::bound::{Home, ThreadBound};
use crate::errors::{CapabilityError, IntoException};
use crate::gathering::Gathering;
use crate::time::{Time, point_from_py, point_to_py};

/// The right to send at `time` or later on one output.
///
/// Until it is dropped or downgraded the frontier downstream cannot pass its time. It is dropped by `drop()`, at the
/// end of a `with` block, or with the last reference. Equal and hashed by (output, time), so it can key a dict;
/// `downgrade` changes both, so do not downgrade one that is a key.
///
/// Examples:
///     >>> import pointstamp as ps
///     >>> def main(worker):
///     ...     with worker.dataflow() as scope:
///     ...         numbers, capability, stream = scope.new_unordered_input()
///     ...         captured = stream.capture()
///     ...     with capability, numbers.session(capability) as session:
///     ...         session.give("tick")
///     ...     worker.run()
///     ...     return captured.extract()
///     >>> ps.execute(main)
///     [[(0, ['tick'])]]
#[pyclass(frozen, module = "pointstamp")]
pub(crate) struct Capability {
    held: ThreadBound<Holding>,
}

struct Holding {
    capability: RefCell<Option<EngineCapability>>,
    /// The worker's note while it is held.
    note: Note,
    /// Sessions that were opened with it: their records are sent before its time changes.
    sessions: RefCell<Vec<Weak<dyn Gathering>>>,
}

/// A note that there is a capability, which goes with it.
struct Note {
    home: Arc<Home>,
    number: u64,
}

impl Note {
    fn new(home: &Arc<Home>, capability: &EngineCapability) -> Self {
        let (operator, port) = (capability.operator(), capability.port());
        let time = capability.time();
        let number = home.notes().hold(home.line(), operator, port, time);
        Note {
            home: Arc::clone(home),
            number,
        }
    }

    fn moved(&self, time: &Point) {
        self.home.notes().moved(self.number, time);
    }

    fn let_go(&self) {
        self.home.notes().let_go(self.number);
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl Holding {
    /// A session that holds something.
    fn unsent(&self, py: Python<'_>) -> Option<Rc<dyn Gathering>> {
        let sessions = self.sessions.borrow();
        let mut alive = sessions.iter().filter_map(Weak::upgrade);
        alive.find(|session| session.has_unsent(py))
    }
}

impl Capability {
    pub(crate) fn new(home: &Arc<Home>, capability: EngineCapability) -> Self {
        let note = Note::new(home, &capability);
        Capability {
            held: ThreadBound::new(
                home,
                Holding {
                    capability: RefCell::new(Some(capability)),
                    note,
                    sessions: RefCell::default(),
                },
            ),
        }
    }

    /// Does something with the capability, if it is still held: nothing that could run Python code, which may drop it.
    pub(crate) fn with<R>(
        &self,
        with: impl FnOnce(&EngineCapability) -> PyResult<R>,
    ) -> PyResult<R> {
        match &*self.held.get()?.capability.borrow() {
            Some(capability) => with(capability),
            None => Err(dropped()),
        }
    }

    /// Notes a session that was opened with it.
    pub(crate) fn opened(&self, session: &Rc<dyn Gathering>) -> PyResult<()> {
        let mut sessions = self.held.get()?.sessions.borrow_mut();
        if sessions.len() == sessions.capacity() {
            sessions.retain(|session| session.strong_count() > 0);
        }
        sessions.push(Rc::downgrade(session));
        Ok(())
    }

    /// A time that Python code gives, for this capability.
    fn point(&self, time: &Bound<'_, PyAny>) -> PyResult<Point> {
        let dims = self.with(|capability| Ok(capability.time().dims()))?;
        point_from_py(time, dims)
    }

    fn derived(&self, capability: EngineCapability) -> Self {
        Capability::new(self.held.home(), capability)
    }
}

fn dropped() -> PyErr {
    CapabilityError::new_err(
        "the capability was dropped: it cannot be used any more; clone() one to keep a second",
    )
}

fn hash_of(output: usize, time: &Point) -> u64 {
    let mut hasher = DefaultHasher::new();
    (output, time).hash(&mut hasher);
    hasher.finish()
}

#[pymethods]
impl Capability {
    /// The earliest time at which it can send.
    ///
    /// Raises:
    ///     CapabilityError: If it was dropped.
    #[getter]
    fn time(&self) -> PyResult<Time> {
        self.with(|capability| Ok(Time(capability.time().clone())))
    }

    /// A capability for a later time; this one stays as it is.
    ///
    /// Args:
    ///     time: At or after `self.time`.
    ///     output: The output that it must be for; left out: this one's.
    ///
    /// Raises:
    ///     TimeError: If `time` is not at or after `self.time`.
    ///     CapabilityError: If it was dropped, or is for another output.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         _, capability, _ = scope.new_unordered_input()
    ///     ...     return capability.delayed(3).time, capability.time
    ///     >>> ps.execute(main)
    ///     [(3, 0)]
    #[pyo3(signature = (time, output = None))]
    fn delayed(&self, time: &Bound<'_, PyAny>, output: Option<usize>) -> PyResult<Self> {
        let time = self.point(time)?;
        self.with(|capability| {
            if let Some(output) = output
                && output != capability.port()
            {
                return Err(CapabilityError::new_err(format!(
                    "this capability is for output {}, not output {output}",
                    capability.port()
                )));
            }
            Ok(self.derived(
                capability
                    .delayed(&time)
                    .map_err(IntoException::into_exception)?,
            ))
        })
    }

    /// Moves to a later time, and gives up the times before it. The records of its sessions are sent first.
    ///
    /// Raises:
    ///     TimeError: If `time` is not at or after `self.time`; nothing changes then.
    ///     CapabilityError: If it was dropped.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         _, capability, _ = scope.new_unordered_input()
    ///     ...     capability.downgrade(3)
    ///     ...     return capability.time
    ///     >>> ps.execute(main)
    ///     [3]
    fn downgrade(&self, time: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = time.py();
        let time = self.point(time)?;
        let held = self.held.get()?;
        self.held.home().drop_orphans(py); // among them sessions that send
        while let Some(session) = held.unsent(py) {
            session.flush_listed(py)?; // which may run functions that give more
        }
        match &mut *held.capability.borrow_mut() {
            Some(capability) => {
                let moved = capability.downgrade(&time);
                moved.map_err(IntoException::into_exception)?;
                held.note.moved(&time);
                Ok(())
            }
            None => Err(dropped()),
        }
    }

    /// The number of the output that it is for.
    #[getter]
    fn _output(&self) -> PyResult<usize> {
        self.with(|capability| Ok(capability.port()))
    }

    /// Whether it was taken back, or never held: the operator had none at the checkpoint from which the
    /// computation resumes.
    #[getter]
    fn _revoked(&self) -> PyResult<bool> {
        self.with(|capability| Ok(capability.is_revoked()))
    }

    /// A second capability for the same output and time.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         _, capability, _ = scope.new_unordered_input()
    ///     ...     second = capability.clone()
    ///     ...     capability.drop()
    ///     ...     return second.time
    ///     >>> ps.execute(main)
    ///     [0]
    fn clone(&self) -> PyResult<Self> {
        self.with(|capability| Ok(self.derived(Clone::clone(capability))))
    }

    /// Gives the capability up. Dropping one twice does nothing.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         _, capability, stream = scope.new_unordered_input()
    ///     ...         probe = stream.probe()
    ///     ...     capability.drop()
    ///     ...     worker.run()
    ///     ...     return probe.done()
    ///     >>> ps.execute(main)
    ///     [True]
    fn drop(&self, py: Python<'_>) -> PyResult<()> {
        if self.held.home().has_ended() {
            return Ok(());
        }
        let held = self.held.get()?;
        self.held.home().drop_orphans(py); // among them sessions that send
        let capability = held.capability.borrow_mut().take();
        held.note.let_go();
        std::mem::drop(capability);
        Ok(())
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
        self.drop(py)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Capability>() else {
            return Ok(false);
        };
        if std::ptr::eq(self, other.get()) {
            return Ok(true);
        }
        let (mine, others) = (self.held.get()?, other.get().held.get()?);
        let (mine, others) = (mine.capability.borrow(), others.capability.borrow());
        Ok(match (&*mine, &*others) {
            (Some(mine), Some(others)) => mine == others,
            _ => false,
        })
    }

    fn __hash__(&self) -> PyResult<u64> {
        self.with(|capability| Ok(hash_of(capability.output_id(), capability.time())))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Ok(held) = self.held.get() else {
            let home = self.held.home();
            let whose = if home.has_ended() {
                "a worker that has ended"
            } else {
                "another thread"
            };
            return Ok(format!("<Capability of {whose}>"));
        };
        let described = held.capability.borrow().as_ref().map(|capability| {
            let time = capability.time().clone();
            (time, capability.port())
        });
        Ok(match described {
            Some((time, output)) => format!(
                "<Capability time={} output={output}>",
                point_to_py(py, &time)?.repr()?
            ),
            None => "<Capability dropped>".to_owned(),
        })
    }
}

/// The capability that comes with a message.
///
/// It is valid until the operator asks for its next message or returns; used later it raises
/// `CapabilityError`. `retain` makes one to keep.
///
/// Examples:
///     >>> import pointstamp as ps
///     >>> def copy(input, output, notificator):
///     ...     for message, records in input:
///     ...         with output.session(message) as session:
///     ...             session.give_all(records)
///     >>> def build(scope):
///     ...     return scope.to_stream([1, 2]).unary_notify(ps.Pipeline(), "copy", [], copy).capture()
///     >>> ps.example(build).extract()
///     [(0, [1, 2])]
#[pyclass(frozen, module = "pointstamp")]
pub(crate) struct CapabilityRef {
    pub(crate) message: ThreadBound<MessageCapability>,
}

#[pymethods]
impl CapabilityRef {
    /// The message's time. It can be read at any time.
    #[getter]
    fn time(&self) -> PyResult<Time> {
        Ok(Time(self.message.get()?.time().clone()))
    }

    /// A capability to keep, at the message's time.
    ///
    /// Raises:
    ///     CapabilityError: If it has expired, or no path leads to that output.
    ///     TimeError: If the path to that output advances times.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def hold(input, output, notificator):
    ///     ...     for message, records in input:
    ///     ...         notificator.notify_at(message.retain())
    ///     ...     for capability, _ in notificator:
    ///     ...         print("complete:", capability.time)
    ///     >>> ps.example(lambda scope: scope.to_stream([1]).unary_notify(ps.Pipeline(), "hold", [], hold)) and None
    ///     complete: 0
    #[pyo3(signature = (output = 0))]
    fn retain(&self, output: usize) -> PyResult<Capability> {
        let kept = self
            .message
            .get()?
            .retain(output)
            .map_err(IntoException::into_exception)?;
        Ok(Capability::new(self.message.home(), kept))
    }

    /// A capability to keep, at a later time.
    ///
    /// Raises:
    ///     CapabilityError: If it has expired, or no path leads to that output.
    ///     TimeError: If `time` is not at or after what the path makes of the message's time.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def tomorrow(input, output, notificator):
    ///     ...     for message, records in input:
    ///     ...         with message.delayed(message.time + 1) as later, output.session(later) as session:
    ///     ...             session.give_all(records)
    ///     >>> def build(scope):
    ///     ...     return scope.to_stream([1, 2]).unary_notify(ps.Pipeline(), "tomorrow", [], tomorrow).capture()
    ///     >>> ps.example(build).extract()
    ///     [(1, [1, 2])]
    #[pyo3(signature = (time, output = 0))]
    fn delayed(&self, time: &Bound<'_, PyAny>, output: usize) -> PyResult<Capability> {
        let message = self.message.get()?;
        let time = point_from_py(time, message.time().dims())?;
        let kept = message
            .delayed(&time, output)
            .map_err(IntoException::into_exception)?;
        Ok(Capability::new(self.message.home(), kept))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let message = self.message.get()?;
        let state = if message.is_valid() { "" } else { " expired" };
        Ok(format!(
            "<CapabilityRef time={}{state}>",
            point_to_py(py, message.time())?.repr()?
        ))
    }
}
