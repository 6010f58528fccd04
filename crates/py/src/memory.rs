//! The budget of memory for the state of a process's operators.

use std::path::Path;
use std::sync::Arc;

use pointstamp_spill::Budget as EngineBudget;
use pyo3::prelude::*;

use crate::errors::ConfigError;
use crate::gil::detached;

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

    /// The bytes of the budget.
    #[getter]
    fn limit(&self) -> usize {
        self.0.limit()
    }

    /// The bytes of state in memory, and of pages in the cache.
    #[getter]
    fn used(&self) -> (usize, usize) {
        (self.0.used(), self.0.cached())
    }

    /// Bytes on disk, bytes written and read so far, and how often the cache had a page and had it not.
    #[getter]
    fn traffic(&self) -> (u64, u64, u64, u64, u64) {
        let traffic = self.0.traffic();
        let (written, read) = (traffic.written, traffic.read);
        (
            self.0.on_disk(),
            written,
            read,
            traffic.hits,
            traffic.misses,
        )
    }
}
