//! Inputs that `main` drives by capabilities.

use std::sync::Arc;

use pointstamp_engine::operators::UnorderedInput as EngineUnordered;
use pointstamp_engine::scope::Scope as EngineScope;
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::bound::{Home, ThreadBound};
use crate::session::{Session, open_session};
use crate::worker_loop::WorkerLoop;

/// Returns the name of an input with its dataflow, for people: `'bids' of 'Dataflow'`.
pub(crate) fn place(home: &Home, own: &str, scope: &EngineScope<Batch>) -> String {
    format!("'{}' of '{}'", home.naming().named(own), scope.name())
}

/// An input whose times are capabilities that the program holds: it sends at any time for which there is one,
/// in any order.
///
/// Examples:
///     >>> import pointstamp as ps
///     >>> def main(worker):
///     ...     with worker.dataflow() as scope:
///     ...         numbers, capability, stream = scope.new_unordered_input()
///     ...         captured = stream.capture()
///     ...     with capability.delayed(2) as later, numbers.session(later) as session:
///     ...         session.give("second")
///     ...     with capability, numbers.session(capability) as session:
///     ...         session.give("first")
///     ...     worker.run()
///     ...     return captured.extract()
///     >>> ps.execute(main)
///     [[(0, ['first']), (2, ['second'])]]
#[pyclass(frozen, module = "pointstamp")]
pub(crate) struct UnorderedInput {
    pub(crate) input: ThreadBound<EngineUnordered<Batch>>,
    pub(crate) driver: Arc<WorkerLoop>,
    /// The operator's name and its dataflow's, for people.
    pub(crate) place: String,
}

#[pymethods]
impl UnorderedInput {
    /// Opens a session to send at a capability's time: `with unordered.session(cap) as session:`.
    ///
    /// Raises:
    ///     CapabilityError: If the capability was dropped, or is another output's.
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
    fn session(&self, py: Python<'_>, capability: &Bound<'_, PyAny>) -> PyResult<Session> {
        let port = self.input.get()?.output().clone();
        let (home, driver) = (self.input.home(), Some(&self.driver));
        open_session(py, home, port, capability, None, driver)
    }

    fn __repr__(&self) -> String {
        format!("<UnorderedInput {}>", self.place)
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, pyo3::types::PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        crate::generic::generic_alias(class, item)
    }
}
