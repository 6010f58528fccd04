//! The updates of one call of an input, before any of them is made: a call that is refused changes nothing.

use pointstamp_arrange::Rows;
use pointstamp_rows::{Cells, Row, RowBuf};
use pyo3::prelude::*;
use pyo3::types::PyAny;

use super::input::pair_of;
use super::values::FromPython;
use crate::gil::give_way;
use crate::iterables::{Giver, records_of};

/// How many updates one part holds at most.
const MOST: usize = 4096;

/// Updates in the order in which they were given. They are kept in parts, so that no large buffer is copied to grow.
#[derive(Default)]
pub(crate) struct Given {
    parts: Vec<Part>,
}

/// Rows and their diffs, which are as many.
#[derive(Default)]
pub(crate) struct Part {
    rows: Cells,
    diffs: Vec<i64>,
}

impl Part {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Row<'_>, i64)> {
        let diffs = self.diffs.iter().enumerate();
        diffs.map(|(index, diff)| (self.rows.get(index), *diff))
    }
}

impl Given {
    /// The updates of an iterable of pairs, or, with a diff, of an iterable of records.
    ///
    /// # Errors
    ///
    /// `TypeError` for what is no update, or no record that a collection can keep; `ValueError` for a diff of 0; and what the
    /// iterable raises.
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
        if self
            .parts
            .last()
            .is_none_or(|part| part.diffs.len() >= MOST)
        {
            self.parts.push(Part::default());
        }
        if let Some(part) = self.parts.last_mut() {
            part.rows.push(row);
            part.diffs.push(diff);
        }
    }

    /// Adds rows that all have one diff.
    pub(crate) fn push_rows(&mut self, rows: Cells, diff: i64) {
        let diffs = vec![diff; rows.len()];
        self.parts.push(Part { rows, diffs });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Row<'_>, i64)> {
        self.parts.iter().flat_map(Part::iter)
    }

    /// The updates in parts, each of which can be let go of before the next.
    pub(crate) fn into_parts(self) -> impl Iterator<Item = Part> {
        self.parts.into_iter()
    }
}
