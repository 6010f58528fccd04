//! `at_event_times`: records that travel as `(time, record)` move to their times.
//!
//! What `event_time` and the operators on keys send is pairs in batches of mixed times, at a time that is not after any of
//! them: a message for each time would cost more than what is done with its records. This is where a reader that wants
//! records at their times gets them. Cost: two look-ups in a pair, a compare and an append per record.

use pointstamp_engine::pact::Pact;
use pointstamp_order::{PartialOrder, Point};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::Unary;
use super::delay::{Groups, send_at};
use crate::batch::Batch;
use crate::errors::TimeError;
use crate::gil::attached;
use crate::raised::Raised;
use crate::stream::Stream;
use crate::time::{Time, point_from_py};

/// Each record of `(time, record)` at its time.
#[pyfunction]
pub(crate) fn at_event_times(stream: &Stream) -> PyResult<Stream> {
    let unary = Unary::new(&stream.engine()?, "at event times", Pact::Pipeline)?;
    Ok(unary.on_messages(stream, move |input, output| {
        attached(|py| {
            while let Some((capability, batch)) = input.next()? {
                let from = capability.time();
                let grouped = (|| {
                    let mut groups = Groups::new();
                    for pair in batch.as_list(py) {
                        let pair = pair.cast_into::<PyTuple>()?;
                        let time = point_from_py(&*pair.get_borrowed_item(0)?, from.dims())?;
                        groups.add(time, pair.get_item(1)?)?;
                    }
                    PyResult::Ok(groups.by_time)
                })();
                for (time, records) in grouped.map_err(Raised::here)? {
                    if !from.less_equal(&time) {
                        let error = past(py, &time, from);
                        return Err(Raised::here(error));
                    }
                    send_at(&time, &capability, output, Batch::records(records))?;
                }
            }
            Ok(())
        })
    }))
}

fn past(py: Python<'_>, time: &Point, from: &Point) -> PyErr {
    let shown = |time: &Point| {
        let time = Time(time.clone()).into_pyobject(py);
        time.map_or_else(|_| String::new(), |time| time.to_string())
    };
    TimeError::new_err(format!(
        "a record would be sent at time {}, before {}",
        shown(time),
        shown(from)
    ))
}
