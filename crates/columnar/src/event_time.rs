//! Columns of event times: reading them as 64-bit words, and splitting a batch by them.
//!
//! A time is the column's own number: an integer, or a timestamp in its unit since 1970. Times are never null and never
//! negative, because they become timestamps of a dataflow. Cost: a pass over the column; splitting copies rows only where
//! those of one time are not neighbours.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Schema};
use arrow_select::take::take_record_batch;
use std::collections::BTreeMap;

use crate::error::Error;
use crate::schema::find_column;

/// The number of a column that can hold times.
///
/// # Errors
///
/// [`Error::NoColumn`], and [`Error::NotTimes`] for a column of another type.
pub fn time_column(schema: &Schema, name: &str) -> Result<usize, Error> {
    let at = find_column(schema, name)?;
    let data_type = schema.field(at).data_type();
    if data_type.is_integer()
        || matches!(
            data_type,
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64
        )
    {
        return Ok(at);
    }
    Err(Error::NotTimes {
        name: name.to_owned(),
        data_type: data_type.clone(),
    })
}

/// The times of a column, each of which is `least` or later.
///
/// # Errors
///
/// [`Error::NullTime`], [`Error::TimeBeyond`] and [`Error::TimeBefore`].
pub fn times_of(column: &ArrayRef, least: u64) -> Result<Int64Array, Error> {
    if column.null_count() > 0 {
        return Err(Error::NullTime);
    }
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    if let Some(words) = column.as_primitive_opt::<UInt64Type>()
        && let Some((_, time)) = ends(words.values())
        && i64::try_from(time).is_err()
    {
        return Err(Error::TimeBeyond { time });
    }
    // Dates of 32 bits have no cast to 64: they are days, as integers of 32 bits are.
    let narrow = match column.data_type() {
        DataType::Date32 => cast_with_options(column, &DataType::Int32, &strict)?,
        _ => column.clone(),
    };
    let words = cast_with_options(&narrow, &DataType::Int64, &strict)?;
    let words = words.as_primitive::<Int64Type>().clone();
    match ends(words.values()) {
        Some((first, _)) if u64::try_from(first).map_or(true, |first| first < least) => {
            Err(Error::TimeBefore { time: first, least })
        }
        _ => Ok(words),
    }
}

/// The least and the greatest of some numbers.
///
/// A loop of plain comparisons: the calls of `Iterator::min` are not always inlined, and cost more than all else here.
pub(crate) fn ends<T: Copy + PartialOrd>(numbers: &[T]) -> Option<(T, T)> {
    let (mut first, mut last) = (*numbers.first()?, *numbers.first()?);
    for &number in numbers {
        first = if number < first { number } else { first };
        last = if number > last { number } else { last };
    }
    Some((first, last))
}

/// The last instant before `start + length`; the last time of the type, where that is beyond its range.
pub(crate) fn last_of(start: i64, length: i64) -> i64 {
    start.checked_add(length).map_or(i64::MAX, |end| end - 1)
}

/// The end of an interval with this last instant; the last time of the type, where there is no time after it.
pub(crate) fn end_after(last: i64) -> i64 {
    last.saturating_add(1)
}

/// The rows of a batch by their times, least first; rows of one time keep their order.
///
/// # Errors
///
/// As [`times_of`], and an error of a kernel.
pub fn by_time(
    batch: &RecordBatch,
    column: usize,
    least: u64,
) -> Result<Vec<(u64, RecordBatch)>, Error> {
    let times = times_of(batch.column(column), least)?;
    split(batch, times.values().iter().copied()).map(|parts| {
        let unsigned = |(time, rows): (i64, RecordBatch)| (time.unsigned_abs(), rows);
        parts.into_iter().map(unsigned).collect()
    })
}

/// The rows of a batch by a number for each, least first; rows of one number keep their order.
///
/// # Errors
///
/// An error of a kernel.
pub(crate) fn split(
    batch: &RecordBatch,
    numbers: impl Iterator<Item = i64>,
) -> Result<Vec<(i64, RecordBatch)>, Error> {
    // Stretches of one number: rows often come in the order of time.
    let mut stretches: BTreeMap<i64, Vec<(usize, usize)>> = BTreeMap::new();
    let mut open: Option<(i64, usize)> = None;
    let mut rows = 0;
    for number in numbers {
        match open {
            Some((same, _)) if same == number => {}
            Some((other, start)) => {
                stretches.entry(other).or_default().push((start, rows));
                open = Some((number, rows));
            }
            None => open = Some((number, rows)),
        }
        rows += 1;
    }
    if let Some((number, start)) = open {
        stretches.entry(number).or_default().push((start, rows));
    }
    let mut parts = Vec::with_capacity(stretches.len());
    for (number, ranges) in stretches {
        let part = if let [(start, end)] = ranges.as_slice() {
            batch.slice(*start, end - start)
        } else {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "a batch on a stream has at most pieces::MAX_ROWS rows"
            )]
            let rows = ranges
                .iter()
                .flat_map(|&(start, end)| start as u32..end as u32);
            take_record_batch(batch, &UInt32Array::from_iter_values(rows))?
        };
        parts.push((number, part));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int32Array, RecordBatch, TimestampMillisecondArray};

    use super::*;

    fn batch(times: ArrayRef) -> RecordBatch {
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
        let rows = Int32Array::from_iter_values(0..times.len() as i32);
        RecordBatch::try_from_iter([("at", times), ("row", Arc::new(rows) as ArrayRef)]).unwrap()
    }

    #[test]
    fn rows_of_one_time_keep_their_order() {
        let times = Arc::new(TimestampMillisecondArray::from(vec![5, 3, 5, 5, 4, 3]));
        let parts = by_time(&batch(times), 0, 3).unwrap();
        let found: Vec<(u64, Vec<i32>)> = parts
            .iter()
            .map(|(time, rows)| {
                let rows = rows
                    .column(1)
                    .as_primitive::<arrow_array::types::Int32Type>();
                (*time, rows.values().to_vec())
            })
            .collect();
        assert_eq!(found, [(3, vec![1, 5]), (4, vec![4]), (5, vec![0, 2, 3])]);
    }

    #[test]
    fn what_is_no_time_of_a_dataflow_is_refused() {
        let negative = Arc::new(Int32Array::from(vec![4, -1])) as ArrayRef;
        assert!(matches!(
            times_of(&negative, 0),
            Err(Error::TimeBefore { time: -1, .. })
        ));
        let early = Arc::new(Int32Array::from(vec![4, 9])) as ArrayRef;
        assert!(matches!(
            times_of(&early, 5),
            Err(Error::TimeBefore { time: 4, least: 5 })
        ));
        let missing = Arc::new(Int32Array::from(vec![Some(4), None])) as ArrayRef;
        assert!(matches!(times_of(&missing, 0), Err(Error::NullTime)));
    }
}
