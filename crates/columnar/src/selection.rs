//! Some of the rows of batches: filtered by a condition, at positions, and all of them in order.
//!
//! It is for every type of Arrow: types that pyarrow's kernels do not support (views, unions, columns of runs) are
//! picked like any other. Order is that of values, with NaN as the greatest number and nulls last, in both directions;
//! `-0.0` is `0.0`, and equal rows stay in their order. Cost: a copy of the rows, and for an order a copy of its columns
//! in a form that compares by bytes.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow_cast::cast;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, SortOptions};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;

use crate::dictionary::{hydrate, plain_type};
use crate::error::Error;
use crate::floats::canonical;
use crate::ordered::{Order, TOGETHER, in_order};
use crate::schema::{find_column, project};

/// The rows for which a condition is true.
///
/// # Errors
///
/// An error of a kernel.
pub fn rows_where(batch: &RecordBatch, condition: &BooleanArray) -> Result<RecordBatch, Error> {
    Ok(filter_record_batch(batch, condition)?)
}

/// The rows at places, in the order of these.
///
/// # Errors
///
/// An error of a kernel, such as for a place where there is no row.
pub fn rows_at(batch: &RecordBatch, places: &UInt32Array) -> Result<RecordBatch, Error> {
    Ok(take_record_batch(batch, places)?)
}

/// The columns of these names, by which rows can be brought into order.
///
/// # Errors
///
/// As [`find_column`], and [`Error::Unordered`] for a column whose values have no order.
pub fn order_columns<N: AsRef<str>>(schema: &Schema, names: &[N]) -> Result<Vec<usize>, Error> {
    let at = |name: &N| {
        let at = find_column(schema, name.as_ref())?;
        if has_order(schema.field(at).data_type()) {
            return Ok(at);
        }
        Err(Error::Unordered {
            name: name.as_ref().to_owned(),
            data_type: schema.field(at).data_type().clone(),
        })
    };
    names.iter().map(at).collect()
}

/// The rows of batches of one schema in the order of some columns; in one batch, or in as many as offsets and dictionaries have
/// room for. Without columns no row is before another: the batches are returned as they are.
///
/// # Errors
///
/// An error of a kernel.
pub fn rows_in_order(
    batches: &[RecordBatch],
    by: &[usize],
    descending: bool,
) -> Result<Vec<RecordBatch>, Error> {
    rows_in_order_within(batches, by, descending, TOGETHER)
}

/// Orders rows as [`rows_in_order`] does, with a limit on the bytes of text in a column, or elements of
/// lists, that are brought together.
///
/// # Errors
///
/// An error of a kernel.
pub fn rows_in_order_within(
    batches: &[RecordBatch],
    by: &[usize],
    descending: bool,
    limit: usize,
) -> Result<Vec<RecordBatch>, Error> {
    if by.is_empty() {
        return Ok(batches.to_vec()); // a `RowConverter` of no columns makes no rows
    }
    in_order(batches, limit, |batches| {
        let keys: Vec<Vec<ArrayRef>> = batches.iter().map(|rows| project(rows, by)).collect();
        let keys = comparable_of(&keys, descending)?;
        let compare = |one, other| keys.row(one).cmp(&keys.row(other));
        Ok(Some(Order::of(keys.num_rows(), compare)))
    })
}

/// Whether values of a type have an order.
pub(crate) fn has_order(data_type: &DataType) -> bool {
    let plain = plain_type(data_type);
    !matches!(
        plain,
        DataType::Map(..) | DataType::Union(..) | DataType::Interval(_)
    ) && RowConverter::supports_fields(&[SortField::new(plain)])
}

/// Converts columns to a form whose rows compare in their order.
///
/// # Errors
///
/// An error of a kernel.
pub(crate) fn comparable(columns: &[ArrayRef], descending: bool) -> Result<Rows, Error> {
    comparable_of(&[columns.to_vec()], descending)
}

/// The same for columns of several batches, of which there is one at least: their rows end to end.
fn comparable_of(batches: &[Vec<ArrayRef>], descending: bool) -> Result<Rows, Error> {
    let last = SortOptions {
        descending,
        nulls_first: false,
    };
    let mut given: Vec<Vec<ArrayRef>> = Vec::new();
    let mut fields = Vec::new();
    for columns in batches {
        let mut all: Vec<ArrayRef> = Vec::new();
        fields.clear();
        for column in columns {
            let column = canonical(&hydrate(column)?)?;
            let data_type = column.data_type().clone();
            fields.push(SortField::new_with_options(data_type, last));
            all.push(column);
        }
        given.push(all);
    }
    let converter = RowConverter::new(fields)?;
    let mut rows = converter.empty_rows(0, 0);
    for columns in &given {
        converter.append(&mut rows, columns)?;
    }
    Ok(rows)
}

// ------------------------------------------------------------ for kernels that know no views

/// The rows with plain columns in place of views, at any depth, and of columns of runs: for kernels that
/// support neither.
///
/// # Errors
///
/// An error of a kernel.
pub fn without_views(batch: &RecordBatch) -> Result<RecordBatch, Error> {
    let schema = batch.schema();
    let fields: Vec<FieldRef> = schema.fields().iter().map(viewless_field).collect();
    if schema
        .fields()
        .iter()
        .zip(&fields)
        .all(|(one, other)| one.data_type() == other.data_type())
    {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().zip(&fields).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(Arc::clone(column));
        }
        cast(column, field.data_type())
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let plain: SchemaRef = Arc::new(Schema::new(fields).with_metadata(schema.metadata().clone()));
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(plain, columns, &options)?)
}

fn viewless_field(field: &FieldRef) -> FieldRef {
    let data_type = viewless(field.data_type());
    if data_type == *field.data_type() {
        return Arc::clone(field);
    }
    let field: Field = field.as_ref().clone();
    Arc::new(field.with_data_type(data_type))
}

fn viewless(data_type: &DataType) -> DataType {
    use DataType as D;
    match data_type {
        D::Utf8View => D::LargeUtf8,
        D::BinaryView => D::LargeBinary,
        D::ListView(field) | D::LargeListView(field) | D::LargeList(field) => {
            D::LargeList(viewless_field(field))
        }
        D::RunEndEncoded(_, field) => viewless(field.data_type()),
        D::List(field) => D::List(viewless_field(field)),
        D::FixedSizeList(field, width) => D::FixedSizeList(viewless_field(field), *width),
        D::Struct(fields) => D::Struct(fields.iter().map(viewless_field).collect()),
        D::Map(entries, sorted) => D::Map(viewless_field(entries), *sorted),
        D::Dictionary(index, value) => D::Dictionary(index.clone(), Box::new(viewless(value))),
        other => other.clone(),
    }
}
