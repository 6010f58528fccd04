//! `delay`, `enter_at` and `delay_batch`: records move to later times.
//!
//! They send at once, by a capability made from the message's, and hold nothing: they wait for no frontier. Cost of
//! `delay`: a call of the function per record, in Python's own loop, a look at its result, and a batch for each
//! time that comes out of a batch that goes in.

use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::MessageCapability;
use pointstamp_operators::{Content, Input, Output, Typed};
use pointstamp_order::{PartialOrder, Point};
use pyo3::prelude::*;
use pyo3::types::PyList;
use rustc_hash::FxHashMap;

use crate::batch::{Batch, Records};
use crate::errors::{IntoException, TimeError};
use crate::gil::{Held, attached};
use crate::raised::{Raised, shown};
use crate::stream::Stream;
use crate::time::{point_from_py, point_to_py};
use crate::tools::Tools;

/// Each record at the time that `function(record, time)` returns.
#[pyfunction]
pub(crate) fn delay(stream: &Stream, function: Py<PyAny>) -> PyResult<Stream> {
    by_record(stream, "delay", function, true, delayed)
}

/// Each record at the coordinates that `function(record)` returns, in place of the last `appended` ones, which are 0.
#[pyfunction]
pub(crate) fn enter_at(stream: &Stream, function: Py<PyAny>, appended: usize) -> PyResult<Stream> {
    by_record(
        stream,
        "enter_at",
        function,
        false, // the coordinates that it changes are not those of the scope around
        move |function, from, records| {
            let outer = from.truncate(from.dims() - appended);
            let coordinates = Tools::get(records.py())?.map(function, records)?;
            let mut groups = Groups::new();
            for (record, inner) in records.iter().zip(coordinates.iter()) {
                let inner = point_from_py(&inner, appended)?;
                groups.add(outer.extend(inner.coords()), record)?;
            }
            Ok(groups.by_time)
        },
    )
}

fn by_record(
    stream: &Stream,
    name: &str,
    function: Py<PyAny>,
    outwards: bool,
    move_records: impl for<'py> Fn(
        &Bound<'py, PyAny>,
        &Point,
        &Bound<'py, PyList>,
    ) -> PyResult<Vec<Group<'py>>>
    + 'static,
) -> PyResult<Stream> {
    let function = Held::new(function);
    let unary = stream.unary(name, Pact::Pipeline)?;
    let logic = move |input: &Input<Records>, output: &Output<Records>| {
        attached(|py| {
            while let Some((capability, batch)) = input.next()? {
                let function = function.get().bind(py);
                let groups = move_records(function, capability.time(), batch.list(py))
                    .map_err(Raised::here)?;
                for (time, records) in groups {
                    send_at(&time, &capability, output, Records::new(records))?;
                }
            }
            Ok(())
        })
    };
    let moved = if outwards {
        let moved = unary.on_messages_moved(logic);
        moved.map_err(IntoException::into_exception)?
    } else {
        unary.on_messages(logic)
    };
    Ok(Stream::of(stream.home(), moved))
}

/// Each batch at the time that `function(time)` returns.
#[pyfunction]
pub(crate) fn delay_batch(stream: &Stream, function: Py<PyAny>) -> PyResult<Stream> {
    let function = Held::new(function);
    let unary = stream.unary("delay_batch", Pact::Pipeline)?;
    let moved = unary.on_messages_moved(move |input: &Input<Batch>, output| {
        attached(|py| {
            while let Some((capability, batch)) = input.next()? {
                let time =
                    new_time(function.get().bind(py), capability.time()).map_err(Raised::here)?;
                send_at(&time, &capability, output, batch)?;
            }
            Ok(())
        })
    });
    let moved: Typed<Batch> = moved.map_err(IntoException::into_exception)?;
    Ok(Stream::plain(
        stream.home(),
        stream.kind(),
        moved.into_stream(),
    ))
}

pub(super) fn send_at<C: Content>(
    time: &Point,
    capability: &MessageCapability,
    output: &Output<C>,
    batch: C,
) -> Result<(), BoxError> {
    if time == capability.time() {
        output.send(capability, batch)
    } else {
        output.send(&capability.delayed(time, 0)?, batch)
    }
}

/// A time and its records.
pub(super) type Group<'py> = (Point, Bound<'py, PyList>);

/// Records by time, in the order in which the times first come up.
pub(super) struct Groups<'py> {
    pub(super) by_time: Vec<Group<'py>>,
    index: FxHashMap<Point, usize>,
    /// The group of the record before: neighbours often share a time.
    last: usize,
}

impl<'py> Groups<'py> {
    pub(super) fn new() -> Self {
        Groups {
            by_time: Vec::new(),
            index: FxHashMap::default(),
            last: 0,
        }
    }

    pub(super) fn add(&mut self, time: Point, record: Bound<'py, PyAny>) -> PyResult<()> {
        if self
            .by_time
            .get(self.last)
            .is_none_or(|(last, _)| *last != time)
        {
            self.last = if let Some(&group) = self.index.get(&time) {
                group
            } else {
                self.by_time
                    .push((time.clone(), PyList::empty(record.py())));
                self.index.insert(time, self.by_time.len() - 1);
                self.by_time.len() - 1
            };
        }
        self.by_time[self.last].1.append(record)
    }
}

/// The records of a batch at their new times.
fn delayed<'py>(
    function: &Bound<'py, PyAny>,
    from: &Point,
    records: &Bound<'py, PyList>,
) -> PyResult<Vec<Group<'py>>> {
    let py = records.py();
    let time = point_to_py(py, from)?;
    let moved = Tools::get(py)?.map_before(function, records, &time)?;
    let mut groups = Groups::new();
    for (record, to) in records.iter().zip(moved.iter()) {
        let point = point_from_py(&to, from.dims())?;
        if !from.less_equal(&point) {
            return Err(TimeError::new_err(format!(
                "delay would move the record {} from time {} back to {}: its function must return the record's time or a \
                 later one",
                shown(&record),
                time.repr()?,
                to.repr()?
            )));
        }
        groups.add(point, record)?;
    }
    Ok(groups.by_time)
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
