//! Records as bytes, for workers of other processes and for captures: pickled.

mod form;
mod memory;
mod records;

use bytes::Bytes;
use pointstamp_channels::Encoder;
use pointstamp_engine::payload::Payload;
use pointstamp_operators::Content;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::batch::{Batch, Records, into_python};
use crate::columns::ffi::import_batches;
use crate::gil::attached;
use crate::raised::exception_of;

pub(crate) use memory::memory_of;

/// Writes records alone, as captures keep them.
pub(crate) fn encode_records(records: &Py<PyList>, out: &mut Encoder) -> PyResult<()> {
    records::encode(records, out)
}

/// The batch that `encode_records` wrote. It unpickles, which can run code.
pub(crate) fn decode_records(bytes: &Bytes) -> PyResult<Records> {
    records::decode(bytes)
}

/// Writes a batch.
fn write(batch: &Batch, out: &mut Encoder) -> PyResult<()> {
    let written = batch.encode(out);
    written.map_err(|error| attached(|py| exception_of(py, error)))
}

/// A list of records, or a `RecordBatch`, as it is sent to other processes.
#[pyfunction]
pub(crate) fn encode_batch(batch: &Bound<'_, PyAny>) -> PyResult<Py<PyBytes>> {
    let py = batch.py();
    let mut out = Encoder::new();
    if let Ok(list) = batch.cast::<PyList>() {
        write(&Records::new(list.clone()).into_batch(), &mut out)?;
    } else {
        import_batches(batch, |columns| write(&Batch::Columns(columns), &mut out))?;
    }
    Ok(PyBytes::new(py, &out.finish().concat()).unbind())
}

/// The batch of bytes that `encode_batch` made.
#[pyfunction]
pub(crate) fn decode_batch<'py>(bytes: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
    let batch = Batch::decode(Bytes::copy_from_slice(bytes.as_bytes()));
    let batch = batch.map_err(|error| exception_of(bytes.py(), error))?;
    into_python(batch, bytes.py())
}
