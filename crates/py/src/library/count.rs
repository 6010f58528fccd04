//! `count`: how many records each time has on this worker.
//!
//! The records are not looked at, so that a batch costs the same whatever it holds.

use pointstamp_engine::capability::Capability;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::payload::Payload;
use pointstamp_operators::{Input, PerTime};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::batch::{Batch, Records};
use crate::gil::attached;
use crate::raised::Raised;
use crate::stream::Stream;

/// The number of records at each time that has some, sent when the time closes.
#[pyfunction]
pub(crate) fn count(stream: &Stream) -> PyResult<Stream> {
    let unary = stream.unary("count", Pact::Pipeline)?;
    let mut counts: PerTime<(Capability, usize)> = PerTime::new();
    let counted = unary.on_messages_and_closing(move |input: &Input<Batch>, output| {
        while let Some((message, batch)) = input.next()? {
            counts
                .at(message.time(), || message.retain(0).map(|kept| (kept, 0)))?
                .1 += batch.len();
        }
        let closed = counts.closed(&input.port().frontier());
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
    });
    Ok(Stream::of(stream.home(), counted))
}
