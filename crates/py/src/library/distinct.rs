//! `distinct`: each record once per time.
//!
//! A record is sent on when it is first seen at its time, on the worker that its hash chooses; seen records are
//! dropped when the time closes. `Stream.distinct` puts a stage before it that leaves one of each record in every
//! batch, so that few copies travel. Cost: dict and set operations in C per record.

use std::cell::RefCell;
use std::rc::Rc;

use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_operators::checkpoint::{Division, Entry, Restored, keep};
use pointstamp_operators::{Error, Input, Output, PerTime};
use pointstamp_order::{Point, worker_of_hash};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySet};

use crate::batch::{Batch, Records};
use crate::errors::IntoException;
use crate::gil::{Held, attached};
use crate::hash::route_hash;
use crate::nan::with_one_nan;
use crate::pact::{Key, pact_by};
use crate::raised::Raised;
use crate::stream::Stream;
use crate::tools::Tools;

/// Each record once per time.
#[pyfunction]
pub(crate) fn distinct(stream: &Stream) -> PyResult<Stream> {
    let pact = pact_by(Key::Record, "distinct");
    let unary = stream.unary("distinct", pact)?;
    let seen = kept(unary.builder()).map_err(IntoException::into_exception)?;
    let distinct = unary.on_messages_and_frontier(move |input, output| {
        let mut seen = seen.borrow_mut();
        if input.port().has_messages() {
            attached(|py| pass_new(py, input, output, &mut seen))?;
        }
        drop(seen.closed(&input.port().frontier()));
        Ok(())
    });
    Ok(Stream::of(stream.home(), distinct))
}

/// The records of each time.
type Seen = Rc<RefCell<PerTime<Held<PySet>>>>;

/// Returns the operator's records, which checkpoints take: an entry has those of a time.
fn kept(builder: &OperatorBuilder<Batch>) -> Result<Seen, Error> {
    let seen = Seen::default();
    if let Some((restored, entries)) = Restored::of(builder)? {
        for entry in entries {
            let time = entry.time(0);
            for records in entry.contents::<Records>()? {
                give_back(&mut seen.borrow_mut(), &time, &records, restored.place())
                    .map_err(Error::State)?;
            }
        }
    }
    let kept = Rc::clone(&seen);
    keep(builder, Division::Groups, move || {
        attached(|py| {
            let seen = kept.borrow();
            let entries = seen.iter().map(|(time, set)| {
                let records = PyList::new(py, set.get().bind(py).iter()).map_err(Raised::here)?;
                let records = (records.len() > 0).then(|| Records::new(records));
                Ok(Entry::new(time.coords().to_vec(), records))
            });
            entries.collect()
        })
    });
    Ok(seen)
}

/// Takes back the records of a time that a worker has.
fn give_back(
    seen: &mut PerTime<Held<PySet>>,
    time: &Point,
    records: &Records,
    (index, peers): (usize, usize),
) -> Result<(), BoxError> {
    attached(|py| {
        for record in with_one_nan(records.list(py))? {
            if worker_of_hash(route_hash(&record)?, peers) == index {
                let set = seen.at(time, || PySet::empty(py).map(|set| Held::new(set.unbind())))?;
                set.get().bind(py).add(record)?;
            }
        }
        Ok::<_, PyErr>(())
    })
    .map_err(Raised::here)
}

fn pass_new(
    py: Python<'_>,
    input: &Input<Records>,
    output: &Output<Records>,
    seen: &mut PerTime<Held<PySet>>,
) -> Result<(), BoxError> {
    let tools = Tools::get(py).map_err(Raised::here)?;
    while let Some((message, batch)) = input.next()? {
        let fresh = (|| {
            let set = seen.at(message.time(), || {
                PySet::empty(py).map(|set| Held::new(set.unbind()))
            })?;
            tools.unseen(set.get().bind(py), &with_one_nan(batch.list(py))?)
        })()
        .map_err(Raised::here)?;
        output.send(&message, Records::new(fresh))?;
    }
    Ok(())
}
