//! Sums and counts of the values of keys, as diffs of a few records.
//!
//! Owns [`accumulate`]. It makes, of the rows of a key, records whose diffs add up to the number of rows, to the sum of each
//! part of the values, and to the number of its nulls. Adding up diffs is what an arrangement does: one of these records
//! keeps a few integers for a key, and not its values.
//!
//! A sum has up to 128 bits and a diff has 64, so that a value is written as four digits of 32 bits, all with its sign, and
//! the values' digits are added up. So the digits of values that come and go add up to 0, too.
//!
//! Invariant: the records of a key follow from the multiset of its values alone once they are consolidated, and there are
//! none where there is no value.
//!
//! Cost: linear in the updates of a message, which makes a few records for each of its keys. No state.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pointstamp_arrange::{Overflow, Rows};
use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::Authority;
use pointstamp_order::Point;
use pointstamp_rows::expressions::{Expr, Nulls, Projection};
use pointstamp_rows::terms::Plain;
use pointstamp_rows::{Cells, Cutter, Row, RowBuf};
use rustc_hash::FxHashMap;

use super::columns::eval;
use super::columns::plain::{PlainColumns, Shape};
use super::send;
use super::updates::{Builder, Updates};
use crate::Error;
use crate::typed::{Output, Typed};
use crate::unary::Unary;

/// The record whose diff is the number of rows of a key.
pub(super) const ROWS: i64 = 0;

/// The number of records that a part of the values has at most, of which the last are not used.
const PER_PART: usize = 8;

/// The digits of a sum, least first.
pub(super) const DIGITS: usize = 4;

/// The bits of a digit.
pub(super) const BITS: usize = 32;

/// The meaning of a record's diff, for a part.
pub(super) enum Sum {
    /// A digit of the sum.
    Digit(usize),
    /// The number of nulls.
    Nulls,
}

/// The record of a part and of what its diff adds up to.
fn record_of(part: usize, sum: &Sum) -> i64 {
    let which = match sum {
        Sum::Digit(digit) => *digit,
        Sum::Nulls => DIGITS,
    };
    i64::try_from(PER_PART * (part + 1) + which).unwrap_or(i64::MAX)
}

/// The part of a record, and what its diff adds up to; nothing of [`ROWS`].
pub(super) fn part_of(record: i64) -> Option<(usize, Sum)> {
    let record = usize::try_from(record).ok()?;
    let part = (record / PER_PART).checked_sub(1)?;
    Some(match record % PER_PART {
        digit @ 0..DIGITS => (part, Sum::Digit(digit)),
        _ => (part, Sum::Nulls),
    })
}

/// Makes of each row the pairs of a key and of records of the number of rows, and of the nulls of each value; of the values
/// that are marked, also of the sum, which are integers of up to 128 bits.
///
/// # Errors
///
/// Errors of building an operator. The operator fails with [`Error::Expression`] for a record without a result, and with
/// [`Overflow`] for a diff that leaves 64 bits.
pub fn accumulate(
    stream: &Typed<Updates>,
    key: &Expr,
    values: Vec<(Expr, bool)>,
    name: &str,
) -> Result<Typed<Updates>, Error> {
    let (values, sums): (Vec<_>, Vec<_>) = values.into_iter().unzip();
    let parts = Expr::Tuple(values.clone().into());
    let pair = Expr::Tuple([key.clone(), parts].into());
    let mut accumulating = Accumulating {
        key: key.clone(),
        values,
        pairs: Projection::new(pair, Nulls::Value),
        groups: Groups::new(sums),
    };
    let unary = Unary::new(stream, name, Pact::Pipeline)?;
    Ok(unary.on_messages(move |input, output| {
        while let Some((capability, updates)) = input.next()? {
            let mut made = Builder::default();
            for (time, indices) in updates.by_time(capability.time()) {
                accumulating.add(&updates, &indices)?;
                accumulating
                    .groups
                    .send(&time, &mut made, &capability, output)?;
            }
            send(&mut made, &capability, output)?;
        }
        Ok(())
    }))
}

struct Accumulating {
    key: Expr,
    values: Vec<Expr>,
    /// The pair of the key and the tuple of the values.
    pairs: Projection,
    groups: Groups,
}

