//! Collections of columns from streams of record batches, such as [`column_updates`](super::column_updates) makes.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{Field as Column, Schema as ArrowSchema, SchemaRef};
use pointstamp_arrange::Rows;
use pointstamp_engine::pact::Pact;
use pointstamp_order::{PartialOrder, Point};
use pyo3::prelude::*;

use super::read::rows_of;
use super::{check_columns, time_type, with_changes};
use crate::columns::schema::Schema;
use crate::errors::{GraphError, IntoException, TimeError};
use crate::raised::Raised;
use crate::stream::Stream;
use pointstamp_operators::Input;
use pointstamp_operators::collections::{Builder, send};

/// The rows of a stream as a collection, and its schema: each row once, or, with `diffs`, as the columns `time` and `diff` say,
/// which come last.
#[pyfunction]
pub(crate) fn collect_columns(
    stream: &Stream,
    schema: &Schema,
    diffs: bool,
) -> PyResult<(Stream, Schema)> {
    let typed = stream.typed::<RecordBatch>()?;
    let rows = if diffs {
        without_changes(&schema.schema, typed.scope().dims())?
    } else {
        schema.schema.clone()
    };
    let result = Schema::new(rows.clone());
    check_columns(&result)?;
    let kept: Vec<usize> = (0..rows.fields().len()).collect();
    let unary = stream.unary("as_collection", Pact::Pipeline)?;
    if diffs {
        unary.builder().retains_forever(); // changes of later times go on at the times of their batches
    }
    let made = unary.on_messages(move |input: &Input<RecordBatch>, output| {
        let mut builder = Builder::default();
        while let Some((capability, batch)) = input.next()? {
            let from = capability.time();
            let cells = rows_of(&batch.project(&kept)?)
                .map_err(|error| Raised::here(error.into_exception()))?;
            let changes = if diffs {
                Some(Changes::of(&batch, from).map_err(Raised::here)?)
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
    Ok((Stream::of(stream.home(), made), result))
}

/// The schema without the two columns that say when and how often.
fn without_changes(schema: &SchemaRef, dims: usize) -> PyResult<SchemaRef> {
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
    Err(GraphError::new_err(format!(
        "as_collection(diffs=True) takes what updates() gives: the last two columns are 'time' of type {} and 'diff' of type \
         Int64, and this stream has no such columns",
        time_type(dims)
    )))
}

/// When and how often each row of a batch is changed.
struct Changes(Vec<(Point, i64)>);

impl Changes {
    fn of(batch: &RecordBatch, from: &Point) -> PyResult<Changes> {
        let refused = |what: &str| {
            TimeError::new_err(format!(
                "an update of as_collection(diffs=True) {what}: its time is at or after that of the stream, and neither time \
                 nor diff is null"
            ))
        };
        let [.., times, diffs] = batch.columns() else {
            return Err(refused("has no time"));
        };
        let coords = times
            .as_fixed_size_list_opt()
            .map_or(times, |lists| lists.values());
        if [times, diffs, coords]
            .iter()
            .any(|column| column.null_count() > 0)
        {
            return Err(refused("has a null"));
        }
        let coords = coords.as_primitive::<UInt64Type>().values();
        let diffs = diffs.as_primitive::<Int64Type>().values();
        let changes = (diffs.iter().enumerate()).map(|(index, diff)| {
            let at = index * from.dims();
            let time: Point = coords[at..at + from.dims()].iter().copied().collect();
            if from.less_equal(&time) {
                Ok((time, *diff))
            } else {
                Err(refused("is early"))
            }
        });
        Ok(Changes(changes.collect::<PyResult<_>>()?))
    }
}
