//! Reading an arrangement from `main`.

use std::cell::RefCell;

use pointstamp_operators::collections;
use pointstamp_order::{PartialOrder, Point};
use pointstamp_rows::RowBuf;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::arrange::Arrangement;
use super::values::{FromPython, ToPython};
use crate::bound::ThreadBound;
use crate::errors::{GraphError, IntoException, PointstampError, TimeError};
use crate::scope::Scope;
use crate::time::{point_from_py, point_to_py};

/// This worker's share of an arrangement.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Trace {
    reads: ThreadBound<RefCell<Option<collections::Trace>>>,
    dims: usize,
}

impl Trace {
    fn with<R>(&self, run: impl FnOnce(&mut collections::Trace) -> PyResult<R>) -> PyResult<R> {
        match &mut *self.reads.get()?.borrow_mut() {
            Some(reads) => run(reads),
            None => Err(PointstampError::new_err(
                "this trace is closed: take another from the arrangement, or close it later",
            )),
        }
    }

    /// A time of this arrangement. It is converted before anything is borrowed: that may run code of the program.
    fn point(&self, at: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Point>> {
        at.map(|at| point_from_py(at, self.dims)).transpose()
    }

    /// The time to read at; the latest that is complete where none is given.
    fn time(&self, reads: &collections::Trace, at: Option<Point>) -> PyResult<Point> {
        let upper = reads.upper();
        let at = match at {
            Some(at) => at,
            None => reads.latest_complete(self.dims).ok_or_else(|| {
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

fn unreadable(error: pointstamp_arrange::Error) -> PyErr {
    match error {
        pointstamp_arrange::Error::Overflow => pointstamp_arrange::Overflow.into_exception(),
        error => PointstampError::new_err(error.to_string()),
    }
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

    /// The number of updates that it holds, merged or not.
    #[getter]
    fn updates(&self) -> PyResult<usize> {
        self.with(|reads| Ok(reads.len()))
    }

    /// The number of bytes of memory that it holds.
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
        let at = self.point(at)?;
        let found = self.with(|reads| {
            let at = self.time(reads, at)?;
            reads.get(row.get(), &at).map_err(unreadable)
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
        let at = self.point(at)?;
        let found = self.with(|reads| {
            let at = self.time(reads, at)?;
            reads.items(&at).map_err(unreadable)
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
            reads.allow_merging_before(&time);
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

/// Returns a reader of an arrangement.
#[pyfunction]
pub(crate) fn trace_of(arrangement: &Arrangement) -> PyResult<Trace> {
    let inner = arrangement.inner.get()?;
    let reads = inner.trace().map_err(IntoException::into_exception)?;
    Ok(Trace {
        reads: ThreadBound::new(arrangement.inner.home(), RefCell::new(Some(reads))),
        dims: inner.scope().dims(),
    })
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
    let imported =
        trace.with(|reads| reads.import(scope).map_err(IntoException::into_exception))?;
    Ok(Arrangement::new(home, imported))
}
