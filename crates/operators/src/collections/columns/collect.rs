//! Collections of columns from streams of record batches, such as [`column_updates`](super::column_updates) makes.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{Field as Column, Schema as ArrowSchema, SchemaRef};
use pointstamp_arrange::Rows;
use pointstamp_engine::pact::Pact;
use pointstamp_order::{PartialOrder, Point};

use super::error::{ColumnsError, Misplaced};
use super::read::rows_of;
use super::{check_columns, time_type, with_changes};
use crate::Error;
use crate::collections::{Builder, Updates, send};
use crate::typed::Typed;
use crate::unary::Unary;

/// Returns the rows of a stream as a collection, and its schema: each row once, or, with `diffs`, as the columns `time`
/// and `diff` say, which come last.
///
/// # Errors
///
/// [`ColumnsError`] for columns that are no collection; those of building an operator.
pub fn collect(
    stream: &Typed<RecordBatch>,
    schema: &SchemaRef,
    diffs: bool,
) -> Result<(Typed<Updates>, SchemaRef), Error> {
    let result = if diffs {
        without_changes(schema, stream.scope().dims())?
    } else {
        schema.clone()
    };
    check_columns(&result)?;
    let kept: Vec<usize> = (0..result.fields().len()).collect();
    let unary = Unary::new(stream, "as_collection", Pact::Pipeline)?;
    if diffs {
        unary.builder().retains_forever(); // changes of later times go on at the times of their batches
    }
    let made = unary.on_messages(move |input, output| {
        let mut builder = Builder::default();
        while let Some((capability, batch)) = input.next()? {
            let from = capability.time();
            let cells = rows_of(&batch.project(&kept)?)?;
            let changes = if diffs {
                Some(Changes::of(&batch, from).map_err(ColumnsError::Misplaced)?)
            } else {
                None
            };
            for index in 0..cells.len() {
                match &changes {
                    None => builder.push(cells.get(index), from, 1),
                    Some(changes) => {
                        let (time, diff) = &changes.0[index];
                        if *diff != 0 {
                            builder.push(cells.get(index), time, *diff);
                        }
                    }
                }
                if builder.is_full() {
                    send(&mut builder, &capability, output)?;
                }
            }
            send(&mut builder, &capability, output)?;
        }
        Ok(())
    });
    Ok((made, result))
}

/// The schema without the two columns that say when and how often.
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

/// When and how often each row of a batch is changed.
struct Changes(Vec<(Point, i64)>);

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
        let coords = coords.as_primitive::<UInt64Type>().values();
        let diffs = diffs.as_primitive::<Int64Type>().values();
        let changes = (diffs.iter().enumerate()).map(|(index, diff)| {
            let at = index * from.dims();
            let time: Point = coords[at..at + from.dims()].iter().copied().collect();
            if from.less_equal(&time) {
                Ok((time, *diff))
            } else {
                Err(Misplaced::Early)
            }
        });
        Ok(Changes(changes.collect::<Result<_, _>>()?))
    }
}
