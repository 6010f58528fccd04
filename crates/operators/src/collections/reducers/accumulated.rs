//! Sums, counts and means of parts of values, from the diffs of the records that `accumulate` makes.
//!
//! Invariant: a null is left out; the sum and the mean of no value are null, and the count is 0.
//!
//! Cost: linear in the records of a key, which are a few for each part.

use pointstamp_arrange::{Lists, Reducer as Kernel};
use pointstamp_rows::terms::{Plain, Writer};
use pointstamp_rows::{Cells, Row, RowBuf};

use super::reduction::{Accumulation, Done};
use crate::collections::accumulate::{BITS, Sum, part_of};

/// A reducer to a tuple of totals, each of a part.
pub(super) struct Accumulated(pub(super) Vec<(Accumulation, usize)>);

/// The totals of a part.
#[derive(Clone, Copy, Default)]
struct Totals {
    /// The sum; the greatest integer of 128 bits, which no column has room for, where it has more.
    sum: i128,
    nulls: i128,
}

impl Kernel<Cells, Cells, Cells> for Accumulated {
    fn reduce(&mut self, _: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        let parts = self.0.iter().map(|(_, part)| part + 1).max();
        let mut totals = vec![Totals::default(); parts.unwrap_or_default()];
        let mut results = vec![RowBuf::default(); self.0.len()];
        let mut row = RowBuf::default();
        for index in 0..inputs.len() {
            totals.fill(Totals::default());
            let mut rows = 0;
            for (record, diff) in inputs.list(index) {
                let Some(Plain::Int(record)) = record.number() else {
                    continue; // records are integers
                };
                let diff = i128::from(diff);
                match part_of(record) {
                    None => rows = diff,
                    Some((part, sum)) => {
                        let Some(total) = totals.get_mut(part) else {
                            continue;
                        };
                        match sum {
                            Sum::Nulls => total.nulls = diff,
                            Sum::Digit(digit) => {
                                total.sum = diff
                                    .checked_mul(1 << (BITS * digit))
                                    .and_then(|digit| total.sum.checked_add(digit))
                                    .unwrap_or(i128::MAX);
                            }
                        }
                    }
                }
            }
            for ((what, part), result) in self.0.iter().zip(&mut results) {
                let Totals { sum, nulls } = totals[*part];
                let count = rows - nulls;
                match what {
                    Accumulation::Count => int(count, result),
                    _ if count == 0 => result.copy(Row::UNIT),
                    Accumulation::Sum => int(sum, result),
                    Accumulation::Mean => {
                        result.float(quotient(sum, count));
                    }
                }
            }
            row.tuple(&results);
            outputs.push(row.get(), 1);
            outputs.end();
        }
        Ok(())
    }
}

/// Writes an integer.
fn int(value: i128, row: &mut RowBuf) {
    if let Ok(value) = i64::try_from(value) {
        row.int(value);
        return;
    }
    let written = row.other_term(|term| -> Result<(), std::convert::Infallible> {
        let mut writer = Writer::new(term);
        writer.int(value);
        writer.end();
        Ok(())
    });
    match written {
        Ok(_) => {}
    }
}

/// The float nearest to the quotient of two integers, of which the second is not 0.
#[allow(
    clippy::cast_precision_loss,
    reason = "all bits that are lost are looked at first"
)]
fn quotient(sum: i128, count: i128) -> f64 {
    let (of, by) = (sum.unsigned_abs(), count.unsigned_abs());
    let (mut whole, mut rest) = (of / by, of % by);
    let mut scale = 1.0;
    // With 55 bits, a last bit that is set for all that follow it decides how the first 53 are rounded.
    while whole < 1 << 55 && rest != 0 {
        rest <<= 1;
        whole = whole << 1 | u128::from(rest >= by);
        rest -= if rest >= by { by } else { 0 };
        scale /= 2.0;
    }
    let magnitude = (whole | u128::from(rest != 0)) as f64 * scale;
    if (sum < 0) == (count < 0) {
        magnitude
    } else {
        0.0 - magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::quotient;

    #[test]
    #[allow(
        clippy::cast_precision_loss,
        clippy::float_cmp,
        reason = "the results are exact"
    )]
    fn quotients_are_the_nearest_floats() {
        for sum in -50..50_i32 {
            for count in (-7..8_i32).filter(|count| *count != 0) {
                let expected = f64::from(sum) / f64::from(count);
                assert_eq!(quotient(sum.into(), count.into()), expected);
            }
        }
        // Half of an even number above 2^54, and numbers around what is between two floats.
        let between = (1_i128 << 53) + 1;
        assert_eq!(quotient(between, 1), (1_i128 << 53) as f64);
        assert_eq!(quotient(between * 3 + 1, 3), ((1_i128 << 53) + 2) as f64);
        assert_eq!(quotient(between * 3 - 1, 3), (1_i128 << 53) as f64);
        assert_eq!(quotient(1, 3), 1.0 / 3.0);
        assert_eq!(quotient(-(1 << 100), 1 << 50), -((1_i128 << 50) as f64));
    }
}
