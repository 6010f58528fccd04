//! Collections of columns from streams of record batches, such as [`updates`](super::updates()) makes.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::{Field as Column, Schema as ArrowSchema, SchemaRef};
use pointstamp_engine::pact::Pact;
use pointstamp_order::Point;

use super::error::{ColumnsError, Misplaced};
use super::plain::{PlainColumns, pieces};
use super::{check_columns, time_type, with_changes};
use crate::Error;
use crate::collections::updates::Updates;
use crate::typed::Typed;
use crate::unary::Unary;

/// Returns the rows of a stream as a collection: each row once, or, with `diffs`, as the columns `time` and `diff` say,
/// which come last.
///
/// # Errors
///
/// [`ColumnsError`] for columns that are no collection; errors of building an operator.
pub fn collect(
    stream: &Typed<RecordBatch>,
    schema: &SchemaRef,
    diffs: bool,
) -> Result<Typed<Updates>, Error> {
    let result = collect_schema(schema, diffs, stream.scope().dims())?;
    let kept: Vec<usize> = (0..result.fields().len()).collect();
    let unary = Unary::new(stream, "to_collection", Pact::Pipeline)?;
    if diffs {
        unary.builder().retains_forever(); // changes of later times are sent at the times of their batches
    }
    Ok(unary.on_messages(move |input, output| {
        while let Some((capability, batch)) = input.next()? {
            let from = capability.time();
            for piece in pieces(&batch) {
                let columns = PlainColumns::of(&piece.project(&kept)?)?;
                // Readers may keep updates for long, and a program may change memory that its batches share with it.
                let columns = if Updates::carries(&columns) {
                    columns.owned()?
                } else {
                    columns
                };
                let updates = if diffs {
                    let changes = Changes::of(&piece, from);
                    changes.map_err(ColumnsError::Misplaced)?.of_rows(columns)?
                } else {
                    let once = vec![1; columns.len()];
                    Updates::of_columns(columns, once, Vec::new(), from.dims())
                };
                if !updates.is_empty() {
                    output.send(&capability, updates)?;
                }
            }
        }
        Ok(())
    }))
}

/// Returns the schema of the result of [`collect`], for a stream whose times have `dims` coordinates.
///
/// # Errors
///
/// [`ColumnsError`] for columns that are no collection.
pub fn collect_schema(
    schema: &SchemaRef,
    diffs: bool,
    dims: usize,
) -> Result<SchemaRef, ColumnsError> {
    let result = if diffs {
        without_changes(schema, dims)?
    } else {
        schema.clone()
    };
    check_columns(&result)?;
    Ok(result)
}

/// The schema without the two columns of times and of numbers of occurrences.
fn without_changes(schema: &SchemaRef, dims: usize) -> Result<SchemaRef, ColumnsError> {
    let (rows, changes) = schema
        .fields()
        .split_at(schema.fields().len().saturating_sub(2));
    let plain: SchemaRef = ArrowSchema::new(rows.to_vec()).into();
    let expected = with_changes(&plain, Some(dims));
    let expected = &expected.fields()[rows.len()..];
    let same = |(a, b): (&_, &_)| -> bool {
        let (a, b): (&std::sync::Arc<Column>, &std::sync::Arc<Column>) = (a, b);
        a.name() == b.name() && a.data_type().equals_datatype(b.data_type())
    };
    if changes.len() == 2 && changes.iter().zip(expected).all(same) {
        return Ok(plain);
    }
    Err(ColumnsError::NoUpdates {
        time: time_type(dims),
    })
}

/// The time and the diff of each row of a batch.
struct Changes {
    /// `dims` coordinates for each row, or none where all are at the stream's time.
    coords: Vec<u64>,
    dims: usize,
    diffs: Vec<i64>,
}

impl Changes {
    fn of(batch: &RecordBatch, from: &Point) -> Result<Changes, Misplaced> {
        let [.., times, diffs] = batch.columns() else {
            return Err(Misplaced::NoTime);
        };
        let coords = times
            .as_fixed_size_list_opt()
            .map_or(times, |lists| lists.values());
        if [times, diffs, coords]
            .iter()
            .any(|column| column.null_count() > 0)
        {
            return Err(Misplaced::Null);
        }
        let dims = from.dims();
        // Batches of another process may have other types than the stream's schema.
        let coords = coords.as_primitive_opt::<UInt64Type>();
        let diffs = diffs.as_primitive_opt::<Int64Type>();
        let (Some(coords), Some(diffs)) = (coords, diffs) else {
            return Err(Misplaced::NoTime);
        };
        let coords = coords.values();
        let early = |time: &[u64]| {
            time.iter()
                .zip(from.coords())
                .any(|(own, least)| own < least)
        };
        if coords.chunks_exact(dims).any(early) {
            return Err(Misplaced::Early);
        }
        let apart = coords.chunks_exact(dims).any(|time| time != from.coords());
        Ok(Changes {
            coords: if apart { coords.to_vec() } else { Vec::new() },
            dims,
            diffs: diffs.values().to_vec(),
        })
    }

    /// The updates of columns that have these times and diffs. Rows with a diff of 0 are left out.
    fn of_rows(self, columns: PlainColumns) -> Result<Updates, pointstamp_columnar::Error> {
        let there: BooleanArray = self.diffs.iter().map(|diff| Some(*diff != 0)).collect();
        let updates = Updates::of_columns(columns, self.diffs, self.coords, self.dims);
        updates.filtered(&there)
    }
}
