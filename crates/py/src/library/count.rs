//! `count`: the number of records of each time, on all workers together.
//!
//! Two operators. The first counts where the records are, and sends one number when the time closes; the second, on the
//! first worker, adds up the numbers of the workers. The records are not looked at and do not move, so that a batch costs
//! the same whatever it holds.

use std::cell::RefCell;
use std::rc::Rc;

use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::payload::Payload;
use pointstamp_operators::checkpoint::{Division, Entry, Restored, keep};
use pointstamp_operators::{Error, Input, Output, PerTime, Unary};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::batch::{Batch, Records};
use crate::errors::IntoException;
use crate::gil::attached;
use crate::pact::ToFirst;
use crate::raised::Raised;
use crate::stream::Stream;

/// The number of records at each time that has some, sent on the first worker when the time closes.
#[pyfunction]
pub(crate) fn count(stream: &Stream) -> PyResult<Stream> {
    let here = stream.unary(NAME, Pact::Pipeline)?;
    let counts = kept(here.builder()).map_err(IntoException::into_exception)?;
    let here = here.on_messages_and_closing(move |input: &Input<Batch>, output| {
        let mut counts = counts.borrow_mut();
        while let Some((message, batch)) = input.next()? {
            counts
                .at(message.time(), || message.retain(0).map(|kept| (kept, 0)))?
                .1 += batch.len();
        }
        send(counts.closed(&input.port().frontier()), output)
    });

    let total = Unary::new(&here, "count: total", Pact::exchange(ToFirst))
        .map_err(IntoException::into_exception)?;
    let counts = kept(total.builder()).map_err(IntoException::into_exception)?;
    let totals = total.on_messages_and_closing(move |input: &Input<Records>, output| {
        let mut counts = counts.borrow_mut();
        if input.port().has_messages() {
            attached(|py| add_up(py, input, &mut counts))?;
        }
        send(counts.closed(&input.port().frontier()), output)
    });
    Ok(Stream::of(stream.home(), totals))
}

const NAME: &str = "count";

/// Sends the counts of times that have closed.
fn send(closed: Vec<(Capability, usize)>, output: &Output<Records>) -> Result<(), BoxError> {
    if closed.is_empty() {
        return Ok(());
    }
    attached(|py| {
        for (capability, count) in closed {
            let record = PyList::new(py, [count]).map_err(Raised::here)?;
            output.send(&capability, Records::new(record))?;
        }
        Ok(())
    })
}

/// Adds up the counts that have arrived.
fn add_up(
    py: Python<'_>,
    input: &Input<Records>,
    counts: &mut PerTime<(Capability, usize)>,
) -> Result<(), BoxError> {
    while let Some((message, batch)) = input.next()? {
        let total = counts.at(message.time(), || message.retain(0).map(|kept| (kept, 0)))?;
        for count in batch.list(py) {
            total.1 += count.extract::<usize>().map_err(Raised::here)?;
        }
    }
    Ok(())
}

/// The counts of times, each with a capability to send it.
type Counts = Rc<RefCell<PerTime<(Capability, usize)>>>;

/// The operator's counts, which checkpoints take: the numbers of an entry are a count and a time.
fn kept(builder: &OperatorBuilder<Batch>) -> Result<Counts, Error> {
    let counts = Counts::default();
    if let Some((mut restored, entries)) = Restored::of(builder)? {
        for entry in entries {
            let time = entry.time(1);
            let count = entry.numbers.first().copied().unwrap_or(0);
            let mut counts = counts.borrow_mut();
            let (_, total) = counts.at(&time, || {
                restored.capability(0, &time).map(|held| (held, 0))
            })?;
            *total += usize::try_from(count).unwrap_or(usize::MAX);
        }
    }
    let kept = Rc::clone(&counts);
    keep(builder, Division::Parts, move || {
        let counts = kept.borrow();
        let entries = counts
            .iter()
            .map(|(time, (_, count))| Entry::at::<Batch>(*count as u64, time, []));
        Ok(entries.collect())
    });
    Ok(counts)
}
