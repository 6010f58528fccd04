//! Batches of events as bytes: columns as Arrow IPC, records of the host in the host's form.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use pointstamp_channels::Encoder;
use pointstamp_columnar::ipc;
use pointstamp_engine::payload::Payload;
use pointstamp_events::{Contents, EncodedEvent, Run, frame};
use pointstamp_order::Point;

use super::error::CaptureError;
use crate::Error;
use crate::batch::{Batch, Content};
use crate::host::{self, HostBatch};

/// The number of values of a batch that may take no bytes.
const FREE: u64 = 1 << 20;

/// Returns a schema as a capture begins with it: an Arrow IPC stream of an empty batch.
pub(super) fn schema_bytes(schema: &SchemaRef) -> Result<Bytes, CaptureError> {
    let empty = RecordBatch::new_empty(Arc::clone(schema));
    Ok(ipc::encode(&empty)?.concat().into())
}

/// Returns the schema of such bytes.
pub(super) fn schema_of(bytes: Bytes) -> Result<SchemaRef, pointstamp_columnar::Error> {
    Ok(ipc::decode(bytes)?.schema())
}

/// Returns the most values of a batch of so many bytes: one for each bit, or [`FREE`].
fn most_values(bytes: usize) -> u64 {
    FREE.max(8 * bytes as u64)
}

/// Returns whether a batch that was encoded as these pieces has more values than a reader takes.
fn is_hollow(columns: &RecordBatch, pieces: &[Bytes]) -> Result<bool, CaptureError> {
    let most = most_values(pieces.iter().map(Bytes::len).sum());
    if ipc::values(columns) <= most {
        return Ok(false);
    }
    // The size of a slice that counted the memory around it, too.
    let written = ipc::decode(pieces.concat().into())?;
    Ok(ipc::values(&written) > most)
}

/// Emits the frames of a batch at a time: one, or several for a batch that is too long for one.
pub(super) fn frames(
    time: &Point,
    batch: &Batch,
    each: &mut dyn FnMut(Vec<Bytes>) -> Result<(), CaptureError>,
) -> Result<(), CaptureError> {
    let run = [Run {
        time: time.clone(),
        records: batch.len() as u64,
    }];
    let pieces = match batch {
        Batch::Columns(columns) => {
            if columns.num_rows() > 1 && ipc::footprint(columns) > frame::MOST / 2 {
                return in_halves(time, columns, each);
            }
            let pieces = ipc::encode(columns)?;
            if is_hollow(columns, &pieces)? {
                if columns.num_rows() == 1 {
                    return Err(CaptureError::Hollow { most: FREE });
                }
                return in_halves(time, columns, each);
            }
            pieces
        }
        records => {
            let records = Arc::<dyn HostBatch>::from_batch(records.clone())?;
            let mut out = Encoder::new();
            records.encode(&mut out).map_err(CaptureError::Host)?;
            out.finish()
        }
    };
    each(EncodedEvent::messages(&run, pieces)?)
}

fn in_halves(
    time: &Point,
    columns: &RecordBatch,
    each: &mut dyn FnMut(Vec<Bytes>) -> Result<(), CaptureError>,
) -> Result<(), CaptureError> {
    let half = columns.num_rows() / 2;
    let rest = columns.slice(half, columns.num_rows() - half);
    frames(time, &Batch::Columns(columns.slice(0, half)), each)?;
    frames(time, &Batch::Columns(rest), each)
}

/// Why bytes are no batch.
pub(super) enum Undecoded {
    /// They are damaged in this way.
    Damaged(String),
    /// The host failed.
    Other(CaptureError),
}

/// Returns the batch of an event.
pub(super) fn batch(contents: Contents, body: &Bytes) -> Result<Batch, Undecoded> {
    match contents {
        Contents::Columns => {
            let most = most_values(body.len());
            let columns = ipc::decode(body.clone());
            let columns = columns.map_err(|error| Undecoded::Damaged(error.to_string()))?;
            if ipc::values(&columns) > most {
                let what = "a batch says that it has more values than its bytes could hold";
                return Err(Undecoded::Damaged(what.to_owned()));
            }
            Ok(Batch::Columns(columns))
        }
        Contents::Records => {
            let decoder = host::decoder().ok_or(Undecoded::Other(Error::NotABatch.into()))?;
            let records = decoder(body).map_err(|error| match error.downcast::<Error>() {
                Ok(error) => match *error {
                    Error::Unreadable(what) => Undecoded::Damaged(what),
                    other => Undecoded::Other(other.into()),
                },
                Err(error) => Undecoded::Other(CaptureError::Host(error)),
            })?;
            Ok(Batch::Host(records))
        }
    }
}

/// Splits the batch of a message at the times of its runs, in order; the runs have as many records as the batch.
pub(super) fn by_time(mut runs: Vec<Run>, batch: Batch) -> Vec<(Point, Batch)> {
    if runs.len() == 1 {
        return vec![(runs.remove(0).time, batch)];
    }
    let mut at = 0;
    let parts = runs.into_iter().map(|run| {
        let len = usize::try_from(run.records).unwrap_or(usize::MAX);
        let part = slice(&batch, at, len);
        at += len;
        (run.time, part)
    });
    parts.collect()
}

fn slice(batch: &Batch, at: usize, len: usize) -> Batch {
    match batch {
        Batch::Columns(columns) => Batch::Columns(columns.slice(at, len)),
        Batch::Host(records) => Batch::Host(records.slice(at, len)),
        other => other.clone(), // events have no others
    }
}
