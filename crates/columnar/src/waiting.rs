//! Rows that wait until their times are final.
//!
//! Rows come in any order, and are taken out in the order of time, those of one time as they came, so that what is made of them
//! does not depend on what came first. Cost: of a batch that comes, a pass over its times; of a row that is taken, its share of a
//! sort, unless rows come in order. Dictionaries are resolved where rows of several batches, each with its own, are put together.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;

use crate::dictionary::{in_parts, resolved, restored};
use crate::error::Error;
use crate::event_time::times_of;

/// Rows whose times are in a column, and not final.
#[derive(Debug)]
pub(crate) struct Waiting {
    column: usize,
    /// With their first and last time.
    batches: Vec<(i64, i64, RecordBatch)>,
}

impl Waiting {
    /// None so far; their times are in the column of this number.
    pub(crate) fn new(column: usize) -> Self {
        Waiting {
            column,
            batches: Vec::new(),
        }
    }

    /// Takes in the rows of a batch, none of which is before `earliest`.
    ///
    /// # Errors
    ///
    /// As [`times_of`].
    pub(crate) fn add(&mut self, batch: RecordBatch, earliest: u64) -> Result<(), Error> {
        let times = times_of(batch.column(self.column), earliest)?;
        let ends = (times.values().iter().min(), times.values().iter().max());
        if let (Some(&first), Some(&last)) = ends {
            self.batches.push((first, last, batch));
        }
        Ok(())
    }

    /// The earliest time of a row.
    pub(crate) fn first(&self) -> Option<i64> {
        self.batches.iter().map(|&(first, ..)| first).min()
    }

    /// Takes out the rows before `frontier`, or all, in the order of time: in one batch, or in as many as dictionaries have room for.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub(crate) fn take(&mut self, frontier: Option<i64>) -> Result<Vec<RecordBatch>, Error> {
        let mut ready = Vec::new();
        for (first, last, batch) in std::mem::take(&mut self.batches) {
            if frontier.is_none_or(|frontier| last < frontier) {
                ready.push(batch);
            } else if frontier.is_none_or(|frontier| first >= frontier) {
                self.batches.push((first, last, batch));
            } else if let Some(frontier) = frontier {
                let times = times_of(batch.column(self.column), 0)?;
                let places = |is_final: bool| {
                    let rows = times.values().iter().enumerate();
                    let wanted = rows.filter(|&(_, &time)| (time < frontier) == is_final);
                    UInt32Array::from_iter_values(wanted.map(|(place, _)| number(place)))
                };
                ready.push(take_record_batch(&batch, &places(true))?);
                let rest = take_record_batch(&batch, &places(false))?;
                let times = times_of(rest.column(self.column), 0)?;
                let first = times.values().iter().copied().min().unwrap_or(last);
                self.batches.push((first, last, rest));
            }
        }
        let Some(one) = ready.first() else {
            return Ok(Vec::new());
        };
        let schema = one.schema();
        if ready.len() == 1 {
            let rows = ready.swap_remove(0);
            return Ok(vec![self.in_order(rows)?]);
        }
        let ready = ready.iter().map(resolved).collect::<Result<Vec<_>, _>>()?;
        let rows = self.in_order(concat_batches(&ready[0].schema(), &ready)?)?;
        restored_in_parts(&rows, &schema)
    }

    fn in_order(&self, rows: RecordBatch) -> Result<RecordBatch, Error> {
        let times = times_of(rows.column(self.column), 0)?;
        if times.values().is_sorted() {
            return Ok(rows);
        }
        let mut order: Vec<u32> = (0..number(rows.num_rows())).collect();
        order.sort_by_key(|&place| times.value(place as usize)); // stable
        Ok(take_record_batch(&rows, &UInt32Array::from(order))?)
    }
}

/// Rows whose dictionaries were resolved, with those of the schema, in as many batches as these have room for.
///
/// # Errors
///
/// An error of a kernel.
pub(crate) fn restored_in_parts(
    rows: &RecordBatch,
    schema: &SchemaRef,
) -> Result<Vec<RecordBatch>, Error> {
    if rows.schema_ref().fields() == schema.fields() {
        return Ok(vec![rows.clone()]);
    }
    let mut parts = Vec::new();
    in_parts(
        0..rows.num_rows(),
        |part| restored(&rows.slice(part.start, part.len()), schema),
        |batch| {
            parts.push(batch);
            Ok::<_, Error>(())
        },
    )?;
    Ok(parts)
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "batches have fewer than 2^32 rows"
)]
fn number(place: usize) -> u32 {
    place as u32
}
