//! Timestamps and path summaries, between Python's form and the engine's.
//!
//! Owns the one translation: `k` coordinates are `()` for 0, a plain `int` for 1, and a flat tuple
//! from 2 on; a summary is a tuple of increments, or one `int` that increments the last coordinate.
//! Whatever Python can use as an index counts as a coordinate (`bool`, NumPy's integers), and comes
//! back as an `int`. A value of the wrong kind is a `TypeError`; one of the right kind that is not
//! a time here (negative, too large, another number of coordinates) is a `TimeError` that shows it.
//!
//! Cost: an `int` is one check and one C call; a tuple as much per coordinate, and up to three
//! coordinates allocate nothing on the way in.

use pointstamp_order::{Point, Summary};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};

use crate::errors::TimeError;

/// A point that converts to its Python form when it is returned.
pub(crate) struct Time(pub(crate) Point);

impl<'py> IntoPyObject<'py> for Time {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        point_to_py(py, &self.0)
    }
}

/// The Python form of a point.
#[inline]
pub(crate) fn point_to_py<'py>(py: Python<'py>, point: &Point) -> PyResult<Bound<'py, PyAny>> {
    coords_to_py(py, point.coords())
}

/// Converts a summary that keeps the number of coordinates to Python: its increment of each.
pub(crate) fn summary_to_py<'py>(
    py: Python<'py>,
    summary: &Summary,
) -> PyResult<Bound<'py, PyAny>> {
    coords_to_py(py, summary.increments())
}

fn coords_to_py<'py>(py: Python<'py>, coords: &[u64]) -> PyResult<Bound<'py, PyAny>> {
    match coords {
        [only] => Ok(only.into_pyobject(py)?.into_any()),
        coords => Ok(PyTuple::new(py, coords)?.into_any()),
    }
}

/// Converts a Python value to the only coordinate of a time.
///
/// # Errors
///
/// `TimeError` or `TypeError`, as the module says.
#[inline]
pub(crate) fn time_from_py(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    if value.is_exact_instance_of::<PyInt>()
        && let Ok(time) = value.extract::<u64>()
    {
        return Ok(time);
    }
    coordinate(value, value, "time")
}

/// Converts a Python value to a point of `dims` coordinates.
///
/// # Errors
///
/// `TimeError` or `TypeError`, as the module says.
#[inline]
pub(crate) fn point_from_py(value: &Bound<'_, PyAny>, dims: usize) -> PyResult<Point> {
    if dims == 1
        && value.is_exact_instance_of::<PyInt>()
        && let Ok(coordinate) = value.extract::<u64>()
    {
        return Ok(Point::new(&[coordinate]));
    }
    let point = point_infer(value)?;
    if point.dims() == dims {
        Ok(point)
    } else {
        Err(wrong_dims(value, dims, point.dims()))
    }
}

/// Converts a Python value to a point, of as many coordinates as the value has.
///
/// # Errors
///
/// `TimeError` or `TypeError`, as the module says.
pub(crate) fn point_infer(value: &Bound<'_, PyAny>) -> PyResult<Point> {
    let Ok(tuple) = value.cast::<PyTuple>() else {
        return Ok(Point::new(&[coordinate(value, value, "time")?]));
    };
    if tuple.len() == 1 {
        return Err(TimeError::new_err(format!(
            "{} is not a time: one coordinate is written as a plain int",
            value.repr()?
        )));
    }
    tuple
        .iter_borrowed()
        .map(|element| coordinate(&element, value, "time"))
        .collect()
}

/// Converts a Python value to a summary, at `dims` coordinates.
///
/// # Errors
///
/// `TimeError` or `TypeError`, as the module says.
pub(crate) fn summary_from_py(value: &Bound<'_, PyAny>, dims: usize) -> PyResult<Summary> {
    match summary_infer(value)? {
        Increments::Last(_) if dims == 0 => Err(TimeError::new_err(format!(
            "a time without coordinates has none to add {} to: the only summary is ()",
            value.repr()?
        ))),
        Increments::Last(increment) => Ok(Summary::step(dims, increment)),
        Increments::Each(increments) if increments.dims() == dims => {
            Ok(Summary::from_increments(increments.coords()))
        }
        Increments::Each(increments) => Err(wrong_dims(value, dims, increments.dims())),
    }
}

