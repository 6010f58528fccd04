//! `at_event_times`: gives a reader records at their event times.

use pointstamp_engine::pact::Pact;
use pointstamp_operators::{Input, Output, Timed, at_own_times};
use pyo3::prelude::*;

use crate::gil::attached;
use crate::stream::Stream;

/// Each record of batches at times of their own, at its time.
#[pyfunction]
pub(crate) fn at_event_times(stream: &Stream) -> PyResult<Stream> {
    let unary = stream.unary("at event times", Pact::Pipeline)?;
    let moved = unary.on_messages_moved(|input: &Input<Timed>, output: &Output<_>| {
        attached(|_| at_own_times(input, output)) // attached once, for all that its columns do
    });
    stream.made(moved)
}
