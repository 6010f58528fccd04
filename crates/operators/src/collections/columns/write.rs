//! Rows as columns.

use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, LargeStringBuilder};
use arrow_array::{
    Array, ArrayRef, Decimal128Array, Float64Array, Int64Array, NullArray, UInt64Array,
};
use arrow_schema::{DataType, Field, SchemaRef};
use pointstamp_arrange::Rows;
use pointstamp_columnar::physical::{Physical, from_physical, physical};
use pointstamp_rows::terms::{Atom, atoms};
use pointstamp_rows::{Cells, Layout, Row, RowBuf, Symbol};

use super::error::ColumnsError;
use super::plain::PlainColumns;
use crate::Error;

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

    fn finish(self, column: &Field, rows: &Cells) -> Result<ArrayRef, Error> {
        let data_type = column.data_type();
        let values: ArrayRef = match self {
            Growing::Ints(values) => Arc::new(Int64Array::from(values)),
            Growing::Wide(values) if *data_type == DataType::UInt64 => {
                let values = values.into_iter().enumerate().map(|(row, value)| {
                    let Some(value) = value else { return Ok(None) };
                    let word = u64::try_from(value);
                    word.map(Some)
                        .map_err(|_| too_large(column, Some(value), rows.get(row)))
                });
                Arc::new(values.collect::<Result<UInt64Array, ColumnsError>>()?)
            }
            Growing::Wide(values) => Arc::new(Decimal128Array::from(values)),
            Growing::Floats(values) => Arc::new(Float64Array::from(values)),
            Growing::Texts(mut values) => Arc::new(values.finish()),
            Growing::Bytes(mut values) => Arc::new(values.finish()),
            Growing::Nulls(len) => Arc::new(NullArray::new(len)),
        };
        Ok(from_physical(&values, data_type)?)
    }
}

/// Returns the columns of a schema from columns of its kinds; `None` where a value does not fit, which the
/// caller reports by rows.
pub(super) fn columns_of(columns: &PlainColumns, schema: &SchemaRef) -> Option<Vec<ArrayRef>> {
    let (arrays, fields) = (columns.arrays(), schema.fields());
    if arrays.len() != fields.len() {
        return None;
    }
    let pairs = arrays.iter().zip(fields);
    pairs
        .map(|(array, field)| column_of(array, field))
        .collect()
}

fn column_of(array: &ArrayRef, field: &Field) -> Option<ArrayRef> {
    use DataType as D;
    let (kind, data_type) = (physical(field.data_type())?, field.data_type());
    let fits = match kind {
        Physical::Ints => *array.data_type() == D::Int64,
        Physical::Wide => matches!(array.data_type(), D::Int64 | D::Decimal128(..)),
        Physical::Floats => *array.data_type() == D::Float64,
        Physical::Texts => *array.data_type() == D::LargeUtf8,
        Physical::Bytes => *array.data_type() == D::LargeBinary,
        Physical::Nulls => *array.data_type() == D::Null,
    };
    if !fits || (!field.is_nullable() && array.logical_null_count() > 0) {
        return None;
    }
    from_physical(array, data_type).ok()
}

/// The columns of a schema, from rows that have a value for each.
pub(crate) fn columns_of_rows(rows: &Cells, schema: &SchemaRef) -> Result<Vec<ArrayRef>, Error> {
    let kinds = schema.fields().iter().map(|column| {
        physical(column.data_type()).ok_or_else(|| ColumnsError::Unkept {
            name: column.name().clone(),
            data_type: column.data_type().clone(),
        })
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
            return Err(unfit(row, schema).into());
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

/// Returns the error of a value that its column has no room for: a sum, or a row of a program's own.
#[cold]
fn too_large(column: &Field, value: Option<i128>, row: Row<'_>) -> ColumnsError {
    ColumnsError::TooLarge {
        column: column.name().clone(),
        data_type: column.data_type().clone(),
        value,
        row: Box::new(RowBuf::of(row)),
    }
}

/// Returns the error of a row that is not one of the schema.
#[cold]
fn unfit(row: Row<'_>, schema: &SchemaRef) -> ColumnsError {
    if let Row::Term(term) = row {
        for (atom, column) in atoms(term).into_iter().flatten().zip(schema.fields()) {
            match atom {
                Atom::Wide(value) if column.data_type().is_integer() => {
                    return too_large(column, Some(value), row);
                }
                Atom::Wide(value) if value.unsigned_abs() < DIGITS => {}
                Atom::Wide(_) | Atom::Float(_) if column.data_type().is_decimal() => {
                    return too_large(column, None, row);
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
    ColumnsError::NoRow {
        columns: names.join(", "),
        row: Box::new(RowBuf::of(row)),
    }
}
