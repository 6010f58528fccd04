//! `counts`: each distinct record of a time with the number of its occurrences.
//!
//! Two operators. The first counts where the records are, with the dict loop that `collections.Counter` uses, and
//! sends the dicts, one for each worker that its records belong to, when the time closes or a dict has grown large.
//! The second, on the worker that the record's hash chooses, adds them up and sends the totals when the time closes.
//! Only distinct records are sent and processed in Rust. A record travels to the worker of its key group.
//!
//! Cost: a dict update in C per record; per distinct record of a sender, its stable hash and an addition.

use std::cell::RefCell;
use std::rc::Rc;

use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::pact::Pact;
use pointstamp_operators::checkpoint::{Division, Entry, Restored, keep};
use pointstamp_operators::{Error, Input, Output, PerTime, Unary};
use pointstamp_order::worker_of_hash;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::batch::{Batch, Records, in_batches};
use crate::errors::IntoException;
use crate::gil::{Held, attached};
use crate::hash::{check_route, route_hash};
use crate::nan::{counts_with_one_nan, with_one_nan};
use crate::pact::{Key, pact_by};
use crate::raised::Raised;
use crate::stream::Stream;
use crate::tools::Tools;

/// A sender holds this many distinct records of a time at most; more are sent before the time closes.
const MAX_HELD: usize = 1 << 16;

const NAME: &str = "value_counts";

/// The counts of a time so far, and the right to send them.
type Counts = PerTime<(Capability, Held<PyDict>)>;

/// The counts of one of the two operators, which checkpoints take: an entry has the pairs of a time. The second has
/// the pairs of its worker.
fn kept(
    builder: &OperatorBuilder<Batch>,
    division: Division,
) -> Result<Rc<RefCell<Counts>>, Error> {
    let counts = Rc::new(RefCell::new(Counts::new()));
    if let Some((mut restored, entries)) = Restored::of(builder)? {
        for entry in entries {
            let time = entry.time(0);
            for pairs in entry.contents::<Records>()? {
                let part = attached(|py| part_of(pairs.list(py), division, restored.place()));
                if let Some(part) = part.map_err(Error::State)? {
                    let mut counts = counts.borrow_mut();
                    let mut first = Some(part);
                    let (_, total) = counts.at(&time, || {
                        let held = restored.capability(0, &time)?;
                        let part = first.take().ok_or(Error::NotABatch)?;
                        Ok::<_, Error>((held, part))
                    })?;
                    if let Some(part) = first {
                        attached(|py| add(total.get().bind(py), part.get().bind(py)))
                            .map_err(|error| Error::State(Raised::here(error)))?;
                    }
                }
            }
        }
    }
    let kept = Rc::clone(&counts);
    keep(builder, division, move || {
        attached(|py| {
            let counts = kept.borrow();
            let entries = counts.iter().map(|(time, (_, counts))| {
                let pairs = counts.get().bind(py).items();
                let pairs = (pairs.len() > 0).then(|| Records::new(pairs));
                Ok(Entry::new(time.coords().to_vec(), pairs))
            });
            entries.collect()
        })
    });
    Ok(counts)
}

/// Returns a worker's part of counts given as pairs, with one NaN; `None` where it has none.
fn part_of(
    pairs: &Bound<'_, PyList>,
    division: Division,
    (index, peers): (usize, usize),
) -> Result<Option<Held<PyDict>>, BoxError> {
    let py = pairs.py();
    let part = || {
        let part = PyDict::new(py);
        for pair in pairs {
            let (record, count): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
            let is_mine =
                division == Division::Parts || worker_of_hash(route_hash(&record)?, peers) == index;
            if is_mine {
                part.set_item(record, count)?;
            }
        }
        counts_with_one_nan(&part)
    };
    let part = part().map_err(Raised::here)?;
    Ok((!part.is_empty()).then(|| Held::new(part.unbind())))
}

