//! Capabilities in Python: held ones, and those that come with a message.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};

use pointstamp_engine::capability::Capability as EngineCapability;
use pointstamp_engine::port::MessageCapability;
use pointstamp_order::Point;
use pyo3::prelude::*;

use crate::bound::ThreadBound;
use crate::errors::{CapabilityError, IntoException};
use crate::time::{Time, point_from_py, point_to_py};

/// The right to send at `time` or later on one output.
///
/// Until it is dropped or downgraded the frontier downstream cannot pass its time. It is dropped by
/// `drop()`, at the end of a `with` block, or when the last reference goes. Equal and hashed by (output,
/// time), so it can key a dict; `downgrade` changes both, so do not downgrade one that is a key.
#[pyclass(frozen, module = "pointstamp")]
pub(crate) struct Capability {
    held: ThreadBound<RefCell<Option<EngineCapability>>>,
}

impl Capability {
    pub(crate) fn new(
        home: &std::sync::Arc<crate::bound::Home>,
        capability: EngineCapability,
    ) -> Self {
        Capability {
            held: ThreadBound::new(home, RefCell::new(Some(capability))),
        }
    }

    /// Does something with the capability, if it is still held.
    pub(crate) fn with<R>(
        &self,
        with: impl FnOnce(&EngineCapability) -> PyResult<R>,
    ) -> PyResult<R> {
        match &*self.held.get()?.borrow() {
            Some(capability) => with(capability),
            None => Err(dropped()),
        }
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
    #[pyo3(signature = (time, output = None))]
    fn delayed(&self, time: &Bound<'_, PyAny>, output: Option<usize>) -> PyResult<Self> {
        self.with(|capability| {
            if let Some(output) = output
                && output != capability.port()
            {
                return Err(CapabilityError::new_err(format!(
                    "this capability is for output {}, not output {output}",
                    capability.port()
                )));
            }
            let time = point_from_py(time, capability.time().dims())?;
            Ok(self.derived(
                capability
                    .delayed(&time)
                    .map_err(IntoException::into_exception)?,
            ))
        })
    }

    /// Moves to a later time, giving up what lies before it.
    ///
    /// Raises:
    ///     TimeError: If `time` is not at or after `self.time`; nothing changes then.
    ///     CapabilityError: If it was dropped.
    fn downgrade(&self, time: &Bound<'_, PyAny>) -> PyResult<()> {
        match &mut *self.held.get()?.borrow_mut() {
            Some(capability) => {
                let time = point_from_py(time, capability.time().dims())?;
                capability
                    .downgrade(&time)
                    .map_err(IntoException::into_exception)
            }
            None => Err(dropped()),
        }
    }

    /// A second capability for the same output and time.
    fn clone(&self) -> PyResult<Self> {
        self.with(|capability| Ok(self.derived(Clone::clone(capability))))
    }

    /// Gives the capability up. Dropping one twice does nothing.
    fn drop(&self) -> PyResult<()> {
        let held = self.held.get()?.borrow_mut().take();
        std::mem::drop(held);
        Ok(())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.drop()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Capability>() else {
            return Ok(false);
        };
        if std::ptr::eq(self, other.get()) {
            return Ok(true);
        }
        let (mine, others) = (self.held.get()?.borrow(), other.get().held.get()?.borrow());
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
            return Ok("<Capability of another thread>".to_owned());
        };
        Ok(match &*held.borrow() {
            Some(capability) => format!(
                "<Capability time={} output={}>",
                point_to_py(py, capability.time())?.repr()?,
                capability.port()
            ),
            None => "<Capability dropped>".to_owned(),
        })
    }
}

/// The capability that comes with a message.
///
/// It is valid until the operator asks for its next message or returns; used later it raises
/// `CapabilityError`. `retain` makes one to keep.
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
