//! Dictionaries and runs: resolved where values are looked at, and put back where a stream's schema has them.
//!
//! A dictionary's keys may be narrow, and each batch has its own: batches of eight-bit dictionaries, as pandas makes of
//! categories, fit their stream one by one and not together. What is gathered from several is kept under
//! [`wide`] keys, and where the values of a result are too many to be numbered, the result is [split](in_parts).

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt64Array, make_array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType};

use crate::error::Error;

/// The type without its dictionary or runs.
pub(crate) fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, value) => plain_type(value),
        DataType::RunEndEncoded(_, field) => plain_type(field.data_type()),
        other => other.clone(),
    }
}

/// The column with its dictionary or runs resolved.
pub(crate) fn hydrate(column: &ArrayRef) -> Result<ArrayRef, Error> {
    let plain = plain_type(column.data_type());
    if plain == *column.data_type() {
        Ok(Arc::clone(column))
    } else {
        Ok(cast(column, &plain)?)
    }
}

/// The column, whose values are of that type, with the dictionary or the runs that the type has.
///
/// # Errors
///
/// An error of a kernel: [`ArrowError::DictionaryKeyOverflowError`] where there are more values than keys.
pub(crate) fn dehydrate(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, Error> {
    if column.data_type() == data_type {
        return Ok(Arc::clone(column));
    }
    let DataType::Dictionary(index, value) = data_type else {
        return Ok(cast(column, data_type)?);
    };
    match column.as_any_dictionary_opt() {
        Some(given) if given.values().len() <= room(index) => Ok(cast(column, data_type)?),
        Some(_) => dehydrate(&hydrate(column)?, data_type),
        // No kernel looks for equal values among these: each row is an entry of its own.
        None if value.is_nested() => {
            if column.len() > room(index) {
                return Err(ArrowError::DictionaryKeyOverflowError.into());
            }
            let rows = u64::try_from(column.len()).unwrap_or(u64::MAX);
            let indices = cast(&UInt64Array::from_iter_values(0..rows), index)?;
            let dictionary = (indices.to_data().into_builder())
                .data_type(data_type.clone())
                .add_child_data(dehydrate(column, value)?.to_data())
                .build()?;
            Ok(make_array(dictionary))
        }
        None => Ok(cast(column, data_type)?),
    }
}

/// How many values keys of this type can number.
fn room(index: &DataType) -> usize {
    match index {
        DataType::Int8 => 1 << 7,
        DataType::UInt8 => 1 << 8,
        DataType::Int16 => 1 << 15,
        DataType::UInt16 => 1 << 16,
        _ => 1 << 31,
    }
}

/// The column, where it is a dictionary with keys of at least 32 bits.
pub(crate) fn wide(column: &ArrayRef) -> Result<ArrayRef, Error> {
    match column.data_type() {
        DataType::Dictionary(index, value) if room(index) < 1 << 31 => {
            let wide = DataType::Dictionary(Box::new(DataType::Int32), value.clone());
            Ok(cast(column, &wide)?)
        }
        _ => Ok(Arc::clone(column)),
    }
}

/// What `make` gives for a range of rows, in order: in one part, or in as many as its dictionaries and offsets have room for.
///
/// # Errors
///
/// What `make` and `emit` fail with.
pub(crate) fn in_parts<T, E: From<Error>>(
    range: Range<usize>,
    mut make: impl FnMut(Range<usize>) -> Result<T, Error>,
    mut emit: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let mut parts = vec![range];
    while let Some(part) = parts.pop() {
        match make(part.clone()) {
            Ok(part) => emit(part)?,
            Err(Error::Arrow(
                ArrowError::DictionaryKeyOverflowError | ArrowError::OffsetOverflowError(_),
            )) if part.len() > 1 => {
                let middle = part.start + part.len() / 2;
                parts.extend([middle..part.end, part.start..middle]);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
