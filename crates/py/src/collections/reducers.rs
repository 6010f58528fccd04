//! What reductions compute of the values of a key: natively, or through a function of the user's.
//!
//! A native reducer reads rows as bytes. It attaches to the interpreter only for numbers that are neither integers of 64
//! bits nor floats (`Decimal`, `Fraction`, larger integers). A function is called for many keys in one attach.

use std::num::NonZeroUsize;

use pointstamp_arrange::{Error, Lists, Reducer, Rows as _};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::input::diff_of;
use super::rows::{Cells, Row, RowBuf};
use super::sums::Sum;
use crate::gil::{Held, attached};
use crate::iterables::results_of;
use crate::kinds::Reduction;
use crate::raised::{Raised, shown};
use crate::tools::Tools;

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
        Reduction::Threshold => Box::new(Threshold {
            function: function(),
            name,
        }),
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
                    reducer: reducer_of_part(kind, &name)?,
                    index: part,
                    is_count: kind == Reduction::Count,
                })
            });
            Box::new(Several(parts.collect::<PyResult<_>>()?))
        }
        Reduction::TopK => Box::new(Top(argument.extract()?, Times::AsOften)),
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
const MAX: Top = Top(NonZeroUsize::MIN, Times::Once);

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
            // Differences of updates that are kept add up within their range.
            let sum = same
                .iter()
                .fold(0_i64, |sum, (_, diff)| sum.saturating_add(*diff));
            if sum != 0 {
                own.push(same[0].0.get(), sum);
            }
        }
        own.end();
    }
    own
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

fn count(_: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
    let mut row = RowBuf::default();
    for index in 0..inputs.len() {
        let total = total(inputs, index);
        if total != 0 {
            let total = i64::try_from(total).map_err(|_| pointstamp_arrange::Overflow)?;
            outputs.push(row.int(total), 1);
        }
        outputs.end();
    }
    Ok(())
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
struct Top(NonZeroUsize, Times);

#[derive(PartialEq, Eq)]
enum Times {
    Once,
    AsOften,
}

impl Reducer<Cells, Cells, Cells> for Top {
    fn reduce(&mut self, _: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        for index in 0..inputs.len() {
            let mut left = self.0.get() as i64;
            let (mut there, mut kinds) = (values(inputs, index).rev(), 0);
            while let Some((value, diff)) = there.next() {
                let (name, taken) = match self.1 {
                    Times::Once => ("max", 1),
                    Times::AsOften => ("top_k", diff.min(left)),
                };
                outputs.push(value, taken);
                left -= taken;
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
    ordered.map_err(|error| Error::Caller(Raised::by(name, error)))
}

/// How often each record is in the result, from a function of it and its count.
struct Threshold {
    function: Held,
    name: String,
}

impl Reducer<Cells, Cells, Cells> for Threshold {
    fn reduce(&mut self, keys: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        attached(|py| {
            let mut counts = Vec::with_capacity(inputs.len());
            for index in 0..inputs.len() {
                counts.push(total(inputs, index));
            }
            let (records, counts) = (decoded(py, keys)?, PyList::new(py, counts)?);
            let function = self.function.get().bind(py);
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
        .map_err(|error| Error::Caller(Raised::by(&self.name, error)))
    }
}

/// What a function makes of a key and its values.
struct Function {
    function: Held,
    name: String,
}

impl Reducer<Cells, Cells, Cells> for Function {
    fn reduce(&mut self, keys: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        attached(|py| {
            let values = PyList::empty(py);
            for index in 0..inputs.len() {
                let list = PyList::empty(py);
                for (value, diff) in inputs.list(index) {
                    list.append((value.decode(py)?, diff))?;
                }
                values.append(list)?;
            }
            let function = self.function.get().bind(py);
            let keys = decoded(py, keys)?;
            let mut row = RowBuf::default();
            for results in &Tools::get(py)?.map_two(function, &keys, &values)? {
                let results = results_of(&self.name, &results)?;
                for result in results {
                    outputs.push(row.encode(&result?)?, 1);
                }
                outputs.end();
            }
            Ok(())
        })
        .map_err(|error| Error::Caller(Raised::by(&self.name, error)))
    }
}

/// The values of rows.
fn decoded<'py>(py: Python<'py>, rows: &Cells) -> PyResult<Bound<'py, PyList>> {
    use pointstamp_arrange::Rows;
    let values = (0..rows.len()).map(|index| rows.get(index).decode(py));
    PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
}
