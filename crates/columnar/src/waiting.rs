//! Rows that wait until their times are final.
//!
//! Rows come in any order, and are taken out in the order of time, those of one time as they came, so that what is made of them
//! does not depend on what came first. Cost: of a batch that comes, a pass over its times; of a row that is taken, its share of a
//! sort, unless rows come in order.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;

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

    /// Takes out the rows before `frontier`, or all, in the order of time.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub(crate) fn take(&mut self, frontier: Option<i64>) -> Result<Option<RecordBatch>, Error> {
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
            return Ok(None);
        };
        let rows = if ready.len() == 1 {
            one.clone()
        } else {
            concat_batches(&one.schema(), &ready)?
        };
        let times = times_of(rows.column(self.column), 0)?;
        if times.values().is_sorted() {
            return Ok(Some(rows));
        }
        let mut order: Vec<u32> = (0..number(rows.num_rows())).collect();
        order.sort_by_key(|&place| times.value(place as usize)); // stable
        Ok(Some(take_record_batch(&rows, &UInt32Array::from(order))?))
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "batches have fewer than 2^32 rows"
)]
fn number(place: usize) -> u32 {
    place as u32
}