/// Converts a Python value to summaries: none for `None`, else one summary or an iterable of them. A tuple of
/// `dims` ints is one summary.
///
/// # Errors
///
/// `TimeError` or `TypeError`, as the module says.
#[allow(
    dead_code,
    reason = "operator builders take this form; the flat graph takes iterables only"
)]
pub(crate) fn summaries_from_py(value: &Bound<'_, PyAny>, dims: usize) -> PyResult<Vec<Summary>> {
    if value.is_none() {
        return Ok(Vec::new());
    }
    let one = match value.cast::<PyTuple>() {
        Ok(tuple) => tuple.len() == dims && tuple.iter_borrowed().all(|element| is_index(&element)),
        Err(_) => is_index(value),
    };
    if one {
        return Ok(vec![summary_from_py(value, dims)?]);
    }
    value
        .try_iter()?
        .map(|summary| summary_from_py(&summary?, dims))
        .collect()
}

/// Checks the argument for a path summary, or several, in a scope of so many coordinates. Returns it as a
/// list that can be read again.
#[pyfunction]
pub(crate) fn check_summaries<'py>(
    summaries: &Bound<'py, PyAny>,
    dims: usize,
) -> PyResult<Bound<'py, PyList>> {
    let py = summaries.py();
    let summaries = summaries_from_py(summaries, dims)?;
    let summaries = summaries.iter().map(|summary| summary_to_py(py, summary));
    PyList::new(py, summaries.collect::<PyResult<Vec<_>>>()?)
}

/// A summary whose number of coordinates may not be known yet.
pub(crate) enum Increments {
    /// One increment, of the last coordinate.
    Last(u64),
    /// One increment per coordinate.
    Each(Point),
}

/// Converts a Python value to increments.
///
/// # Errors
///
/// `TimeError` or `TypeError`, as the module says.
pub(crate) fn summary_infer(value: &Bound<'_, PyAny>) -> PyResult<Increments> {
    let Ok(tuple) = value.cast::<PyTuple>() else {
        return Ok(Increments::Last(coordinate(value, value, "path summary")?));
    };
    let increments = tuple
        .iter_borrowed()
        .map(|element| coordinate(&element, value, "path summary"));
    Ok(Increments::Each(increments.collect::<PyResult<Point>>()?))
}

fn is_index(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyInt>() || value.hasattr("__index__").unwrap_or(false)
}

/// One coordinate of `whole`, which is a `kind` ("time", "path summary").
#[inline]
fn coordinate(value: &Bound<'_, PyAny>, whole: &Bound<'_, PyAny>, kind: &str) -> PyResult<u64> {
    value
        .extract()
        .map_err(|error| explain(&error, value, whole, kind))
}

/// Explains the error of a coordinate that is not an integer from 0 to 2^64 - 1.
#[cold]
fn explain(error: &PyErr, value: &Bound<'_, PyAny>, whole: &Bound<'_, PyAny>, kind: &str) -> PyErr {
    let describe = || -> PyResult<PyErr> {
        let py = value.py();
        if error.is_instance_of::<PyOverflowError>(py) {
            let shown = whole.repr()?;
            return Ok(TimeError::new_err(if value.lt(0)? {
                format!("{shown} is not a {kind}: a coordinate cannot be negative")
            } else {
                format!(
                    "{shown} is not a {kind}: a coordinate is at most {}",
                    u64::MAX
                )
            }));
        }
        if !error.is_instance_of::<PyTypeError>(py) {
            return Ok(error.clone_ref(py)); // raised by the value's own __index__
        }
        let name = value.get_type().fully_qualified_name()?;
        let flat = if value.is_instance_of::<PyTuple>() {
            "; tuples are flat"
        } else {
            ""
        };
        Ok(PyTypeError::new_err(if value.is(whole) {
            format!("a {kind} is an int or a tuple of ints, not {name}")
        } else {
            format!(
                "{} is not a {kind}: a coordinate is an int, not {name}{flat}",
                whole.repr()?
            )
        }))
    };
    describe().unwrap_or_else(|error| error)
}

#[cold]
fn wrong_dims(value: &Bound<'_, PyAny>, expected: usize, got: usize) -> PyErr {
    let expected = match expected {
        0 => "no coordinates, written ()".to_owned(),
        1 => "1 coordinate".to_owned(),
        _ => format!("{expected} coordinates"),
    };
    match value.repr() {
        Ok(shown) => TimeError::new_err(format!("expected {expected}, got {got}: {shown}")),
        Err(error) => error,
    }
}
