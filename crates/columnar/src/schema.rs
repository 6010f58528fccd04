//! Finding and checking columns; making a batch fit the schema of a stream.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::column_hash::is_hashable;
use crate::error::Error;

/// The number of the column of this name.
///
/// # Errors
///
/// [`Error::NoColumn`] where there is none, [`Error::Ambiguous`] where there are several.
pub fn find_column(schema: &Schema, name: &str) -> Result<usize, Error> {
    let mut found = (0..schema.fields().len()).filter(|&at| schema.field(at).name() == name);
    match (found.next(), found.count()) {
        (Some(index), 0) => Ok(index),
        (Some(_), more) => Err(Error::Ambiguous {
            name: name.to_owned(),
            count: more + 1,
        }),
        (None, _) => {
            let names: Vec<String> = schema
                .fields()
                .iter()
                .map(|f| format!("'{}'", f.name()))
                .collect();
            Err(Error::NoColumn {
                name: name.to_owned(),
                columns: if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                },
            })
        }
    }
}

/// The numbers of the columns of a key, all of which can be hashed.
///
/// # Errors
///
/// [`Error::NoKey`] without names; as [`find_column`]; [`Error::Unhashable`] for a type that has no hash.
pub fn key_columns<N: AsRef<str>>(schema: &Schema, names: &[N]) -> Result<Vec<usize>, Error> {
    if names.is_empty() {
        return Err(Error::NoKey);
    }
    names
        .iter()
        .map(|name| {
            let index = find_column(schema, name.as_ref())?;
            check_hashable(schema.field(index))?;
            Ok(index)
        })
        .collect()
}

/// Checks that a column can be part of a key.
///
/// # Errors
///
/// [`Error::Unhashable`] when it cannot.
pub fn check_hashable(field: &Field) -> Result<(), Error> {
    if is_hashable(field.data_type()) {
        return Ok(());
    }
    Err(Error::Unhashable {
        name: field.name().clone(),
        data_type: field.data_type().clone(),
    })
}

/// Returns a name for an additional column: `name`, with as many underlines as it takes to be none of the
/// taken ones.
pub(crate) fn free_name<'a>(name: &str, taken: impl Iterator<Item = &'a str>) -> String {
    let taken: Vec<&str> = taken.collect();
    let mut free = name.to_owned();
    while taken.contains(&free.as_str()) {
        free.push('_');
    }
    free
}

/// The names of columns, by number.
pub(crate) fn names_of(schema: &Schema, columns: &[usize]) -> Vec<String> {
    let name = |&at: &usize| schema.field(at).name().clone();
    columns.iter().map(name).collect()
}

/// Columns of a batch, by number.
pub fn project(batch: &RecordBatch, columns: &[usize]) -> Vec<ArrayRef> {
    columns
        .iter()
        .map(|&at| Arc::clone(batch.column(at)))
        .collect()
}

/// Makes a batch of columns that are named by their numbers. Checkpoints contain these names.
pub(crate) fn numbered_columns(columns: Vec<ArrayRef>) -> Result<RecordBatch, Error> {
    let columns = columns.into_iter().enumerate();
    let named = columns.map(|(at, column)| (at.to_string(), column, true));
    Ok(RecordBatch::try_from_iter_with_nullable(named)?)
}

