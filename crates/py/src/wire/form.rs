//! The common part of all forms of a batch as bytes.

use pointstamp_columnar::ipc;
use pyo3::PyErr;

use crate::errors::CodecError;

/// The alignment of the contents, and of large buffers in them.
pub(super) const ALIGNMENT: usize = ipc::ALIGNMENT;

pub(super) fn not_a_batch() -> PyErr {
    CodecError::new_err("these bytes are not a batch of records")
}
