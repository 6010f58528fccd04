//! Updates from Python. All updates of a call are converted before any is applied: a refused call changes
//! nothing.

use pointstamp_arrange::Rows;
use pointstamp_operators::collections::columns::PlainColumns;
use pointstamp_rows::{Cells, Row, RowBuf};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::values::FromPython;
use crate::gil::give_way;
use crate::iterables::{Giver, records_of};
use crate::raised::shown;

/// The diff of an update, which is not 0.
pub(crate) fn diff_of(diff: &Bound<'_, PyAny>) -> PyResult<i64> {
    let Ok(count) = diff.extract::<i64>() else {
        return Err(PyTypeError::new_err(format!(
            "{} is not the diff of an update: it is an int of at most 64 bits, 1 to insert a record and -1 to remove it",
            shown(diff)
        )));
    };
    if count == 0 {
        return Err(PyValueError::new_err(
            "an update of diff 0 changes nothing: leave it out",
        ));
    }
    Ok(count)
}

/// The record and the diff of an update.
pub(crate) fn pair_of<'py>(update: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, i64)> {
    if let Ok(tuple) = update.cast::<PyTuple>()
        && tuple.len() == 2
    {
        return Ok((tuple.get_item(0)?, diff_of(&tuple.get_item(1)?)?));
    }
    if let Ok(list) = update.cast::<PyList>()
        && list.len() == 2
    {
        return Ok((list.get_item(0)?, diff_of(&list.get_item(1)?)?));
    }
    Err(PyTypeError::new_err(format!(
        "{} is not an update: an update is a pair (record, diff)",
        shown(update)
    )))
}

/// The maximum number of updates of one part.
const MOST: usize = 4096;

/// Updates in the order in which they were given. They are kept in parts, so that no large buffer is copied to grow.
#[derive(Default)]
pub(crate) struct Given {
    parts: Vec<Part>,
}

/// Some of the updates.
pub(crate) enum Part {
    /// Rows and their diffs, which are as many.
    Rows(Cells, Vec<i64>),
    /// Columns, and the diff of each of their rows.
    Columns(PlainColumns, i64),
}

impl Part {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Row<'_>, i64)> {
        let (rows, diffs) = match self {
            Part::Rows(rows, diffs) => (rows, Ok(diffs)),
            Part::Columns(columns, diff) => (columns.rows(), Err(*diff)),
        };
        (0..rows.len()).map(move |index| {
            let diff = diffs.map_or_else(|diff| diff, |diffs| diffs[index]);
            (rows.get(index), diff)
        })
    }
}

impl Given {
    /// The updates of an iterable of pairs, or, with a diff, of an iterable of records.
    ///
    /// # Errors
    ///
    /// `TypeError` for an item that is no update, or no record that a collection can keep; `ValueError` for a diff of
    /// 0; and exceptions of the iterable.
    pub(crate) fn of(updates: &Bound<'_, PyAny>, diff: Option<i64>) -> PyResult<Self> {
        let (py, mut given, mut row) = (updates.py(), Given::default(), RowBuf::default());
        let call = match diff {
            None => "update_many",
            Some(1..) => "insert_many",
            Some(_) => "remove_many",
        };
        for (count, update) in records_of(Giver::Call(call), updates)?.enumerate() {
            let update = update?;
            let (record, diff) = match diff {
                Some(diff) => (update, diff),
                None => pair_of(&update)?,
            };
            row.encode(&record)?;
            given.push(row.get(), diff);
            if count % MOST == MOST - 1 {
                py.check_signals()?; // the iterable may have no end, and be no Python code
                give_way(py);
            }
        }
        Ok(given)
    }

    fn push(&mut self, row: Row<'_>, diff: i64) {
        if let Some(Part::Rows(rows, diffs)) = self.parts.last_mut()
            && diffs.len() < MOST
        {
            rows.push(row);
            diffs.push(diff);
            return;
        }
        let mut rows = Cells::default();
        rows.push(row);
        self.parts.push(Part::Rows(rows, vec![diff]));
    }

    /// Adds the rows of columns, all with one diff.
    pub(crate) fn push_columns(&mut self, columns: PlainColumns, diff: i64) {
        self.parts.push(Part::Columns(columns, diff));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Row<'_>, i64)> {
        self.parts.iter().flat_map(Part::iter)
    }

    /// The updates in parts, each of which can be freed before the next.
    pub(crate) fn into_parts(self) -> impl Iterator<Item = Part> {
        self.parts.into_iter()
    }
}