/// Converts the batch to the stream's schema: unchanged where the types agree, converted where only the layout
/// differs (the width of offsets, views, dictionaries), refused where the values would. The index of a slice that
/// pandas keeps is left out.
///
/// # Errors
///
/// [`Error::Schema`], which names the fields that differ.
pub fn conform(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Error> {
    if Arc::ptr_eq(&batch.schema(), schema) {
        return Ok(batch);
    }
    let batch = without_index(batch, schema)?;
    let given = batch.schema();
    if let Some(difference) = difference(&given, schema, Fit::Values) {
        return Err(Error::Schema(difference));
    }
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (column, field) in batch.columns().iter().zip(schema.fields()) {
        if !field.is_nullable() && column.logical_null_count() > 0 {
            return Err(Error::Schema(format!(
                "field '{}' holds {} nulls, and the stream's schema says that it has none: fill them, or declare the \
                 field nullable",
                field.name(),
                column.logical_null_count()
            )));
        }
        columns.push(if column.data_type() == field.data_type() {
            Arc::clone(column)
        } else {
            cast(column, field.data_type())?
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}

/// The batch without the columns into which pandas puts the index of a slice (`__index_level_0__`), where the stream has
/// none of that name: its rows have no index.
fn without_index(batch: RecordBatch, schema: &Schema) -> Result<RecordBatch, Error> {
    let given = batch.schema();
    let is_index = |field: &Field| {
        let level = field.name().strip_prefix("__index_level_");
        let level = level.and_then(|rest| rest.strip_suffix("__"));
        level.is_some_and(|level| level.parse::<u32>().is_ok())
            && schema.column_with_name(field.name()).is_none()
    };
    let fields = given.fields();
    let kept: Vec<usize> = (0..fields.len())
        .filter(|&at| !is_index(&fields[at]))
        .collect();
    if kept.len() == fields.len() {
        return Ok(batch);
    }
    Ok(batch.project(&kept)?)
}

/// The degree to which types must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// They are the same.
    Exact,
    /// They hold the same values, however laid out.
    Values,
}

/// The difference that keeps batches of one schema from a stream of another; `None` when there is none.
pub fn difference(given: &Schema, expected: &Schema, fit: Fit) -> Option<String> {
    let fits = |a: &DataType, b: &DataType| match fit {
        Fit::Exact => a == b,
        Fit::Values => same_values(a, b),
    };
    let mut said = String::new();
    let (given, expected) = (given.fields(), expected.fields());
    for (at, field) in expected.iter().enumerate() {
        let problem = match given.get(at) {
            None => format!(
                "field {at} '{}' ({}) is missing",
                field.name(),
                field.data_type()
            ),
            Some(other) if other.name() != field.name() => format!(
                "field {at} is '{}' and should be '{}' ({})",
                other.name(),
                field.name(),
                field.data_type()
            ),
            Some(other) if !fits(other.data_type(), field.data_type()) => format!(
                "field '{}' is {} and should be {}",
                field.name(),
                other.data_type(),
                field.data_type()
            ),
            Some(_) => continue,
        };
        let separator = if said.is_empty() { "" } else { "; " };
        let _a_string_takes_anything = write!(said, "{separator}{problem}");
    }
    for (at, extra) in given.iter().enumerate().skip(expected.len()) {
        let separator = if said.is_empty() { "" } else { "; " };
        let _a_string_takes_anything = write!(
            said,
            "{separator}field {at} '{}' ({}) is not in the stream's schema",
            extra.name(),
            extra.data_type()
        );
    }
    if said.is_empty() {
        return None;
    }
    Some(format!(
        "the data does not have the stream's schema: {said}"
    ))
}

/// Whether two types hold the same values, and differ at most in how they lay them out.
pub(crate) fn same_values(a: &DataType, b: &DataType) -> bool {
    use DataType as D;
    if a == b {
        return true;
    }
    match (a, b) {
        (D::Utf8 | D::LargeUtf8 | D::Utf8View, D::Utf8 | D::LargeUtf8 | D::Utf8View)
        | (
            D::Binary | D::LargeBinary | D::BinaryView,
            D::Binary | D::LargeBinary | D::BinaryView,
        ) => true,
        (D::Dictionary(_, a), D::Dictionary(_, b)) => same_values(a, b),
        (D::Dictionary(_, a), b) => same_values(a, b),
        (a, D::Dictionary(_, b)) => same_values(a, b),
        (D::List(a) | D::LargeList(a), D::List(b) | D::LargeList(b)) => {
            same_values(a.data_type(), b.data_type())
        }
        (D::FixedSizeList(a, n), D::FixedSizeList(b, m)) => {
            n == m && same_values(a.data_type(), b.data_type())
        }
        (D::Struct(a), D::Struct(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| a.name() == b.name() && same_values(a.data_type(), b.data_type()))
        }
        _ => false,
    }
}
