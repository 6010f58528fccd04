//! What reductions compute of the values of a key: natively, or through a function of the user's.
//!
//! A native reducer reads rows as bytes. It attaches to the interpreter only for numbers that are neither integers of 64
//! bits nor floats (`Decimal`, `Fraction`, larger integers). A function is called for many keys in one attach.

use crate::collections::values::{FromPython, ToPython};
use std::num::NonZeroU128;

use pointstamp_arrange::{Error, Lists, Reducer, Rows as _};
use pointstamp_engine::error::BoxError;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::given::diff_of;
use super::sums::Sum;
use crate::gil::{Held, attached};
use crate::iterables::results_of;
use crate::kinds::Reduction;
use crate::raised::{Raised, shown};
use crate::tools::Tools;
use pointstamp_rows::{Cells, Row, RowBuf};

/// A reducer of rows of Python values.
pub(crate) struct Rows(Box<dyn Reducer<Cells, Cells, Cells>>);

impl Reducer<Cells, Cells, Cells> for Rows {
    fn reduce(&mut self, keys: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        self.0.reduce(keys, inputs, outputs)
    }

    fn once(&self) -> Option<Cells> {
        self.0.once()
    }
}

/// What the results of a reduction are, as records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The key and the value.
    Pair,
    /// The key: the value says nothing.
    Key,
}

/// The number of values that `top_k` keeps. No key has as many as it takes to pass 128 bits: more than that is all.
fn most(count: &Bound<'_, PyAny>) -> NonZeroU128 {
    count.extract().unwrap_or(NonZeroU128::MAX)
}

