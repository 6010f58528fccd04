//! Reductions of values of columns, in which nulls and NaN are as in Arrow.
//!
//! Owns the rule for nulls and NaN ([`Missing`]), around a reducer that knows neither.
//!
//! Invariant: the values of a key ascend, so that its nulls are the first of them and its NaN the last.
//!
//! Cost: two checks of each key whose values have neither; a copy of the others.

use pointstamp_arrange::{Lists, Reducer as Kernel};
use pointstamp_rows::{Cells, Row, RowBuf};

use super::reduction::{Aggregate, BoxedReducer, Done};

/// A reducer of the values of columns, in which nulls and NaN are as in Arrow.
///
/// A value of several columns is null or NaN where the first of them is: the others are compared where that is equal.
pub(super) struct OfColumns {
    reducer: BoxedReducer,
    /// The number of columns; the value of one is no tuple.
    width: usize,
    missing: Missing,
    /// The result of nulls alone.
    null: RowBuf,
}

/// The treatment of nulls and NaN.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Nulls are skipped; a sum of NaN is NaN.
    SkipNull,
    /// Nulls are skipped, and NaN is where there are others.
    SkipBoth,
    /// Both are less than all others, and null less than NaN.
    Least,
}

impl Missing {
    pub(super) fn of(aggregate: Aggregate) -> Self {
        match aggregate {
            Aggregate::Min | Aggregate::Max => Missing::SkipBoth,
            Aggregate::Count | Aggregate::Sum { .. } | Aggregate::Mean { .. } => Missing::SkipNull,
        }
    }
}

impl OfColumns {
    pub(super) fn new(missing: Missing, width: usize, reducer: BoxedReducer) -> Self {
        let mut null = RowBuf::of(Row::UNIT);
        if width > 1 {
            let nulls = vec![null.clone(); width];
            null.tuple(&nulls);
        }
        OfColumns {
            reducer,
            width,
            missing,
            null,
        }
    }

    /// Returns how many values at the beginning of a list are null, and at its end NaN.
    fn count_missing(&self, inputs: &Lists<Cells>, index: usize) -> (usize, usize) {
        let mut first = RowBuf::default();
        let mut is = |value: Row<'_>, null: bool| {
            let test = |row: Row<'_>| if null { row.is_none() } else { row.is_nan() };
            match self.width {
                1 => test(value),
                _ => first.cut(value, 0) && test(first.get()),
            }
        };
        let values = inputs.list(index).map(|(value, _)| value);
        let nulls = values.take_while(|value| is(*value, true)).count();
        let values = inputs.list(index).rev().map(|(value, _)| value);
        let nans = values.take_while(|value| is(*value, false));
        (nulls, nans.count())
    }
}

impl Kernel<Cells, Cells, Cells> for OfColumns {
    fn reduce(&mut self, keys: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        let missing: Vec<_> = (0..inputs.len())
            .map(|index| self.count_missing(inputs, index))
            .collect();
        if missing.iter().all(|none| *none == (0, 0)) {
            return self.reducer.reduce(keys, inputs, outputs);
        }
        let mut known = Lists::default();
        for (index, (nulls, nans)) in missing.iter().enumerate() {
            let end = inputs.range(index).len() - nans;
            let list = || inputs.list(index);
            let others = list().take(end).skip(*nulls).any(|(_, diff)| diff > 0);
            if self.missing == Missing::Least {
                let first = list().take(*nulls).chain(list().skip(end));
                first.for_each(|(value, diff)| known.push(value, diff));
            }
            for (value, diff) in list().take(end).skip(*nulls) {
                known.push(value, diff);
            }
            let skips = self.missing == Missing::SkipBoth && others;
            if !skips && self.missing != Missing::Least {
                list()
                    .skip(end)
                    .for_each(|(value, diff)| known.push(value, diff));
            }
            known.end();
        }
        let mut results = Lists::default();
        self.reducer.reduce(keys, &known, &mut results)?;
        for (index, (nulls, _)) in missing.iter().enumerate() {
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
