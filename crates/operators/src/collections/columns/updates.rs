//! Updates as record batches with a column of times and one of diffs.

use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, Int64Array, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pointstamp_arrange::Rows;
use pointstamp_engine::pact::Pact;
use pointstamp_rows::Cells;

use super::write::{columns_of, columns_of_rows};
use crate::Error;
use crate::collections::Updates;
use crate::typed::Typed;
use crate::unary::Unary;

/// Returns the updates as record batches with two more columns, of times and of diffs, each at its own time.
///
/// # Errors
///
/// Errors of building an operator. The operator fails with [`ColumnsError`](super::ColumnsError) for a row that does
/// not fit the schema.
pub fn updates(stream: &Typed<Updates>, schema: &SchemaRef) -> Result<Typed<RecordBatch>, Error> {
    let all = with_changes(schema, Some(stream.scope().dims()));
    let schema = schema.clone();
    let unary = Unary::new(stream, "updates", Pact::Pipeline)?;
    Ok(unary.on_messages(move |input, output| {
        while let Some((capability, updates)) = input.next()? {
            for (time, indices) in updates.by_time(capability.time()) {
                let changes = Of {
                    updates: &updates,
                    indices: &indices,
                };
                let times = time.coords().repeat(indices.len());
                let batch = changes.batch(Some(times), &schema, &all)?;
                output.send(&capability.delayed(&time, 0)?, batch)?;
            }
        }
        Ok(())
    }))
}

/// Some updates of a message.
struct Of<'a> {
    updates: &'a Updates,
    indices: &'a [usize],
}

impl Of<'_> {
    fn batch(
        &self,
        times: Option<Vec<u64>>,
        schema: &SchemaRef,
        all: &SchemaRef,
    ) -> Result<RecordBatch, Error> {
        let diffs = self.indices.iter();
        let diffs = diffs.map(|index| self.updates.diffs()[*index]).collect();
        let columns = if let Some(columns) = self.columns(schema)? {
            columns
        } else {
            let mut rows = Cells::default();
            for index in self.indices {
                rows.push(self.updates.get(*index).row);
            }
            columns_of_rows(&rows, schema)?
        };
        with_columns(columns, diffs, times, all)
    }

    /// The columns of a schema, where the updates carry columns of its kinds.
    fn columns(&self, schema: &SchemaRef) -> Result<Option<Vec<ArrayRef>>, Error> {
        let Some(columns) = self.updates.columns() else {
            return Ok(None);
        };
        if self.indices.len() == columns.len() {
            return Ok(columns_of(columns, schema));
        }
        let Ok(indices) = self
            .indices
            .iter()
            .map(|index| u32::try_from(*index))
            .collect()
        else {
            return Ok(None);
        };
        let indices: Vec<u32> = indices;
        Ok(columns_of(&columns.taken(&indices.into())?, schema))
    }
}

/// Returns a schema with columns for the changes: the time, where its number of coordinates is given, and the diff.
pub fn with_changes(schema: &SchemaRef, dims: Option<usize>) -> SchemaRef {
    let mut columns: Vec<Arc<Field>> = schema.fields().to_vec();
    if let Some(dims) = dims {
        columns.push(Arc::new(Field::new("time", time_type(dims), false)));
    }
    columns.push(Arc::new(Field::new("diff", DataType::Int64, false)));
    Arc::new(Schema::new(columns))
}

/// The type of times: a number where they have one coordinate, and else a list of so many.
pub(super) fn time_type(dims: usize) -> DataType {
    match i32::try_from(dims) {
        Ok(1) | Err(_) => DataType::UInt64,
        Ok(dims) => {
            DataType::FixedSizeList(Arc::new(Field::new("item", DataType::UInt64, false)), dims)
        }
    }
}

/// Returns rows of a schema as a batch with their changes. The schema of the batch is `all`, from
/// [`with_changes`].
///
/// # Errors
///
/// [`ColumnsError`](super::ColumnsError) for a row that is none of the schema.
pub fn batch_of(
    rows: &Cells,
    diffs: Vec<i64>,
    times: Option<Vec<u64>>,
    schema: &SchemaRef,
    all: &SchemaRef,
) -> Result<RecordBatch, Error> {
    with_columns(columns_of_rows(rows, schema)?, diffs, times, all)
}

/// Columns as a batch with their changes.
fn with_columns(
    mut columns: Vec<ArrayRef>,
    diffs: Vec<i64>,
    times: Option<Vec<u64>>,
    all: &SchemaRef,
) -> Result<RecordBatch, Error> {
    if let Some(times) = times {
        columns.push(times_column(times, all.field(columns.len()).data_type())?);
    }
    columns.push(Arc::new(Int64Array::from(diffs)));
    Ok(RecordBatch::try_new(all.clone(), columns).map_err(pointstamp_columnar::Error::from)?)
}

/// The column of times, from their coordinates.
fn times_column(coords: Vec<u64>, data_type: &DataType) -> Result<ArrayRef, Error> {
    let coords: ArrayRef = Arc::new(UInt64Array::from(coords));
    Ok(match data_type {
        DataType::FixedSizeList(item, dims) => {
            let lists = FixedSizeListArray::try_new(item.clone(), *dims, coords, None);
            Arc::new(lists.map_err(pointstamp_columnar::Error::from)?)
        }
        _ => coords,
    })
}
