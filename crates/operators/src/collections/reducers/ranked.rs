//! The values of keys at some places in an order of their parts.
//!
//! Invariant: values that are alike in all parts of the order are ordered as rows, so the choice follows from the values.
//!
//! Cost: the values of a key are sorted, `O(n log n)` for `n` of them.

use std::cmp::Ordering;

use pointstamp_arrange::{Lists, Reducer as Kernel};
use pointstamp_rows::{Cells, Row, RowBuf};

use super::reduction::{Done, Place, Ranking};

/// A reducer to the values of each key at some places in an order.
pub(super) struct Ranked(pub(super) Ranking);

impl Kernel<Cells, Cells, Cells> for Ranked {
    fn reduce(&mut self, _: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        let mut chosen: Vec<(Row<'_>, i64)> = Vec::new();
        for index in 0..inputs.len() {
            let there = inputs.list(index).filter(|(_, diff)| *diff > 0);
            let mut values: Vec<_> = there
                .map(|(value, diff)| (self.keys(value), value, diff))
                .collect();
            values.sort_by(|(a, left, _), (b, right, _)| {
                self.order(a, b).then_with(|| left.cmp(right))
            });
            let (mut skipped, mut left) = (self.0.offset, self.0.count);
            chosen.clear();
            for (_, value, diff) in values {
                let there = u128::from(diff.unsigned_abs());
                let passed = there.min(skipped);
                skipped -= passed;
                let taken = (there - passed).min(left);
                left -= taken;
                if taken > 0 {
                    chosen.push((value, i64::try_from(taken).unwrap_or(i64::MAX)));
                }
                if left == 0 {
                    break;
                }
            }
            // Results of a key are in the order of rows.
            chosen.sort_by_key(|(value, _)| *value);
            for (value, diff) in &chosen {
                outputs.push(*value, *diff);
            }
            outputs.end();
        }
        Ok(())
    }
}

impl Ranked {
    /// The parts of a value that decide.
    fn keys(&self, value: Row<'_>) -> Vec<RowBuf> {
        let parts = self.0.by.iter().map(|place| {
            let mut part = RowBuf::default();
            part.cut(value, place.part);
            part
        });
        parts.collect()
    }

    fn order(&self, a: &[RowBuf], b: &[RowBuf]) -> Ordering {
        let parts = self.0.by.iter().zip(a.iter().zip(b));
        let mut orders = parts.map(|(place, (a, b))| one_part(*place, a.get(), b.get()));
        orders
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

fn one_part(place: Place, a: Row<'_>, b: Row<'_>) -> Ordering {
    match (a.is(Row::UNIT), b.is(Row::UNIT)) {
        (true, true) => Ordering::Equal,
        (true, false) if place.nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if place.nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        _ if place.descending => b.cmp(&a),
        _ => a.cmp(&b),
    }
}
