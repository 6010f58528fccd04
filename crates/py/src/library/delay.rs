//! `delay` and `delay_batch`: records move to later times.
//!
//! Both send at once, by a capability made from the message's, and hold nothing: they wait for no frontier. Cost of
//! `delay`: a call of the function per record, in Python's own loop, a look at its result, and a batch for each
//! time that comes out of a batch that goes in.

use std::collections::HashMap;

use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::{MessageCapability, OutputPort, SendError};
use pointstamp_order::{PartialOrder, Point};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::Unary;
use crate::batch::Batch;
use crate::errors::TimeError;
use crate::gil::{Held, attached};
use crate::raised::Raised;
use crate::stream::Stream;
use crate::time::{point_from_py, point_to_py};
use crate::tools::Tools;

/// Each record at the time that `function(record, time)` returns.
#[pyfunction]
pub(crate) fn delay(stream: &Stream, function: Py<PyAny>) -> PyResult<Stream> {
    let function = Held::new(function);
    let unary = Unary::new(&stream.engine()?, "delay", Pact::Pipeline)?;
    Ok(unary.on_messages(stream, move |input, output| {
        attached(|py| {
            while let Some((capability, batch)) = input.next()? {
                let function = function.get().bind(py);
                let groups = by_new_time(function, capability.time(), &batch.as_list(py))
                    .map_err(Raised::here)?;
                for (time, records) in groups {
                    send_at(&time, &capability, output, Batch::records(records))?;
                }
            }
            Ok(())
        })
    }))
}

/// Each batch at the time that `function(time)` returns.
#[pyfunction]
pub(crate) fn delay_batch(stream: &Stream, function: Py<PyAny>) -> PyResult<Stream> {
    let function = Held::new(function);
    let unary = Unary::new(&stream.engine()?, "delay_batch", Pact::Pipeline)?;
    Ok(unary.on_messages(stream, move |input, output| {
        attached(|py| {
            while let Some((capability, batch)) = input.next()? {
                let time =
                    new_time(function.get().bind(py), capability.time()).map_err(Raised::here)?;
                send_at(&time, &capability, output, batch)?;
            }
            Ok(())
        })
    }))
}

fn send_at(
    time: &Point,
    capability: &MessageCapability,
    output: &OutputPort<Batch>,
    batch: Batch,
) -> Result<(), BoxError> {
    let sent = if time == capability.time() {
        output.send(capability, batch)
    } else {
        output.send(&capability.delayed(time, 0)?, batch)
    };
    sent.map_err(SendError::into_cause)
}

/// The records of a batch by their new times, in the order in which the times first come up.
fn by_new_time<'py>(
    function: &Bound<'py, PyAny>,
    from: &Point,
    records: &Bound<'py, PyList>,
) -> PyResult<Vec<(Point, Bound<'py, PyList>)>> {
    let py = records.py();
    let time = point_to_py(py, from)?;
    let moved = Tools::get(py)?.map_before(function, records, &time)?;
    let mut groups: Vec<(Point, Bound<'py, PyList>)> = Vec::new();
    let mut index: HashMap<Point, usize> = HashMap::new();
    let mut last = 0; // neighbours often share a time
    for (record, to) in records.iter().zip(moved.iter()) {
        let point = point_from_py(&to, from.dims())?;
        if groups.get(last).is_none_or(|(time, _)| *time != point) {
            last = match index.get(&point) {
                Some(&group) => group,
                None if from.less_equal(&point) => {
                    groups.push((point.clone(), PyList::empty(py)));
                    index.insert(point, groups.len() - 1);
                    groups.len() - 1
                }
                None => {
                    return Err(TimeError::new_err(format!(
                        "delay would move the record {} from time {} back to {}: its function must return the record's \
                         time or a later one",
                        shown(&record),
                        time.repr()?,
                        to.repr()?
                    )));
                }
            };
        }
        groups[last].1.append(record)?;
    }
    Ok(groups)
}

fn new_time(function: &Bound<'_, PyAny>, from: &Point) -> PyResult<Point> {
    let time = point_to_py(function.py(), from)?;
    let to = function.call1((&time,))?;
    let point = point_from_py(&to, from.dims())?;
    if from.less_equal(&point) {
        return Ok(point);
    }
    Err(TimeError::new_err(format!(
        "delay_batch would move records from time {} back to {}: its function must return the time or a later one",
        time.repr()?,
        to.repr()?
    )))
}

/// A record in a message: shortened, and present even when its `repr` raises.
fn shown(record: &Bound<'_, PyAny>) -> String {
    const LONG: usize = 100;
    let Ok(text) = record.repr() else {
        return format!("<{}>", record.get_type());
    };
    let text = text.to_string();
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
