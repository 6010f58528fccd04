//! The functions of the values of a key that reductions compute.
//!
//! They read rows as bytes. Numbers that are neither integers of 64 bits nor floats, and values that rows do not order as
//! the host does, are left to the host ([`Exotic`]).

use std::num::NonZeroU128;
use std::rc::Rc;

use pointstamp_arrange::{Error, Lists, Reducer as Kernel, Rows as _};
use pointstamp_rows::{Cells, Row, RowBuf};

use super::arrange::Form;
use super::exotic::Exotic;
use super::reduce::Reducer;
use super::sums::Sum;

/// The result of a reduction for each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reduction {
    /// The key once.
    Distinct,
    /// The number of values.
    Count,
    /// The least value. With `any_order`, one that is always the same, of values that rows do not order as the host does.
    Min {
        /// True for the least row, whatever the host's order is.
        any_order: bool,
    },
    /// The greatest value.
    Max,
    /// The greatest values: so many.
    TopK(NonZeroU128),
    /// The sum.
    Sum {
        /// True for the values of a column of floats, in whose rows integers stand for the floats that they equal.
        floats: bool,
    },
    /// The mean.
    Mean {
        /// As in [`Reduction::Sum`].
        floats: bool,
    },
    /// An aggregate of each of several parts of values that are tuples, as a tuple. A part that is null is left out; of no
    /// value the result is null, and of a count 0.
    Several(Vec<(Aggregate, usize)>),
    /// An aggregate of values of so many columns, in which nulls and NaN are as in Arrow.
    OfColumns(Aggregate, usize),
    /// The greatest values of so many columns, in which nulls and NaN are as in Arrow.
    TopKOfColumns(NonZeroU128, usize),
}

/// An aggregate of a part of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// The number of values.
    Count,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The sum.
    Sum {
        /// True for a column of floats.
        floats: bool,
    },
    /// The mean.
    Mean {
        /// True for a column of floats.
        floats: bool,
    },
}

/// Makes the reducer of the named operator, and says what its results are.
pub fn reducer(reduction: Reduction, exotic: &Rc<dyn Exotic>, name: &str) -> (Reducer, Form) {
    let form = match reduction {
        Reduction::Distinct => Form::Key,
        _ => Form::Pair,
    };
    let of_aggregate = |aggregate| aggregate_reducer(aggregate, exotic, name);
    let reducer = match reduction {
        Reduction::Distinct => Reducer::new(Distinct),
        Reduction::Count => Reducer::new(count),
        Reduction::Min { any_order: true } => Reducer::new(least_of_any),
        Reduction::Min { any_order: false } => Reducer::new(Min(Rc::clone(exotic))),
        Reduction::Max => Reducer::new(Top::greatest(exotic)),
        Reduction::TopK(count) => Reducer::new(Top::of(count, exotic)),
        Reduction::Sum { floats } => Reducer::new(Sum::new(name, exotic, false, floats)),
        Reduction::Mean { floats } => Reducer::new(Sum::new(name, exotic, true, floats)),
        Reduction::Several(parts) => {
            let parts = parts.into_iter().map(|(aggregate, index)| Part {
                reducer: Box::new(Known::new(
                    Missing::of(aggregate),
                    1,
                    of_aggregate(aggregate),
                )),
                index,
                is_count: aggregate == Aggregate::Count,
            });
            Reducer::new(Several(parts.collect()))
        }
        Reduction::OfColumns(aggregate, width) => Reducer::new(Known::new(
            Missing::of(aggregate),
            width,
            of_aggregate(aggregate),
        )),
        Reduction::TopKOfColumns(count, width) => {
            let top = Box::new(Top::of(count, exotic));
            Reducer::new(Known::new(Missing::Least, width, top))
        }
    };
    (reducer, form)
}

type BoxedReducer = Box<dyn Kernel<Cells, Cells, Cells>>;

fn aggregate_reducer(aggregate: Aggregate, exotic: &Rc<dyn Exotic>, name: &str) -> BoxedReducer {
    match aggregate {
        Aggregate::Count => Box::new(count),
        Aggregate::Min => Box::new(Min(Rc::clone(exotic))),
        Aggregate::Max => Box::new(Top::greatest(exotic)),
        Aggregate::Sum { floats } => Box::new(Sum::new(name, exotic, false, floats)),
        Aggregate::Mean { floats } => Box::new(Sum::new(name, exotic, true, floats)),
    }
}

type Done = Result<(), Error>;

/// What several reducers make of one part each of values that are tuples, as a tuple. A part that is None is left out; of
/// nothing there is None, and a count of 0.
struct Several(Vec<Part>);

/// A reducer of one part of values.
struct Part {
    reducer: BoxedReducer,
    index: usize,
    is_count: bool,
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

/// What a reducer makes of the values of columns, in which nulls and NaN are as in Arrow.
///
/// A value of several columns is null or NaN where the first of them is: the others are compared where that is equal.
struct Known {
    reducer: BoxedReducer,
    /// The number of columns; the value of one is no tuple.
    width: usize,
    missing: Missing,
    /// The result of nulls alone.
    null: RowBuf,
}

/// What becomes of nulls and NaN.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// Nulls are skipped; a sum of NaN is NaN.
    SkipNull,
    /// Nulls are skipped, and NaN is where there are others.
    SkipBoth,
    /// Both are less than all others, and null less than NaN.
    Least,
}

