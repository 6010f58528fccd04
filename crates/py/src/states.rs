//! States of keys that memory has no room for: pickles on disk.
//!
//! Owns [`Disk`], the place for an operator's state outside of memory, and [`StatesOnDisk`], which `pointstamp.logic.states` keeps for the states of an operator that are not in memory. A
//! record is the pickle of a pair of key and state. Keys are found by their stable hash, so that equal ones are one key, as
//! they are for workers; after a look-up they are compared. Reading and writing leave the interpreter to other threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pointstamp_spill::{Account, Budget, Error, Found, Group, Log, Scan};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::errors::PointstampError;
use crate::gil::detached;
use crate::hash::route_hash;
use crate::nan::one_nan;

/// The bytes of records that a scan reads at once.
const SOME: usize = 1 << 16;

fn raised(error: &Error) -> PyErr {
    PointstampError::new_err(error.to_string())
}

fn pickle(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static PICKLE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = PICKLE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("pickle")?.unbind()))?;
    Ok(module.bind(py))
}

/// Returns the key and the state of a record.
fn pair<'py>(py: Python<'py>, record: &[u8]) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let loads = pickle(py)?.getattr(intern!(py, "loads"))?;
    let pair = loads.call1((PyBytes::new(py, record),))?;
    let pair = pair.cast::<PyTuple>()?;
    let key = pair.get_item(0)?;
    let key = one_nan(&key)?.unwrap_or(key);
    Ok((key, pair.get_item(1)?))
}

/// The place for an operator's state that memory has no room for.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Disk {
    log: Arc<Mutex<Log>>,
    account: Arc<Account>,
}

impl Disk {
    pub(crate) fn new(budget: &Arc<Budget>, operator: &str) -> Self {
        let account = Account::new(budget, operator);
        Disk {
            log: Arc::new(Mutex::new(Log::new(account.another()))),
            account,
        }
    }

    fn part(&self, py: Python<'_>) -> Part {
        Part {
            log: Arc::clone(&self.log),
            group: detached(py, || self.log.lock().begin()),
        }
    }
}

#[pymethods]
impl Disk {
    /// Returns a place for states of keys.
    fn states(&self, py: Python<'_>) -> StatesOnDisk {
        StatesOnDisk {
            part: self.part(py),
            account: self.account.another(),
        }
    }

    /// Counts bytes of memory that the operator takes and that cannot leave it.
    fn count(&self, bytes: usize) {
        self.account.set(bytes, 0);
    }

    /// Returns a place for pieces of bytes.
    fn pieces(&self, py: Python<'_>) -> PiecesOnDisk {
        PiecesOnDisk {
            part: self.part(py),
            next: AtomicU64::new(0),
        }
    }
}

/// A group of an operator's log. Its records are forgotten with it.
struct Part {
    log: Arc<Mutex<Log>>,
    group: Group,
}

impl Part {
    /// Runs without the interpreter: nothing waits for it that has the lock.
    fn on_disk<T: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut Log, Group) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        detached(py, || run(&mut self.log.lock(), self.group)).map_err(|error| raised(&error))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.log.lock().end(self.group);
    }
}

/// Pieces of an operator's state that are on disk.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct PiecesOnDisk {
    part: Part,
    next: AtomicU64,
}

#[pymethods]
impl PiecesOnDisk {
    /// Appends a piece, and returns its number.
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn append(&self, py: Python<'_>, piece: PyBackedBytes) -> PyResult<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.part
            .on_disk(py, |log, group| log.append(group, &[(number, &*piece)]))?;
        Ok(number)
    }

    /// Reads a piece.
    fn read<'py>(&self, py: Python<'py>, number: u64) -> PyResult<Bound<'py, PyBytes>> {
        let found = self
            .part
            .on_disk(py, |log, group| log.find(group, &[number]))?;
        match found.first() {
            Some(found) => Ok(PyBytes::new(py, &found.bytes)),
            None => Err(PyValueError::new_err(format!("there is no piece {number}"))),
        }
    }
}

