//! Columns as a few kinds of plain values: the aspects of a type that an order of rows needs.
//!
//! Owns [`Physical`], the kind of a column's values, and the conversion to it and back. A type is kept as a kind with
//! the same order and equality: dates, times and booleans as integers, floats of any width as doubles, text and bytes
//! whatever their offsets are, decimals as their digits, lists as bytes that are ordered as the lists are. Cost: a cast of a
//! column, which for the kinds themselves is none.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, ArrayRef, Decimal128Array, Int64Array, LargeBinaryArray, new_null_array};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType;

use crate::error::Error;

/// A kind of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Physical {
    /// `Int64`.
    Ints,
    /// `Decimal128` without a scale: integers that may not fit 64 bits with a sign.
    Wide,
    /// `Float64`.
    Floats,
    /// `LargeUtf8`.
    Texts,
    /// `LargeBinary`.
    Bytes,
    /// `Null`.
    Nulls,
}

/// The kind of a type's values; nothing for nested types but lists, intervals and decimals of more than 128 bits.
pub fn physical(data_type: &DataType) -> Option<Physical> {
    use DataType as D;
    Some(match data_type {
        D::Int8
        | D::Int16
        | D::Int32
        | D::Int64
        | D::UInt8
        | D::UInt16
        | D::UInt32
        | D::Boolean
        | D::Date32
        | D::Date64
        | D::Time32(_)
        | D::Time64(_)
        | D::Timestamp(..)
        | D::Duration(_) => Physical::Ints,
        D::UInt64 | D::Decimal128(..) => Physical::Wide,
        D::Float16 | D::Float32 | D::Float64 => Physical::Floats,
        D::Utf8 | D::LargeUtf8 | D::Utf8View => Physical::Texts,
        D::Binary | D::LargeBinary | D::BinaryView => Physical::Bytes,
        D::List(of) | D::LargeList(of) => {
            physical(of.data_type())?;
            Physical::Bytes
        }
        D::Null => Physical::Nulls,
        _ => return None,
    })
}

/// A column's values: as its kind says, and `Int64` where wide integers all fit it.
///
/// # Errors
///
/// [`Error::Arrow`] for a type without a kind.
pub fn to_physical(column: &ArrayRef) -> Result<ArrayRef, Error> {
    use DataType as D;
    Ok(match column.data_type() {
        D::Date32 | D::Time32(_) => cast(&cast(column, &D::Int32)?, &D::Int64)?,
        D::UInt64 => {
            let ints = cast(column, &D::Int64)?;
            if ints.null_count() == column.null_count() {
                return Ok(ints);
            }
            cast(column, &D::Decimal128(38, 0))?
        }
        D::Decimal128(..) => {
            let digits = column.as_primitive::<Decimal128Type>();
            let fits = |digits: Option<i128>| digits.is_none_or(|d| i64::try_from(d).is_ok());
            if !digits.iter().all(fits) {
                return Ok(Arc::new(
                    digits.clone().with_data_type(D::Decimal128(38, 0)),
                ));
            }
            let ints = digits
                .iter()
                .map(|digits| digits.map(|d| i64::try_from(d).unwrap_or(0)));
            Arc::new(ints.collect::<Int64Array>())
        }
        D::Float16 | D::Float32 => cast(column, &D::Float64)?,
        D::Utf8 | D::Utf8View => cast(column, &D::LargeUtf8)?,
        D::Binary | D::BinaryView => cast(column, &D::LargeBinary)?,
        D::List(_) | D::LargeList(_) => bytes_of_lists(column)?,
        D::Int64 | D::Float64 | D::LargeUtf8 | D::LargeBinary | D::Null => Arc::clone(column),
        _ => cast(column, &D::Int64)?,
    })
}

/// The column of a type, from values of its kind.
///
/// # Errors
///
/// [`Error::Arrow`] where a value does not fit the type.
pub fn from_physical(values: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, Error> {
    use DataType as D;
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    Ok(match data_type {
        D::Date32 | D::Time32(_) => {
            let ints = cast_with_options(values, &D::Int32, &strict)?;
            cast(&ints, data_type)?
        }
        D::Decimal128(precision, scale) => {
            let ints = values.as_primitive_opt::<Int64Type>(); // where all fit 64 bits
            let wide = ints.map(|ints| ints.unary::<_, Decimal128Type>(i128::from));
            let digits = match &wide {
                Some(digits) => digits,
                None => values.as_primitive::<Decimal128Type>(),
            };
            // How many digits there are does not depend on the scale, and the check takes none below 0.
            let digits: Decimal128Array = digits.clone().with_precision_and_scale(*precision, 0)?;
            digits.validate_decimal_precision(*precision)?;
            Arc::new(digits.with_precision_and_scale(*precision, *scale)?)
        }
        D::List(_) | D::LargeList(_) => lists_of_bytes(values, data_type)?,
        _ if data_type == values.data_type() => Arc::clone(values),
        _ => cast_with_options(values, data_type, &strict)?,
    })
}

/// Lists as bytes, which are ordered as the lists are.
fn bytes_of_lists(lists: &ArrayRef) -> Result<ArrayRef, Error> {
    let converter = RowConverter::new(vec![SortField::new(lists.data_type().clone())])?;
    let rows = converter.convert_columns(&[Arc::clone(lists)])?;
    let bytes = (0..lists.len()).map(|index| lists.is_valid(index).then(|| rows.row(index)));
    Ok(Arc::new(bytes.collect::<LargeBinaryArray>()))
}

fn lists_of_bytes(values: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, Error> {
    let Some(bytes) = values.as_binary_opt::<i64>() else {
        return Ok(new_null_array(data_type, values.len()));
    };
    let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
    let (parser, null) = (
        converter.parser(),
        converter.convert_columns(&[new_null_array(data_type, 1)])?,
    );
    let rows = bytes
        .iter()
        .map(|bytes| bytes.map_or_else(|| null.row(0), |bytes| parser.parse(bytes)));
    Ok(converter.convert_rows(rows)?.remove(0))
}
