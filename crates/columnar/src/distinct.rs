//! The first row of each key.
//!
//! State: the distinct keys, and nothing of the rows. Cost: a look into a table per row, and a copy of the rows that
//! are new.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::Schema;
use arrow_select::take::take_record_batch;

use crate::error::Error;
use crate::groups::Groups;
use crate::schema::project;

/// Remembers which keys have been seen.
pub struct Distinct {
    key: Vec<usize>,
    groups: Groups,
}

impl Distinct {
    /// Nothing seen yet; `key` numbers columns of the schema.
    ///
    /// # Errors
    ///
    /// As [`Groups::new`].
    pub fn new(schema: &Schema, key: Vec<usize>) -> Result<Self, Error> {
        let data_type = |&at: &usize| schema.field(at).data_type().clone();
        let types: Vec<_> = key.iter().map(data_type).collect();
        Ok(Distinct {
            groups: Groups::new(&types)?,
            key,
        })
    }

    /// The rows whose key has not been seen before, in this batch or an earlier one; `None` when there are none.
    ///
    /// # Errors
    ///
    /// As [`Groups::number`].
    pub fn first_rows(&mut self, batch: &RecordBatch) -> Result<Option<RecordBatch>, Error> {
        let before = self.groups.len();
        let numbers = self.groups.number(&project(batch, &self.key))?;
        let new = self.groups.len() - before;
        if new == 0 {
            return Ok(None);
        }
        if new == batch.num_rows() {
            return Ok(Some(batch.clone()));
        }
        // Keys are numbered in the order in which they appear, so the first row of a key is the one that has the
        // next number.
        let mut rows = Vec::with_capacity(new);
        let mut next = before;
        for (row, &number) in (0_u32..).zip(&numbers) {
            if number as usize == next {
                rows.push(row);
                next += 1;
            }
        }
        Ok(Some(take_record_batch(batch, &UInt32Array::from(rows))?))
    }
}