/// The states of an operator that are on disk.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct StatesOnDisk {
    part: Part,
    account: Arc<Account>,
}

impl StatesOnDisk {
    /// Returns the records of some keys.
    fn found(&self, py: Python<'_>, hashes: &[u64]) -> PyResult<Vec<Found>> {
        self.part.on_disk(py, |log, group| log.find(group, hashes))
    }
}

#[pymethods]
impl StatesOnDisk {
    fn __len__(&self, py: Python<'_>) -> usize {
        detached(py, || self.part.log.lock().len(self.part.group))
    }

    /// Moves the states of some keys from a dict to disk. Returns the keys whose states cannot be pickled: they stay.
    fn put<'py>(
        &self,
        states: &Bound<'py, PyDict>,
        keys: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = states.py();
        let dumps = pickle(py)?.getattr(intern!(py, "dumps"))?;
        let (left, moved) = (PyList::empty(py), PyList::empty(py));
        let mut records: Vec<(u64, PyBackedBytes)> = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(state) = states.get_item(&key)? else {
                continue;
            };
            match dumps.call1(((&key, state), 5)) {
                Ok(record) => {
                    records.push((route_hash(&key)?, record.extract()?));
                    moved.append(key)?;
                }
                Err(error) if error.is_instance_of::<PyException>(py) => left.append(key)?,
                Err(error) => return Err(error),
            }
        }
        self.part
            .on_disk(py, |log, group| log.append(group, &records))?;
        for key in moved {
            states.del_item(key)?;
        }
        Ok(left)
    }

    /// Moves the states of some keys from disk to a dict, which has none for them.
    fn take(&self, states: &Bound<'_, PyDict>, keys: &Bound<'_, PyList>) -> PyResult<()> {
        let py = states.py();
        let hashes = keys.iter().map(|key| route_hash(&key));
        let hashes = hashes.collect::<PyResult<Vec<_>>>()?;
        let mut gone = Vec::new();
        for found in self.found(py, &hashes)? {
            let sought = keys.get_item(found.of)?;
            let (key, state) = pair(py, &found.bytes)?;
            if key.is(&sought) || key.eq(&sought)? {
                states.set_item(sought, state)?;
                gone.push((hashes[found.of], found.place, found.bytes.len()));
            }
        }
        self.part.on_disk(py, |log, group| {
            for (hash, place, length) in gone {
                log.remove(group, hash, place, length);
            }
            Ok(())
        })
    }

    /// Returns the state of a key that is on disk, in a tuple; None for none.
    fn get<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>,)>> {
        let py = key.py();
        for found in self.found(py, &[route_hash(key)?])? {
            let (other, state) = pair(py, &found.bytes)?;
            if other.is(key) || other.eq(key)? {
                return Ok(Some((state,)));
            }
        }
        Ok(None)
    }

    /// Notes the bytes of the states in memory. Returns the bytes by which all state of the process is over its share.
    fn settle(&self, py: Python<'_>, bytes: usize) -> PyResult<usize> {
        self.account.set(bytes, 0);
        self.part.on_disk(py, |log, _| log.collect())?;
        Ok(self.account.excess())
    }

    /// The bytes of memory that finding them takes, and their bytes on disk.
    fn sizes(&self, py: Python<'_>) -> (usize, u64) {
        detached(py, || self.part.log.lock().sizes(self.part.group))
    }

    /// Returns an iterator over what is there now, pairs of key and state, whatever happens to it meanwhile.
    fn scan(&self, py: Python<'_>) -> StatesScan {
        let scan = detached(py, || self.part.log.lock().scan(self.part.group));
        StatesScan(Mutex::new(scan))
    }
}

/// The states that were on disk at a moment.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct StatesScan(Mutex<Scan>);

#[pymethods]
impl StatesScan {
    /// Returns further pairs of key and state; an empty list at the end.
    fn some<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let records = detached(py, || self.0.lock().some(SOME));
        let records = records.map_err(|error| raised(&error))?;
        let pairs = PyList::empty(py);
        for record in records {
            pairs.append(pair(py, &record)?)?;
        }
        Ok(pairs)
    }
}
