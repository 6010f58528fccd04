//! Aggregations that keep the values of each group: lists, first and last values, how many differ, the greatest few, quantiles.
//!
//! Values stay in order of arrival, without nulls except in lists. The number of a group's last value is known, and
//! for each value that of the one before it: so the cost of a result follows the number of its group's values,
//! whatever else is kept. Columns of values are merged like the levels of a log-structured tree, so that each value
//! is copied a logarithmic number of times.
//!
//! A quantile is exact: between two values it is interpolated by the share. NaN is the greatest number, for quantiles
//! and among the greatest few. Distinct values are compared as keys are: all NaNs are one value, and `-0.0` is `0.0`.

use std::num::IntErrorKind;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, new_empty_array,
    new_null_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use arrow_select::concat::concat;
use arrow_select::filter::filter;
use arrow_select::interleave::interleave;

use crate::accumulate::Accumulator;
use crate::dictionary::{plain_column, plain_type, resolved_type};
use crate::error::Error;
use crate::extent::{reach, widest};
use crate::groups::Groups;
use crate::selection::{comparable, has_order};

/// The result that is computed of the values of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Taking {
    List,
    First,
    Last,
    /// The number of distinct values.
    Distinct,
    /// The greatest so many.
    Top(usize),
    /// The quantile at this share.
    Quantile(f64),
}

impl Taking {
    /// The aggregation of a name; `None` if it is none of these.
    ///
    /// # Errors
    ///
    /// [`Error::NoFew`] and [`Error::NoShare`] for a number that makes no sense.
    pub(crate) fn named(name: &str) -> Result<Option<Self>, Error> {
        Ok(Some(match name {
            "collect" => Taking::List,
            "first" => Taking::First,
            "last" => Taking::Last,
            "distinct_count" => Taking::Distinct,
            "median" => Taking::Quantile(0.5),
            _ => {
                if let Some(count) = name.strip_prefix("top_") {
                    let count = match count.parse::<usize>() {
                        Ok(count) => count,
                        // More than there are places in memory is all of them.
                        Err(error) if *error.kind() == IntErrorKind::PosOverflow => usize::MAX,
                        Err(_) => 0,
                    };
                    if count == 0 {
                        return Err(Error::NoFew { name: name.into() });
                    }
                    Taking::Top(count)
                } else if let Some(share) = name.strip_prefix("quantile_") {
                    let share = share.parse().ok();
                    let share = share.filter(|share| (0.0..=1.0).contains(share));
                    let named = || Error::NoShare { name: name.into() };
                    Taking::Quantile(share.ok_or_else(named)?)
                } else {
                    return Ok(None);
                }
            }
        }))
    }

    /// The name of the function in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Taking::List => "collect",
            Taking::First => "first",
            Taking::Last => "last",
            Taking::Distinct => "distinct_count",
            Taking::Top(_) => "top_k",
            Taking::Quantile(_) => "quantile",
        }
    }

    /// An empty accumulator over a type; `None` where it is not defined.
    pub(crate) fn over(self, data_type: &DataType) -> Option<Box<dyn Accumulator>> {
        let values = resolved_type(&plain_type(data_type));
        let defined = match self {
            Taking::List | Taking::First | Taking::Last => true,
            Taking::Distinct => RowConverter::supports_fields(&[SortField::new(values.clone())]),
            Taking::Top(_) => has_order(&values),
            Taking::Quantile(_) => values.is_numeric() || values == DataType::Null,
        };
        defined.then(|| {
            let kept = Collected {
                taking: self,
                values,
                chunks: Vec::new(),
                starts: Vec::new(),
                len: 0,
                last: Vec::new(),
                before: Vec::new(),
            };
            Box::new(kept) as Box<dyn Accumulator>
        })
    }
}

/// No value.
const NONE: u32 = u32::MAX;

/// A column of values is not merged beyond so many bytes of text, or elements of lists.
const MERGED: usize = 256 << 20;

/// The values of each group.
struct Collected {
    taking: Taking,
    /// The type of values, without dictionaries and runs.
    values: DataType,
    chunks: Vec<ArrayRef>,
    /// The number of the first value of each chunk.
    starts: Vec<usize>,
    len: usize,
    /// The last value of each group.
    last: Vec<u32>,
    /// For each value, the previous one of the same group.
    before: Vec<u32>,
}

