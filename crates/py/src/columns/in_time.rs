//! Joins in time of two streams of rows: what their operators, which Python drives, keep and make.
//!
//! A batch goes in and out without being copied, and the work on its rows is done without the interpreter.

use arrow_array::RecordBatch;
use pointstamp_columnar::Error;
use pointstamp_columnar::as_of::AsOf;
use pointstamp_columnar::in_time::Terms;
use pointstamp_columnar::interval::Interval;
use pointstamp_columnar::join::Side;
use pointstamp_columnar::open_windows::Sent;
use pointstamp_columnar::partition::partition;
use pointstamp_columnar::window_join::{Kind, WindowJoin};
use pointstamp_columnar::windows::Layout;
use pyo3::prelude::*;

use super::ffi::{export_batch, import_batches};
use super::schema::Schema;
use crate::errors::IntoException;
use crate::gil::detached;

/// What joins in time are of: the sides' schemas, the key, the columns of times, which sides come without a match, and names.
type Given<'py> = (
    PyRef<'py, Schema>,
    PyRef<'py, Schema>,
    Vec<String>,
    (String, String),
    (bool, bool),
    String,
    Option<String>,
);

fn terms(given: &Given<'_>) -> PyResult<Terms> {
    let (left, right, on, times, outer, suffix, joined) = given;
    Terms::new(
        &left.schema,
        &right.schema,
        on,
        [&times.0, &times.1],
        [outer.0, outer.1],
        suffix,
        joined.clone(),
    )
    .map_err(IntoException::into_exception)
}

fn side_of(right: bool) -> Side {
    if right { Side::Right } else { Side::Left }
}

pub(super) fn done<T>(result: Result<T, Error>) -> PyResult<T> {
    result.map_err(IntoException::into_exception)
}

pub(super) fn exported<'py>(
    py: Python<'py>,
    batches: &[RecordBatch],
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    batches
        .iter()
        .map(|batch| export_batch(py, batch))
        .collect()
}

/// Batches with the instants at which they are sent.
pub(super) fn exported_at<'py>(
    py: Python<'py>,
    sent: &[Sent],
) -> PyResult<Vec<(i64, Bound<'py, PyAny>)>> {
    sent.iter()
        .map(|(instant, rows)| Ok((*instant, export_batch(py, rows)?)))
        .collect()
}

/// Pairs of rows whose times are close.
#[pyclass(module = "pointstamp._core")]
pub(crate) struct IntervalColumns(Interval);

#[pymethods]
impl IntervalColumns {
    /// See `Interval::new`.
    #[new]
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn new(given: Given<'_>, lower: i64, upper: i64) -> PyResult<Self> {
        let terms = terms(&given)?;
        let made = Interval::new(&given.0.schema, &given.1.schema, terms, (lower, upper));
        done(made).map(IntervalColumns)
    }

    /// The schema of results.
    fn output(&self) -> Schema {
        Schema::new(self.0.output().clone())
    }

    /// How many rows are held, and how many keys have numbers.
    fn size(&self) -> (usize, usize) {
        self.0.size()
    }

    /// Takes in rows of a side, which are not before a time.
    fn add(&mut self, right: bool, batch: &Bound<'_, PyAny>, earliest: u64) -> PyResult<()> {
        import_batches(batch, |rows| {
            done(self.0.add(side_of(right), rows, earliest))
        })
    }

    /// The results of the rows before a time, or of all.
    fn advance<'py>(
        &mut self,
        py: Python<'py>,
        frontier: Option<i64>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = detached(py, || self.0.advance(frontier));
        exported(py, &done(found)?)
    }

    /// The earliest instant at which a result may be sent without another row.
    fn next_instant(&self) -> Option<i64> {
        self.0.next_instant()
    }

    /// The rows that are kept of the left and of the right side, with a last column that says whether they have been matched.
    fn kept<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let sides = [Side::Left, Side::Right].map(|side| done(self.0.kept(side)));
        let [left, right] = sides;
        exported(py, &[left?, right?])
    }

    /// Takes in what `kept` gave of a side.
    fn put(&mut self, right: bool, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        import_batches(batch, |rows| done(self.0.put(side_of(right), &rows)))
    }
}

/// Rows with the latest row of another stream, or a table's.
#[pyclass(module = "pointstamp._core")]
pub(crate) struct AsOfColumns(AsOf);

#[pymethods]
impl AsOfColumns {
    /// See `AsOf::new`.
    #[new]
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn new(given: Given<'_>, within: Option<i64>, ends: Option<String>) -> PyResult<Self> {
        let terms = terms(&given)?;
        let made = AsOf::new(
            &given.0.schema,
            &given.1.schema,
            terms,
            within,
            ends.as_deref(),
        );
        done(made).map(AsOfColumns)
    }

