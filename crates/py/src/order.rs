//! `pointstamp.order`: antichains of times, and the order of times and path summaries.
//!
//! Owns the Python classes `Antichain` and `MutableAntichain`, which wrap those of `order` over the engine's
//! timestamp. Invariant: all times of one antichain have the same number of coordinates, which the first one fixes,
//! or the scope whose frontier it is; a time of another is a `TimeError`, never a silent "not comparable". A call
//! converts its arguments before it changes anything, so a bad one changes nothing. Costs are those of `order`, and
//! one conversion per time.

use pointstamp_order::{self as order, PartialOrder, PathSummary, Point, Summary};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};

use crate::errors::TimeError;
use crate::time::{self, Increments, Time, point_from_py, point_infer};

/// Times none of which comes before another, such as a frontier.
///
/// A frontier describes which times may still appear: those at or after one of its elements. The empty one means that
/// none may. All elements have the same number of coordinates.
///
/// Args:
///     elements: Times; those that another one comes before are left out.
///
/// Raises:
///     TimeError: If they are not all times of the same number of coordinates.
///
/// Examples:
///     >>> from pointstamp.order import Antichain
///     >>> frontier = Antichain([(3, 0), (0, 3), (3, 3)])
///     >>> frontier
///     Antichain([(0, 3), (3, 0)])
///     >>> frontier.less_equal((0, 3)), frontier.less_than((0, 3)), frontier.less_equal((2, 2))
///     (True, False, False)
#[pyclass(module = "pointstamp.order")]
pub(crate) struct Antichain {
    dims: Option<usize>,
    inner: order::Antichain<Point>,
}

impl Antichain {
    /// The antichain of a scope of `dims` coordinates with the minimal ones of these points.
    pub(crate) fn from_points(dims: usize, points: impl IntoIterator<Item = Point>) -> Self {
        Self {
            dims: Some(dims),
            inner: points.into_iter().collect(),
        }
    }

    /// An antichain that learns its number of coordinates from its elements, if it has any.
    pub(crate) fn from_inner(inner: order::Antichain<Point>) -> Self {
        let dims = inner.elements().first().map(Point::dims);
        Self { dims, inner }
    }

    fn sorted(&self) -> Vec<Time> {
        let mut points = self.inner.elements().to_vec();
        points.sort_unstable();
        points.into_iter().map(Time).collect()
    }
}

#[pymethods]
impl Antichain {
    #[new]
    #[pyo3(signature = (elements = None), text_signature = "(elements=())")]
    fn new(elements: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut result = Self {
            dims: None,
            inner: order::Antichain::new(),
        };
        if let Some(elements) = elements {
            for element in elements.try_iter()? {
                result.insert(&element?)?;
            }
        }
        Ok(result)
    }

    /// The elements, as a sorted list.
    #[getter]
    fn elements(&self) -> Vec<Time> {
        self.sorted()
    }

    /// Adds a time, unless an element comes before it or equals it.
    ///
    /// The elements that it comes before are removed.
    ///
    /// Args:
    ///     time: A time of as many coordinates as the others have.
    ///
    /// Returns:
    ///     True if it was added.
    ///
    /// Raises:
    ///     TimeError: If it has another number of coordinates.
    ///
    /// Examples:
    ///     >>> from pointstamp.order import Antichain
    ///     >>> times = Antichain([(1, 2)])
    ///     >>> times.insert((2, 2)), times.insert((0, 3)), times.insert((0, 2))
    ///     (False, True, True)
    ///     >>> times.elements
    ///     [(0, 2)]
    fn insert(&mut self, time: &Bound<'_, PyAny>) -> PyResult<bool> {
        let point = convert(time, self.dims)?;
        self.dims = Some(point.dims());
        Ok(self.inner.insert(point))
    }

