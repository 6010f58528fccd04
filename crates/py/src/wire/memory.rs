//! About how much memory records take, from a look at a few of them.
//!
//! Sources pause by this figure, so that it has to be of the right order and cheap: it is taken for every batch that is
//! made. A few records stand for all, and an element of a container for the others.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// How many records are looked at.
const SAMPLE: usize = 3;

/// How deeply.
const DEPTH: u32 = 3;

/// An object without anything in it.
const OBJECT: usize = 48;

/// About how many bytes the records of a list take.
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
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
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

/// Arrays, and objects of any class. An error of theirs is nobody's business here.
fn other(value: &Bound<'_, PyAny>, depth: u32) -> usize {
    let py = value.py();
    let attribute = |name| value.getattr_opt(name).ok().flatten();
    if let Some(bytes) = attribute(intern!(py, "nbytes")).and_then(|n| n.extract::<usize>().ok()) {
        return OBJECT + bytes;
    }
    let own = attribute(intern!(py, "__dict__")).filter(|_| depth > 0);
    let own = own.and_then(|own| own.cast_into::<PyDict>().ok());
    let fields: usize = own.map_or(OBJECT, |own| {
        let fields = own.values();
        let sizes = fields.iter().take(8).map(|field| object(&field, depth - 1));
        sizes.sum::<usize>() + fields.len() * 32
    });
    OBJECT + fields
}