    /// The schema of results.
    fn output(&self) -> Schema {
        Schema::new(self.0.output().clone())
    }

    /// How many rows are held, and how many keys have numbers.
    fn size(&self) -> (usize, usize) {
        self.0.size()
    }

    /// Takes in rows of a side, which are not before a time.
    fn add(&mut self, right: bool, batch: &Bound<'_, PyAny>, earliest: u64) -> PyResult<()> {
        import_batches(batch, |rows| {
            done(self.0.add(side_of(right), rows, earliest))
        })
    }

    /// The results of the rows before a time, or of all.
    fn advance<'py>(
        &mut self,
        py: Python<'py>,
        frontier: Option<i64>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = detached(py, || self.0.advance(frontier));
        exported(py, &done(found)?)
    }

    /// The earliest time of a row that waits.
    fn next_instant(&self) -> Option<i64> {
        self.0.next_instant()
    }

    /// No rows of the left side, and the right rows that are kept, with a last column that says nothing.
    fn kept<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        exported(py, &[done(self.0.kept())?])
    }

    /// Takes in what `kept` gave.
    fn put(&mut self, _right: bool, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        import_batches(batch, |rows| done(self.0.put(&rows)))
    }
}

/// Pairs of rows in the same window.
#[pyclass(module = "pointstamp._core")]
pub(crate) struct WindowJoinColumns(WindowJoin);

#[pymethods]
impl WindowJoinColumns {
    /// Windows of a layout, or sessions that end after so much silence.
    #[new]
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn new(given: Given<'_>, layout: Option<(i64, i64, i64)>, silence: i64) -> PyResult<Self> {
        let kind = match layout {
            Some((length, every, offset)) => Kind::Aligned(Layout {
                length,
                every,
                offset,
            }),
            None => Kind::Sessions(silence),
        };
        let terms = terms(&given)?;
        let made = WindowJoin::new(&given.0.schema, &given.1.schema, terms, kind);
        done(made).map(WindowJoinColumns)
    }

    /// The schema of results.
    fn output(&self) -> Schema {
        Schema::new(self.0.output().clone())
    }

    /// How many rows are held, and how many keys have numbers.
    fn size(&self) -> (usize, usize) {
        self.0.size()
    }

    /// Takes in rows of a side, which are not before a time.
    fn add(&mut self, right: bool, batch: &Bound<'_, PyAny>, earliest: u64) -> PyResult<()> {
        import_batches(batch, |rows| {
            done(self.0.add(side_of(right), rows, earliest))
        })
    }

    /// The results of the windows that have closed, each with the instant at which it is sent.
    fn advance<'py>(
        &mut self,
        py: Python<'py>,
        frontier: Option<i64>,
    ) -> PyResult<Vec<(i64, Bound<'py, PyAny>)>> {
        let found = detached(py, || self.0.advance(frontier));
        exported_at(py, &done(found)?)
    }

    /// When the first row that is kept of a session came.
    fn earliest(&mut self) -> Option<i64> {
        self.0.earliest()
    }

    /// The earliest instant at which a result may be sent without another row.
    fn next_instant(&self) -> Option<i64> {
        self.0.next_instant()
    }

    /// The rows that are kept of the left and of the right side.
    fn kept<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let sides = [Side::Left, Side::Right].map(|side| done(self.0.kept(side)));
        let [left, right] = sides;
        exported(py, &[left?, right?])
    }

    /// Takes in what `kept` gave of a side.
    fn put(&mut self, right: bool, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        import_batches(batch, |rows| done(self.0.put(side_of(right), &rows)))
    }
}

/// The start of the first window of a layout that is open at a frontier.
#[pyfunction]
pub(crate) fn first_open(layout: (i64, i64, i64), frontier: u64) -> u64 {
    let (length, every, offset) = layout;
    let layout = Layout {
        length,
        every,
        offset,
    };
    let first = layout.first_open(i64::try_from(frontier).unwrap_or(i64::MAX));
    u64::try_from(first).unwrap_or(0)
}

/// The rows of a batch whose key is a worker's.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn rows_of_worker<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
    key: Vec<usize>,
    index: usize,
    peers: usize,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut found = Vec::new();
    import_batches(batch, |rows| {
        done(partition(&rows, &key, peers, |worker, part| {
            if worker == index {
                found.push(part);
            }
        }))
    })?;
    exported(py, &found)
}
