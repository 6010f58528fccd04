//! How records find their worker: the routers behind `Exchange`.

use pointstamp_engine::error::{BoxError, UserResult};
use pointstamp_engine::pact::{Pact, Route};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::batch::Batch;
use crate::gil::{Held, attached};
use crate::hash::route_hash;
use crate::raised::Raised;
use crate::tools::Tools;

/// The pact of this name, for the input of the named operator.
pub(crate) fn pact(kind: &str, key: Option<Py<PyAny>>, reader: &str) -> PyResult<Pact<Batch>> {
    match (kind, key) {
        ("pipeline", None) => Ok(Pact::Pipeline),
        ("broadcast", None) => Ok(Pact::Broadcast),
        ("exchange", Some(key)) => Ok(Pact::exchange(KeyRouter {
            key: Held::new(key),
            reader: reader.to_owned(),
        })),
        _ => Err(PyValueError::new_err(format!(
            "'{kind}' is not the kind of a pact, or it has the wrong arguments"
        ))),
    }
}

/// Routes records by a key function: an int by its remainder, any other key by its stable hash.
struct KeyRouter {
    key: Held,
    reader: String,
}

impl Route<Batch> for KeyRouter {
    fn route(&mut self, batch: Batch, parts: &mut [Vec<Batch>]) -> UserResult<()> {
        attached(|py| {
            self.split(py, batch, parts)
                .map_err(|error| Raised::by(&self.reader, error))
        })
        .map_err(|error| -> BoxError { error })
    }
}

impl KeyRouter {
    fn split(&self, py: Python<'_>, batch: Batch, parts: &mut [Vec<Batch>]) -> PyResult<()> {
        let list = batch.as_list(py);
        let keys = Tools::get(py)?.map(self.key.get().bind(py), &list)?;
        let peers = parts.len() as u64;
        if let [only] = parts {
            // The keys are looked at all the same: a program that cannot be routed fails on one worker, too.
            for key in keys.iter() {
                route_hash(&key)?;
            }
            drop(list);
            only.push(batch);
            return Ok(());
        }
        let expected = list.len() / parts.len() + 16;
        let mut split: Vec<Vec<Bound<'_, PyAny>>> =
            parts.iter().map(|_| Vec::with_capacity(expected)).collect();
        for (record, key) in list.iter().zip(keys.iter()) {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "below the number of workers"
            )]
            split[(route_hash(&key)? % peers) as usize].push(record);
        }
        for (part, records) in parts.iter_mut().zip(split) {
            if !records.is_empty() {
                part.push(Batch::records(PyList::new(py, records)?));
            }
        }
        Ok(())
    }
}
