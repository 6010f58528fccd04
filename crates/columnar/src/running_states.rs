//! The state of running functions for each key, and their results after each row.
//!
//! Owns [`RunningStates`], the state of one function of a column for keys by number. The rules are those of aggregations: nulls are
//! skipped, NaN is the greatest number, and a sum that its type cannot hold is an error.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, UInt32Array};
use arrow_cast::cast;
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType;

use crate::dictionary::{hydrate, plain_type};
use crate::error::{Beyond, Error};
use crate::floats::canonical;

/// The running state of one function of a column, by key number.
pub(crate) enum RunningStates {
    /// Numbers of values that are not null, or of rows. Whether of rows.
    Count(Vec<i64>, bool),
    /// Sums of integers: unsigned ones are kept as signed ones of the same bits. The flag says whether they
    /// are signed.
    Sum(Vec<Option<i64>>, bool),
    Floats(Vec<Option<f64>>),
    Mean(Vec<(f64, i64)>),
    /// The least, or the greatest, in a form that compares by its bytes.
    Extreme(Vec<Option<Box<[u8]>>>, RowConverter, bool),
}

impl RunningStates {
    pub(crate) fn new(function: &str, column: &str, data_type: &DataType) -> Result<Self, Error> {
        let refused = |aggregation| Error::Unaggregable {
            aggregation,
            column: column.to_owned(),
            data_type: data_type.clone(),
        };
        let plain = plain_type(data_type);
        let numeric = plain.is_integer() || plain.is_floating() || plain == DataType::Boolean;
        Ok(match function {
            "count" | "rows" => RunningStates::Count(Vec::new(), function == "rows"),
            "sum" if plain.is_floating() => RunningStates::Floats(Vec::new()),
            "sum" if numeric => RunningStates::Sum(Vec::new(), plain.is_signed_integer()),
            "sum" => return Err(refused("sum")),
            "mean" if numeric => RunningStates::Mean(Vec::new()),
            "mean" => return Err(refused("mean")),
            "min" | "max" => {
                let converter = RowConverter::new(vec![SortField::new(plain)])?;
                RunningStates::Extreme(Vec::new(), converter, function == "max")
            }
            _ => {
                return Err(Error::NotRunning {
                    name: function.to_owned(),
                });
            }
        })
    }

    pub(crate) fn result_type(&self, data_type: &DataType) -> DataType {
        match self {
            RunningStates::Count(..) | RunningStates::Sum(_, true) => DataType::Int64,
            RunningStates::Sum(_, false) => DataType::UInt64,
            RunningStates::Floats(_) | RunningStates::Mean(_) => DataType::Float64,
            RunningStates::Extreme(..) => plain_type(data_type),
        }
    }

    /// Has room for so many keys.
    pub(crate) fn resize(&mut self, keys: usize) {
        match self {
            RunningStates::Count(known, _) => known.resize(keys, 0),
            RunningStates::Sum(known, _) => known.resize(keys, None),
            RunningStates::Floats(known) => known.resize(keys, None),
            RunningStates::Mean(known) => known.resize(keys, (0.0, 0)),
            RunningStates::Extreme(known, ..) => known.resize(keys, None),
        }
    }

    /// Drops the state of a key.
    pub(crate) fn forget(&mut self, key: usize) {
        match self {
            RunningStates::Count(known, _) => known[key] = 0,
            RunningStates::Sum(known, _) => known[key] = None,
            RunningStates::Floats(known) => known[key] = None,
            RunningStates::Mean(known) => known[key] = (0.0, 0),
            RunningStates::Extreme(known, ..) => known[key] = None,
        }
    }

    /// Keeps the states of these keys, which get the first numbers.
    pub(crate) fn renumber(&mut self, used: &[u32]) {
        fn moved<T>(known: &mut Vec<T>, used: &[u32], none: impl Fn() -> T) {
            let mut old = std::mem::take(known);
            let moves = used
                .iter()
                .map(|&key| std::mem::replace(&mut old[key as usize], none()));
            *known = moves.collect();
        }
        match self {
            RunningStates::Count(known, _) => moved(known, used, || 0),
            RunningStates::Sum(known, _) => moved(known, used, || None),
            RunningStates::Floats(known) => moved(known, used, || None),
            RunningStates::Mean(known) => moved(known, used, || (0.0, 0)),
            RunningStates::Extreme(known, ..) => moved(known, used, || None),
        }
    }

