//! Reading an arrangement from `main`.

use crate::collections::values::FromPython;
use crate::collections::values::ToPython;
use std::cell::RefCell;

use pointstamp_arrange::{Cursor, Trace as Reader};
use pointstamp_engine::scope::Scope as EngineScope;
use pointstamp_order::{Antichain, PartialOrder, Point};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::arrange::{Arranged, Arrangement, ByTime};
use super::follow::Followers;
use super::import::import;
use super::time::ScopeTime;
use crate::batch::Batch;
use crate::bound::ThreadBound;
use crate::errors::{GraphError, IntoException, PointstampError, TimeError};
use crate::scope::Scope;
use crate::time::{point_from_py, point_to_py};
use pointstamp_rows::{Cells, Row, RowBuf};

/// This worker's share of an arrangement.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Trace {
    reads: ThreadBound<RefCell<Option<Box<dyn Reads>>>>,
    dims: usize,
}

/// A row and how often it is there.
type Counted = (RowBuf, i64);

/// What a trace of any type of times can do.
trait Reads {
    fn since(&self) -> Vec<Point>;
    fn upper(&self) -> Vec<Point>;
    fn allow(&mut self, since: &Point);
    fn get(&self, key: Row<'_>, at: &Point) -> Result<Vec<Counted>, pointstamp_arrange::Overflow>;
    fn items(&self, at: &Point) -> Result<Vec<(RowBuf, Counted)>, pointstamp_arrange::Overflow>;
    fn import(&self, scope: &EngineScope<Batch>) -> PyResult<ByTime>;
    fn len(&self) -> usize;
    fn bytes(&self) -> usize;
}

/// A reader of an arrangement, and those who follow the arrangement.
struct Read<T: ScopeTime> {
    trace: Reader<Cells, Cells, T>,
    followers: Followers<T>,
    /// Gives an arrangement to those whose times have its type.
    whole: fn(Arranged<T>) -> ByTime,
}

impl<T: ScopeTime> Reads for Read<T> {
    fn import(&self, scope: &EngineScope<Batch>) -> PyResult<ByTime> {
        let arranged = import(scope, self.trace.clone(), &self.followers)?;
        Ok((self.whole)(arranged))
    }

    fn len(&self) -> usize {
        self.trace.len()
    }

    fn bytes(&self) -> usize {
        self.trace.bytes()
    }

    fn since(&self) -> Vec<Point> {
        self.trace.since().iter().map(T::point).collect()
    }

    fn upper(&self) -> Vec<Point> {
        self.trace.upper().iter().map(T::point).collect()
    }

    fn allow(&mut self, since: &Point) {
        // What it held already, moved up to the time.
        let moved = self.trace.since();
        let moved = moved.iter().map(|time| time.join(&T::of(since)));
        let moved: Antichain<T> = moved.collect();
        self.trace.allow_compaction(&moved);
    }

    fn get(&self, key: Row<'_>, at: &Point) -> Result<Vec<Counted>, pointstamp_arrange::Overflow> {
        let found = self.trace.get(key, &T::of(at))?;
        Ok(found
            .iter()
            .map(|(value, count)| (RowBuf::of(value), count))
            .collect())
    }