    /// True when some element comes strictly before ``time``.
    ///
    /// Raises:
    ///     TimeError: If ``time`` has another number of coordinates than the elements.
    ///
    /// Examples:
    ///     >>> from pointstamp.order import Antichain
    ///     >>> Antichain([3]).less_than(3), Antichain([3]).less_than(4)
    ///     (False, True)
    fn less_than(&self, time: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.inner.less_than(&convert(time, self.dims)?))
    }

    /// True when some element comes before ``time``, or equals it.
    ///
    /// Raises:
    ///     TimeError: If ``time`` has another number of coordinates than the elements.
    ///
    /// Examples:
    ///     >>> from pointstamp.order import Antichain
    ///     >>> Antichain([3]).less_equal(2), Antichain([3]).less_equal(3)
    ///     (False, True)
    fn less_equal(&self, time: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.inner.less_equal(&convert(time, self.dims)?))
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.sorted())?.try_iter()
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let Ok(other) = other.cast::<Self>() else {
            return Ok(py.NotImplemented());
        };
        let equal = || self.inner == other.borrow().inner;
        match op {
            CompareOp::Eq => Ok(equal().into_pyobject(py)?.to_owned().into_any().unbind()),
            CompareOp::Ne => Ok((!equal()).into_pyobject(py)?.to_owned().into_any().unbind()),
            _ => Ok(py.NotImplemented()),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "Antichain({})",
            PyList::new(py, self.sorted())?.repr()?
        ))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (Vec<Time>,)) {
        (slf.get_type().into_any(), (slf.borrow().sorted(),))
    }
}

/// A multiset of times, and the frontier of the times with a positive count.
///
/// Counts may be negative in passing. The cost of an update does not grow with the number of times.
///
/// Examples:
///     >>> from pointstamp.order import MutableAntichain
///     >>> outstanding = MutableAntichain()
///     >>> outstanding.update([(3, 2), (5, 1)])
///     [(3, 1)]
///     >>> outstanding.update([(3, -2)])
///     [(3, -1), (5, 1)]
///     >>> outstanding.frontier
///     Antichain([5])
#[pyclass(module = "pointstamp.order")]
pub(crate) struct MutableAntichain {
    dims: Option<usize>,
    inner: order::MutableAntichain<Point>,
    moved: Moved,
}

/// The sum of the magnitudes of all diffs that a program gave to counts: while it fits, no count leaves 64 bits.
#[derive(Clone, Copy, Default)]
pub(crate) struct Moved(u64);

impl Moved {
    /// Takes note of a diff.
    ///
    /// # Errors
    ///
    /// `OverflowError`, before the diff is added anywhere.
    pub(crate) fn by(&mut self, diff: i64) -> PyResult<()> {
        let sum = self.0.checked_add(diff.unsigned_abs());
        self.0 = sum.filter(|sum| i64::try_from(*sum).is_ok()).ok_or_else(|| {
            PyOverflowError::new_err(format!(
                "the diff {diff} could take a count beyond 64 bits: the magnitudes of all diffs add up to less than 2**63"
            ))
        })?;
        Ok(())
    }
}

#[pymethods]
impl MutableAntichain {
    #[new]
    fn new() -> Self {
        Self {
            dims: None,
            inner: order::MutableAntichain::new(),
            moved: Moved::default(),
        }
    }

    /// A copy of the minimal times that have a positive count.
    #[getter]
    fn frontier(&self) -> Antichain {
        let points = self.inner.frontier().iter().cloned();
        Antichain {
            dims: self.dims,
            inner: points.collect(),
        }
    }

