//! Dictionaries and runs: resolved where values are looked at, and put back where a stream's schema has them.
//!
//! A dictionary's keys may be narrow, and each batch has its own: batches of eight-bit dictionaries, as pandas makes
//! of categories, fit their stream one by one and not together. Rows gathered from several are kept under [`wide`]
//! keys, and where the values of a result are too many to be numbered, the result is [split](in_parts).

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, GenericListArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions,
    StructArray, UInt64Array, make_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};

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

/// Converts a column of plain values to the type, with its dictionary or its runs.
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

// ------------------------------------------------------------ rows of several batches

/// Whether there is a dictionary in the type, in columns of structs and lists, too.
fn has_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) => true,
        DataType::List(field) | DataType::LargeList(field) => has_dictionary(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_dictionary(field.data_type())),
        _ => false,
    }
}

/// The type without the dictionaries in it.
pub(crate) fn resolved_type(data_type: &DataType) -> DataType {
    let plain = |field: &FieldRef| {
        let field = field.as_ref().clone();
        let data_type = resolved_type(field.data_type());
        Arc::new(field.with_data_type(data_type))
    };
    match data_type {
        DataType::Dictionary(_, value) => resolved_type(value),
        DataType::List(field) => DataType::List(plain(field)),
        DataType::LargeList(field) => DataType::LargeList(plain(field)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain).collect()),
        other => other.clone(),
    }
}

/// The column without its runs, and without dictionaries at any depth: of type [`resolved_type`] of its [`plain_type`].
///
/// # Errors
///
/// An error of a kernel.
pub(crate) fn plain_column(column: &ArrayRef) -> Result<ArrayRef, Error> {
    let plain = hydrate(column)?;
    let data_type = resolved_type(plain.data_type());
    fitted(&plain, &data_type)
}

/// The rows without dictionaries, so that they can be put together with others.
///
/// # Errors
///
/// An error of a kernel.
pub(crate) fn resolved(rows: &RecordBatch) -> Result<RecordBatch, Error> {
    let schema = rows.schema_ref();
    if !schema
        .fields()
        .iter()
        .any(|field| has_dictionary(field.data_type()))
    {
        return Ok(rows.clone());
    }
    let fields: Vec<Field> = (schema.fields().iter())
        .map(|field| {
            field
                .as_ref()
                .clone()
                .with_data_type(resolved_type(field.data_type()))
        })
        .collect();
    let plain = Schema::new(fields).with_metadata(schema.metadata().clone());
    restored(rows, &Arc::new(plain))
}

/// The rows with the dictionaries that the schema has, or without.
///
/// # Errors
///
/// As [`dehydrate`].
pub(crate) fn restored(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Error> {
    let columns = rows.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| fitted(column, field.data_type()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns.collect::<Result<_, _>>()?,
        &options,
    )?)
}

/// Converts rows with resolved dictionaries to the schema with dictionaries, in as many batches as the
/// dictionaries have capacity for.
///
/// # Errors
///
/// An error of a kernel.
pub(crate) fn restored_in_parts(
    rows: &RecordBatch,
    schema: &SchemaRef,
) -> Result<Vec<RecordBatch>, Error> {
    if rows.schema_ref().fields() == schema.fields() {
        return Ok(vec![rows.clone()]);
    }
    let mut parts = Vec::new();
    in_parts(
        0..rows.num_rows(),
        |part| restored(&rows.slice(part.start, part.len()), schema),
        |batch| {
            parts.push(batch);
            Ok::<_, Error>(())
        },
    )?;
    Ok(parts)
}

/// A column of a type that has other dictionaries.
fn fitted(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, Error> {
    if column.data_type() == data_type {
        return Ok(Arc::clone(column));
    }
    match (column.data_type(), data_type) {
        (DataType::Dictionary(_, value), wanted) if !matches!(wanted, DataType::Dictionary(..)) => {
            fitted(&cast(column, value)?, wanted)
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            fitted_struct(column.as_struct(), fields)
        }
        (DataType::List(_), DataType::List(field)) => fitted_list(column.as_list::<i32>(), field),
        (DataType::LargeList(_), DataType::LargeList(field)) => {
            fitted_list(column.as_list::<i64>(), field)
        }
        _ => dehydrate(column, data_type),
    }
}

fn fitted_struct(column: &StructArray, fields: &Fields) -> Result<ArrayRef, Error> {
    let parts = column.columns().iter().zip(fields);
    let parts = parts.map(|(part, field)| {
        if part.data_type() == field.data_type() {
            return Ok(Arc::clone(part));
        }
        // Where the struct is null, a key may be that of no value.
        let nulls = NullBuffer::union(part.nulls(), column.nulls());
        let masked = part.to_data().into_builder().nulls(nulls).build()?;
        fitted(&make_array(masked), field.data_type())
    });
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let nulls = column.nulls().cloned();
    if parts.is_empty() {
        return Ok(Arc::new(column.clone()));
    }
    Ok(Arc::new(StructArray::try_new(
        fields.clone(),
        parts,
        nulls,
    )?))
}

/// Restricts a slice to the values of its own rows.
fn fitted_list<O: OffsetSizeTrait>(
    column: &GenericListArray<O>,
    field: &FieldRef,
) -> Result<ArrayRef, Error> {
    let offsets = column.value_offsets();
    let (first, last) = (offsets[0], offsets[column.len()]);
    let values = column
        .values()
        .slice(first.as_usize(), (last - first).as_usize());
    let offsets: Vec<O> = offsets.iter().map(|&offset| offset - first).collect();
    Ok(Arc::new(GenericListArray::<O>::try_new(
        Arc::clone(field),
        OffsetBuffer::new(offsets.into()),
        fitted(&values, field.data_type())?,
        column.nulls().cloned(),
    )?))
}

/// The number of values that keys of this type can number.
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

/// Emits the results of `make` for a range of rows, in order: in one part, or in as many as its dictionaries
/// and offsets have capacity for.
///
/// # Errors
///
/// Errors of `make` and `emit`.
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
