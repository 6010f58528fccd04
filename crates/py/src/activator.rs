//! Asking for an operator to run.

use std::sync::Arc;
use std::time::Duration;

use pointstamp_engine::wakeups::{Activator as EngineActivator, RemoteActivator};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::bound::{Home, ThreadBound};
use crate::observability::notes::Operator;

/// Schedules an operator again. `activate` may be called from any thread.
///
/// Examples:
///     >>> import pointstamp as ps
///     >>> def ticks(capability, info):
///     ...     left = 2
///     ...     def logic(output):
///     ...         nonlocal left
///     ...         print("runs")
///     ...         left -= 1
///     ...         info.activator.activate() if left else capability.drop()
///     ...     return logic
///     >>> ps.example(lambda scope: scope.source("ticks", ticks)) and None
///     runs
///     runs
#[pyclass(frozen, module = "pointstamp")]
pub(crate) struct Activator {
    local: ThreadBound<EngineActivator>,
    remote: RemoteActivator,
    /// The notes about the operator.
    noted: Option<Arc<Operator>>,
}

impl Activator {
    pub(crate) fn new(
        home: &Arc<Home>,
        activator: EngineActivator,
        noted: Option<Arc<Operator>>,
    ) -> Self {
        let remote = activator.remote();
        Activator {
            local: ThreadBound::new(home, activator),
            remote,
            noted,
        }
    }

    /// Notes the thread that activates, where it is another one than last: so that users are warned when it
    /// has ended.
    fn note_thread(&self, py: Python<'_>) {
        let Some(noted) = &self.noted else { return };
        let Ok(number) = thread_number(py) else {
            return;
        };
        let known = |asked: &Option<(u64, String)>| {
            asked.as_ref().is_some_and(|(known, _)| *known == number)
        };
        let lock = || noted.asked.lock();
        if known(&lock()) {
            return;
        }
        if let Ok(name) = thread_name(py) {
            *lock() = Some((number, name));
        }
    }

    /// The engine's activator, on its worker's thread.
    pub(crate) fn engine(&self) -> PyResult<EngineActivator> {
        self.local.get().cloned()
    }
}

#[pymethods]
impl Activator {
    /// The seconds that operators of the worker have run, where checkpoints are made.
    #[getter]
    fn _worked(&self) -> PyResult<f64> {
        Ok(self.local.get()?.worked().as_secs_f64())
    }

    /// Activates the operator for its worker's next step; from any thread, and wakes the worker.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def twice(capability, info):
    ///     ...     left = 2
    ///     ...     def logic(output):
    ///     ...         nonlocal left
    ///     ...         left -= 1
    ///     ...         info.activator.activate() if left else capability.drop()
    ///     ...     return logic
    ///     >>> ps.example(lambda scope: scope.source("twice", twice).probe()).done()
    ///     True
    fn activate(&self, py: Python<'_>) {
        match self.local.get() {
            Ok(local) => local.activate(),
            Err(_another_thread) => {
                self.note_thread(py);
                self.remote.activate();
            }
        }
    }

    /// Activates the operator after a delay; on the operator's own worker.
    ///
    /// Args:
    ///     seconds: Not negative.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def later(capability, info):
    ///     ...     left = 2
    ///     ...     def logic(output):
    ///     ...         nonlocal left
    ///     ...         left -= 1
    ///     ...         info.activator.activate_after(0.001) if left else capability.drop()
    ///     ...     return logic
    ///     >>> ps.example(lambda scope: scope.source("later", later).probe()).done()
    ///     True
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

/// Python's number of this thread.
fn thread_number(py: Python<'_>) -> PyResult<u64> {
    static IDENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let ident = IDENT.import(py, "_thread", "get_ident")?;
    ident.call0()?.extract()
}

/// Python's name of this thread.
fn thread_name(py: Python<'_>) -> PyResult<String> {
    let thread = py.import("threading")?.call_method0("current_thread")?;
    thread.getattr("name")?.extract()
}
