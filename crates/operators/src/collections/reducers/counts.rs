//! Counts of the values of keys, and keys that have any, once or as often.
//!
//! Cost: linear in the number of unlike values.

use pointstamp_arrange::{Error, Lists, Reducer as Kernel, Rows as _};
use pointstamp_rows::{Cells, Row, RowBuf};

use super::reduction::Done;

/// Each key once.
pub(super) struct Distinct;

impl Kernel<Cells, Cells, Cells> for Distinct {
    fn reduce(&mut self, _: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        for index in 0..inputs.len() {
            if total(inputs, index) > 0 {
                outputs.push(Row::UNIT, 1);
            }
            outputs.end();
        }
        Ok(())
    }

    fn once(&self) -> Option<Cells> {
        let mut unit = Cells::default();
        unit.push(Row::UNIT);
        Some(unit)
    }
}

/// Each key as often as it is there; not where its count is negative.
pub(super) struct Positive;

impl Kernel<Cells, Cells, Cells> for Positive {
    fn reduce(&mut self, keys: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        for index in 0..inputs.len() {
            let count = total(inputs, index);
            if count > 0 {
                let diff = i64::try_from(count).map_err(|_| too_large(keys, index, count))?;
                outputs.push(Row::UNIT, diff);
            }
            outputs.end();
        }
        Ok(())
    }
}

#[cold]
fn too_large(keys: &Cells, index: usize, total: i128) -> Error {
    let key = RowBuf::of(keys.get(index));
    Error::Caller(crate::Error::CountTooLarge { key, total }.into())
}

/// Writes the number of values of each key.
pub(super) fn count(keys: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
    let mut row = RowBuf::default();
    for index in 0..inputs.len() {
        match (total(inputs, index), i64::try_from(total(inputs, index))) {
            (0, _) => {}
            (_, Ok(total)) => outputs.push(row.int(total), 1),
            (total, Err(_)) => return Err(too_large(keys, index, total)),
        }
        outputs.end();
    }
    Ok(())
}

/// Writes the number of unlike values of each key. Equal values follow each other.
#[allow(clippy::unnecessary_wraps, reason = "a reducer may fail")]
pub(super) fn distinct_count(_: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
    let mut row = RowBuf::default();
    for index in 0..inputs.len() {
        let mut unlike = 0;
        let mut before: Option<Row<'_>> = None;
        for (value, diff) in inputs.list(index) {
            if diff > 0 && before != Some(value) {
                unlike += 1;
                before = Some(value);
            }
        }
        outputs.push(row.int(unlike), 1);
        outputs.end();
    }
    Ok(())
}

/// Returns the number of values of a key.
fn total(inputs: &Lists<Cells>, index: usize) -> i128 {
    let diffs = &inputs.diffs()[inputs.range(index)];
    diffs.iter().map(|diff| i128::from(*diff)).sum()
}