    /// Computes the result after each row: `begins` says whether its key begins anew with it.
    pub(crate) fn run(
        &mut self,
        keys: &[u32],
        begins: &[bool],
        column: &ArrayRef,
    ) -> Result<ArrayRef, Error> {
        let column = hydrate(column)?;
        let nulls = column.logical_nulls();
        let is_valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        // A key begins at most once among these rows, with the first that it has.
        for (&key, _) in keys.iter().zip(begins).filter(|(_, begins)| **begins) {
            self.forget(key as usize);
        }
        let rows = || keys.iter().map(|&key| key as usize).enumerate();
        Ok(match self {
            RunningStates::Count(known, of_rows) => {
                Arc::new(Int64Array::from_iter_values(rows().map(|(row, key)| {
                    known[key] += i64::from(*of_rows || is_valid(row));
                    known[key]
                })))
            }
            RunningStates::Sum(known, signed) => sums(known, *signed, rows(), &column)?,
            RunningStates::Floats(known) => {
                let values = cast(&column, &DataType::Float64)?;
                let values = values.as_primitive::<Float64Type>();
                Arc::new(
                    rows()
                        .map(|(row, key)| {
                            if is_valid(row) {
                                let so_far = known[key].unwrap_or_default();
                                known[key] = Some(so_far + values.value(row));
                            }
                            known[key]
                        })
                        .collect::<Float64Array>(),
                )
            }
            RunningStates::Mean(known) => {
                let values = cast(&column, &DataType::Float64)?;
                let values = values.as_primitive::<Float64Type>();
                Arc::new(
                    rows()
                        .map(|(row, key)| {
                            if is_valid(row) {
                                known[key].0 += values.value(row);
                                known[key].1 += 1;
                            }
                            let (sum, count) = known[key];
                            #[allow(clippy::cast_precision_loss, reason = "a mean is a float")]
                            (count > 0).then(|| sum / count as f64)
                        })
                        .collect::<Float64Array>(),
                )
            }
            RunningStates::Extreme(known, converter, greatest) => {
                let column = canonical(&column)?; // one NaN, which is the greatest of the bytes
                let mut given = converter.convert_columns(std::slice::from_ref(&column))?;
                let null = arrow_array::new_null_array(column.data_type(), 1);
                let null = converter.convert_columns(&[null])?;
                let parser = converter.parser();
                let mut results = converter.empty_rows(keys.len(), 0);
                for (row, key) in rows() {
                    let best = &mut known[key];
                    let value = given.row(row);
                    let value: &[u8] = value.as_ref();
                    let better = match best {
                        None => true,
                        Some(best) if *greatest => value > &best[..],
                        Some(best) => value < &best[..],
                    };
                    if better && is_valid(row) {
                        *best = Some(value.into());
                    }
                    match best {
                        Some(best) => results.push(parser.parse(best)),
                        None => results.push(null.row(0)),
                    }
                }
                given.clear();
                converter.convert_rows(&results)?.remove(0)
            }
        })
    }

    /// The number of columns of [`kept`](Self::kept).
    pub(crate) fn width(&self) -> usize {
        1 + usize::from(matches!(self, RunningStates::Mean(_)))
    }

