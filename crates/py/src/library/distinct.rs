//! `distinct`: each record once per time.
//!
//! A record is sent on when it is first seen at its time, on the worker that its hash chooses; what has been seen
//! is forgotten when the time closes. `Stream.distinct` puts a stage before it that leaves one of each record
//! in every batch, so that few copies travel. Cost: dict and set operations in C per record.

use pointstamp_engine::error::BoxError;
use pointstamp_operators::{Input, Output, PerTime};
use pyo3::prelude::*;
use pyo3::types::PySet;

use crate::batch::Records;
use crate::gil::{Held, attached};
use crate::one_nan::with_one_nan;
use crate::pact::{Key, pact_by};
use crate::raised::Raised;
use crate::stream::Stream;
use crate::tools::Tools;

/// Each record once per time.
#[pyfunction]
pub(crate) fn distinct(stream: &Stream) -> PyResult<Stream> {
    let pact = pact_by(Key::Record, "distinct");
    let unary = stream.unary("distinct", pact)?;
    let mut seen = PerTime::new();
    let distinct = unary.on_messages_and_frontier(move |input, output| {
        if input.port().has_messages() {
            attached(|py| pass_new(py, input, output, &mut seen))?;
        }
        drop(seen.closed(&input.port().frontier()));
        Ok(())
    });
    Ok(Stream::of(stream.home(), distinct))
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
