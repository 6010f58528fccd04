//! The rows that a join keeps of one side, to be found by their keys.
//!
//! State: the rows, and twelve bytes more for each; keys are numbers here. Batches are merged like the levels of a
//! log-structured tree, so each row is copied a logarithmic number of times, and not beyond [`Limits::merged`]: any
//! amount of text is kept, in pieces. Times that rows of the other side can no longer distinguish are merged.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave;
use arrow_select::take::take;
use pointstamp_order::Point;

use crate::dictionary::dehydrate;
use crate::error::Error;
use crate::extent::{reach, widest};
use crate::ordered::width;
use crate::pieces::MAX_BYTES;
use crate::times::Times;

/// One of a join's inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The stream whose method was called.
    Left,
    /// The other stream.
    Right,
}

/// The limits of the rows that are brought together in one batch.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Rows that are kept are merged into batches of this many bytes of text in a column, or elements of lists.
    pub merged: usize,
    /// A result is about this many bytes at most, or one row.
    pub result: usize,
}

impl Default for Limits {
    /// Far from the capacity of 32-bit offsets, and more than one message carries.
    fn default() -> Self {
        Limits {
            merged: 256 << 20,
            result: 4 * MAX_BYTES,
        }
    }
}

/// Rows of this batch and rows of the other side that belong together.
#[derive(Default)]
pub(crate) struct Pairs {
    pub(crate) own: Vec<u32>,
    pub(crate) other: Vec<u32>,
}

impl Pairs {
    pub(crate) fn clear(&mut self) {
        self.own.clear();
        self.other.clear();
    }
}

const NONE: u32 = u32::MAX;

/// The rows of one side.
#[derive(Default)]
pub(crate) struct Rows {
    batches: Vec<RecordBatch>,
    /// The number of the first row of each batch.
    starts: Vec<usize>,
    len: usize,
    /// For each key, its last row.
    heads: Vec<u32>,
    /// For each row, the row before it that has the same key.
    next: Vec<u32>,
    /// For each row, the number of its time.
    time_of: Vec<u32>,
    times: Times,
    /// The approximate number of bytes that the widest row takes.
    widest: usize,
    /// Nothing can arrive on the other side any more.
    ended: bool,
}

impl Rows {
    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The times, by number.
    pub(crate) fn times(&self) -> &[Point] {
        self.times.as_slice()
    }

