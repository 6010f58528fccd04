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
use super::terms::Plain;
use crate::gil::{Held, attached};
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
        Reduction::Min => Box::new(min),
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

#[allow(clippy::unnecessary_wraps, reason = "a reducer may fail")]
fn min(_: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
    for index in 0..inputs.len() {
        if let Some((least, _)) = inputs.list(index).find(|(_, diff)| *diff > 0) {
            outputs.push(least, 1);
        }
        outputs.end();
    }
    Ok(())
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
            let there = inputs.list(index).rev().filter(|(_, diff)| *diff > 0);
            for (value, diff) in there {
                let taken = if self.1 == Times::Once {
                    1
                } else {
                    diff.min(left)
                };
                outputs.push(value, taken);
                left -= taken;
                if left == 0 {
                    break;
                }
            }
            outputs.end();
        }
        Ok(())
    }
}

/// The sum of numbers, or their mean.
struct Sum {
    mean: bool,
    /// Whether the values are of a column of floats, in whose rows integers stand for those that they equal.
    floats: bool,
    name: String,
}

impl Reducer<Cells, Cells, Cells> for Sum {
    fn reduce(&mut self, _: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        let mut row = RowBuf::default();
        for index in 0..inputs.len() {
            let there = self.plain(inputs, index, &mut row);
            let there = match there.or_else(|| self.real(inputs, index, &mut row)) {
                Some(there) => there,
                None => attached(|py| self.any(py, inputs, index, &mut row))
                    .map_err(|error| Error::Caller(Raised::by(&self.name, error)))?,
            };
            if there {
                outputs.push(row.get(), 1);
            }
            outputs.end();
        }
        Ok(())
    }
}

impl Sum {
    fn new(name: &str) -> Self {
        Sum {
            mean: false,
            floats: false,
            name: name.to_owned(),
        }
    }

    fn mean(self) -> Self {
        Sum { mean: true, ..self }
    }

    fn of_floats(self) -> Self {
        Sum {
            floats: true,
            ..self
        }
    }

    /// Adds integers and floats up; nothing where there are others, or they grow too large. Whether there is a result.
    fn plain(&self, inputs: &Lists<Cells>, index: usize, row: &mut RowBuf) -> Option<bool> {
        let (mut whole, mut count, mut real, mut is_real) = (0_i128, 0_i128, 0.0_f64, false);
        for (value, diff) in inputs.list(index) {
            count += i128::from(diff);
            match value.number()? {
                Plain::Int(value) => whole += i128::from(value) * i128::from(diff),
                Plain::Wide(_) => return None,
                Plain::Float(value) => {
                    is_real = true;
                    #[allow(clippy::cast_precision_loss, reason = "as Python multiplies")]
                    let times = diff as f64;
                    real += value * times;
                }
            }
        }
        #[allow(
            clippy::cast_precision_loss,
            reason = "checked to be exact, or as Python adds"
        )]
        if self.mean {
            if count == 0 {
                return Some(false);
            }
            let exact = whole.unsigned_abs() < 1 << 53 && count.unsigned_abs() < 1 << 53;
            if !exact {
                return None;
            }
            row.float((real + whole as f64) / count as f64);
        } else if is_real {
            if whole.unsigned_abs() >= 1 << 53 {
                return None;
            }
            row.float(real + whole as f64);
        } else {
            row.int(i64::try_from(whole).ok()?);
        }
        Some(true)
    }

    /// Adds up what a column of floats holds, as floats; nothing for other columns, and where there are nulls.
    #[allow(clippy::cast_precision_loss, reason = "as Python multiplies")]
    fn real(&self, inputs: &Lists<Cells>, index: usize, row: &mut RowBuf) -> Option<bool> {
        if !self.floats {
            return None;
        }
        let values = (inputs.list(index)).map(|(value, diff)| Some((value.real()?, diff as f64)));
        let values = values.collect::<Option<Vec<_>>>()?;
        let count: f64 = values.iter().map(|(_, times)| times).sum();
        let sum: f64 = values.iter().map(|(value, times)| value * times).sum();
        if !self.mean {
            row.float(sum);
            return Some(true);
        }
        if count == 0.0 {
            return Some(false);
        }
        let mean = sum / count;
        row.float(if mean.is_finite() {
            mean
        } else {
            // The mean is among the values, where their sum may be greater than all floats.
            values
                .iter()
                .map(|(value, times)| value * (times / count))
                .sum()
        });
        Some(true)
    }

    /// Adds numbers of any type up.
    fn any(
        &self,
        py: Python<'_>,
        inputs: &Lists<Cells>,
        index: usize,
        row: &mut RowBuf,
    ) -> PyResult<bool> {
        let number = py.import("numbers")?.getattr("Number")?;
        let (mut sum, mut count) = (0_i64.into_pyobject(py)?.into_any(), 0_i128);
        for (value, diff) in inputs.list(index) {
            let value = value.decode(py)?;
            if !value.is_instance(&number)? {
                return Err(PyTypeError::new_err(format!(
                    "{} adds up numbers, and got {}: map the values to numbers first",
                    self.name,
                    shown(&value)
                )));
            }
            sum = sum.add(value.mul(diff)?)?;
            count += i128::from(diff);
        }
        if self.mean {
            if count == 0 {
                return Ok(false);
            }
            sum = sum.div(count)?;
        }
        row.encode(&sum)?;
        Ok(true)
    }
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
                let results = results.try_iter().map_err(|_| {
                    PyTypeError::new_err(format!(
                        "the function given to {} returns an iterable of results, not {}: return [result] for one",
                        self.name,
                        shown(&results)
                    ))
                })?;
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
