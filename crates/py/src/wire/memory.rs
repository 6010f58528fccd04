//! The approximate memory that records take, from a look at a few of them.
//!
//! Sources pause by this figure, so that it has to be of the right order and cheap: it is taken for every batch that is
//! made. A few records stand for all, and an element of a container for the others.

use std::ffi::c_ulong;

use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// The number of records that are examined.
const SAMPLE: usize = 3;

/// The depth of the examination.
const DEPTH: u32 = 3;

/// An object without anything in it.
const OBJECT: usize = 48;

/// The approximate number of bytes that the records of a list take.
pub(crate) fn memory_of(records: &Bound<'_, PyList>) -> usize {
    let len = records.len();
    let stride = len.div_ceil(SAMPLE).max(1);
    let (mut seen, mut total) = (0, 0_usize);
    for index in (0..len).step_by(stride) {
        if let Ok(record) = records.get_item(index) {
            seen += 1;
            total = total.saturating_add(object(&record, DEPTH));
        }
    }
    let each = total.checked_div(seen).unwrap_or(0);
    each.saturating_mul(len).saturating_add(len * 8)
}

fn object(value: &Bound<'_, PyAny>, depth: u32) -> usize {
    if value.is_exact_instance_of::<PyInt>() || value.is_exact_instance_of::<PyFloat>() {
        return 32;
    }
    if let Ok(text) = value.cast_exact::<PyString>() {
        return OBJECT + text.len().unwrap_or(0);
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        let parts = tuple.iter_borrowed().take(8);
        let inside: usize = match depth {
            0 => 0,
            _ => parts.map(|part| object(&part, depth - 1)).sum(),
        };
        return OBJECT + tuple.len() * 8 + inside * tuple.len().div_ceil(8);
    }
    if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        return OBJECT + bytes.len().unwrap_or(0);
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        let first = list
            .get_item(0)
            .ok()
            .filter(|_| depth > 0 && !list.is_empty());
        let each = first.map_or(0, |item| object(&item, depth - 1));
        return OBJECT + list.len() * (8 + each);
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        let first = (depth > 0).then(|| dict.iter().next()).flatten();
        let each = first.map_or(0, |(key, value)| {
            object(&key, depth - 1) + object(&value, depth - 1)
        });
        return OBJECT + dict.len() * (24 + each);
    }
    if value.is_none() {
        return 0;
    }
    if let Ok(bytes) = value.cast_exact::<PyByteArray>() {
        return OBJECT + bytes.len();
    }
    other(value, depth)
}

/// Arrays, and objects of any class.
fn other(value: &Bound<'_, PyAny>, depth: u32) -> usize {
    let py = value.py();
    let nbytes = attribute(value, intern!(py, "nbytes"));
    if let Some(bytes) = nbytes.and_then(|n| n.extract::<usize>().ok()) {
        return OBJECT + bytes;
    }
    let own = (depth > 0).then(|| attribute(value, intern!(py, "__dict__")));
    let own = own.flatten();
    let own = own.and_then(|own| own.cast_into::<PyDict>().ok());
    let fields: usize = own.map_or(OBJECT, |own| {
        let fields = own.values();
        let sizes = fields.iter().take(8).map(|field| object(&field, depth - 1));
        sizes.sum::<usize>() + fields.len() * 32
    });
    OBJECT + fields
}

/// Reads an attribute of the object or its class as `object` does: a class's own `__getattr__`, which makes
/// attributes up, is not called. A property may still raise. An `Exception` means that there is no such
/// figure; any other exception is not meant for this place (an interruption), and is sent to the thread
/// again, to be raised where the user's code runs next.
fn attribute<'py>(
    value: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    let py = value.py();
    // SAFETY: attached, with two live objects; it returns a new reference, or null with an exception set.
    let found = unsafe {
        let found = ffi::PyObject_GenericGetAttr(value.as_ptr(), name.as_ptr());
        Bound::from_owned_ptr_or_err(py, found)
    };
    found
        .inspect_err(|error| {
            if !error.is_instance_of::<PyException>(py) {
                send_again(py, error);
            }
        })
        .ok()
}

fn send_again(py: Python<'_>, error: &PyErr) {
    let thread = py
        .import("threading")
        .and_then(|threading| threading.call_method0("get_ident")?.extract::<c_ulong>());
    if let Ok(thread) = thread {
        // SAFETY: attached, with a live exception type, and `thread` is this one.
        unsafe {
            ffi::PyThreadState_SetAsyncExc(thread.cast_signed(), error.get_type(py).as_ptr())
        };
    }
}