    /// The rows that have the key of this number, the last one first, and the numbers of their times.
    pub(crate) fn with_key(&self, key: u32) -> impl Iterator<Item = (u32, u32)> {
        let mut at = self.heads.get(key as usize).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let row = at;
            let next = self.next.get(row as usize)?;
            at = *next;
            Some((row, self.time_of[row as usize]))
        })
    }

    /// The rows of each time, with the numbers of their keys.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "checked: a side has fewer than 2^32 rows"
    )]
    pub(crate) fn by_time(&self) -> Vec<(&Point, Vec<(u32, u32)>)> {
        let times = self.times.as_slice();
        let mut found: Vec<_> = times.iter().map(|time| (time, Vec::new())).collect();
        for key in 0..self.heads.len() as u32 {
            for (row, time) in self.with_key(key) {
                found[time as usize].1.push((key, row));
            }
        }
        for (_, rows) in &mut found {
            rows.sort_unstable_by_key(|&(_, row)| row); // in the order in which they came
        }
        found.retain(|(_, rows)| !rows.is_empty());
        found
    }

    /// Learns which times may still come on the other side.
    ///
    /// Cost: now and then a pass over the rows' numbers of times, so seldom that it does not count.
    pub(crate) fn advance(&mut self, frontier: &[Point]) {
        if frontier.is_empty() {
            *self = Rows {
                ended: true,
                ..Rows::default()
            };
        } else if let Some(moved) = self.times.advance(frontier, self.len) {
            for number in &mut self.time_of {
                *number = moved[*number as usize];
            }
        }
    }

    /// Keeps the rows of a batch, whose keys have these numbers.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "checked: a side has fewer than 2^32 rows"
    )]
    pub(crate) fn insert(
        &mut self,
        time: &Point,
        batch: RecordBatch,
        numbers: &[u32],
        limits: &Limits,
    ) -> Result<(), Error> {
        if self.ended {
            return Ok(());
        }
        let first = self.len;
        let len = first + batch.num_rows();
        if len >= NONE as usize {
            return Err(Error::TooManyKeys);
        }
        let time_number = self.times.number_of(time);
        self.widest = self.widest.max(widest(batch.columns()));
        for (row, &number) in (first..).zip(numbers) {
            let number = number as usize;
            if number >= self.heads.len() {
                self.heads.resize(number + 1, NONE);
            }
            self.next
                .push(std::mem::replace(&mut self.heads[number], row as u32));
        }
        self.time_of.resize(len, time_number);
        self.len = len;
        self.batches.push(batch);
        self.starts.push(first);
        self.merge(limits)
    }

    /// Keeps each batch more than twice as large as the one after it, or as large as it may become.
    fn merge(&mut self, limits: &Limits) -> Result<(), Error> {
        while let [.., before, last] = self.batches.as_slice() {
            if before.num_rows() > 2 * last.num_rows() || !fit(before, last, limits.merged) {
                break;
            }
            let merged = concat_batches(&before.schema(), [before, last])?;
            self.batches.truncate(self.batches.len() - 2);
            self.batches.push(merged);
            self.starts.pop();
        }
        Ok(())
    }

    /// The columns of rows by number.
    pub(crate) fn gather(&self, rows: &[u32]) -> Result<Vec<ArrayRef>, Error> {
        if let [only] = self.batches.as_slice() {
            let rows = UInt32Array::from(rows.to_vec());
            let columns = only
                .columns()
                .iter()
                .map(|column| Ok(take(column, &rows, None)?));
            return columns.collect();
        }
        let places: Vec<(usize, usize)> = rows.iter().map(|&row| self.place(row)).collect();
        let width = self.batches.first().map_or(0, RecordBatch::num_columns);
        (0..width)
            .map(|at| {
                let columns: Vec<&dyn Array> = self
                    .batches
                    .iter()
                    .map(|batch| batch.column(at).as_ref())
                    .collect();
                Ok(interleave(&columns, &places)?)
            })
            .collect()
    }

    /// Divides pairs into parts whose result is no larger than a limit, or of one pair.
    pub(crate) fn parts(
        &self,
        (own, own_widest): (&[ArrayRef], usize),
        pairs: &Pairs,
        limit: usize,
    ) -> Vec<Range<usize>> {
        let len = pairs.own.len();
        let most = own_widest.saturating_add(self.widest);
        if len.saturating_mul(most) <= limit {
            return std::iter::once(0..len).collect();
        }
        let (mut parts, mut start, mut bytes) = (Vec::new(), 0, 0);
        for (at, (&row, &other)) in pairs.own.iter().zip(&pairs.other).enumerate() {
            let (batch, other) = self.place(other);
            let width = width(own, row as usize) + width(self.batches[batch].columns(), other);
            if at > start && bytes + width > limit {
                parts.push(start..at);
                (start, bytes) = (at, 0);
            }
            bytes += width;
        }
        parts.push(start..len);
        parts
    }

    /// The batch of a row, and the row's number there.
    fn place(&self, row: u32) -> (usize, usize) {
        let row = row as usize;
        let batch = self.starts.partition_point(|&start| start <= row) - 1;
        (batch, row - self.starts[batch])
    }

    /// The result's rows for some of the pairs of rows of `own` columns and of this, the other side.
    pub(crate) fn pair(
        &self,
        own: &[ArrayRef],
        pairs: &Pairs,
        part: Range<usize>,
        side: Side,
        output: &SchemaRef,
    ) -> Result<RecordBatch, Error> {
        let rows = UInt32Array::from(pairs.own[part.clone()].to_vec());
        let mut own = own
            .iter()
            .map(|column| take(column, &rows, None))
            .collect::<Result<Vec<_>, _>>()?;
        let mut other = self.gather(&pairs.other[part.clone()])?;
        let mut columns = match side {
            Side::Left => {
                own.append(&mut other);
                own
            }
            Side::Right => {
                other.append(&mut own);
                other
            }
        };
        for (column, field) in columns.iter_mut().zip(output.fields()) {
            *column = dehydrate(column, field.data_type())?;
        }
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(part.len()));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(output),
            columns,
            &options,
        )?)
    }
}

/// Whether two batches may become one: no column's offsets reach further than a limit. Dictionaries are measured, too,
/// unless they are the same one.
fn fit(a: &RecordBatch, b: &RecordBatch, limit: usize) -> bool {
    let shared = |a: &ArrayRef, b: &ArrayRef| {
        let values = |column: &ArrayRef| Some(column.as_any_dictionary_opt()?.values().to_data());
        values(a).is_some_and(|a| values(b).is_some_and(|b| a.ptr_eq(&b)))
    };
    let columns = a.columns().iter().zip(b.columns());
    columns
        .into_iter()
        .all(|(a, b)| shared(a, b) || reach(a).saturating_add(reach(b)) <= limit)
}