    /// Adds to the counts of times, all at once.
    ///
    /// Args:
    ///     changes: Pairs of a time and what to add to its count.
    ///
    /// Returns:
    ///     The changes to the frontier, sorted: ``(time, 1)`` for a time that entered it,
    ///     ``(time, -1)`` for one that left.
    ///
    /// Raises:
    ///     TimeError: If a time has another number of coordinates than the others; nothing is
    ///         changed then.
    ///     OverflowError: If the magnitudes of all diffs so far do not add up to less than 2**63;
    ///         nothing is changed then.
    ///
    /// Examples:
    ///     >>> from pointstamp.order import MutableAntichain
    ///     >>> times = MutableAntichain()
    ///     >>> times.update([(3, 1), (5, 1)])
    ///     [(3, 1)]
    ///     >>> times.update([(3, -1)])
    ///     [(3, -1), (5, 1)]
    fn update(slf: &Bound<'_, Self>, changes: &Bound<'_, PyAny>) -> PyResult<Vec<(Time, i64)>> {
        // The iterable may look at this object while it is read, so it is not borrowed meanwhile.
        let mut dims = slf.borrow().dims;
        let mut converted = Vec::new();
        for change in changes.try_iter()? {
            let (time, diff): (Bound<'_, PyAny>, i64) = change?.extract()?;
            let point = convert(&time, dims)?;
            dims = Some(point.dims());
            converted.push((point, diff));
        }
        let mut this = slf.borrow_mut();
        let mut moved = this.moved;
        for (_, diff) in &converted {
            moved.by(*diff)?;
        }
        (this.dims, this.moved) = (dims, moved);
        let mut result: Vec<_> = this.inner.update_iter(converted).collect();
        result.sort_unstable();
        Ok(result
            .into_iter()
            .map(|(point, diff)| (Time(point), diff))
            .collect())
    }

    /// The count of ``time``.
    ///
    /// Raises:
    ///     TimeError: If ``time`` has another number of coordinates than the others.
    ///
    /// Examples:
    ///     >>> from pointstamp.order import MutableAntichain
    ///     >>> times = MutableAntichain()
    ///     >>> _ = times.update([(3, 2)])
    ///     >>> times.count_for(3), times.count_for(4)
    ///     (2, 0)
    fn count_for(&self, time: &Bound<'_, PyAny>) -> PyResult<i64> {
        Ok(self.inner.count_for(&convert(time, self.dims)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut counts: Vec<_> = self.inner.counts();
        counts.sort_unstable();
        let counts = counts
            .into_iter()
            .map(|(point, count)| (Time(point), count));
        Ok(format!(
            "MutableAntichain({})",
            PyList::new(py, counts)?.repr()?
        ))
    }
}

/// A time of `dims` coordinates, or of any number while that is not known.
#[inline]
fn convert(time: &Bound<'_, PyAny>, dims: Option<usize>) -> PyResult<Point> {
    match dims {
        Some(dims) => point_from_py(time, dims),
        None => point_infer(time),
    }
}

/// True when ``a`` comes before ``b`` in the order of timestamps, or equals it.
///
/// Every coordinate of ``a`` must be at most that of ``b``. Python's own ``<=`` on tuples is
/// another order, and says that ``(1, 5) <= (2, 0)``.
///
/// Raises:
///     TimeError: If they have different numbers of coordinates.
///
/// Examples:
///     >>> from pointstamp.order import less_equal
///     >>> less_equal((1, 5), (2, 5)), less_equal((1, 5), (2, 0))
///     (True, False)
#[pyfunction]
pub(crate) fn less_equal(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    let a = point_infer(a)?;
    Ok(a.less_equal(&point_from_py(b, a.dims())?))
}

/// The time of arrival of a record that leaves at ``time``, over a path of this summary.
///
/// Args:
///     summary: What the path adds to every coordinate; an ``int`` adds to the last one.
///     time: The time at its start.
///
/// Returns:
///     A time, or None where a coordinate would pass 2**64 - 1: then nothing arrives.
///
/// Raises:
///     TimeError: If the two have different numbers of coordinates.
///
/// Examples:
///     >>> from pointstamp.order import results_in
///     >>> results_in(1, (4, 7)), results_in((1, 0), (4, 7)), results_in(1, 2**64 - 1)
///     ((4, 8), (5, 7), None)
#[pyfunction]
pub(crate) fn results_in(
    summary: &Bound<'_, PyAny>,
    time: &Bound<'_, PyAny>,
) -> PyResult<Option<Time>> {
    let point = point_infer(time)?;
    let summary = time::summary_from_py(summary, point.dims())?;
    Ok(summary.results_in(&point).map(Time))
}

/// The summary of a path made of two, one after the other.
///
/// Args:
///     first: The summary of the first path.
///     second: The summary of the second.
///
/// Returns:
///     A summary, or None where an increment would pass 2**64 - 1: then nothing arrives.
///
/// Raises:
///     TimeError: If the two have different numbers of coordinates.
///
/// Examples:
///     >>> from pointstamp.order import followed_by
///     >>> followed_by(1, 2), followed_by((1, 0), 2), followed_by(1, 2**64 - 1)
///     (3, (1, 2), None)
#[pyfunction]
pub(crate) fn followed_by<'py>(
    first: &Bound<'py, PyAny>,
    second: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let dims = match (time::summary_infer(first)?, time::summary_infer(second)?) {
        (Increments::Each(a), Increments::Each(b)) if a.dims() != b.dims() => {
            return Err(TimeError::new_err(format!(
                "path summaries of different numbers of coordinates cannot follow each other: {} and {}",
                first.repr()?,
                second.repr()?
            )));
        }
        (Increments::Each(each), _) | (_, Increments::Each(each)) => each.dims(),
        // An increment of the last coordinate, however many there are.
        (Increments::Last(_), Increments::Last(_)) => 1,
    };
    let result: Option<Summary> =
        time::summary_from_py(first, dims)?.followed_by(&time::summary_from_py(second, dims)?);
    result
        .map(|summary| time::summary_to_py(first.py(), &summary))
        .transpose()
}
