//! Reading an arrangement from `main`.

use std::cell::RefCell;

use pointstamp_arrange::{Cursor, Trace as Reader};
use pointstamp_order::{Antichain, PartialOrder, Point};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::arrange::{Arrangement, ByTime, on_arranged};
use super::rows::{Row, Terms};
use super::terms;
use super::time::ScopeTime;
use crate::bound::ThreadBound;
use crate::errors::{IntoException, PointstampError, TimeError};
use crate::time::{point_from_py, point_to_py};

/// This worker's share of an arrangement.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Trace {
    reads: ThreadBound<RefCell<Option<Box<dyn Reads>>>>,
    dims: usize,
}

/// A row and how often it is there.
type Counted = (Vec<u8>, i64);

/// What a trace of any type of times can do.
trait Reads {
    fn since(&self) -> Vec<Point>;
    fn upper(&self) -> Vec<Point>;
    fn allow(&mut self, since: &Point);
    fn get(&self, key: &[u8], at: &Point) -> Result<Vec<Counted>, pointstamp_arrange::Overflow>;
    fn items(&self, at: &Point) -> Result<Vec<(Vec<u8>, Counted)>, pointstamp_arrange::Overflow>;
}

impl<T: ScopeTime> Reads for Reader<Terms, Terms, T> {
    fn since(&self) -> Vec<Point> {
        Reader::since(self).iter().map(T::point).collect()
    }

    fn upper(&self) -> Vec<Point> {
        Reader::upper(self).iter().map(T::point).collect()
    }

    fn allow(&mut self, since: &Point) {
        // What it held already, moved up to the time.
        let moved = Reader::since(self);
        let moved = moved.iter().map(|time| time.join(&T::of(since)));
        let moved: Antichain<T> = moved.collect();
        self.allow_compaction(&moved);
    }

    fn get(&self, key: &[u8], at: &Point) -> Result<Vec<Counted>, pointstamp_arrange::Overflow> {
        let found = Reader::get(self, Row(key), &T::of(at))?;
        Ok(found
            .iter()
            .map(|(value, count)| (value.0.to_vec(), count))
            .collect())
    }

    fn items(&self, at: &Point) -> Result<Vec<(Vec<u8>, Counted)>, pointstamp_arrange::Overflow> {
        let (batches, at) = (self.batches(), T::of(at));
        let mut cursor = Cursor::new(&batches);
        let mut items = Vec::new();
        while let Some(key) = cursor.key() {
            cursor.vals_at(&at, |value, count| {
                items.push((key.0.to_vec(), (value.0.to_vec(), count)));
            })?;
            cursor.pass();
        }
        Ok(items)
    }
}

/// The latest time that is not at or after any of a frontier's; nothing where there is none.
fn latest_before(upper: &[Point], dims: usize) -> Option<Point> {
    let mut rest: Vec<&Point> = upper.iter().collect();
    let mut coords = Vec::with_capacity(dims);
    for index in 0..dims {
        match rest.iter().filter_map(|time| time.get(index)).min() {
            None => coords.push(u64::MAX),
            Some(0) => {
                // Before it in a later coordinate, of those that are 0 here.
                rest.retain(|time| time.get(index) == Some(0));
                coords.push(0);
                continue;
            }
            Some(least) => coords.push(least - 1),
        }
        coords.resize(dims, u64::MAX);
        return Some(Point::from(coords));
    }
    upper.is_empty().then(|| Point::from(coords))
}

impl Trace {
    fn with<R>(&self, run: impl FnOnce(&mut dyn Reads) -> PyResult<R>) -> PyResult<R> {
        match &mut *self.reads.get()?.borrow_mut() {
            Some(reads) => run(&mut **reads),
            None => Err(PointstampError::new_err(
                "this trace is closed: take another from the arrangement, or close it later",
            )),
        }
    }

    /// The time to read at.
    fn time(&self, reads: &dyn Reads, at: Option<&Bound<'_, PyAny>>) -> PyResult<Point> {
        let upper = reads.upper();
        let at = match at {
            Some(at) => point_from_py(at, self.dims)?,
            None => latest_before(&upper, self.dims).ok_or_else(|| {
                TimeError::new_err(
                    "the trace is complete at no time yet: step the worker until a probe has passed one",
                )
            })?,
        };
        if upper.iter().any(|time| time.less_equal(&at)) {
            return Err(TimeError::new_err(format!(
                "the trace is not complete at {at} yet, only before {}: step the worker until a probe has passed it",
                list(&upper)
            )));
        }
        let since = reads.since();
        if !since.iter().any(|time| time.less_equal(&at)) {
            return Err(TimeError::new_err(format!(
                "the trace does not reach back to {at}, only to {}: what happened before is merged, by \
                 allow_merging_before or because the trace was taken later",
                list(&since)
            )));
        }
        Ok(at)
    }
}

fn list(times: &[Point]) -> String {
    let times: Vec<_> = times.iter().map(ToString::to_string).collect();
    times.join(", ")
}

fn times<'py>(py: Python<'py>, times: &[Point]) -> PyResult<Bound<'py, PyList>> {
    let times = times.iter().map(|time| point_to_py(py, time));
    PyList::new(py, times.collect::<PyResult<Vec<_>>>()?)
}

fn overflowed(error: pointstamp_arrange::Overflow) -> PyErr {
    error.into_exception()
}

#[pymethods]
impl Trace {
    #[getter]
    fn since<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        times(py, &self.with(|reads| Ok(reads.since()))?)
    }

    #[getter]
    fn upper<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        times(py, &self.with(|reads| Ok(reads.upper()))?)
    }

    #[pyo3(signature = (key, at = None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        at: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = key.py();
        let mut row = Vec::new();
        terms::encode(key, &mut row)?;
        let found = self.with(|reads| {
            let at = self.time(reads, at)?;
            reads.get(&row, &at).map_err(overflowed)
        })?;
        let list = PyList::empty(py);
        for (value, count) in found {
            list.append((terms::decode(py, &value)?, count))?;
        }
        Ok(list)
    }

    #[pyo3(signature = (at = None))]
    fn items<'py>(
        &self,
        py: Python<'py>,
        at: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let found = self.with(|reads| {
            let at = self.time(reads, at)?;
            reads.items(&at).map_err(overflowed)
        })?;
        let list = PyList::empty(py);
        for (key, (value, count)) in found {
            list.append((terms::decode(py, &key)?, terms::decode(py, &value)?, count))?;
        }
        Ok(list)
    }

    fn allow_merging_before(&self, time: &Bound<'_, PyAny>) -> PyResult<()> {
        let time = point_from_py(time, self.dims)?;
        self.with(|reads| {
            reads.allow(&time);
            Ok(())
        })
    }

    fn close(&self) -> PyResult<()> {
        let reads = self.reads.get()?.borrow_mut().take();
        drop(reads);
        Ok(())
    }
}

/// A reader of an arrangement.
#[pyfunction]
pub(crate) fn trace_of(arrangement: &Arrangement) -> PyResult<Trace> {
    let by_time = arrangement.inner.get()?;
    let dims = by_time.stream().scope().dims();
    let reads = on_arranged!(by_time, arranged => Box::new(arranged.reader()) as Box<dyn Reads>);
    Ok(Trace {
        reads: ThreadBound::new(arrangement.inner.home(), RefCell::new(Some(reads))),
        dims,
    })
}