/// The reducer of this kind, and what its results are.
pub(crate) fn of_kind(
    kind: Reduction,
    argument: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<(Rows, Form)> {
    let function = || Held::new(argument.clone().unbind());
    let name = name.to_owned();
    let reducer: Box<dyn Reducer<Cells, Cells, Cells>> = match kind {
        Reduction::Distinct => Box::new(Distinct),
        Reduction::Threshold => Box::new(Threshold(function())),
        Reduction::Count | Reduction::CountByKey => Box::new(count),
        Reduction::Min => match argument.extract::<Option<bool>>()? {
            Some(true) => Box::new(least_of_any),
            _ => Box::new(min),
        },
        Reduction::Max => Box::new(MAX),
        Reduction::Aggregate => {
            let wanted: Vec<(Reduction, usize)> = argument.extract()?;
            let parts = wanted.into_iter().map(|(kind, part)| {
                Ok(Part {
                    reducer: Box::new(Known::new(kind, 1, reducer_of_part(kind, &name)?)),
                    index: part,
                    is_count: kind == Reduction::Count,
                })
            });
            Box::new(Several(parts.collect::<PyResult<_>>()?))
        }
        Reduction::OfColumns => {
            let (kind, width) = argument.extract()?;
            Box::new(Known::new(kind, width, reducer_of_part(kind, &name)?))
        }
        Reduction::TopKOfColumns => {
            let (count, width): (Bound<'_, PyAny>, usize) = argument.extract()?;
            let top = Box::new(Top(most(&count), Times::AsOften));
            Box::new(Known::new(kind, width, top))
        }
        Reduction::TopK => Box::new(Top(most(argument), Times::AsOften)),
        Reduction::Sum => Box::new(Sum::new(&name)),
        Reduction::Mean => Box::new(Sum::new(&name).mean()),
        Reduction::SumOfFloats => Box::new(Sum::new(&name).of_floats()),
        Reduction::MeanOfFloats => Box::new(Sum::new(&name).mean().of_floats()),
        Reduction::Reduce => Box::new(Function {
            function: function(),
            name,
        }),
    };
    let form = match kind {
        Reduction::Distinct | Reduction::Threshold => Form::Key,
        _ => Form::Pair,
    };
    Ok((Rows(reducer), form))
}

type Done = Result<(), Error>;

/// The greatest value, once.
const MAX: Top = Top(NonZeroU128::MIN, Times::Once);

/// The reducer of one part of values among several.
fn reducer_of_part(kind: Reduction, name: &str) -> PyResult<Box<dyn Reducer<Cells, Cells, Cells>>> {
    Ok(match kind {
        Reduction::Count => Box::new(count),
        Reduction::Min => Box::new(min),
        Reduction::Max => Box::new(MAX),
        Reduction::Sum => Box::new(Sum::new(name)),
        Reduction::Mean => Box::new(Sum::new(name).mean()),
        Reduction::SumOfFloats => Box::new(Sum::new(name).of_floats()),
        Reduction::MeanOfFloats => Box::new(Sum::new(name).mean().of_floats()),
        _ => {
            return Err(PyTypeError::new_err(format!(
                "{} is not computed of a part of values",
                kind.label()
            )));
        }
    })
}

/// What several reducers make of one part each of values that are tuples, as a tuple. A part that is None is left out; of
/// nothing there is None, and a count of 0.
struct Several(Vec<Part>);

/// A reducer of one part of values.
struct Part {
    reducer: Box<dyn Reducer<Cells, Cells, Cells>>,
    index: usize,
    is_count: bool,
}

impl Reducer<Cells, Cells, Cells> for Several {
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
    reducer: Box<dyn Reducer<Cells, Cells, Cells>>,
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

impl Known {
    fn new(kind: Reduction, width: usize, reducer: Box<dyn Reducer<Cells, Cells, Cells>>) -> Self {
        let mut null = RowBuf::of(Row::UNIT);
        if width > 1 {
            let nulls = vec![null.clone(); width];
            null.tuple(&nulls);
        }
        let missing = match kind {
            Reduction::TopKOfColumns => Missing::Least,
            Reduction::Min | Reduction::Max => Missing::SkipBoth,
            _ => Missing::SkipNull,
        };
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

impl Reducer<Cells, Cells, Cells> for Known {
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

impl Reducer<Cells, Cells, Cells> for Distinct {
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
            (total, Err(_)) => return Err(Error::Caller(too_many(keys.get(index), total))),
        }
        outputs.end();
    }
    Ok(())
}

/// The error of a count that is no integer of 64 bits.
#[cold]
fn too_many(key: Row<'_>, total: i128) -> BoxError {
    let error = attached(|py| match key.decode(py) {
        Ok(key) => PyOverflowError::new_err(format!(
            "count: the key {} has {total} values, and counts have 64 bits: updates want smaller differences",
            shown(&key)
        )),
        Err(error) => error,
    });
    Raised::by("count", error)
}

fn total(inputs: &Lists<Cells>, index: usize) -> i128 {
    let diffs = &inputs.diffs()[inputs.range(index)];
    diffs.iter().map(|diff| i128::from(*diff)).sum()
}

fn min(_: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
    for index in 0..inputs.len() {
        let mut there = values(inputs, index).map(|(value, _)| value);
        if let Some(least) = there.next() {
            check_order("min", least, there)?;
            outputs.push(least, 1);
        }
        outputs.end();
    }
    Ok(())
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
struct Top(NonZeroU128, Times);

#[derive(PartialEq, Eq)]
enum Times {
    Once,
    AsOften,
}

impl Reducer<Cells, Cells, Cells> for Top {
    fn reduce(&mut self, _: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        for index in 0..inputs.len() {
            let mut left = self.0.get();
            let (mut there, mut kinds) = (values(inputs, index).rev(), 0);
            while let Some((value, diff)) = there.next() {
                let (name, taken) = match self.1 {
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
                    check_order(name, value, there.map(|(other, _)| other))?;
                    let all = || values(inputs, index).rev().map(|(value, _)| value);
                    if let Some(other) = all().nth(kinds) {
                        check_order(name, other, all().take(kinds))?;
                    }
                    break;
                }
            }
            outputs.end();
        }
        Ok(())
    }
}

/// Refuses a value and others of which Python orders one pair, and rows do not.
fn check_order<'a>(name: &str, value: Row<'a>, mut others: impl Iterator<Item = Row<'a>>) -> Done {
    if !value.may_be_unordered() {
        return Ok(());
    }
    let Some(other) = others.find(|other| value.is_unordered_with(*other)) else {
        return Ok(());
    };
    let ordered = attached(|py| {
        let (value, other) = (value.decode(py)?, other.decode(py)?);
        match value.lt(&other) {
            Err(error) if error.is_instance_of::<PyTypeError>(py) => Ok(()), // any order will do
            Err(error) => Err(error),
            Ok(_) => Err(PyTypeError::new_err(format!(
                "{name} cannot tell which of {} and {} is greater: values of such a class are kept as their pickles; \
                 map them to numbers, strings, tuples or frozen dataclasses",
                shown(&value),
                shown(&other)
            ))),
        }
    });
    ordered.map_err(|error| Error::Caller(Raised::here(error)))
}

/// How often each record is in the result, from a function of it and its count.
struct Threshold(Held);

impl Reducer<Cells, Cells, Cells> for Threshold {
    fn reduce(&mut self, keys: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        attached(|py| {
            let mut counts = Vec::with_capacity(inputs.len());
            for index in 0..inputs.len() {
                counts.push(total(inputs, index));
            }
            let (records, counts) = (decoded(py, keys)?, PyList::new(py, counts)?);
            let function = self.0.get().bind(py);
            for result in &Tools::get(py)?.map_two(function, &records, &counts)? {
                if result.eq(0)? {
                    outputs.end();
                    continue;
                }
                outputs.push(Row::UNIT, diff_of(&result)?);
                outputs.end();
            }
            Ok(())
        })
        .map_err(|error| Error::Caller(Raised::here(error)))
    }
}

/// What a function makes of a key and the values that are there.
struct Function {
    function: Held,
    name: String,
}

impl Reducer<Cells, Cells, Cells> for Function {
    fn reduce(&mut self, keys: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        attached(|py| {
            let (keys_there, lists) = (PyList::empty(py), PyList::empty(py));
            for index in 0..inputs.len() {
                let list = PyList::empty(py);
                for (value, diff) in values(inputs, index) {
                    list.append((value.decode(py)?, diff))?;
                }
                if !list.is_empty() {
                    keys_there.append(keys.get(index).decode(py)?)?;
                    lists.append(list)?;
                }
            }
            let function = self.function.get().bind(py);
            let mut row = RowBuf::default();
            let made = Tools::get(py)?.map_two(function, &keys_there, &lists)?;
            let mut made = made.iter();
            for index in 0..inputs.len() {
                if values(inputs, index).next().is_none() {
                    outputs.end();
                    continue;
                }
                let Some(results) = made.next() else { break };
                let results = results_of(&self.name, &results)?;
                for result in results {
                    outputs.push(row.encode(&result?)?, 1);
                }
                outputs.end();
            }
            Ok(())
        })
        .map_err(|error| Error::Caller(Raised::here(error)))
    }
}

/// The values of rows.
fn decoded<'py>(py: Python<'py>, rows: &Cells) -> PyResult<Bound<'py, PyList>> {
    use pointstamp_arrange::Rows;
    let values = (0..rows.len()).map(|index| rows.get(index).decode(py));
    PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
}
