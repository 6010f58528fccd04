//! The routers behind `Exchange`, by which records find their worker.

use pointstamp_engine::error::UserResult;
use pointstamp_engine::pact::{Pact, Route};
use pointstamp_operators::columns::{by_columns, by_groups_of_columns};
use pointstamp_operators::{Content, Error, Kind, Timed};
use pointstamp_order::worker_of_hash;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::batch::{Batch, Records};
use crate::errors::IntoException;
use crate::gil::{Held, attached};
use crate::hash::{check_route, route_hash};
use crate::kinds::PactKind;
use crate::raised::{Raised, shown};
use crate::tools::Tools;

/// The pact of this kind, for the input of the named operator.
///
/// # Errors
///
/// `GraphError` for a pact that looks at records of another kind than the stream's; `ValueError` where a key is missing, or is
/// not looked at.
pub(crate) fn pact(
    kind: PactKind,
    key: Option<Py<PyAny>>,
    reader: &str,
    of: Kind,
) -> PyResult<Pact<Batch>> {
    let expected = match kind {
        PactKind::Pipeline | PactKind::Broadcast | PactKind::Gather => of,
        PactKind::Exchange | PactKind::ExchangeGroup if of == Kind::Timed => of,
        PactKind::Exchange | PactKind::ExchangeGroup | PactKind::ExchangeFirst => Kind::Host,
        PactKind::ExchangeKeys => Kind::Timed,
        PactKind::ExchangeColumns | PactKind::ExchangeColumnGroups => Kind::Columns,
    };
    if expected != of {
        let found = of;
        return Err(Error::WrongKind { expected, found }.into_exception());
    }
    match (kind, key) {
        (PactKind::Pipeline, None) => Ok(Pact::Pipeline),
        (PactKind::Broadcast, None) => Ok(Pact::Broadcast),
        (PactKind::Exchange, Some(key)) => Ok(pact_by(Key::Function(Held::new(key)), reader)),
        (PactKind::ExchangeGroup, Some(key)) => Ok(pact_by(Key::Grouped(Held::new(key)), reader)),
        (PactKind::ExchangeGroup, None) => Ok(pact_by(Key::Record, reader)),
        (PactKind::ExchangeColumns, Some(columns)) => {
            let columns = attached(|py| columns.extract::<Vec<usize>>(py))?;
            Ok(by_columns(&columns))
        }
        (PactKind::ExchangeColumnGroups, Some(columns)) => {
            let columns = attached(|py| columns.extract::<Vec<usize>>(py))?;
            Ok(by_groups_of_columns(&columns))
        }
        (PactKind::ExchangeFirst, None) => Ok(pact_by(Key::First, reader)),
        (PactKind::ExchangeKeys, None) => Ok(pact_by(Key::Beside, reader)),
        (PactKind::Gather, None) => Ok(Pact::exchange(ToFirst)),
        (PactKind::Exchange | PactKind::ExchangeColumns | PactKind::ExchangeColumnGroups, None) => {
            Err(PyValueError::new_err(format!(
                "a pact of kind {} needs a key",
                kind.label()
            )))
        }
        (
            PactKind::Pipeline
            | PactKind::Broadcast
            | PactKind::ExchangeFirst
            | PactKind::ExchangeKeys
            | PactKind::Gather,
            Some(_),
        ) => Err(PyValueError::new_err(format!(
            "a pact of kind {} takes no key",
            kind.label()
        ))),
    }
}

/// An exchange by a key, for the input of the named operator.
pub(crate) fn pact_by(key: Key, reader: &str) -> Pact<Batch> {
    Pact::exchange(KeyRouter {
        key,
        reader: reader.to_owned(),
    })
}

/// The key of a record.
pub(crate) enum Key {
    /// The return value of a function. The record goes to the worker of the hash, modulo the number of
    /// workers.
    Function(Held),
    /// The return value of a function. The record goes to the worker that has its key group.
    Grouped(Held),
    /// The record itself.
    Record,
    /// The first of the two things in it.
    First,
    /// The key in the column of keys, in a batch of records at times of their own.
    Beside,
}

