//! Batches as bytes, for workers of other processes: records pickled, columns as Arrow IPC, updates as they are.
//!
//! The first byte says which of them follows; what follows begins at a multiple of 16.

mod memory;
mod records;

use bytes::{Buf, Bytes};
use pointstamp_channels::Encoder;
use pointstamp_columnar::ipc;
use pointstamp_engine::error::UserResult;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::batch::{Batch, Records};
use crate::collections::updates::Updates;
use crate::columns::ffi::import_batches;
use crate::errors::{CodecError, IntoException};
use crate::raised::Raised;

pub(crate) use memory::memory_of;

const RECORDS: u8 = 0;
const COLUMNS: u8 = 1;
const UPDATES: u8 = 2;

/// Where the contents begin, and large buffers in them.
const ALIGNMENT: usize = ipc::ALIGNMENT;

/// Writes a batch. The bytes before it must be a multiple of 16.
pub(crate) fn encode(batch: &Batch, out: &mut Encoder) -> UserResult<()> {
    write(batch, out).map_err(Raised::here)
}

fn write(batch: &Batch, out: &mut Encoder) -> PyResult<()> {
    match batch {
        Batch::Records(records) => {
            out.put_slice(&[RECORDS]);
            out.align(ALIGNMENT);
            records::encode(records, out)?;
        }
        Batch::Arrow(columns) => {
            let pieces = ipc::encode(columns).map_err(IntoException::into_exception)?;
            out.put_slice(&[COLUMNS]);
            out.align(ALIGNMENT);
            for piece in pieces {
                out.put_bytes(piece);
            }
        }
        Batch::Updates(updates) => {
            out.put_slice(&[UPDATES]);
            out.align(ALIGNMENT);
            updates.encode(out);
        }
        Batch::Sealed(_) => unreachable!("an arrangement's batches stay on their worker"),
    }
    Ok(())
}

/// Reads what `encode` wrote.
pub(crate) fn decode(bytes: Bytes) -> UserResult<Batch> {
    read(bytes).map_err(Raised::here)
}

fn read(mut bytes: Bytes) -> PyResult<Batch> {
    if bytes.len() < ALIGNMENT {
        return Err(not_a_batch());
    }
    let kind = bytes[0];
    bytes.advance(ALIGNMENT);
    match kind {
        RECORDS => records::decode(&bytes),
        COLUMNS => ipc::decode(bytes)
            .map(Batch::Arrow)
            .map_err(IntoException::into_exception),
        UPDATES => Updates::decode(bytes)
            .map(Batch::Updates)
            .ok_or_else(not_a_batch),
        _ => Err(not_a_batch()),
    }
}

/// Writes records alone, as captures keep them.
pub(crate) fn encode_records(records: &Records, out: &mut Encoder) -> PyResult<()> {
    records::encode(records, out)
}

/// The batch that `encode_records` wrote. It unpickles, which can run code.
pub(crate) fn decode_records(bytes: &Bytes) -> PyResult<Batch> {
    records::decode(bytes)
}

/// A list of records, or a `RecordBatch`, as it is sent to other processes.
#[pyfunction]
pub(crate) fn encode_batch(batch: &Bound<'_, PyAny>) -> PyResult<Py<PyBytes>> {
    let py = batch.py();
    let mut out = Encoder::new();
    if let Ok(list) = batch.cast::<PyList>() {
        write(&Batch::records(list.clone()), &mut out)?;
    } else {
        import_batches(batch, |columns| write(&Batch::Arrow(columns), &mut out))?;
    }
    Ok(PyBytes::new(py, &out.finish().concat()).unbind())
}

/// The batch of bytes that `encode_batch` made.
#[pyfunction]
pub(crate) fn decode_batch<'py>(bytes: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
    read(Bytes::copy_from_slice(bytes.as_bytes()))?.into_python(bytes.py())
}

fn not_a_batch() -> PyErr {
    CodecError::new_err("these bytes are not a batch of records")
}
