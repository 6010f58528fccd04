//! Kernels that take rows in the order of event time, and the operator that feeds them.
//!
//! Work on rows is done without the interpreter. Python is called once per activation, and only where a `KeyedState`
//! lists a kernel's state.

use arrow_schema::SchemaRef;
use pointstamp_columnar::aggregate::Plan;
use pointstamp_columnar::as_of::AsOf;
use pointstamp_columnar::in_time::Terms;
use pointstamp_columnar::interval::Interval;
use pointstamp_columnar::kernel::Kernel as Rows;
use pointstamp_columnar::open_windows::OpenWindows;
use pointstamp_columnar::running::Running;
use pointstamp_columnar::runs::{Ends, Runs};
use pointstamp_columnar::window_join::{Kind, WindowJoin};
use pointstamp_columnar::{Error, partition::partition};
use pointstamp_engine::error::BoxError;
use pointstamp_operators::columns::{InTime, Keeper, Ran, Shared, SideInput, placed, shared};
use pyo3::prelude::*;

use super::ffi::{exported, import_batches};
use super::operators::{Named, layout_of};
use super::schema::Schema;
use crate::activator::Activator;
use crate::bound::ThreadBound;
use crate::errors::{GraphError, IntoException};
use crate::gil::{Held, attached, detached};
use crate::kinds::How;
use crate::operator::Retention;
use crate::raised::Raised;
use crate::stream::Stream;

/// The settings of joins in time: the sides' schemas, the key, the columns of times, the rows of the result, and
/// names.
type Given<'py> = (
    PyRef<'py, Schema>,
    PyRef<'py, Schema>,
    Vec<String>,
    (String, String),
    How,
    String,
    Option<String>,
);

fn terms(given: &Given<'_>) -> Result<(SchemaRef, SchemaRef, Terms), Error> {
    let (left, right, on, times, how, suffix, joined) = given;
    let (left, right) = (left.schema.clone(), right.schema.clone());
    let terms = Terms::new(
        &left,
        &right,
        on,
        [&times.0, &times.1],
        (*how).into(),
        suffix,
        joined.clone(),
    )?;
    Ok((left, right, terms))
}

fn done<T>(result: Result<T, Error>) -> PyResult<T> {
    result.map_err(IntoException::into_exception)
}

/// A kernel that takes rows in the order of event time.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Kernel {
    kernel: Shared,
}

impl Kernel {
    /// A kernel that a function makes for some of the keys.
    fn of<K: Rows + 'static>(
        make: impl Fn() -> Result<K, Error> + Send + 'static,
    ) -> PyResult<Self> {
        let kernel = done(shared(make))?;
        Ok(Kernel { kernel })
    }
}

#[pymethods]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
impl Kernel {
    /// Joins pairs of rows whose times are close: see `Interval`.
    #[staticmethod]
    fn interval_join(given: Given<'_>, lower: i64, upper: i64) -> PyResult<Self> {
        let (left, right, terms) = done(terms(&given))?;
        Kernel::of(move || Interval::new(&left, &right, terms.clone(), (lower, upper)))
    }

    /// Rows with the latest row of another stream, or a table's: see `AsOf`.
    #[staticmethod]
    fn asof_join(given: Given<'_>, within: Option<i64>, ends: Option<String>) -> PyResult<Self> {
        let (left, right, terms) = done(terms(&given))?;
        Kernel::of(move || AsOf::new(&left, &right, terms.clone(), within, ends.as_deref()))
    }

    /// Pairs of rows in the same window of a layout, or in sessions that end after so much silence.
    #[staticmethod]
    fn window_join(
        given: Given<'_>,
        layout: Option<(i64, i64, i64)>,
        silence: i64,
    ) -> PyResult<Self> {
        let (left, right, terms) = done(terms(&given))?;
        let kind = layout.map_or(Kind::Sessions(silence), |layout| {
            Kind::Aligned(layout_of(layout))
        });
        Kernel::of(move || WindowJoin::new(&left, &right, terms.clone(), kind))
    }

    /// Functions of columns by key in the order of time, or without functions the first row of each key.
    #[staticmethod]
    fn running(
        schema: &Schema,
        by: Vec<String>,
        functions: Vec<Named>,
        column: &str,
        ttl: Option<i64>,
    ) -> PyResult<Self> {
        let (schema, column) = (schema.schema.clone(), column.to_owned());
        Kernel::of(move || Running::new(&schema, &by, &functions, &column, ttl))
    }

