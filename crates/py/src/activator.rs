//! Asking for an operator to run.

use std::sync::Arc;
use std::time::Duration;

use pointstamp_engine::wakeups::{Activator as EngineActivator, RemoteActivator};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::bound::{Home, ThreadBound};

/// Schedules an operator again. `activate` may be called from any thread.
#[pyclass(frozen, module = "pointstamp")]
pub(crate) struct Activator {
    local: ThreadBound<EngineActivator>,
    remote: RemoteActivator,
}

impl Activator {
    pub(crate) fn new(home: &Arc<Home>, activator: EngineActivator) -> Self {
        let remote = activator.remote();
        Activator {
            local: ThreadBound::new(home, activator),
            remote,
        }
    }

    /// The engine's activator, on its worker's thread.
    pub(crate) fn engine(&self) -> PyResult<EngineActivator> {
        self.local.get().cloned()
    }
}

#[pymethods]
impl Activator {
    /// Asks for the operator to run in its worker's next step; from any thread, and wakes the worker.
    fn activate(&self) {
        match self.local.get() {
            Ok(local) => local.activate(),
            Err(_another_thread) => self.remote.activate(),
        }
    }

    /// Asks for the operator to run after a delay; on the operator's own worker.
    ///
    /// Args:
    ///     seconds: Not negative.
    fn activate_after(&self, seconds: f64) -> PyResult<()> {
        let delay = Duration::try_from_secs_f64(seconds).map_err(|_| {
            PyValueError::new_err(format!(
                "{seconds} is not a number of seconds to wait: it must be 0 or more"
            ))
        })?;
        self.local.get()?.activate_after(delay);
        Ok(())
    }
}