impl Collected {
    /// Takes in values with the groups that they are of.
    fn add(&mut self, groups: &[u32], values: ArrayRef) -> Result<(), Error> {
        if values.is_empty() {
            return Ok(());
        }
        let first = self.len;
        self.len += values.len();
        if self.len >= NONE as usize {
            return Err(Error::TooManyKeys);
        }
        for (number, &group) in (first..).zip(groups) {
            let last = &mut self.last[group as usize];
            self.before.push(std::mem::replace(last, place(number)));
        }
        self.chunks.push(values);
        self.starts.push(first);
        while let [.., large, small] = self.chunks.as_slice() {
            let fits = reach(large).saturating_add(reach(small)) <= MERGED;
            if large.len() > 2 * small.len() || !fits {
                break;
            }
            let merged = concat(&[large.as_ref(), small.as_ref()])?;
            self.chunks.truncate(self.chunks.len() - 2);
            self.chunks.push(merged);
            self.starts.pop();
        }
        Ok(())
    }

    /// The numbers of a group's values, the last one first.
    fn back(&self, group: usize) -> impl Iterator<Item = u32> {
        let mut at = self.last.get(group).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let number = (at != NONE).then_some(at)?;
            at = self.before[number as usize];
            Some(number)
        })
    }

    /// The values of groups, in order of arrival, and the start of each group's values.
    fn of(&self, range: Range<usize>) -> Result<(ArrayRef, Vec<usize>), Error> {
        let (mut numbers, mut starts) = (Vec::new(), vec![0]);
        for group in range {
            let start = numbers.len();
            numbers.extend(self.back(group));
            numbers[start..].reverse();
            starts.push(numbers.len());
        }
        Ok((self.gathered(numbers.into_iter().map(Some))?, starts))
    }

    /// Values by number; null where there is none.
    fn gathered(&self, numbers: impl Iterator<Item = Option<u32>>) -> Result<ArrayRef, Error> {
        let null = new_null_array(&self.values, 1);
        let mut chunks: Vec<&dyn Array> = vec![null.as_ref()];
        chunks.extend(self.chunks.iter().map(AsRef::as_ref));
        let places = numbers.map(|number| {
            let Some(number) = number else { return (0, 0) };
            let chunk = self
                .starts
                .partition_point(|&start| start <= number as usize);
            (chunk, number as usize - self.starts[chunk - 1])
        });
        let places: Vec<(usize, usize)> = places.collect();
        if places.is_empty() {
            return Ok(new_empty_array(&self.values));
        }
        Ok(interleave(&chunks, &places)?)
    }

    fn item(&self) -> FieldRef {
        Arc::new(Field::new("item", self.values.clone(), true))
    }

    fn lists(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        let (values, starts) = self.of(range)?;
        self.as_lists(values, &starts)
    }

    fn as_lists(&self, values: ArrayRef, starts: &[usize]) -> Result<ArrayRef, Error> {
        let offsets = starts
            .iter()
            .map(|&start| i32::try_from(start).map_err(|_| ArrowError::OffsetOverflowError(start)));
        let offsets = offsets.collect::<Result<Vec<_>, _>>()?;
        let offsets = OffsetBuffer::new(offsets.into());
        Ok(Arc::new(ListArray::try_new(
            self.item(),
            offsets,
            values,
            None,
        )?))
    }

    fn distinct(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        let (values, starts) = self.of(range)?;
        let mut numbers = Groups::new(std::slice::from_ref(&self.values))?
            .number(std::slice::from_ref(&values))?;
        let counts = starts.windows(2).map(|ends| {
            let numbers = &mut numbers[ends[0]..ends[1]];
            numbers.sort_unstable();
            numbers.chunk_by(|one, other| one == other).count()
        });
        Ok(Arc::new(Int64Array::from_iter_values(
            counts.map(|count| i64::try_from(count).unwrap_or(i64::MAX)),
        )))
    }

    fn top(&self, range: Range<usize>, most: usize) -> Result<ArrayRef, Error> {
        let (values, starts) = self.of(range)?;
        let rows = comparable(std::slice::from_ref(&values), true)?;
        let (mut chosen, mut ends) = (Vec::new(), vec![0]);
        for group in starts.windows(2) {
            let mut places: Vec<usize> = (group[0]..group[1]).collect();
            places.sort_by(|&one, &other| rows.row(one).cmp(&rows.row(other)));
            chosen.extend(places.into_iter().take(most).map(|at| (0, at)));
            ends.push(chosen.len());
        }
        let values = if chosen.is_empty() {
            new_empty_array(&self.values)
        } else {
            interleave(&[values.as_ref()], &chosen)?
        };
        self.as_lists(values, &ends)
    }

    fn quantile(&self, range: Range<usize>, share: f64) -> Result<ArrayRef, Error> {
        let (values, starts) = self.of(range)?;
        let values = cast(&values, &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>().values();
        let found = starts.windows(2).map(|ends| {
            let one_nan = |&value: &f64| if value.is_nan() { f64::NAN } else { value };
            let mut values: Vec<f64> = values[ends[0]..ends[1]].iter().map(one_nan).collect();
            values.sort_unstable_by(f64::total_cmp);
            between(&values, share)
        });
        Ok(Arc::new(found.collect::<Float64Array>()))
    }
}