/// `(record, number of occurrences)` for each distinct record of each time, sent when the time closes.
#[pyfunction]
pub(crate) fn counts(stream: &Stream) -> PyResult<Stream> {
    let partial = stream.unary(NAME, Pact::Pipeline)?;
    let peers = partial.peers();
    let held = kept(partial.builder(), Division::Parts).map_err(IntoException::into_exception)?;
    let partial = partial.on_messages_and_closing(move |input, output| {
        let mut held = held.borrow_mut();
        if input.port().has_messages() {
            attached(|py| count_here(py, input, output, &mut held, peers))?;
        }
        let closed = held.closed(&input.port().frontier());
        if closed.is_empty() {
            return Ok(());
        }
        attached(|py| {
            for (capability, counts) in closed {
                send_counts(counts.get().bind(py), &capability, output, peers)?;
            }
            Ok(())
        })
    });

    // A record of this stream is (worker, counts).
    let total = Unary::new(&partial, "value_counts: total", pact_by(Key::Worker, NAME))
        .map_err(IntoException::into_exception)?;
    let held = kept(total.builder(), Division::Groups).map_err(IntoException::into_exception)?;
    let totals = total.on_messages_and_closing(move |input, output| {
        let mut held = held.borrow_mut();
        if input.port().has_messages() {
            attached(|py| add_up(py, input, &mut held))?;
        }
        let closed = held.closed(&input.port().frontier());
        if closed.is_empty() {
            return Ok(());
        }
        attached(|py| {
            for (capability, counts) in closed {
                let items = Tools::get(py)
                    .and_then(|tools| tools.list(counts.get().bind(py).items().as_any()))
                    .map_err(Raised::here)?;
                in_batches(items, |batch| output.send(&capability, batch))?;
            }
            Ok(())
        })
    });
    Ok(Stream::of(stream.home(), totals))
}

/// Counts the records that have arrived.
fn count_here(
    py: Python<'_>,
    input: &Input<Records>,
    output: &Output<Records>,
    held: &mut Counts,
    peers: usize,
) -> Result<(), BoxError> {
    let tools = Tools::get(py).map_err(Raised::here)?;
    while let Some((message, batch)) = input.next()? {
        let (capability, counts) = held.at(message.time(), || {
            let kept = message.retain(0)?;
            Ok::<_, BoxError>((kept, Held::new(PyDict::new(py).unbind())))
        })?;
        let dict = counts.get().bind(py);
        tools
            .count_elements(dict, &with_one_nan(batch.list(py)).map_err(Raised::here)?)
            .map_err(Raised::here)?;
        if peers > 1 && dict.len() > MAX_HELD {
            let full = std::mem::replace(counts, Held::new(PyDict::new(py).unbind()));
            send_counts(full.get().bind(py), capability, output, peers)?;
        }
    }
    Ok(())
}

/// Sends counts as one dict for each worker.
fn send_counts(
    counts: &Bound<'_, PyDict>,
    capability: &Capability,
    output: &Output<Records>,
    peers: usize,
) -> Result<(), BoxError> {
    let records = split(counts, peers).map_err(Raised::here)?;
    output.send(capability, Records::new(records))
}

/// `(worker, counts)` for each worker that has some. On one worker the keys are looked at all the same: a program that
/// cannot be routed fails there, too.
fn split<'py>(counts: &Bound<'py, PyDict>, peers: usize) -> PyResult<Bound<'py, PyList>> {
    let py = counts.py();
    if peers == 1 {
        for key in counts.keys() {
            check_route(&key)?;
        }
        return PyList::new(py, [(0, counts)]);
    }
    let parts: Vec<_> = (0..peers).map(|_| PyDict::new(py)).collect();
    for (key, count) in counts {
        let worker = worker_of_hash(route_hash(&key)?, peers);
        parts[worker].set_item(key, count)?;
    }
    let filled = parts
        .into_iter()
        .enumerate()
        .filter(|(_, part)| !part.is_empty());
    PyList::new(py, filled.collect::<Vec<_>>())
}

/// Adds up the counts that have arrived.
fn add_up(py: Python<'_>, input: &Input<Records>, held: &mut Counts) -> Result<(), BoxError> {
    while let Some((message, batch)) = input.next()? {
        for record in batch.list(py) {
            let counts = (|| {
                let counts = record.cast::<PyTuple>()?.get_item(1)?;
                // Records of another process have a NaN of their own.
                counts_with_one_nan(counts.cast::<PyDict>()?)
            })()
            .map_err(Raised::here)?;
            let mut first = false;
            let (_, total) = held.at(message.time(), || {
                first = true;
                let kept = message.retain(0)?;
                Ok::<_, BoxError>((kept, Held::new(counts.clone().unbind())))
            })?;
            if !first {
                add(total.get().bind(py), &counts).map_err(Raised::here)?;
            }
        }
    }
    Ok(())
}

fn add(total: &Bound<'_, PyDict>, counts: &Bound<'_, PyDict>) -> PyResult<()> {
    for (key, count) in counts {
        match total.get_item(&key)? {
            None => total.set_item(key, count)?,
            Some(before) => {
                total.set_item(key, before.extract::<u64>()? + count.extract::<u64>()?)?;
            }
        }
    }
    Ok(())
}
