//! Records as bytes, for workers of other processes and for captures: pickled.

mod form;
mod memory;
mod records;

use bytes::Bytes;
use pointstamp_channels::Encoder;
use pyo3::prelude::*;
use pyo3::types::PyList;

pub(crate) use memory::memory_of;

/// Writes records alone, as captures keep them.
pub(crate) fn encode_records(records: &Py<PyList>, out: &mut Encoder) -> PyResult<()> {
    records::encode(records, out)
}

/// The list that `encode_records` wrote. It unpickles, which can run code.
pub(crate) fn decode_records(bytes: &Bytes) -> PyResult<Py<PyList>> {
    records::decode(bytes)
}