impl Accumulating {
    /// Adds the updates at some indices.
    fn add(&mut self, updates: &Updates, indices: &[usize]) -> Result<(), BoxError> {
        let parts = updates
            .columns()
            .and_then(|columns| self.columns_of(columns));
        let Some((keys, parts)) = parts else {
            return self.add_rows(updates, indices);
        };
        let slots = indices.iter().map(|index| {
            let slot = self.groups.slot(keys.get(*index));
            self.groups.totals[slot] += i128::from(updates.diffs()[*index]);
            slot
        });
        let slots: Vec<usize> = slots.collect();
        for (part, values) in parts.iter().enumerate() {
            for (index, slot) in indices.iter().zip(&slots) {
                let diff = updates.diffs()[*index];
                self.groups.add(*slot, part, values.get(*index), diff);
            }
        }
        Ok(())
    }

    /// The keys and the parts of the values of columns; nothing where rows have to be looked at.
    fn columns_of<'a>(&self, columns: &'a PlainColumns) -> Option<(Cells, Vec<Part<'a>>)> {
        let parts = self.values.iter();
        let parts = parts.map(|value| Part::of(eval::shape(columns, value)?));
        let parts = parts.collect::<Option<Vec<_>>>()?;
        let keys = eval::shape(columns, &self.key)?.rows(columns.len());
        Some((keys, parts))
    }

    fn add_rows(&mut self, updates: &Updates, indices: &[usize]) -> Result<(), BoxError> {
        let (mut cutter, mut part) = (Cutter::default(), RowBuf::default());
        for index in indices {
            let update = updates.get(*index);
            let pair = self.pairs.apply(&[update.row]).map_err(Error::Expression)?;
            let Some((key, values)) = cutter.cut(pair) else {
                continue; // it is a pair
            };
            let slot = self.groups.slot(key);
            self.groups.totals[slot] += i128::from(update.diff);
            for index in 0..self.values.len() {
                part.cut(values, index);
                let value = Value::of(part.get());
                self.groups.add(slot, index, value, update.diff);
            }
        }
        Ok(())
    }
}

/// A value that is counted.
#[derive(Clone, Copy)]
enum Value {
    Null,
    /// A value that is no integer.
    Other,
    Int(i128),
}

impl Value {
    fn of(row: Row<'_>) -> Self {
        match row.number() {
            Some(Plain::Int(value)) => Value::Int(value.into()),
            Some(Plain::Wide(value)) => Value::Int(value),
            _ if row.is_none() => Value::Null,
            _ => Value::Other,
        }
    }
}

/// The values of a part for each row.
enum Part<'a> {
    Constant(Value),
    Column(&'a ArrayRef),
}

impl<'a> Part<'a> {
    fn of(shape: Shape<'a>) -> Option<Self> {
        match shape {
            Shape::Column(array) => Some(Part::Column(array)),
            Shape::Constant(row) => Some(Part::Constant(Value::of(row.get()))),
            Shape::Tuple(_) => None,
        }
    }

    #[inline]
    fn get(&self, index: usize) -> Value {
        match self {
            Part::Constant(value) => *value,
            Part::Column(array) if array.is_null(index) => Value::Null,
            Part::Column(array) => match array.data_type() {
                DataType::Int64 => {
                    Value::Int(array.as_primitive::<Int64Type>().value(index).into())
                }
                DataType::Decimal128(..) => {
                    Value::Int(array.as_primitive::<Decimal128Type>().value(index))
                }
                DataType::Null => Value::Null,
                _ => Value::Other,
            },
        }
    }
}

/// The totals of the keys of a message.
struct Groups {
    /// For each part, whether its sum is wanted.
    sums: Vec<bool>,
    slots: FxHashMap<Vec<u8>, usize>,
    /// The keys, each with the index of its totals.
    keys: Vec<(RowBuf, usize)>,
    /// For each key the number of rows, and for each part the sums of the digits and the number of nulls.
    totals: Vec<i128>,
    term: Vec<u8>,
}

impl Groups {
    fn new(sums: Vec<bool>) -> Self {
        Groups {
            sums,
            slots: FxHashMap::default(),
            keys: Vec::new(),
            totals: Vec::new(),
            term: Vec::new(),
        }
    }

