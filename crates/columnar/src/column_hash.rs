//! Hashes of rows, a column at a time.
//!
//! A row's hash depends on its values alone: not on chunks, offsets, dictionaries or the width of offsets. A key of one
//! column hashes as its value, a key of several as the tuple of its values, by the scheme of [`crate::hash`].
//! Cost: one pass over the key columns; a dictionary's values are hashed once per batch.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::{ToByteSlice, i256};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use crate::dictionary::hydrate;
use crate::error::Error;
use crate::floats::elements_of;
use crate::hash::{
    hash_bytes, hash_decimal, hash_float, hash_interval, hash_none, hash_time, hash_tuple,
    hash_utf8,
};

/// Whether values of a type can be hashed.
pub fn is_hashable(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_hashable(value),
        DataType::RunEndEncoded(_, field)
        | DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _) => is_hashable(field.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_hashable(field.data_type())),
        DataType::Map(..)
        | DataType::Union(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => false,
        _ => true,
    }
}

/// The hash of each row of a key: of its value where there is one column, else of the tuple of its values.
///
/// # Errors
///
/// [`Error::Unhashable`] for a column whose type cannot be hashed.
pub fn hash_rows(columns: &[ArrayRef]) -> Result<Vec<u64>, Error> {
    match columns {
        [] => Err(Error::NoKey),
        [column] => hash_column(column),
        columns => hash_tuples(columns),
    }
}

fn hash_tuples(columns: &[ArrayRef]) -> Result<Vec<u64>, Error> {
    let hashes = columns
        .iter()
        .map(hash_column)
        .collect::<Result<Vec<_>, _>>()?;
    let rows = columns.first().map_or(0, Array::len);
    (0..rows)
        .map(|row| hash_tuple(hashes.iter().map(|column| Ok(column[row]))))
        .collect()
}

/// The hash of each value of a column.
fn hash_column(column: &ArrayRef) -> Result<Vec<u64>, Error> {
    let unhashable = || Error::Unhashable {
        name: "key".into(),
        data_type: column.data_type().clone(),
    };
    let mut hashes = match column.data_type() {
        DataType::Null => return Ok(vec![hash_none(); column.len()]),
        DataType::Boolean => column.as_boolean().values().iter().map(u64::from).collect(),
        DataType::Int8 => primitive::<Int8Type>(column, |value| i64::from(value).cast_unsigned()),
        DataType::Int16 => primitive::<Int16Type>(column, |value| i64::from(value).cast_unsigned()),
        DataType::Int32 => primitive::<Int32Type>(column, |value| i64::from(value).cast_unsigned()),
        DataType::Int64 => primitive::<Int64Type>(column, i64::cast_unsigned),
        DataType::UInt8 => primitive::<UInt8Type>(column, u64::from),
        DataType::UInt16 => primitive::<UInt16Type>(column, u64::from),
        DataType::UInt32 => primitive::<UInt32Type>(column, u64::from),
        DataType::UInt64 => primitive::<UInt64Type>(column, |value| value),
        DataType::Float16 => primitive::<Float16Type>(column, |value| hash_float(value.to_f64())),
        DataType::Float32 => primitive::<Float32Type>(column, |value| hash_float(value.into())),
        DataType::Float64 => primitive::<Float64Type>(column, hash_float),
        DataType::Decimal32(_, scale) => primitive::<Decimal32Type>(column, |digits| {
            hash_decimal(i256::from_i128(digits.into()), *scale)
        }),
        DataType::Decimal64(_, scale) => primitive::<Decimal64Type>(column, |digits| {
            hash_decimal(i256::from_i128(digits.into()), *scale)
        }),
        DataType::Decimal128(_, scale) => primitive::<Decimal128Type>(column, |digits| {
            hash_decimal(i256::from_i128(digits), *scale)
        }),
        DataType::Decimal256(_, scale) => {
            primitive::<Decimal256Type>(column, |digits| hash_decimal(digits, *scale))
        }
        DataType::Utf8 => bytes(column.as_string::<i32>().iter(), |text| {
            hash_utf8(text.as_bytes())
        }),
        DataType::LargeUtf8 => bytes(column.as_string::<i64>().iter(), |text| {
            hash_utf8(text.as_bytes())
        }),
        DataType::Utf8View => bytes(column.as_string_view().iter(), |text| {
            hash_utf8(text.as_bytes())
        }),
        DataType::Binary => bytes(column.as_binary::<i32>().iter(), hash_bytes),
        DataType::LargeBinary => bytes(column.as_binary::<i64>().iter(), hash_bytes),
        DataType::BinaryView => bytes(column.as_binary_view().iter(), hash_bytes),
        DataType::FixedSizeBinary(_) => bytes(column.as_fixed_size_binary().iter(), hash_bytes),
        DataType::Dictionary(..) => return hash_dictionary(column),
        DataType::RunEndEncoded(..) => return hash_column(&hydrate(column)?),
        DataType::List(_) => hash_lists::<i32>(column)?,
        DataType::LargeList(_) => hash_lists::<i64>(column)?,
        DataType::FixedSizeList(_, _) => {
            let list = column.as_fixed_size_list();
            let width = usize::try_from(list.value_length()).unwrap_or(0);
            let elements = hash_column(list.values())?;
            (0..list.len())
                .map(|row| tuple(&elements[row * width..][..width]))
                .collect()
        }
        DataType::Struct(_) => {
            let columns = column.as_struct().columns();
            if columns.is_empty() {
                vec![tuple(&[]); column.len()]
            } else {
                hash_tuples(columns)?
            }
        }
        DataType::Interval(unit) => match unit {
            IntervalUnit::YearMonth => primitive::<IntervalYearMonthType>(column, |value| {
                hash_interval(&value.to_le_bytes())
            }),
            IntervalUnit::DayTime => primitive::<IntervalDayTimeType>(column, |value| {
                hash_interval(value.to_byte_slice())
            }),
            IntervalUnit::MonthDayNano => primitive::<IntervalMonthDayNanoType>(column, |value| {
                hash_interval(value.to_byte_slice())
            }),
        },
        _ => hash_times(column).ok_or_else(unhashable)?,
    };
    if let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) {
        let none = hash_none();
        for (hash, valid) in hashes.iter_mut().zip(nulls) {
            if !valid {
                *hash = none;
            }
        }
    }
    Ok(hashes)
}