impl Missing {
    fn of(aggregate: Aggregate) -> Self {
        match aggregate {
            Aggregate::Min | Aggregate::Max => Missing::SkipBoth,
            Aggregate::Count | Aggregate::Sum { .. } | Aggregate::Mean { .. } => Missing::SkipNull,
        }
    }
}

impl Known {
    fn new(missing: Missing, width: usize, reducer: BoxedReducer) -> Self {
        let mut null = RowBuf::of(Row::UNIT);
        if width > 1 {
            let nulls = vec![null.clone(); width];
            null.tuple(&nulls);
        }
        Known {
            reducer,
            width,
            missing,
            null,
        }
    }

    /// How many values at the beginning of a list are null, and at its end NaN.
    fn missing(&self, inputs: &Lists<Cells>, index: usize) -> (usize, usize) {
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

impl Kernel<Cells, Cells, Cells> for Known {
    fn reduce(&mut self, keys: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        let missing: Vec<_> = (0..inputs.len())
            .map(|index| self.missing(inputs, index))
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
            // What reducers make of no value differs.
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

/// Each key once.
struct Distinct;

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

/// How many values a key has.
fn count(keys: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
    let mut row = RowBuf::default();
    for index in 0..inputs.len() {
        match (total(inputs, index), i64::try_from(total(inputs, index))) {
            (0, _) => {}
            (_, Ok(total)) => outputs.push(row.int(total), 1),
            (total, Err(_)) => {
                let key = RowBuf::of(keys.get(index));
                let error = crate::Error::CountTooLarge { key, total };
                return Err(Error::Caller(error.into()));
            }
        }
        outputs.end();
    }
    Ok(())
}

fn total(inputs: &Lists<Cells>, index: usize) -> i128 {
    let diffs = &inputs.diffs()[inputs.range(index)];
    diffs.iter().map(|diff| i128::from(*diff)).sum()
}

/// The least value of each key.
struct Min(Rc<dyn Exotic>);

impl Kernel<Cells, Cells, Cells> for Min {
    fn reduce(&mut self, _: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        for index in 0..inputs.len() {
            let mut there = values(inputs, index).map(|(value, _)| value);
            if let Some(least) = there.next() {
                check_order(&*self.0, "min", least, there)?;
                outputs.push(least, 1);
            }
            outputs.end();
        }
        Ok(())
    }
}

/// The least row of each key: of values that rows do not order as Python does, one that is always the same.
#[allow(clippy::unnecessary_wraps, reason = "a reducer may fail")]
fn least_of_any(_: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
    for index in 0..inputs.len() {
        if let Some((least, _)) = values(inputs, index).next() {
            outputs.push(least, 1);
        }
        outputs.end();
    }
    Ok(())
}

/// The values of a key that are there, least first.
fn values(inputs: &Lists<Cells>, index: usize) -> impl DoubleEndedIterator<Item = (Row<'_>, i64)> {
    inputs.list(index).filter(|(_, diff)| *diff > 0)
}

/// The greatest values of each key: so many, where one counts once or as often as it is there.
struct Top {
    count: NonZeroU128,
    times: Times,
    exotic: Rc<dyn Exotic>,
}

impl Top {
    /// Of the greatest value, once.
    fn greatest(exotic: &Rc<dyn Exotic>) -> Self {
        Top {
            count: NonZeroU128::MIN,
            times: Times::Once,
            exotic: Rc::clone(exotic),
        }
    }

    /// Of so many values.
    fn of(count: NonZeroU128, exotic: &Rc<dyn Exotic>) -> Self {
        Top {
            count,
            times: Times::AsOften,
            exotic: Rc::clone(exotic),
        }
    }
}

#[derive(PartialEq, Eq)]
enum Times {
    Once,
    AsOften,
}

impl Kernel<Cells, Cells, Cells> for Top {
    fn reduce(&mut self, _: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        for index in 0..inputs.len() {
            let mut left = self.count.get();
            let (mut there, mut kinds) = (values(inputs, index).rev(), 0);
            while let Some((value, diff)) = there.next() {
                let (name, taken) = match self.times {
                    Times::Once => ("max", 1),
                    Times::AsOften => (
                        "top_k",
                        i64::try_from(left).map_or(diff, |left| diff.min(left)),
                    ),
                };
                outputs.push(value, taken);
                left -= u128::from(taken.unsigned_abs());
                kinds += 1;
                if left == 0 {
                    // Each that is taken is to be greater than each other. They are sorted as rows, so it is enough that
                    // the least taken is greater than each other, and that the greatest other is less than each taken.
                    check_order(&*self.exotic, name, value, there.map(|(other, _)| other))?;
                    let all = || values(inputs, index).rev().map(|(value, _)| value);
                    if let Some(other) = all().nth(kinds) {
                        check_order(&*self.exotic, name, other, all().take(kinds))?;
                    }
                    break;
                }
            }
            outputs.end();
        }
        Ok(())
    }
}

/// Refuses a value and others of which the host orders one pair, and rows do not.
fn check_order<'a>(
    exotic: &dyn Exotic,
    name: &str,
    value: Row<'a>,
    mut others: impl Iterator<Item = Row<'a>>,
) -> Done {
    if !value.may_be_unordered() {
        return Ok(());
    }
    match others.find(|other| value.is_unordered_with(*other)) {
        Some(other) => exotic
            .check_order(name, value, other)
            .map_err(Error::Caller),
        None => Ok(()),
    }
}