    /// The index of the totals of a key.
    fn slot(&mut self, key: Row<'_>) -> usize {
        self.term.clear();
        key.put_term(&mut self.term);
        if let Some(slot) = self.slots.get(&self.term[..]) {
            return *slot;
        }
        let slot = self.totals.len();
        self.totals.resize(place_of(slot, self.sums.len()), 0);
        self.slots.insert(self.term.clone(), slot);
        self.keys.push((RowBuf::of(key), slot));
        slot
    }

    #[inline]
    fn add(&mut self, slot: usize, part: usize, value: Value, diff: i64) {
        let (at, diff) = (place_of(slot, part), i128::from(diff));
        match value {
            Value::Null => self.totals[at + DIGITS] += diff,
            Value::Int(value) if self.sums[part] => {
                let (mut left, mut at) = (value.unsigned_abs(), at);
                let diff = if value < 0 { -diff } else { diff };
                while left != 0 {
                    // A digit has 32 bits and a diff has 64.
                    self.totals[at] += i128::from(low(left)) * diff;
                    left >>= BITS;
                    at += 1;
                }
            }
            _ => {}
        }
    }

    /// Sends the totals, and begins again.
    fn send(
        &mut self,
        time: &Point,
        made: &mut Builder,
        authority: &impl Authority,
        output: &Output<Updates>,
    ) -> Result<(), BoxError> {
        let mut record = RowBuf::default();
        let mut give = |key: &RowBuf, which: i64, diff: i64| {
            if diff != 0 {
                made.push_pair(key.get(), record.int(which), time, diff);
                if made.is_full() {
                    return send(made, authority, output);
                }
            }
            Ok(())
        };
        for (key, slot) in &self.keys {
            give(key, ROWS, small(self.totals[*slot])?)?;
            for part in 0..self.sums.len() {
                let at = place_of(*slot, part);
                for digit in 0..DIGITS {
                    let diff = small(self.totals[at + digit])?;
                    give(key, record_of(part, &Sum::Digit(digit)), diff)?;
                }
                let nulls = small(self.totals[at + DIGITS])?;
                give(key, record_of(part, &Sum::Nulls), nulls)?;
            }
        }
        self.slots.clear();
        self.keys.clear();
        self.totals.clear();
        Ok(())
    }
}

/// A total as a diff.
fn small(total: i128) -> Result<i64, Overflow> {
    i64::try_from(total).map_err(|_| Overflow)
}

/// The place of the totals of a part, among those of the key at `slot`.
#[inline]
fn place_of(slot: usize, part: usize) -> usize {
    slot + 1 + (DIGITS + 1) * part
}

/// The last digit of a number.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    reason = "the other digits are taken later"
)]
fn low(number: u128) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_add_up_to_the_number_and_to_nothing_when_it_goes() {
        let mut groups = Groups::new(vec![true]);
        let slot = groups.slot(Row::UNIT);
        let numbers = [0, 1, -1, 1 << 32, -(1 << 40) + 3, i128::MAX, i128::MIN + 1];
        for number in numbers {
            groups.add(slot, 0, Value::Int(number), 1);
            let digits = &groups.totals[place_of(slot, 0)..][..DIGITS];
            let sum = digits
                .iter()
                .rev()
                .fold(0, |sum, digit| (sum << BITS) + digit);
            assert_eq!(sum, number);
            groups.add(slot, 0, Value::Int(number), -1);
            assert!(groups.totals.iter().all(|total| *total == 0));
        }
        for number in numbers {
            groups.add(slot, 0, Value::Int(number), 3);
        }
        for number in numbers.into_iter().rev() {
            groups.add(slot, 0, Value::Int(number), -3);
        }
        assert!(groups.totals.iter().all(|total| *total == 0));
    }

    #[test]
    fn records_name_their_part() {
        for part in [0, 1, 30] {
            for digit in 0..DIGITS {
                let found = part_of(record_of(part, &Sum::Digit(digit)));
                assert!(
                    matches!(found, Some((of, Sum::Digit(which))) if (of, which) == (part, digit))
                );
            }
            let found = part_of(record_of(part, &Sum::Nulls));
            assert!(matches!(found, Some((of, Sum::Nulls)) if of == part));
        }
        assert!(part_of(ROWS).is_none());
    }
}