fn hash_times(column: &ArrayRef) -> Option<Vec<u64>> {
    let narrow = |value: i32| hash_time(value.into());
    Some(match column.data_type() {
        DataType::Date32 => primitive::<Date32Type>(column, narrow),
        DataType::Date64 => primitive::<Date64Type>(column, hash_time),
        DataType::Time32(TimeUnit::Second) => primitive::<Time32SecondType>(column, narrow),
        DataType::Time32(_) => primitive::<Time32MillisecondType>(column, narrow),
        DataType::Time64(TimeUnit::Microsecond) => {
            primitive::<Time64MicrosecondType>(column, hash_time)
        }
        DataType::Time64(_) => primitive::<Time64NanosecondType>(column, hash_time),
        DataType::Timestamp(TimeUnit::Second, _) => {
            primitive::<TimestampSecondType>(column, hash_time)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            primitive::<TimestampMillisecondType>(column, hash_time)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            primitive::<TimestampMicrosecondType>(column, hash_time)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            primitive::<TimestampNanosecondType>(column, hash_time)
        }
        DataType::Duration(TimeUnit::Second) => primitive::<DurationSecondType>(column, hash_time),
        DataType::Duration(TimeUnit::Millisecond) => {
            primitive::<DurationMillisecondType>(column, hash_time)
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            primitive::<DurationMicrosecondType>(column, hash_time)
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            primitive::<DurationNanosecondType>(column, hash_time)
        }
        _ => return None,
    })
}

/// Hashes every slot; the caller overwrites the hashes of nulls.
fn primitive<T: ArrowPrimitiveType>(
    column: &ArrayRef,
    hash: impl Fn(T::Native) -> u64,
) -> Vec<u64> {
    column
        .as_primitive::<T>()
        .values()
        .iter()
        .map(|&value| hash(value))
        .collect()
}

fn bytes<V>(values: impl Iterator<Item = Option<V>>, hash: impl Fn(V) -> u64) -> Vec<u64> {
    values.map(|value| value.map_or(0, &hash)).collect()
}

fn tuple(elements: &[u64]) -> u64 {
    match hash_tuple(
        elements
            .iter()
            .map(|&hash| Ok::<_, std::convert::Infallible>(hash)),
    ) {
        Ok(hash) => hash,
        Err(never) => match never {},
    }
}

fn hash_lists<O: OffsetSizeTrait>(column: &ArrayRef) -> Result<Vec<u64>, Error> {
    let (offsets, elements) = elements_of(column.as_list::<O>());
    let elements = hash_column(&elements)?;
    Ok(offsets
        .windows(2)
        .map(|bounds| tuple(&elements[bounds[0].as_usize()..bounds[1].as_usize()]))
        .collect())
}

fn hash_dictionary(column: &ArrayRef) -> Result<Vec<u64>, Error> {
    let dictionary = column.as_any_dictionary();
    let values = hash_column(dictionary.values())?;
    let none = hash_none();
    if values.is_empty() {
        return Ok(vec![none; column.len()]);
    }
    let keys = dictionary.normalized_keys();
    let nulls = column.nulls();
    Ok(keys
        .iter()
        .enumerate()
        .map(|(row, &key)| {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                none
            } else {
                values[key]
            }
        })
        .collect())
}