    fn items(&self, at: &Point) -> Result<Vec<(RowBuf, Counted)>, pointstamp_arrange::Overflow> {
        let (batches, at) = (self.trace.batches(), T::of(at));
        let mut cursor = Cursor::new(&batches);
        let mut items = Vec::new();
        while let Some(key) = cursor.key() {
            cursor.vals_at(&at, |value, count| {
                items.push((RowBuf::of(key), (RowBuf::of(value), count)));
            })?;
            cursor.pass();
        }
        Ok(items)
    }
}

/// The latest time that is not at or after any of a frontier's, first coordinate first; nothing where there is none.
fn latest_before(upper: &[Point], dims: usize) -> Option<Point> {
    let upper: Vec<&[u64]> = upper.iter().map(Point::coords).collect();
    let mut coords = Vec::with_capacity(dims);
    put_latest(&upper, dims, &mut coords).then(|| Point::from(coords))
}

/// Appends the greatest coordinates that are not at or after any of these; whether there are such.
fn put_latest(upper: &[&[u64]], dims: usize, coords: &mut Vec<u64>) -> bool {
    if dims == 0 {
        return upper.is_empty();
    }
    let before = upper.iter().filter_map(|time| time[0].checked_sub(1));
    let mut firsts: Vec<u64> = before.chain([u64::MAX]).collect();
    firsts.sort_unstable();
    while let Some(first) = firsts.pop() {
        let begun = upper.iter().filter(|time| time[0] <= first);
        let begun: Vec<&[u64]> = begun.map(|time| &time[1..]).collect();
        coords.push(first);
        if put_latest(&begun, dims - 1, coords) {
            return true;
        }
        coords.pop();
    }
    false
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
    /// Reads are exact at the times that are at or after one of these.
    #[getter]
    fn since<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        times(py, &self.with(|reads| Ok(reads.since()))?)
    }

    /// The trace is complete at the times that are not at or after one of these.
    #[getter]
    fn upper<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        times(py, &self.with(|reads| Ok(reads.upper()))?)
    }

    /// How many updates it holds, merged or not.
    #[getter]
    fn updates(&self) -> PyResult<usize> {
        self.with(|reads| Ok(reads.len()))
    }

    /// How many bytes of memory it holds.
    #[getter]
    fn bytes(&self) -> PyResult<usize> {
        self.with(|reads| Ok(reads.bytes()))
    }

    /// The values of a key at a time, each with how often it is there, in order.
    #[pyo3(signature = (key, at = None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        at: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = key.py();
        let mut row = RowBuf::default();
        row.encode(key)?;
        let found = self.with(|reads| {
            let at = self.time(reads, at)?;
            reads.get(row.get(), &at).map_err(overflowed)
        })?;
        let list = PyList::empty(py);
        for (value, count) in found {
            list.append((value.get().decode(py)?, count))?;
        }
        Ok(list)
    }

    /// Every key, value and count of this worker's share at a time, in order.
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
            list.append((key.get().decode(py)?, value.get().decode(py)?, count))?;
        }
        Ok(list)
    }

    /// Gives up reading at times that are not at or after one.
    fn allow_merging_before(&self, time: &Bound<'_, PyAny>) -> PyResult<()> {
        let time = point_from_py(time, self.dims)?;
        self.with(|reads| {
            reads.allow(&time);
            Ok(())
        })
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        Ok(self.reads.get()?.borrow().is_none())
    }

    /// Gives up reading.
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
    let reads: Box<dyn Reads> = match by_time {
        ByTime::One(arranged) => read(arranged, ByTime::One)?,
        ByTime::Two(arranged) => read(arranged, ByTime::Two)?,
        ByTime::Three(arranged) => read(arranged, ByTime::Three)?,
        ByTime::Many(arranged) => read(arranged, ByTime::Many)?,
    };
    Ok(Trace {
        reads: ThreadBound::new(arrangement.inner.home(), RefCell::new(Some(reads))),
        dims,
    })
}

fn read<T: ScopeTime>(
    arranged: &Arranged<T>,
    whole: fn(Arranged<T>) -> ByTime,
) -> PyResult<Box<dyn Reads>> {
    let (trace, followers) = arranged.readers.trace()?;
    Ok(Box::new(Read {
        trace,
        followers,
        whole,
    }))
}

/// The arrangement that a trace reads, in a scope of another dataflow of the worker.
#[pyfunction]
pub(crate) fn import_trace(scope: &Scope, trace: &Trace) -> PyResult<Arrangement> {
    let home = scope.scope.home();
    let scope = scope.scope.get()?;
    if scope.dims() != trace.dims {
        return Err(GraphError::new_err(format!(
            "the trace's times have {} coordinates, and those of scope '{}' have {}: import it into a scope of as many, \
             and enter from there",
            trace.dims,
            scope.name(),
            scope.dims()
        )));
    }
    let by_time = trace.with(|reads| reads.import(scope))?;
    Ok(Arrangement {
        inner: ThreadBound::new(home, by_time),
    })
}