impl Key {
    /// The hash of each record's key.
    fn hashes(&self, records: &Bound<'_, PyList>, reader: &str) -> PyResult<Vec<u64>> {
        let mut hashes = Vec::with_capacity(records.len());
        match self {
            Key::Function(function) | Key::Grouped(function) => {
                // Each key is hashed as it comes, and released: no list of them is made.
                let function = function.get().bind(records.py());
                Tools::get(records.py())?.map_each(function, records, |key| {
                    hashes.push(route_hash(key)?);
                    Ok(())
                })?;
            }
            Key::Record | Key::Beside => {
                for record in records {
                    hashes.push(route_hash(&record)?);
                }
            }
            Key::First => {
                for record in records {
                    hashes.push(match record.cast::<PyTuple>() {
                        Ok(tuple) if tuple.len() == 2 => {
                            let key = tuple.get_borrowed_item(0)?;
                            route_hash(&key)?
                        }
                        _ => match record.cast::<PyList>() {
                            Ok(list) if list.len() == 2 => route_hash(&list.get_item(0)?)?,
                            _ => return Err(not_a_pair(&record, reader)),
                        },
                    });
                }
            }
        }
        Ok(hashes)
    }

    /// The worker for a hash: the one of its key group, so that state by key can be divided among other
    /// workers, where the program has not chosen.
    #[inline]
    fn worker(&self, hash: u64, peers: usize) -> usize {
        match self {
            Key::Function(_) => remainder(hash, peers),
            Key::Grouped(_) | Key::Record | Key::First | Key::Beside => worker_of_hash(hash, peers),
        }
    }
}

#[inline]
#[allow(
    clippy::cast_possible_truncation,
    reason = "below the number of workers"
)]
fn remainder(hash: u64, peers: usize) -> usize {
    let peers = peers as u64;
    // A remainder by a power of two needs no division.
    let worker = if peers.is_power_of_two() {
        hash & (peers - 1)
    } else {
        hash % peers
    };
    worker as usize
}

fn not_a_pair(record: &Bound<'_, PyAny>, reader: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{reader} reads records of the form (key, value), and got {}: map them to such tuples first",
        shown(record)
    ))
}

/// Routes everything to the first worker, whatever it is.
pub(crate) struct ToFirst;

impl Route<Batch> for ToFirst {
    fn route(&mut self, batch: Batch, parts: &mut [Vec<Batch>]) -> UserResult<()> {
        parts[0].push(batch);
        Ok(())
    }
}

/// Routes records by a key.
struct KeyRouter {
    key: Key,
    reader: String,
}

impl Route<Batch> for KeyRouter {
    fn route(&mut self, batch: Batch, parts: &mut [Vec<Batch>]) -> UserResult<()> {
        let by_reader = |error| Raised::by(&self.reader, error);
        if let Batch::Timed(timed) = batch {
            return attached(|py| self.split_timed(py, timed, parts).map_err(by_reader)?);
        }
        let records = Records::from_batch(batch)?;
        attached(|py| self.split(py, records, parts)).map_err(by_reader)
    }
}

impl KeyRouter {
    /// Divides records at times of their own; returns an error of a key, and within the result an error of
    /// the batch.
    fn split_timed(
        &self,
        py: Python<'_>,
        timed: Timed,
        parts: &mut [Vec<Batch>],
    ) -> PyResult<UserResult<()>> {
        let column = match (&self.key, timed.keys()) {
            (Key::Beside, Some(keys)) => keys,
            _ => timed.records(),
        };
        let records = Records::of_column(column).map_err(IntoException::into_exception)?;
        let list = records.list(py);
        if let ([only], Key::Beside) = (&mut *parts, &self.key) {
            // As below, keys are looked at in any case; here it need not be by their hash.
            list.iter().try_for_each(|key| check_route(&key))?;
            only.push(timed.into_batch());
            return Ok(Ok(()));
        }
        let hashes = self.key.hashes(list, &self.reader)?;
        let peers = parts.len();
        let workers = hashes.into_iter().map(|hash| self.key.worker(hash, peers));
        let workers: Vec<usize> = workers.collect();
        Ok(timed.split(&workers, peers, |worker, part| {
            parts[worker].push(part.into_batch());
        }))
    }

    fn split(&self, py: Python<'_>, batch: Records, parts: &mut [Vec<Batch>]) -> PyResult<()> {
        let list = batch.list(py);
        // The keys are looked at in any case: a program that cannot be routed fails on one worker, too.
        let hashes = self.key.hashes(list, &self.reader)?;
        if let [only] = parts {
            only.push(batch.into_batch());
            return Ok(());
        }
        let peers = parts.len();
        let expected = list.len() / parts.len() + list.len() / 8 + 16;
        let mut split: Vec<Vec<Bound<'_, PyAny>>> =
            parts.iter().map(|_| Vec::with_capacity(expected)).collect();
        for (index, hash) in hashes.into_iter().enumerate() {
            split[self.key.worker(hash, peers)].push(list.get_item(index)?);
        }
        for (part, records) in parts.iter_mut().zip(split) {
            if !records.is_empty() {
                part.push(Records::new(PyList::new(py, records)?).into_batch());
            }
        }
        Ok(())
    }
}
