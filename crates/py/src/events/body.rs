//! The batches of events as bytes: columns as Arrow IPC, records as one pickle and the large buffers beside it.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use pointstamp_channels::Encoder;
use pointstamp_columnar::ipc;
use pointstamp_engine::payload::Payload;
use pointstamp_events::{Contents, EncodedEvent, Run, frame};
use pointstamp_operators::Content;
use pointstamp_order::Point;
use pyo3::prelude::*;

use crate::batch::{Batch, Records};
use crate::errors::{CodecError, IntoException};
use crate::gil::attached;
use crate::wire;

/// A schema, as a capture begins with it: an Arrow IPC stream of an empty batch.
pub(super) fn schema_bytes(schema: &SchemaRef) -> PyResult<Bytes> {
    let empty = RecordBatch::new_empty(Arc::clone(schema));
    let pieces = ipc::encode(&empty).map_err(IntoException::into_exception)?;
    Ok(pieces.concat().into())
}

/// The schema of such bytes.
pub(super) fn schema_of(bytes: Bytes) -> Result<SchemaRef, pointstamp_columnar::Error> {
    Ok(ipc::decode(bytes)?.schema())
}

/// How many values a batch of so many bytes has at most: one for each bit, or [`FREE`].
fn most_values(bytes: usize) -> u64 {
    FREE.max(8 * bytes as u64)
}

/// How many values a batch may have that take no bytes.
const FREE: u64 = 1 << 20;

/// Whether a batch that was encoded as these pieces has more values than a reader takes.
fn is_hollow(columns: &RecordBatch, pieces: &[Bytes]) -> PyResult<bool> {
    let most = most_values(pieces.iter().map(Bytes::len).sum());
    if ipc::values(columns) <= most {
        return Ok(false);
    }
    // Of a slice that counted what lies around it, too.
    let written = ipc::decode(pieces.concat().into()).map_err(IntoException::into_exception)?;
    Ok(ipc::values(&written) > most)
}

/// The frames of a batch at a time: one, or several of a batch that is too long for one.
pub(super) fn frames(
    time: &Point,
    batch: &Batch,
    each: &mut dyn FnMut(Vec<Bytes>) -> PyResult<()>,
) -> PyResult<()> {
    let run = [Run {
        time: time.clone(),
        records: batch.len() as u64,
    }];
    let pieces = match batch {
        Batch::Columns(columns) => {
            if columns.num_rows() > 1 && ipc::footprint(columns) > frame::MOST / 2 {
                return in_halves(time, columns, each);
            }
            let pieces = ipc::encode(columns).map_err(IntoException::into_exception)?;
            if is_hollow(columns, &pieces)? {
                if columns.num_rows() == 1 {
                    return Err(CodecError::new_err(format!(
                        "a row of more than {FREE} values that take no space cannot be captured"
                    )));
                }
                return in_halves(time, columns, each);
            }
            pieces
        }
        records => {
            let records = Records::from_batch(records.clone());
            let mut out = Encoder::new();
            let records = records.map_err(IntoException::into_exception)?;
            wire::encode_records(records.object(), &mut out)?;
            out.finish()
        }
    };
    each(EncodedEvent::messages(&run, pieces).map_err(IntoException::into_exception)?)
}

fn in_halves(
    time: &Point,
    columns: &RecordBatch,
    each: &mut dyn FnMut(Vec<Bytes>) -> PyResult<()>,
) -> PyResult<()> {
    let half = columns.num_rows() / 2;
    let rest = columns.slice(half, columns.num_rows() - half);
    frames(time, &Batch::Columns(columns.slice(0, half)), each)?;
    frames(time, &Batch::Columns(rest), each)
}

/// The batch of an event.
pub(super) fn batch(contents: Contents, body: Bytes) -> PyResult<Batch> {
    match contents {
        Contents::Columns => {
            let most = most_values(body.len());
            let columns = ipc::decode(body).map_err(IntoException::into_exception)?;
            if ipc::values(&columns) > most {
                return Err(CodecError::new_err(
                    "a batch says that it has more values than its bytes could hold",
                ));
            }
            Ok(Batch::Columns(columns))
        }
        Contents::Records => Ok(Records::decode(&body)?.into_batch()),
    }
}

/// The batches of a message at each time of its runs, in order; the runs have as many records as the batch.
pub(super) fn by_time(mut runs: Vec<Run>, batch: Batch) -> PyResult<Vec<(Point, Batch)>> {
    if runs.len() == 1 {
        return Ok(vec![(runs.remove(0).time, batch)]);
    }
    let mut parts = Vec::with_capacity(runs.len());
    let mut at = 0;
    for run in runs {
        let len = usize::try_from(run.records).unwrap_or(usize::MAX);
        parts.push((run.time, slice(&batch, at, len)?));
        at += len;
    }
    Ok(parts)
}

fn slice(batch: &Batch, at: usize, len: usize) -> PyResult<Batch> {
    if let Batch::Columns(columns) = batch {
        return Ok(Batch::Columns(columns.slice(at, len)));
    }
    let records = Records::from_batch(batch.clone()).map_err(IntoException::into_exception)?;
    Ok(attached(|py| {
        Records::new(records.list(py).get_slice(at, at + len)).into_batch()
    }))
}
