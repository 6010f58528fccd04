//! What is kept by key of one stream of rows, for operators that Python drives: running functions, first rows, and windows.
//!
//! As in `in_time`, work on rows is done without the interpreter.

use arrow_array::RecordBatch;
use pointstamp_columnar::Error;
use pointstamp_columnar::aggregate::Plan;
use pointstamp_columnar::open_windows::{OpenWindows, Sent};
use pointstamp_columnar::running::Running;
use pointstamp_columnar::runs::{Ends, Runs};
use pointstamp_columnar::windows::Layout;
use pyo3::prelude::*;

use super::ffi::import_batches;
use super::in_time::{done, exported, exported_at};
use super::schema::Schema;
use crate::gil::detached;

/// Running functions by key, or first rows.
#[pyclass(module = "pointstamp._core")]
pub(crate) struct RunningColumns(Running);

#[pymethods]
impl RunningColumns {
    /// See `Running::new`.
    #[new]
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn new(
        schema: &Schema,
        by: Vec<String>,
        functions: Vec<(String, String)>,
        column: &str,
        ttl: Option<i64>,
    ) -> PyResult<Self> {
        done(Running::new(&schema.schema, &by, &functions, column, ttl)).map(RunningColumns)
    }

    /// The schema of results.
    fn output(&self) -> Schema {
        Schema::new(self.0.output().clone())
    }

    /// How many keys are known, and how many have numbers.
    fn size(&self) -> (usize, usize) {
        self.0.size()
    }

    /// Takes in rows, which are not before a time.
    fn add(&mut self, _right: bool, batch: &Bound<'_, PyAny>, earliest: u64) -> PyResult<()> {
        import_batches(batch, |rows| done(self.0.add(rows, earliest)))
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

    /// What is known of each key.
    fn kept<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        exported(py, &[done(self.0.kept())?])
    }

    /// Takes in what `kept` gave.
    fn put(&mut self, _right: bool, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        import_batches(batch, |rows| done(self.0.put(&rows)))
    }
}

enum Open {
    Aligned(Box<OpenWindows>),
    Runs(Box<Runs>),
}

/// Windows whose rows wait until their times are final.
#[pyclass(module = "pointstamp._core")]
pub(crate) struct WindowColumns(Open);

#[pymethods]
impl WindowColumns {
    /// Aggregations in windows of a layout, with early results at every multiple of `early`, or in windows that follow the rows of a
    /// key.
    #[new]
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn new(
        schema: &Schema,
        by: Vec<String>,
        aggregations: Vec<(String, String)>,
        column: &str,
        layout: Option<(i64, i64, i64)>,
        ends: Option<(Option<i64>, u64)>,
        early: Option<i64>,
    ) -> PyResult<Self> {
        let schema = &schema.schema;
        if let Some((length, every, offset)) = layout {
            let layout = Layout {
                length,
                every,
                offset,
            };
            let plan = done(Plan::new(schema, &by, &aggregations))?;
            let made = OpenWindows::new(schema, plan, column, layout, early);
            return done(made).map(|open| WindowColumns(Open::Aligned(Box::new(open))));
        }
        let (silence, rows) = ends.unwrap_or_default();
        let ends = silence.map_or(Ends::Rows(rows), Ends::Silence);
        let made = Runs::new(schema, &by, &aggregations, column, ends);
        done(made).map(|open| WindowColumns(Open::Runs(Box::new(open))))
    }

    /// The schema of results.
    fn output(&self) -> Schema {
        let output = match &self.0 {
            Open::Aligned(open) => open.output(),
            Open::Runs(open) => open.output(),
        };
        Schema::new(output.clone())
    }

    /// Takes in rows, which are not before a time.
    fn add(&mut self, _right: bool, batch: &Bound<'_, PyAny>, earliest: u64) -> PyResult<()> {
        import_batches(batch, |rows| {
            done(match &mut self.0 {
                Open::Aligned(open) => open.add(rows, earliest),
                Open::Runs(open) => open.update(rows, earliest),
            })
        })
    }

    /// The results of the rows before a time, or of all, each with the instant at which it is sent.
    fn advance<'py>(
        &mut self,
        py: Python<'py>,
        frontier: Option<i64>,
    ) -> PyResult<Vec<(i64, Bound<'py, PyAny>)>> {
        let found: Result<Vec<Sent>, Error> = detached(py, || match &mut self.0 {
            Open::Aligned(open) => open.advance(frontier),
            Open::Runs(open) => {
                let mut sent = Vec::new();
                open.advance(frontier, |instant, rows| {
                    sent.push((instant, rows));
                    Ok::<_, Error>(())
                })?;
                Ok(sent)
            }
        });
        exported_at(py, &done(found)?)
    }

    /// The earliest instant at which a result may be sent without another row.
    fn next_instant(&self) -> Option<i64> {
        match &self.0 {
            Open::Aligned(open) => open.next_instant(),
            Open::Runs(open) => open.next_instant(),
        }
    }

    /// What is open; of windows of one length also the rows since the last early results.
    fn kept<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        match &self.0 {
            Open::Aligned(open) => exported(py, &done(open.kept())?),
            Open::Runs(open) => exported(py, &[done(open.kept())?]),
        }
    }

    /// Takes in what `kept` gave.
    fn put(&mut self, right: bool, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        import_batches(batch, |rows: RecordBatch| {
            done(match &mut self.0 {
                Open::Aligned(open) if right => open.put_changed(&rows),
                Open::Aligned(open) => open.put(&rows),
                Open::Runs(open) => open.put(&rows),
            })
        })
    }
}
