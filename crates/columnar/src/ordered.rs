//! Rows of several batches in one order: in one batch where they fit, else in several.
//!
//! The offsets of strings and lists have 32 bits, so rows of more than 2 GiB of text have no one batch. Up to a limit the rows
//! are put together and then picked; beyond it they are picked from where they are, in parts. Cost: a copy of the rows, or two;
//! beyond the limit a look at the width of each.

use std::cmp::Ordering;
use std::ops::Range;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave_record_batch;
use arrow_select::take::take_record_batch;

use crate::dictionary::{in_parts, resolved, restored, restored_in_parts};
use crate::error::Error;
use crate::extent::{reach, width_of};

/// The maximum bytes of text in a column, or elements of lists, that are brought together: half of the
/// capacity of 32-bit offsets.
pub(crate) const TOGETHER: usize = 1 << 30;

/// The numbers of rows in an order: of 32 bits, where there are few enough, because the order is moved.
pub(crate) enum Order {
    Few(Vec<u32>),
    Many(Vec<usize>),
}

impl Order {
    /// So many rows in the order of a comparison; rows that are equal stay in their order.
    pub(crate) fn of(rows: usize, compare: impl Fn(usize, usize) -> Ordering) -> Self {
        if let Ok(rows) = u32::try_from(rows) {
            let mut order: Vec<u32> = (0..rows).collect();
            order.sort_by(|&one, &other| compare(one as usize, other as usize));
            return Order::Few(order);
        }
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_by(|&one, &other| compare(one, other));
        Order::Many(order)
    }

    fn at(&self, place: usize) -> usize {
        match self {
            Order::Few(order) => order[place] as usize,
            Order::Many(order) => order[place],
        }
    }
}

/// The rows of batches of one schema in an order; dictionaries are restricted to the rows that end up
/// together.
///
/// `order` gets the batches, or one that holds the rows of all, and returns the rows' numbers, end to end, in their
/// order; `None` where they are in order.
///
/// # Errors
///
/// An error of a kernel, and errors of `order`.
pub(crate) fn in_order(
    batches: &[RecordBatch],
    limit: usize,
    order: impl FnOnce(&[RecordBatch]) -> Result<Option<Order>, Error>,
) -> Result<Vec<RecordBatch>, Error> {
    let Some(first) = batches.first() else {
        return Ok(Vec::new());
    };
    let schema = first.schema();
    let rows = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    let is_small = u32::try_from(rows).is_ok();
    if batches.len() == 1 && is_small {
        return Ok(vec![match order(batches)? {
            None => first.clone(),
            Some(order) => taken(first, order)?,
        }]);
    }
    let batches = batches.iter().map(resolved);
    let batches = batches.collect::<Result<Vec<_>, _>>()?;
    if is_small && fit(&batches, limit) {
        let together = concat_batches(&batches[0].schema(), &batches)?;
        let rows = match order(std::slice::from_ref(&together))? {
            None => together,
            Some(order) => taken(&together, order)?,
        };
        return restored_in_parts(&rows, &schema);
    }
    let order = order(&batches)?;
    let mut starts = vec![0];
    for batch in &batches {
        starts.push(starts[starts.len() - 1] + batch.num_rows());
    }
    let place = |row: usize| {
        let batch = starts.partition_point(|&start| start <= row) - 1;
        (batch, row - starts[batch])
    };
    let row = |at: usize| order.as_ref().map_or(at, |order| order.at(at));
    let places: Vec<(usize, usize)> = (0..rows).map(|at| place(row(at))).collect();
    let whole: Vec<&RecordBatch> = batches.iter().collect();
    let mut parts = Vec::new();
    let width = |at: usize| {
        let (batch, row) = places[at];
        width(batches[batch].columns(), row)
    };
    for part in cut(places.len(), limit, width) {
        let make = |part: Range<usize>| {
            let rows = interleave_record_batch(&whole, &places[part])?;
            restored(&rows, &schema)
        };
        in_parts(part, make, |rows| {
            parts.push(rows);
            Ok::<_, Error>(())
        })?;
    }
    Ok(parts)
}

fn taken(batch: &RecordBatch, order: Order) -> Result<RecordBatch, Error> {
    Ok(match order {
        Order::Few(order) => take_record_batch(batch, &UInt32Array::from(order))?,
        Order::Many(order) => {
            let order = order.into_iter().map(|row| row as u64);
            take_record_batch(batch, &UInt64Array::from_iter_values(order))?
        }
    })
}

/// Whether batches of one schema fit into one: no column's offsets reach further than a limit.
fn fit(batches: &[RecordBatch], limit: usize) -> bool {
    let columns = batches.first().map_or(0, RecordBatch::num_columns);
    (0..columns).all(|at| fit_together(batches.iter().map(|batch| batch.column(at)), limit))
}

/// Whether columns of one type fit into one: its offsets reach no further than a limit.
pub(crate) fn fit_together<'a>(columns: impl Iterator<Item = &'a ArrayRef>, limit: usize) -> bool {
    let reaches = columns.map(reach);
    reaches.fold(0_usize, usize::saturating_add) <= limit
}

/// The approximate number of bytes that a row of columns takes where it is copied.
pub(crate) fn width(columns: &[ArrayRef], row: usize) -> usize {
    columns.iter().map(|column| width_of(column, row)).sum()
}

/// Cuts rows into stretches of about a limit's width at most, or of one row.
pub(crate) fn cut(rows: usize, limit: usize, width: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut wide) = (Vec::new(), 0, 0_usize);
    for row in 0..rows {
        let width = width(row);
        if row > start && (wide.saturating_add(width) > limit || row - start >= MOST_ROWS) {
            parts.push(start..row);
            (start, wide) = (row, 0);
        }
        wide = wide.saturating_add(width);
    }
    if start < rows {
        parts.push(start..rows);
    }
    parts
}

/// The maximum number of rows of a part: rows without a width, such as those of nulls, are counted, too.
const MOST_ROWS: usize = 1 << 30;