/// The quantile of values in order.
fn between(values: &[f64], share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place among values that are in memory"
    )]
    let (place, along) = {
        let place = last as f64 * share;
        (place as usize, place.fract())
    };
    let (low, high) = (values[place], values[(place + 1).min(last)]);
    Some(if along <= 0.0 {
        low
    } else {
        low * (1.0 - along) + high * along
    })
}

impl Accumulator for Collected {
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.last.resize(len, NONE);
        let values = plain_column(column)?;
        let nulls = values
            .logical_nulls()
            .filter(|nulls| nulls.null_count() > 0 && self.taking != Taking::List);
        let Some(nulls) = nulls else {
            return self.add(groups, values);
        };
        let groups: Vec<u32> = nulls.valid_indices().map(|row| groups[row]).collect();
        let valid = BooleanArray::new(nulls.into_inner(), None);
        self.add(&groups, filter(&values, &valid)?)
    }

    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        match self.taking {
            Taking::List => self.lists(range),
            Taking::First => self.gathered(range.map(|group| self.back(group).last())),
            Taking::Last => self.gathered(range.map(|group| self.back(group).next())),
            Taking::Distinct => self.distinct(range),
            Taking::Top(most) => self.top(range, most),
            Taking::Quantile(share) => self.quantile(range, share),
        }
    }

    fn bytes_of(&self, range: &Range<usize>) -> usize {
        let values = range.clone().map(|group| self.back(group).count());
        let width = self
            .chunks
            .iter()
            .map(|chunk| widest(std::slice::from_ref(chunk)));
        match self.taking {
            Taking::List => values.sum::<usize>() * width.max().unwrap_or(0),
            Taking::Top(most) => {
                values.map(|count| count.min(most)).sum::<usize>() * width.max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    fn result_type(&self) -> DataType {
        match self.taking {
            Taking::List | Taking::Top(_) => self.state_type(),
            Taking::First | Taking::Last => self.values.clone(),
            Taking::Distinct => DataType::Int64,
            Taking::Quantile(_) => DataType::Float64,
        }
    }

    fn state(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        self.lists(range)
    }

    fn state_type(&self) -> DataType {
        DataType::List(self.item())
    }

    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error> {
        self.last.resize(len, NONE);
        let lists = states.as_list::<i32>();
        let offsets = lists.value_offsets();
        let (first, end) = (offsets[0], offsets[lists.len()]);
        let mut of_values = Vec::new();
        for (&group, ends) in groups.iter().zip(offsets.windows(2)) {
            of_values.extend((ends[0]..ends[1]).map(|_| group));
        }
        let length = usize::try_from(end - first).unwrap_or(0);
        let values = lists
            .values()
            .slice(usize::try_from(first).unwrap_or(0), length);
        self.add(&of_values, values)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "there are fewer than 2^32 values"
)]
fn place(number: usize) -> u32 {
    number as u32
}
