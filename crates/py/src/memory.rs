//! The budget of memory for the state of a process's operators.

use std::path::Path;
use std::sync::Arc;

use pointstamp_spill::Budget as EngineBudget;
use pyo3::prelude::*;

use crate::errors::ConfigError;
use crate::gil::detached;
use crate::states::Disk;

/// The budget of a process: what operators' state may take in memory.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Budget(pub(crate) Arc<EngineBudget>);

#[pymethods]
impl Budget {
    /// Makes a budget of so many bytes; what is over goes to files in a folder, which is made if it is missing.
    #[new]
    fn new(py: Python<'_>, limit: usize, folder: &str) -> PyResult<Self> {
        let made = detached(py, || EngineBudget::new(limit, Path::new(folder)));
        made.map(Budget).map_err(|error| {
            ConfigError::new_err(format!(
                "no file can be made in {folder}, where state goes that memory has no room for ({error}): name another \
                 folder, Config(spill=...)"
            ))
        })
    }

    /// The bytes written to disk so far.
    #[getter]
    fn written(&self) -> u64 {
        self.0.traffic().written
    }

    /// The place for an operator's state outside of memory.
    fn disk(&self, operator: &str) -> Disk {
        Disk::new(&self.0, operator)
    }

    /// Has one call of the disk fail, after so many that do not; for tests.
    fn fail_after(&self, calls: u32) {
        self.0.fail_after(calls);
    }
}
