//! Batches as bytes, for workers of other processes: records pickled, columns as Arrow IPC, updates as they are.
//!
//! The first byte says which of them follows; what follows begins at a multiple of 16.

mod form;
mod memory;
mod records;

use bytes::{Buf, Bytes};
use pointstamp_channels::Encoder;
use pointstamp_columnar::ipc;
use pointstamp_engine::error::UserResult;
use pointstamp_engine::payload::Payload;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::batch::{Batch, Records};
use crate::collections::updates::Updates;
use crate::columns::ffi::import_batches;
use crate::errors::IntoException;
use crate::raised::Raised;

use form::{ALIGNMENT, not_a_batch};
pub(crate) use memory::memory_of;

const RECORDS: u8 = 0;
const COLUMNS: u8 = 1;
const UPDATES: u8 = 2;

impl Payload for Batch {
    fn len(&self) -> usize {
        match self {
            Batch::Records(records) => records.count(),
            Batch::Arrow(columns) => columns.num_rows(),
            Batch::Updates(updates) => updates.len(),
            Batch::Sealed(sealed) => sealed.len,
        }
    }

    fn encode(&self, out: &mut Encoder) -> UserResult<()> {
        write(self, out).map_err(Raised::here)
    }

    fn decode(bytes: Bytes) -> UserResult<Self> {
        read(bytes).map_err(Raised::here)
    }

    fn footprint(&self) -> usize {
        match self {
            Batch::Records(records) => records.size(),
            Batch::Arrow(columns) => ipc::footprint(columns),
            Batch::Updates(updates) => updates.footprint(),
            // It is the arrangement's, whether the message is there or not.
            Batch::Sealed(_) => 0,
        }
    }

    fn left(&mut self, dims: usize) {
        if let Batch::Updates(updates) = self {
            updates.left(dims);
        }
    }
}

/// Writes a batch. The bytes before it must be a multiple of 16.
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

/// Reads what `write` wrote.
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
