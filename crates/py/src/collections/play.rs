//! Changes that bring their times along.
//!
//! One call feeds them all. Without a probe, the changes of many times travel in one message, each with its own time, and the
//! input follows when the message is sent. With one, the worker steps until each time has passed the probe before the next
//! is fed. Either way the input ends at the time of the last change, also where a change is refused, as it would be if they
//! were fed by hand; no change is made twice. Other threads have the interpreter for a moment now and then.

use crate::collections::values::FromPython;
use pointstamp_arrange::Rows;
use pointstamp_engine::error::Error;
use pointstamp_engine::operators::Probe;
use pointstamp_operators::collections::columns::ChangesOf;
use pointstamp_order::{PartialOrder, Point};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::given::diff_of;
use crate::columns::ffi::import_batches;
use crate::columns::schema::Schema;
use crate::errors::{IntoException, TimeError};
use crate::gil::{detached, give_way};
use crate::input::InputHandle;
use crate::iterables::{Giver, records_of};
use crate::probe::ProbeHandle;
use crate::raised::shown;
use crate::time::point_from_py;
use pointstamp_rows::{Row, RowBuf};

/// The number of changes between checks for signals, after which other threads may have the interpreter: an
/// iterable may have no end, and be no Python code.
const BETWEEN_SIGNALS: usize = 4096;

/// Feeds an input.
struct Player<'a> {
    handle: &'a InputHandle,
    /// The probe that each time must pass before the next is sent.
    probe: Option<&'a Probe>,
    /// The number of coordinates of times.
    dims: usize,
    /// The time of the latest change, to which the input follows.
    latest: Point,
    made: usize,
}

impl<'a> Player<'a> {
    fn new(handle: &'a InputHandle, probe: Option<&'a ProbeHandle>) -> PyResult<Self> {
        let state = handle.open_state()?;
        let latest = state.time().unwrap_or_else(|| Point::new(&[]));
        let dims = latest.dims();
        let probe = probe.map(|probe| &probe.probe);
        if let Some(watched) = probe.and_then(Probe::dims)
            && watched != dims
        {
            return Err(TimeError::new_err(format!(
                "the probe is at a place whose times have {watched} coordinates, and the input's have {dims}: give a probe \
                 of a scope with as many"
            )));
        }
        Ok(Player {
            handle,
            probe,
            dims,
            latest,
            made: 0,
        })
    }

    /// Feeds changes, and moves the input to the time of the last.
    fn play(
        mut self,
        py: Python<'_>,
        feed: impl FnOnce(&mut Self) -> PyResult<()>,
    ) -> PyResult<()> {
        let outcome = feed(&mut self);
        let followed = self.follow(py);
        outcome.and(followed)
    }

    /// Makes a change.
    fn change(&mut self, py: Python<'_>, row: Row<'_>, time: &Point, diff: i64) -> PyResult<()> {
        if *time != self.latest {
            self.turn_to(py, time)?;
        }
        let state = self.handle.open_state()?;
        if let Some(from) = state.time().filter(|now| !now.less_equal(time)) {
            let to = time.clone(); // the program has moved it meanwhile, in the iterable of changes
            return Err(Error::TimeGoesBack { from, to }.into_exception());
        }
        self.made += 1;
        if state.add_row_at(py, row, time, diff)? {
            self.follow(py)?;
        }
        if self.made.is_multiple_of(BETWEEN_SIGNALS) {
            py.check_signals()?;
            give_way(py);
        }
        Ok(())
    }

    /// Moves on to a later time.
    fn turn_to(&mut self, py: Python<'_>, time: &Point) -> PyResult<()> {
        if !self.latest.less_equal(time) {
            let latest = &self.latest;
            return Err(TimeError::new_err(if self.made == 0 {
                format!(
                    "a change at {time} comes too late: the input is at {latest}, and nothing is changed before"
                )
            } else {
                format!(
                    "a change at {time} comes after one at {latest}: play takes changes in the order of their times; sort \
                     them by time"
                )
            }));
        }
        self.latest = time.clone();
        if let Some(probe) = self.probe {
            self.follow(py)?;
            let driver = &self.handle.open_state()?.driver;
            driver.run(py, |engine| {
                engine.try_step_while(|| Ok(probe.less_than(time)))
            })?;
        }
        Ok(())
    }

    /// Sends the waiting changes, and moves the input to the time of the latest one.
    fn follow(&self, py: Python<'_>) -> PyResult<()> {
        let state = self.handle.open_state()?;
        match state.input.time() {
            // The program has moved it further, in the iterable of changes.
            Some(now) if !now.less_equal(&self.latest) => Ok(()),
            _ => state.advance_to(py, &self.latest),
        }
    }
}

/// The record, the time and the diff of a change.
fn change_of<'py>(
    change: &Bound<'py, PyAny>,
    dims: usize,
) -> PyResult<(Bound<'py, PyAny>, Point, i64)> {
    let tuple = match change.cast::<PyTuple>() {
        Ok(tuple) => Some(tuple.clone()),
        Err(_) => change.cast::<PyList>().ok().map(PyListMethods::to_tuple),
    };
    let Some(tuple) = tuple.filter(|tuple| tuple.len() == 3) else {
        return Err(PyTypeError::new_err(format!(
            "{} is not a change with its time: it is a triple (record, time, diff)",
            shown(change)
        )));
    };
    let time = point_from_py(&tuple.get_item(1)?, dims)?;
    Ok((tuple.get_item(0)?, time, diff_of(&tuple.get_item(2)?)?))
}

/// Makes changes at their own times: triples of a record, a time and a diff.
#[pyfunction]
#[pyo3(signature = (handle, changes, probe = None))]
pub(crate) fn play_updates(
    handle: &InputHandle,
    changes: &Bound<'_, PyAny>,
    probe: Option<&Bound<'_, ProbeHandle>>,
) -> PyResult<()> {
    let py = changes.py();
    let player = Player::new(handle, probe.map(Bound::get))?;
    let changes = records_of(Giver::Call("play"), changes)?;
    player.play(py, |player| {
        let mut row = RowBuf::default();
        for change in changes {
            let (record, time, diff) = change_of(&change?, player.dims)?;
            row.encode(&record)?;
            player.change(py, row.get(), &time, diff)?;
        }
        Ok(())
    })
}

/// Makes the changes of batches at the times of one of their columns, with the diffs of another, or each row once.
#[pyfunction]
#[pyo3(signature = (handle, data, schema, time, diff = None, probe = None))]
pub(crate) fn play_columns(
    handle: &InputHandle,
    data: &Bound<'_, PyAny>,
    schema: &Schema,
    time: String,
    diff: Option<String>,
    probe: Option<&Bound<'_, ProbeHandle>>,
) -> PyResult<()> {
    let py = data.py();
    let player = Player::new(handle, probe.map(Bound::get))?;
    let of = ChangesOf {
        schema: &schema.schema,
        time,
        diff,
        dims: player.dims,
    };
    player.play(py, |player| {
        import_batches(data, |batch| {
            let changes =
                detached(py, || of.read(&batch)).map_err(IntoException::into_exception)?;
            for index in 0..changes.rows.len() {
                let (time, diff) = changes.at(index).map_err(IntoException::into_exception)?;
                player.change(py, changes.rows.get(index), &time, diff)?;
            }
            Ok(())
        })
    })
}
