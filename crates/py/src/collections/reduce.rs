//! Reductions of an arrangement, and the functions of Python that they call.
//!
//! A function is called for many keys in one attach. Native reducers attach only for values that Python alone can add up
//! or compare: [`Exotics`].

use std::num::NonZeroU128;
use std::rc::Rc;

use pointstamp_arrange::{Error, Lists, Reducer as Kernel, Rows};
use pointstamp_engine::error::UserResult;
use pointstamp_operators::collections::{
    Accumulation, Aggregate, Collection, Exotic, Form, Frame as NativeFrame, Place, Ranking,
    Reducer, Reduction as Native, WindowFunction as NativeFunction, Windowing, reducer,
};
use pointstamp_rows::{Cells, Row, RowBuf};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::arrange::Arrangement;
use super::given::diff_of;
use super::values::{FromPython, ToPython};
use crate::columns::schema::Schema;
use crate::errors::IntoException;
use crate::gil::{Held, attached};
use crate::iterables::results_of;
use crate::kinds::{Frame, Reduction, WindowFunction};
use crate::raised::{Raised, shown};
use crate::tools::Tools;

/// Reduces an arrangement.
#[pyfunction]
pub(crate) fn reduce_arranged(
    arrangement: &Arrangement,
    kind: Reduction,
    argument: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<Arrangement> {
    let (reducer, form) = reducer_of(kind, argument, name)?;
    let result = arrangement.inner.get()?.reduce(reducer, form, name);
    let result = result.map_err(IntoException::into_exception)?;
    Ok(Arrangement::new(arrangement.inner.home(), result))
}

/// The number of values that `top_k` keeps. No key has as many as it takes to pass 128 bits: more than that is all.
fn most(count: &Bound<'_, PyAny>) -> NonZeroU128 {
    count.extract().unwrap_or(NonZeroU128::MAX)
}

/// The reducer of this kind, and the form of its results.
fn reducer_of(
    kind: Reduction,
    argument: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<(Reducer, Form)> {
    let function = || Held::new(argument.clone().unbind());
    let native = match kind {
        Reduction::Threshold if argument.is_none() => Native::Positive,
        Reduction::Threshold => return Ok((Reducer::new(Threshold(function())), Form::Key)),
        Reduction::Reduce => {
            let (function, name) = (function(), name.to_owned());
            return Ok((Reducer::new(Function { function, name }), Form::Pair));
        }
        Reduction::Distinct => Native::Distinct,
        Reduction::Count | Reduction::CountByKey => Native::Count,
        Reduction::Min => Native::Min {
            any_order: argument.extract::<Option<bool>>()?.unwrap_or(false),
        },
        Reduction::Max => Native::Max,
        Reduction::Sum => Native::Sum { floats: false },
        Reduction::SumOfFloats => Native::Sum { floats: true },
        Reduction::Mean => Native::Mean { floats: false },
        Reduction::MeanOfFloats => Native::Mean { floats: true },
        Reduction::TopK => Native::TopK(most(argument)),
        Reduction::Ranked => {
            let (count, offset, by): (Option<u128>, u128, Vec<_>) = argument.extract()?;
            Native::Ranked(Ranking {
                by: places(by),
                offset,
                count: count.unwrap_or(u128::MAX),
            })
        }
        Reduction::Over => {
            type Function = (WindowFunction, Option<usize>, i64, Option<usize>);
            let (by, frame, functions): (Vec<_>, Frame, Vec<Function>) = argument.extract()?;
            let functions = functions.into_iter().map(window_function);
            Native::Windowed(Windowing {
                by: places(by),
                frame: match frame {
                    Frame::Range => NativeFrame::Range,
                    Frame::Rows => NativeFrame::Rows,
                    Frame::All => NativeFrame::All,
                },
                functions: functions.collect::<PyResult<_>>()?,
            })
        }
        Reduction::Variance
        | Reduction::VarianceOfAll
        | Reduction::Deviation
        | Reduction::DeviationOfAll => Native::OfColumns(aggregate(kind)?, 1),
        Reduction::OfColumns => {
            let (kind, width) = argument.extract()?;
            Native::OfColumns(aggregate(kind)?, width)
        }
        Reduction::Aggregate => {
            let parts: Vec<(Reduction, usize)> = argument.extract()?;
            let parts = parts
                .into_iter()
                .map(|(kind, part)| Ok((aggregate(kind)?, part)));
            Native::Several(parts.collect::<PyResult<_>>()?)
        }
        Reduction::Collected => {
            type Given<'py> = (PyRef<'py, Schema>, usize, Vec<(usize, bool, bool)>);
            let (schema, part, by): Given<'_> = argument.extract()?;
            Native::Collected(Collection {
                part,
                by: places(by),
                element: schema.schema.clone(),
            })
        }
        Reduction::Accumulated => {
            let parts: Vec<(Reduction, usize)> = argument.extract()?;
            let parts = parts
                .into_iter()
                .map(|(kind, part)| Ok((accumulation(kind)?, part)));
            Native::Accumulated(parts.collect::<PyResult<_>>()?)
        }
    };
    let exotic: Rc<dyn Exotic> = Rc::new(Exotics);
    Ok(reducer(native, &exotic, name))
}

/// The places of an order, from the index of each part, whether it descends and whether nulls come first.
fn places(by: Vec<(usize, bool, bool)>) -> Vec<Place> {
    let places = by.into_iter().map(|(part, descending, nulls_first)| Place {
        part,
        descending,
        nulls_first,
    });
    places.collect()
}

/// The window function of a kind, the part that it reads, a number of places, and the part of the default.
fn window_function(
    (kind, part, by, default): (WindowFunction, Option<usize>, i64, Option<usize>),
) -> PyResult<NativeFunction> {
    let of = || {
        let message = || format!("{} is computed of a part of values", kind.label());
        part.ok_or_else(|| PyTypeError::new_err(message()))
    };
    Ok(match kind {
        WindowFunction::Number => NativeFunction::Number,
        WindowFunction::Rank => NativeFunction::Rank,
        WindowFunction::DenseRank => NativeFunction::DenseRank,
        WindowFunction::Lag => NativeFunction::Shift {
            part: of()?,
            by,
            default,
        },
        WindowFunction::First => NativeFunction::First { part: of()? },
        WindowFunction::Last => NativeFunction::Last { part: of()? },
        WindowFunction::Count => NativeFunction::Count { part },
        WindowFunction::Sum | WindowFunction::SumOfFloats => NativeFunction::Sum {
            part: of()?,
            floats: kind == WindowFunction::SumOfFloats,
        },
        WindowFunction::Min => NativeFunction::Min { part: of()? },
        WindowFunction::Max => NativeFunction::Max { part: of()? },
    })
}

/// The total of this kind.
fn accumulation(kind: Reduction) -> PyResult<Accumulation> {
    Ok(match kind {
        Reduction::Count => Accumulation::Count,
        Reduction::Sum => Accumulation::Sum,
        Reduction::Mean => Accumulation::Mean,
        _ => return Err(not_of_parts(kind)),
    })
}

#[cold]
fn not_of_parts(kind: Reduction) -> PyErr {
    PyTypeError::new_err(format!(
        "{} is not computed of a part of values",
        kind.label()
    ))
}

/// The aggregate of this kind.
fn aggregate(kind: Reduction) -> PyResult<Aggregate> {
    let variance = |sample, root| Aggregate::Variance { sample, root };
    Ok(match kind {
        Reduction::Count => Aggregate::Count,
        Reduction::Distinct => Aggregate::DistinctCount,
        Reduction::Min => Aggregate::Min,
        Reduction::Max => Aggregate::Max,
        Reduction::Sum => Aggregate::Sum { floats: false },
        Reduction::SumOfFloats => Aggregate::Sum { floats: true },
        Reduction::Mean => Aggregate::Mean { floats: false },
        Reduction::MeanOfFloats => Aggregate::Mean { floats: true },
        Reduction::Variance => variance(true, false),
        Reduction::VarianceOfAll => variance(false, false),
        Reduction::Deviation => variance(true, true),
        Reduction::DeviationOfAll => variance(false, true),
        _ => return Err(not_of_parts(kind)),
    })
}

/// Arithmetic and order of values that only Python implements.
struct Exotics;

impl Exotic for Exotics {
    fn sum(
        &self,
        name: &str,
        values: &mut dyn Iterator<Item = (Row<'_>, i64)>,
        mean: bool,
        result: &mut RowBuf,
    ) -> UserResult<bool> {
        attached(|py| sum(py, name, values, mean, result)).map_err(Raised::here)
    }

    fn check_order(&self, name: &str, value: Row<'_>, other: Row<'_>) -> UserResult<()> {
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
        ordered.map_err(Raised::here)
    }
}

/// Adds numbers of any type up. Returns false for a mean of no values.
fn sum(
    py: Python<'_>,
    name: &str,
    values: &mut dyn Iterator<Item = (Row<'_>, i64)>,
    mean: bool,
    result: &mut RowBuf,
) -> PyResult<bool> {
    let number = py.import("numbers")?.getattr("Number")?;
    let (mut sum, mut count) = (0_i64.into_pyobject(py)?.into_any(), 0_i128);
    for (value, diff) in values {
        let value = value.decode(py)?;
        if !value.is_instance(&number)? {
            return Err(PyTypeError::new_err(format!(
                "{name} adds up numbers, and got {}: map the values to numbers first",
                shown(&value)
            )));
        }
        sum = sum.add(value.mul(diff)?)?;
        count += i128::from(diff);
    }
    if mean {
        if count == 0 {
            return Ok(false);
        }
        sum = sum.div(count)?;
    }
    result.encode(&sum)?;
    Ok(true)
}

type Done = Result<(), Error>;

/// The total of a key's diffs.
fn total(inputs: &Lists<Cells>, index: usize) -> i128 {
    let diffs = &inputs.diffs()[inputs.range(index)];
    diffs.iter().map(|diff| i128::from(*diff)).sum()
}

/// The values of a key that are there, least first.
fn values(inputs: &Lists<Cells>, index: usize) -> impl Iterator<Item = (Row<'_>, i64)> {
    inputs.list(index).filter(|(_, diff)| *diff > 0)
}

/// The count of each record in the result, from a function of it and its count.
struct Threshold(Held);

impl Kernel<Cells, Cells, Cells> for Threshold {
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

/// A Python function of a key and its values.
struct Function {
    function: Held,
    name: String,
}

impl Kernel<Cells, Cells, Cells> for Function {
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
