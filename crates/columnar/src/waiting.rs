//! Rows that wait until their times are final.
//!
//! Rows come in any order, and are taken out in the order of time, and at equal times in order of arrival, so that
//! results do not depend on the order of arrival otherwise. Cost: for a batch, a pass over its times; for a row that
//! is taken, its share of a sort, unless rows come in order. Dictionaries are resolved where rows of several batches,
//! each with its own, are put together.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;

use crate::error::Error;
use crate::event_time::{ends, times_of};
use crate::ordered::{Order, TOGETHER, in_order};

/// Rows whose times are in a column, and not final.
#[derive(Debug)]
pub(crate) struct Waiting {
    column: usize,
    /// With their first and last time.
    batches: Vec<(i64, i64, RecordBatch)>,
    /// The maximum that is brought together in one batch: see [`in_order`].
    limit: usize,
}

impl Waiting {
    /// None so far; their times are in the column of this number.
    pub(crate) fn new(column: usize) -> Self {
        Waiting {
            column,
            batches: Vec::new(),
            limit: TOGETHER,
        }
    }

    /// Takes in the rows of a batch, none of which is before `earliest`.
    ///
    /// # Errors
    ///
    /// As [`times_of`].
    pub(crate) fn add(&mut self, batch: RecordBatch, earliest: u64) -> Result<(), Error> {
        let times = times_of(batch.column(self.column), earliest)?;
        if let Some((first, last)) = ends(times.values()) {
            self.batches.push((first, last, batch));
        }
        Ok(())
    }

    /// The earliest time of a row.
    pub(crate) fn first(&self) -> Option<i64> {
        self.batches.iter().map(|&(first, ..)| first).min()
    }

    /// The rows, in the order in which they came.
    pub(crate) fn batches(&self) -> impl Iterator<Item = &RecordBatch> {
        self.batches.iter().map(|(.., batch)| batch)
    }

    /// Takes out the rows before `frontier`, or all, in the order of time: in one batch, or in as many as offsets and dictionaries
    /// have room for.
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
        in_order(&ready, self.limit, |batches| {
            let mut times = Vec::new();
            for rows in batches {
                times.extend_from_slice(times_of(rows.column(self.column), 0)?.values());
            }
            if times.is_sorted() {
                return Ok(None);
            }
            let compare = |one: usize, other: usize| times[one].cmp(&times[other]);
            Ok(Some(Order::of(times.len(), compare)))
        })
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "batches have fewer than 2^32 rows"
)]
fn number(place: usize) -> u32 {
    place as u32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    /// Returns the times and texts of rows that come in five batches, taken with no more together than a limit; and
    /// the number of batches.
    fn taken(limit: usize) -> (Vec<(i64, String)>, usize) {
        let mut waiting = Waiting::new(0);
        waiting.limit = limit;
        for batch in 0..5_i64 {
            let times: Vec<i64> = (0..20).map(|row| (row * 13 + batch * 7) % 40).collect();
            let texts: Vec<String> = times.iter().map(|time| format!("{batch} {time}")).collect();
            let times: ArrayRef = Arc::new(Int64Array::from(times));
            let texts: ArrayRef = Arc::new(StringArray::from(texts));
            let rows = RecordBatch::try_from_iter([("at", times), ("text", texts)]);
            waiting.add(rows.unwrap(), 0).unwrap();
        }
        let (mut rows, mut batches) = (Vec::new(), 0);
        for frontier in [Some(10), Some(25), None] {
            for part in waiting.take(frontier).unwrap() {
                let times = part.column(0).as_primitive::<Int64Type>();
                let texts = part.column(1).as_string::<i32>();
                assert!(part.num_rows() == 1 || texts.values().len() <= limit);
                for row in 0..part.num_rows() {
                    rows.push((times.value(row), texts.value(row).to_owned()));
                }
                batches += 1;
            }
        }
        (rows, batches)
    }

    #[test]
    fn rows_that_no_batch_holds_come_in_several() {
        let (rows, batches) = taken(TOGETHER);
        assert_eq!((rows.len(), batches), (100, 3));
        assert!(rows.is_sorted_by_key(|(time, _)| *time));
        for limit in [1, 30, 90] {
            let (parts, batches) = taken(limit);
            assert_eq!(parts, rows);
            assert!(batches > 3);
        }
    }
}
