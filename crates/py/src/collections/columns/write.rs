//! Rows as columns.

use crate::collections::values::ToPython;
use std::fmt::Display;
use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, LargeStringBuilder};
use arrow_array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, NullArray, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use pointstamp_arrange::Rows;
use pointstamp_columnar::physical::{Physical, from_physical, physical};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;

use crate::errors::{CodecError, IntoException};
use pointstamp_rows::terms::{Atom, atoms};
use pointstamp_rows::{Cells, Layout, Row, Symbol};

/// The least number of more digits than a decimal of 128 bits has.
const DIGITS: u128 = 10_u128.pow(38);

/// A column that grows.
enum Growing {
    Ints(Vec<Option<i64>>),
    Wide(Vec<Option<i128>>),
    Floats(Vec<Option<f64>>),
    Texts(LargeStringBuilder),
    Bytes(LargeBinaryBuilder),
    Nulls(usize),
}

impl Growing {
    fn new(kind: Physical) -> Self {
        match kind {
            Physical::Ints => Growing::Ints(Vec::new()),
            Physical::Wide => Growing::Wide(Vec::new()),
            Physical::Floats => Growing::Floats(Vec::new()),
            Physical::Texts => Growing::Texts(LargeStringBuilder::new()),
            Physical::Bytes => Growing::Bytes(LargeBinaryBuilder::new()),
            Physical::Nulls => Growing::Nulls(0),
        }
    }

    fn int(&mut self, value: i64) -> Option<()> {
        match self {
            Growing::Ints(values) => values.push(Some(value)),
            Growing::Wide(values) => values.push(Some(value.into())),
            #[allow(clippy::cast_precision_loss, reason = "it was made of a float")]
            Growing::Floats(values) => values.push(Some(value as f64)),
            _ => return None,
        }
        Some(())
    }

    fn none(&mut self) {
        match self {
            Growing::Ints(values) => values.push(None),
            Growing::Wide(values) => values.push(None),
            Growing::Floats(values) => values.push(None),
            Growing::Texts(values) => values.append_null(),
            Growing::Bytes(values) => values.append_null(),
            Growing::Nulls(len) => *len += 1,
        }
    }

    /// Adds a value; nothing where it is of another kind.
    fn push(&mut self, atom: &Atom<'_>) -> Option<()> {
        match (self, atom) {
            (growing, Atom::None) => growing.none(),
            (growing, Atom::Int(value)) => return growing.int(*value),
            (Growing::Wide(values), Atom::Wide(value)) if value.unsigned_abs() < DIGITS => {
                values.push(Some(*value));
            }
            #[allow(clippy::cast_precision_loss, reason = "it was made of a float")]
            (Growing::Floats(values), Atom::Wide(value)) => values.push(Some(*value as f64)),
            (Growing::Floats(values), Atom::Float(value)) => values.push(Some(*value)),
            (Growing::Texts(values), Atom::Text(text)) => {
                values.append_value(std::str::from_utf8(text).ok()?);
            }
            (Growing::Bytes(values), Atom::Bytes(bytes)) => values.append_value(bytes),
            _ => return None,
        }
        Some(())
    }

    fn finish(self, column: &Field, rows: &Cells) -> PyResult<ArrayRef> {
        let data_type = column.data_type();
        let values: ArrayRef = match self {
            Growing::Ints(values) => Arc::new(Int64Array::from(values)),
            Growing::Wide(values) if *data_type == DataType::UInt64 => {
                let values = values.into_iter().enumerate().map(|(row, value)| {
                    let Some(value) = value else { return Ok(None) };
                    let word = u64::try_from(value);
                    let named = || format!("{value}, in the row {}", shown(rows.get(row)));
                    word.map(Some).map_err(|_| too_large(column, named()))
                });
                Arc::new(values.collect::<PyResult<UInt64Array>>()?)
            }
            Growing::Wide(values) => Arc::new(Decimal128Array::from(values)),
            Growing::Floats(values) => Arc::new(Float64Array::from(values)),
            Growing::Texts(mut values) => Arc::new(values.finish()),
            Growing::Bytes(mut values) => Arc::new(values.finish()),
            Growing::Nulls(len) => Arc::new(NullArray::new(len)),
        };
        from_physical(&values, data_type).map_err(IntoException::into_exception)
    }
}

/// The columns of a schema, from rows that have a value for each.
pub(super) fn columns_of_rows(rows: &Cells, schema: &SchemaRef) -> PyResult<Vec<ArrayRef>> {
    let kinds = schema.fields().iter().map(|column| {
        let kind = physical(column.data_type());
        kind.ok_or_else(|| CodecError::new_err("a column of a type that no collection keeps"))
    });
    let mut columns = Vec::with_capacity(schema.fields().len());
    for kind in kinds {
        columns.push(Growing::new(kind?));
    }
    for index in 0..rows.len() {
        let row = rows.get(index);
        let put = match row {
            Row::Ints(layout, words) => put_ints(layout, words, &mut columns),
            Row::Term(row) => atoms(row).and_then(|mut atoms| {
                for column in &mut columns {
                    column.push(&atoms.next()?)?;
                }
                atoms.next().is_none().then_some(())
            }),
        };
        if put.is_none() {
            return Err(unfit(row, schema));
        }
    }
    let columns = columns.into_iter().zip(schema.fields());
    columns
        .map(|(column, field)| column.finish(field, rows))
        .collect()
}

/// Adds a row of integers.
fn put_ints(layout: Layout, words: &[i64], columns: &mut [Growing]) -> Option<()> {
    let (mut words, mut columns) = (words.iter(), columns.iter_mut());
    for symbol in layout.symbols().skip(1) {
        match symbol {
            Symbol::Int => columns.next()?.int(*words.next()?)?,
            Symbol::None => columns.next()?.none(),
            Symbol::Open => return None,
            Symbol::Close => break,
        }
    }
    columns.next().is_none().then_some(())
}

/// The error of a value that its column has no room for: a sum, or a row of a program's own.
#[cold]
fn too_large(column: &Field, value: impl Display) -> PyErr {
    PyOverflowError::new_err(format!(
        "column '{}' is {}, which has no {value}: cast what it is computed of to decimal128(38, 0) or float64 before it comes into the collection",
        column.name(),
        column.data_type()
    ))
}

/// The error of a row that is not one of the schema.
#[cold]
fn unfit(row: Row<'_>, schema: &SchemaRef) -> PyErr {
    if let Row::Term(term) = row {
        for (atom, column) in atoms(term).into_iter().flatten().zip(schema.fields()) {
            match atom {
                Atom::Wide(value) if column.data_type().is_integer() => {
                    return too_large(column, format!("{value}, in the row {}", shown(row)));
                }
                Atom::Wide(value) if value.unsigned_abs() < DIGITS => {}
                Atom::Wide(_) | Atom::Float(_) if column.data_type().is_decimal() => {
                    let beyond = "number of more than 38 digits, in the row";
                    return too_large(column, format!("{beyond} {}", shown(row)));
                }
                _ => {}
            }
        }
    }
    let names: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    PyTypeError::new_err(format!(
        "{} is not a row of the columns {}: a row is a tuple with a value of each column's type",
        shown(row),
        names.join(", ")
    ))
}

/// A row in a message.
fn shown(row: Row<'_>) -> String {
    crate::gil::attached(|py| {
        let record = row.decode(py);
        record.map_or_else(
            |_| "a record".to_owned(),
            |record| crate::raised::shown(&record),
        )
    })
}

/// The error of arrays that do not fit together.
pub(super) fn failed(error: ArrowError) -> PyErr {
    pointstamp_columnar::Error::from(error).into_exception()
}