    /// Aggregations by key in windows of a layout, with early results at every multiple of `early`.
    #[staticmethod]
    fn windows(
        schema: &Schema,
        by: Vec<String>,
        aggregations: Vec<Named>,
        column: &str,
        layout: (i64, i64, i64),
        early: Option<i64>,
    ) -> PyResult<Self> {
        let (schema, layout) = (schema.schema.clone(), layout_of(layout));
        let plan = done(Plan::new(&schema, &by, &aggregations))?;
        let column = column.to_owned();
        Kernel::of(move || OpenWindows::new(&schema, plan.clone(), &column, layout, early))
    }

    /// Aggregations by key in windows that follow the rows of a key: sessions that end after so much
    /// silence, else windows of so many rows.
    #[staticmethod]
    fn window_runs(
        schema: &Schema,
        by: Vec<String>,
        aggregations: Vec<Named>,
        column: &str,
        ends: (Option<i64>, u64),
    ) -> PyResult<Self> {
        let (silence, rows) = ends;
        let ends = silence.map_or(Ends::Rows(rows), Ends::Silence);
        let (schema, column) = (schema.schema.clone(), column.to_owned());
        Kernel::of(move || Runs::new(&schema, &by, &aggregations, &column, ends))
    }

    /// The schema of results.
    fn output(&self, py: Python<'_>) -> Schema {
        Schema::new(detached(py, || self.kernel.lock().output().clone()))
    }

    /// The rows that are kept: a batch for each kind of them.
    fn kept<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let kept = detached(py, || self.kernel.lock().kept());
        exported(py, &kept.map_err(IntoException::into_exception)?)
    }

    /// Restores rows of a kind that `kept` returned on all workers, and whose key belongs to this worker.
    fn put(
        &self,
        kind: usize,
        batch: &Bound<'_, PyAny>,
        key: Vec<usize>,
        index: usize,
        peers: usize,
    ) -> PyResult<()> {
        let py = batch.py();
        import_batches(batch, |rows| {
            let put = detached(py, || {
                let mut put = Ok(());
                partition(&rows, &key, peers, |worker, part| {
                    if worker == index && put.is_ok() {
                        put = self.kernel.lock().put(kind, part);
                    }
                })?;
                put
            });
            put.map_err(IntoException::into_exception)
        })
    }
}

/// One stream that a kernel is fed with: its rows, the columns by which they are moved, unless they are in place, and the
/// column of times.
type Fed<'py> = (PyRef<'py, Stream>, Option<Vec<usize>>, usize);

/// The operator that feeds a kernel with rows in the order of event time: the left side first.
///
/// `keeper`, where there is one, is an object with `begins`, `made(activator, retention)`, which is called once, and
/// `ran(batches, left_out, until, moved, needed)`, which returns the earliest needed time.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn in_time_order(
    sides: Vec<Fed<'_>>,
    kernel: &Kernel,
    name: &str,
    keeper: Option<Bound<'_, PyAny>>,
) -> PyResult<Stream> {
    let first = sides.first();
    let (first, ..) = first.ok_or_else(|| GraphError::new_err("a kernel is fed by a stream"))?;
    let home = first.home();
    let inputs = sides.iter().map(|(stream, key, times)| {
        Ok(SideInput {
            rows: stream.typed()?,
            pact: placed(key.as_deref().unwrap_or_default(), key.is_none()),
            times: *times,
        })
    });
    let inputs = inputs.collect::<PyResult<Vec<_>>>()?;
    let made = InTime::new(
        name,
        inputs,
        Shared::clone(&kernel.kernel),
        keeper.is_some(),
    );
    let made = made.map_err(IntoException::into_exception)?;
    let keeper = match keeper {
        None => None,
        Some(keeper) => {
            let builder = made.builder();
            let noted = home.notes().operator(builder.id());
            let activator = Activator::new(home, builder.activator(), noted);
            let retention = made.retention().cloned().map(|says| Retention {
                says: ThreadBound::new(home, says),
                id: builder.id(),
                name: builder.name(),
            });
            keeper.call_method1("made", (activator, retention))?;
            let begins = keeper.getattr("begins")?.extract()?;
            let ran = Held::new(keeper.getattr("ran")?.unbind());
            Some(Box::new(StateKeeper { begins, ran }) as Box<dyn Keeper>)
        }
    };
    Ok(Stream::of(home, made.build(keeper)))
}

/// A keeper in Python.
struct StateKeeper {
    begins: u64,
    ran: Held,
}

impl Keeper for StateKeeper {
    fn begins(&self) -> u64 {
        self.begins
    }

    fn ran(&mut self, ran: Ran) -> Result<u64, BoxError> {
        let Ran {
            batches,
            left_out,
            until,
            moved,
            needed,
        } = ran;
        let said = attached(|py| {
            let ran = self.ran.get().bind(py);
            let needed = ran.call1((batches, left_out, until, moved, needed))?;
            needed.extract()
        });
        said.map_err(Raised::here)
    }
}