    /// The states of keys, as columns.
    pub(crate) fn kept(&self, used: &[u32]) -> Result<Vec<ArrayRef>, Error> {
        let keys = || used.iter().map(|&key| key as usize);
        Ok(match self {
            RunningStates::Count(known, _) => vec![Arc::new(Int64Array::from_iter_values(
                keys().map(|key| known[key]),
            ))],
            RunningStates::Sum(known, _) => {
                vec![Arc::new(
                    keys().map(|key| known[key]).collect::<Int64Array>(),
                )]
            }
            RunningStates::Floats(known) => {
                vec![Arc::new(
                    keys().map(|key| known[key]).collect::<Float64Array>(),
                )]
            }
            RunningStates::Mean(known) => vec![
                Arc::new(Float64Array::from_iter_values(
                    keys().map(|key| known[key].0),
                )),
                Arc::new(Int64Array::from_iter_values(keys().map(|key| known[key].1))),
            ],
            RunningStates::Extreme(known, converter, _) => {
                let parser = converter.parser();
                let best: Vec<Option<&[u8]>> = keys().map(|key| known[key].as_deref()).collect();
                let rows = best.iter().flatten().map(|best| parser.parse(best));
                let values = converter.convert_rows(rows)?.remove(0);
                let mut places = 0_u32..;
                let places = best.iter().map(|best| best.and_then(|_| places.next()));
                let places = places.collect::<UInt32Array>();
                vec![arrow_select::take::take(&values, &places, None)?]
            }
        })
    }

    /// Restores states that [`kept`](Self::kept) returned, for keys that have these numbers now.
    pub(crate) fn put(&mut self, keys: &[u32], columns: &[ArrayRef]) -> Result<(), Error> {
        let rows = || keys.iter().map(|&key| key as usize).enumerate();
        let first = &columns[0];
        match self {
            RunningStates::Count(known, _) => {
                let counts = first.as_primitive::<Int64Type>();
                rows().for_each(|(row, key)| known[key] = counts.value(row));
            }
            RunningStates::Sum(known, _) => {
                let sums = first.as_primitive::<Int64Type>();
                rows().for_each(|(row, key)| {
                    known[key] = sums.is_valid(row).then(|| sums.value(row));
                });
            }
            RunningStates::Floats(known) => {
                let sums = first.as_primitive::<Float64Type>();
                rows().for_each(|(row, key)| {
                    known[key] = sums.is_valid(row).then(|| sums.value(row));
                });
            }
            RunningStates::Mean(known) => {
                let sums = first.as_primitive::<Float64Type>();
                let counts = columns[1].as_primitive::<Int64Type>();
                rows().for_each(|(row, key)| known[key] = (sums.value(row), counts.value(row)));
            }
            RunningStates::Extreme(known, converter, _) => {
                let given = converter.convert_columns(std::slice::from_ref(first))?;
                for (row, key) in rows() {
                    known[key] = first.is_valid(row).then(|| given.row(row).as_ref().into());
                }
            }
        }
        Ok(())
    }
}

/// The sums so far after each row, of which the key is known.
fn sums(
    known: &mut [Option<i64>],
    is_signed: bool,
    rows: impl Iterator<Item = (usize, usize)>,
    column: &ArrayRef,
) -> Result<ArrayRef, Error> {
    let nulls = column.logical_nulls();
    let values: Vec<i64> = if is_signed {
        let words = cast(column, &DataType::Int64)?;
        words.as_primitive::<Int64Type>().values().to_vec()
    } else {
        let words = cast(column, &DataType::UInt64)?;
        let words = words.as_primitive::<UInt64Type>().values();
        words.iter().map(|word| word.cast_signed()).collect()
    };
    let sums = rows.map(|(row, key)| {
        if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
            let so_far = known[key].unwrap_or_default();
            let sum = if is_signed {
                so_far.checked_add(values[row])
            } else {
                unsigned_sum(so_far, values[row])
            };
            known[key] = Some(sum.ok_or_else(|| beyond(key, is_signed))?);
        }
        Ok::<_, Error>(known[key])
    });
    let sums = sums.collect::<Result<Int64Array, _>>()?;
    Ok(if is_signed {
        Arc::new(sums)
    } else {
        Arc::new(sums.unary::<_, UInt64Type>(i64::cast_unsigned))
    })
}

/// The sum of unsigned integers, kept as the signed ones of the same bits.
fn unsigned_sum(sum: i64, value: i64) -> Option<i64> {
    let sum = sum.cast_unsigned().checked_add(value.cast_unsigned());
    sum.map(u64::cast_signed)
}

#[cold]
fn beyond(key: usize, is_signed: bool) -> Error {
    let sum = if is_signed {
        DataType::Int64
    } else {
        DataType::UInt64
    };
    Beyond::of(key, &sum)
}
