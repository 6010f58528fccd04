//! Reductions of values of columns, in which nulls are skipped.
//!
//! Owns the rule for nulls, around a reducer that knows none. NaN is a value like others: the greatest number.
//!
//! Invariant: the values of a key ascend, so that its nulls are the first of them.
//!
//! Cost: one check of each key without nulls; a copy of the values of the others.

use pointstamp_arrange::{Lists, Reducer as Kernel};
use pointstamp_rows::{Cells, Row, RowBuf};

use super::reduction::{BoxedReducer, Done};

/// A reducer of the values of columns, in which nulls are skipped.
///
/// A value of several columns is null where the first of them is: the others are compared where that is equal.
pub(super) struct OfColumns {
    reducer: BoxedReducer,
    /// The number of columns; the value of one is no tuple.
    width: usize,
    /// The result of nulls alone.
    null: RowBuf,
}

impl OfColumns {
    pub(super) fn new(width: usize, reducer: BoxedReducer) -> Self {
        let mut null = RowBuf::of(Row::UNIT);
        if width > 1 {
            let nulls = vec![null.clone(); width];
            null.tuple(&nulls);
        }
        OfColumns {
            reducer,
            width,
            null,
        }
    }

    /// Returns how many values at the beginning of a list are null.
    fn count_nulls(&self, inputs: &Lists<Cells>, index: usize) -> usize {
        let mut first = RowBuf::default();
        let mut is_null = |value: Row<'_>| match self.width {
            1 => value.is_none(),
            _ => first.cut(value, 0) && first.get().is_none(),
        };
        let values = inputs.list(index).map(|(value, _)| value);
        values.take_while(|value| is_null(*value)).count()
    }
}

impl Kernel<Cells, Cells, Cells> for OfColumns {
    fn reduce(&mut self, keys: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        let nulls: Vec<_> = (0..inputs.len())
            .map(|index| self.count_nulls(inputs, index))
            .collect();
        if nulls.iter().all(|none| *none == 0) {
            return self.reducer.reduce(keys, inputs, outputs);
        }
        let mut known = Lists::default();
        for (index, nulls) in nulls.iter().enumerate() {
            for (value, diff) in inputs.list(index).skip(*nulls) {
                known.push(value, diff);
            }
            known.end();
        }
        let mut results = Lists::default();
        self.reducer.reduce(keys, &known, &mut results)?;
        for (index, nulls) in nulls.iter().enumerate() {
            // The results of reducers for no value differ, so that they are not asked.
            let some = !known.range(index).is_empty();
            let mut made = results.list(index).filter(|_| some).peekable();
            if made.peek().is_none() && inputs.list(index).take(*nulls).any(|(_, diff)| diff > 0) {
                outputs.push(self.null.get(), 1);
            }
            made.for_each(|(value, diff)| outputs.push(value, diff));
            outputs.end();
        }
        Ok(())
    }
}
