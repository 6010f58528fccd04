//! Aggregates of several parts of values that are tuples, as a tuple.
//!
//! Invariant: a part that is null is left out; the result for no value is null, and a count 0.
//!
//! Cost: each part of the values is cut out and sorted, `O(n log n)` for `n` values of a key.

use pointstamp_arrange::{Lists, Reducer as Kernel};
use pointstamp_rows::{Cells, Row, RowBuf};

use super::reduction::{BoxedReducer, Done};

/// A reducer for each part of values that are tuples; the results are a tuple.
pub(super) struct Several(pub(super) Vec<Part>);

/// A reducer of one part of values.
pub(super) struct Part {
    pub(super) reducer: BoxedReducer,
    pub(super) index: usize,
    pub(super) is_count: bool,
}

impl Kernel<Cells, Cells, Cells> for Several {
    fn reduce(&mut self, keys: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        let mut made = Vec::with_capacity(self.0.len());
        for part in &mut self.0 {
            let own = parts_of(inputs, part.index);
            let mut results = Lists::default();
            part.reducer.reduce(keys, &own, &mut results)?;
            made.push((part.is_count, own, results));
        }
        let (mut row, mut parts) = (RowBuf::default(), Vec::with_capacity(made.len()));
        for index in 0..inputs.len() {
            parts.clear();
            for (is_count, own, results) in &made {
                let there = !own.range(index).is_empty();
                let result = results.list(index).next().filter(|_| there);
                let mut part = RowBuf::default();
                match result {
                    Some((value, _)) => part.copy(value),
                    None if *is_count => {
                        part.int(0);
                    }
                    None => part.copy(Row::UNIT),
                }
                parts.push(part);
            }
            row.tuple(&parts);
            outputs.push(row.get(), 1);
            outputs.end();
        }
        Ok(())
    }
}

/// One part of each value that is not None, in order and added up.
fn parts_of(inputs: &Lists<Cells>, part: usize) -> Lists<Cells> {
    let mut own = Lists::default();
    let mut values: Vec<(RowBuf, i64)> = Vec::new();
    for index in 0..inputs.len() {
        values.clear();
        for (value, diff) in inputs.list(index) {
            let mut row = RowBuf::default();
            if row.cut(value, part) && !row.get().is(Row::UNIT) {
                values.push((row, diff));
            }
        }
        values.sort_by(|(a, _), (b, _)| a.get().cmp(&b.get()));
        for same in values.chunk_by(|(a, _), (b, _)| a.get() == b.get()) {
            // Values that differ elsewhere may be one in this part: together they may be too many.
            let mut left: i128 = same.iter().map(|(_, diff)| i128::from(*diff)).sum();
            while left != 0 {
                let least = i128::from(i64::MIN);
                let diff = left.clamp(least, i64::MAX.into());
                own.push(same[0].0.get(), i64::try_from(diff).unwrap_or_default());
                left -= diff;
            }
        }
        own.end();
    }
    own
}
