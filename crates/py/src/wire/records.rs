//! Records as bytes: one pickle, and the large buffers beside it.
//!
//! ```text
//! u32 records | u32 buffers | u64 length of the pickle | u64 length of each buffer
//! the pickle | each buffer                                   (each at a multiple of 16)
//! ```
//!
//! The interpreter is attached once for a batch. A large part is copied once into the block that is sent, and once
//! out of the received one, as a `bytearray`: an array that is made of it can be written to. Sent blocks refer to no
//! Python objects, so that the threads that write connections never need the interpreter.

use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use pointstamp_channels::Encoder;
use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyList};

use super::form::{ALIGNMENT, not_a_batch};
use crate::gil::attached;

/// Buffers smaller than this stay in the pickle: an object for each costs more than a copy.
const APART: usize = 4096;

/// CPython's `PyBUF_WRITE`, which is part of its stable ABI.
const PYBUF_WRITE: std::ffi::c_int = 0x200;

/// The function that the pickler calls with each buffer.
#[pyclass(frozen)]
struct Apart(Mutex<Vec<Bytes>>);

#[pymethods]
impl Apart {
    /// Takes a copy of a large buffer; true leaves it in the pickle.
    fn __call__(&self, buffer: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = buffer.py();
        let Ok(view) = buffer.call_method0(intern!(py, "raw")) else {
            return Ok(true); // not contiguous: the pickler reports it
        };
        let len: usize = view.getattr(intern!(py, "nbytes"))?.extract()?;
        if len < APART {
            view.call_method0(intern!(py, "release"))?;
            return Ok(true);
        }
        let copy = copied(&view, len)?;
        view.call_method0(intern!(py, "release"))?;
        let mut kept = self.0.lock();
        kept.push(copy);
        Ok(false)
    }
}

/// The bytes of a contiguous `memoryview` of this length.
fn copied(view: &Bound<'_, PyAny>, len: usize) -> PyResult<Bytes> {
    let py = view.py();
    let size = ffi::Py_ssize_t::try_from(len).map_err(|_| PyOverflowError::new_err("too long"))?;
    let mut copy = BytesMut::zeroed(len);
    // SAFETY: the memory is `len` bytes long, is written to by Python only while it is exposed here, and outlives the view
    // of it, which is released below before anything else sees either: only the assignment gets to know it.
    let exposed = unsafe {
        let start = copy.as_mut_ptr().cast();
        let view = ffi::PyMemoryView_FromMemory(start, size, PYBUF_WRITE);
        Bound::from_owned_ptr_or_err(py, view)?
    };
    let assigned = exposed.set_item(pyo3::types::PySlice::full(py), view);
    let released = exposed.call_method0(intern!(py, "release"));
    if released.is_err() {
        std::mem::forget(copy); // Python still has a view of it
        return Err(assigned.err().unwrap_or_else(not_a_batch));
    }
    assigned?;
    Ok(copy.freeze())
}

/// The functions of `pointstamp.encoders`.
struct Pickling {
    dumps: Py<PyAny>,
    loads: Py<PyAny>,
}

impl Pickling {
    fn get(py: Python<'_>) -> PyResult<&Pickling> {
        static PICKLING: PyOnceLock<Pickling> = PyOnceLock::new();
        PICKLING.get_or_try_init(py, || {
            let module = py.import("pointstamp.encoders")?;
            Ok(Pickling {
                dumps: module.getattr("dumps")?.unbind(),
                loads: module.getattr("loads")?.unbind(),
            })
        })
    }
}

/// Writes records.
pub(super) fn encode(records: &Py<PyList>, out: &mut Encoder) -> PyResult<()> {
    attached(|py| {
        let apart = Bound::new(py, Apart(Mutex::default()))?;
        let list = records.bind(py);
        let pickled = Pickling::get(py)?.dumps.bind(py).call1((list, &apart))?;
        let pickled = pickled.cast_into::<PyBytes>()?;
        let buffers = std::mem::take(&mut *apart.get().0.lock());
        let count = |n: usize| {
            u32::try_from(n)
                .map_err(|_| PyOverflowError::new_err("a batch is too large to be sent"))
        };
        out.put_slice(&count(list.len())?.to_le_bytes());
        out.put_slice(&count(buffers.len())?.to_le_bytes());
        out.put_slice(&(pickled.as_bytes().len() as u64).to_le_bytes());
        for buffer in &buffers {
            out.put_slice(&(buffer.len() as u64).to_le_bytes());
        }
        out.align(ALIGNMENT);
        out.put_slice(pickled.as_bytes());
        for buffer in buffers {
            out.align(ALIGNMENT);
            out.put_bytes(buffer);
        }
        Ok(())
    })
}

/// Reads records in the format of `encode`.
pub(super) fn decode(bytes: &Bytes) -> PyResult<Py<PyList>> {
    let parts = split(bytes).ok_or_else(not_a_batch)?;
    attached(|py| {
        let buffers = parts
            .buffers
            .iter()
            .map(|buffer| PyByteArray::new(py, buffer));
        let buffers = PyList::new(py, buffers.collect::<Vec<_>>())?;
        let pickled = PyBytes::new(py, &parts.pickled);
        let list = Pickling::get(py)?
            .loads
            .bind(py)
            .call1((pickled, buffers))?;
        let list = list.cast_into::<PyList>()?;
        if list.len() != parts.records {
            return Err(not_a_batch());
        }
        Ok(list.unbind())
    })
}

struct Parts {
    records: usize,
    pickled: Bytes,
    buffers: Vec<Bytes>,
}

/// Returns the parts, or `None` where the lengths do not fit the bytes. Allocates in proportion to the bytes.
fn split(bytes: &Bytes) -> Option<Parts> {
    let mut rest = bytes.clone();
    let records = usize::try_from(rest.try_get_u32_le().ok()?).ok()?;
    let count = usize::try_from(rest.try_get_u32_le().ok()?).ok()?;
    if rest.len() / 8 < count.checked_add(1)? {
        return None;
    }
    let mut lengths = (0..=count).map(|_| usize::try_from(rest.get_u64_le()).ok());
    let lengths: Vec<usize> = lengths.by_ref().collect::<Option<_>>()?;
    let mut at = (bytes.len() - rest.len()).next_multiple_of(ALIGNMENT);
    let mut parts = Vec::with_capacity(lengths.len());
    for len in lengths {
        let start = at.next_multiple_of(ALIGNMENT);
        at = start.checked_add(len)?;
        if at > bytes.len() {
            return None;
        }
        parts.push(bytes.slice(start..at));
    }
    let pickled = parts.remove(0);
    (at == bytes.len()).then_some(Parts {
        records,
        pickled,
        buffers: parts,
    })
}
