//! `at_event_times` and `by_worker`: what streams on event time need of Rust.
//!
//! What `event_time` and the operators on keys send is stretches, `(times, records)` or `(times, keys, records)`, whose
//! columns are lists, in messages at a time that is not after any of theirs: a message for each time would cost more than
//! what is done with its records, and so would a tuple for each record. `at_event_times` is where a reader that wants
//! records at their times gets them, `by_worker` takes a stretch apart by the workers that its keys choose.
//!
//! Cost of `at_event_times`: a copy of the list where all records have one time, which is an int there; else a compare and
//! an append per record. Of `by_worker`: a hash per key, and where there are several workers, a look-up and an append per
//! column and record.

use pointstamp_engine::pact::Pact;
use pointstamp_operators::Input;
use pointstamp_order::{PartialOrder, Point};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};

use super::delay::{Group, Groups, send_at};
use crate::batch::{Records, copy, in_batches};
use crate::errors::{IntoException, TimeError};
use crate::gil::attached;
use crate::hash::{check_route, route_hash};
use crate::raised::Raised;
use crate::stream::Stream;
use crate::time::{Time, point_from_py};

/// Each record of the stretches `(times, records)` at its time.
#[pyfunction]
pub(crate) fn at_event_times(stream: &Stream) -> PyResult<Stream> {
    let unary = stream.unary("at event times", Pact::Pipeline)?;
    let moved = unary.on_messages_moved(move |input: &Input<Records>, output| {
        attached(|py| {
            while let Some((capability, batch)) = input.next()? {
                let from = capability.time();
                let grouped = grouped(batch.list(py), from.dims());
                for (time, records) in grouped.map_err(Raised::here)? {
                    if !from.less_equal(&time) {
                        let error = past(py, &time, from);
                        return Err(Raised::here(error));
                    }
                    in_batches(records, |batch| send_at(&time, &capability, output, batch))?;
                }
            }
            Ok(())
        })
    });
    let moved = moved.map_err(IntoException::into_exception)?;
    Ok(Stream::of(stream.home(), moved))
}

/// The records of stretches by time. What is at one time throughout stays as it is.
fn grouped<'py>(stretches: &Bound<'py, PyList>, dims: usize) -> PyResult<Vec<Group<'py>>> {
    let mut whole = Vec::new();
    let mut groups = Groups::new();
    for stretch in stretches {
        let stretch = stretch.cast_into::<PyTuple>()?;
        let times = stretch.get_borrowed_item(0)?;
        let records = stretch.get_item(1)?.cast_into::<PyList>()?;
        if times.is_exact_instance_of::<PyInt>() {
            // Others may read the stretch, too: what is sent may be changed by who gets it.
            whole.push((point_from_py(&times, dims)?, copy(&records)));
            continue;
        }
        for (time, record) in times.cast::<PyList>()?.iter().zip(&records) {
            groups.add(point_from_py(&time, dims)?, record)?;
        }
    }
    whole.append(&mut groups.by_time);
    Ok(whole)
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

/// A worker and its part of the columns.
type Part<'py> = (usize, Vec<Bound<'py, PyList>>);

/// Columns of one length as those of each worker that has some, by the keys: `(worker, columns)`, where an exchange by
/// `keys` would take them. On one worker the keys are looked at all the same.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn by_worker<'py>(
    keys: Bound<'py, PyList>,
    columns: Vec<Bound<'py, PyList>>,
    peers: usize,
) -> PyResult<Vec<Part<'py>>> {
    let py = keys.py();
    if peers == 1 {
        for key in &keys {
            check_route(&key)?;
        }
        return Ok(vec![(0, columns)]);
    }
    let mut places: Vec<Vec<usize>> = vec![Vec::new(); peers];
    for (place, key) in keys.iter().enumerate() {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "below the number of workers"
        )]
        let worker = (route_hash(&key)? % peers as u64) as usize;
        places[worker].push(place);
    }
    let mut parts = Vec::new();
    for (worker, places) in places.into_iter().enumerate() {
        if places.is_empty() {
            continue;
        }
        let part = |column: &Bound<'py, PyList>| {
            let records = places.iter().map(|&place| column.get_item(place));
            PyList::new(py, records.collect::<PyResult<Vec<_>>>()?)
        };
        parts.push((worker, columns.iter().map(part).collect::<PyResult<_>>()?));
    }
    Ok(parts)
}
