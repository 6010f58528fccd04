//! Holding the sources of a computation back, for operators in Python.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use pointstamp_engine::cluster::{Cluster, Hold};
use pyo3::prelude::*;

/// The sources of a computation, as an operator sees them that has too much to do.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Sources {
    cluster: Arc<Cluster>,
    held: Mutex<Option<Hold>>,
}

impl Sources {
    pub(crate) fn new(cluster: &Arc<Cluster>) -> Self {
        Sources {
            cluster: Arc::clone(cluster),
            held: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Hold>> {
        self.held.lock()
    }
}

#[pymethods]
impl Sources {
    /// Has them wait, in all processes, until `let_go`; again, it changes nothing.
    fn hold(&self) {
        let mut held = self.held();
        if held.is_none() {
            *held = Some(self.cluster.hold_sources());
        }
    }

    /// Resumes them, if nothing else holds them.
    fn let_go(&self) {
        drop(self.held().take());
    }
}
