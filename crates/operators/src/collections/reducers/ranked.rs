//! The values of keys in an order of their parts, and those at some places in it.
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
            let (mut skipped, mut left) = (self.0.offset, self.0.count);
            chosen.clear();
            for value in sorted(&self.0.by, inputs, index) {
                let there = u128::from(value.diff.unsigned_abs());
                let passed = there.min(skipped);
                skipped -= passed;
                let taken = (there - passed).min(left);
                left -= taken;
                if taken > 0 {
                    chosen.push((value.row, i64::try_from(taken).unwrap_or(i64::MAX)));
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

/// A value with a positive count, and the parts of it that decide about its place.
pub(super) struct Placed<'a> {
    parts: Vec<RowBuf>,
    pub(super) row: Row<'a>,
    pub(super) diff: i64,
}

impl Placed<'_> {
    /// Returns the order of two values by some places, without their other parts.
    pub(super) fn order(&self, other: &Self, by: &[Place]) -> Ordering {
        let parts = by.iter().zip(self.parts.iter().zip(&other.parts));
        let mut orders = parts.map(|(place, (a, b))| one_part(*place, a.get(), b.get()));
        orders
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

/// Returns the values of a key in an order.
pub(super) fn sorted<'a>(by: &[Place], inputs: &'a Lists<Cells>, index: usize) -> Vec<Placed<'a>> {
    let there = inputs.list(index).filter(|(_, diff)| *diff > 0);
    let placed = there.map(|(row, diff)| {
        let parts = by.iter().map(|place| part_of(row, place.part)).collect();
        Placed { parts, row, diff }
    });
    let mut values: Vec<_> = placed.collect();
    values.sort_by(|a, b| a.order(b, by).then_with(|| a.row.cmp(&b.row)));
    values
}

/// Returns a part of a value; null where there is no such part.
pub(super) fn part_of(value: Row<'_>, part: usize) -> RowBuf {
    let mut found = RowBuf::of(Row::UNIT);
    if !found.cut(value, part) {
        found.copy(Row::UNIT);
    }
    found
}

fn one_part(place: Place, a: Row<'_>, b: Row<'_>) -> Ordering {
    match (a.is_none(), b.is_none()) {
        (true, true) => Ordering::Equal,
        (true, false) if place.nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if place.nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        _ if place.descending => b.cmp(&a),
        _ => a.cmp(&b),
    }
}
