//! Routing Python's keys to 64 bits, the same on every machine, in every process and run (`stable_hash`).
//!
//! The scheme is [`pointstamp_columnar::hash`]'s, which columns share: a key in a column goes where the same Python value
//! goes. Keys that Python holds equal hash the same (`1 == 1.0 == True`, within tuples too), and subclasses (a named
//! tuple, an `IntEnum`) as their base, with which they compare equal. Other types have a simpler key that stands for each:
//! `pointstamp.keys` says which.
//!
//! Cost: one C call and one compare for an exact `int`; one C call and XXH3 over the bytes for a
//! `str` (the interpreter keeps the UTF-8 form of a `str` that is not ASCII); no allocation for
//! tuples of up to eight elements.

use pointstamp_columnar::hash::{
    hash_bytes, hash_float, hash_none, hash_tagged, hash_tuple, hash_utf8,
};
use pointstamp_order::worker_of_hash;
use pyo3::exceptions::{PyRecursionError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString, PyTuple};

/// Tuples nested deeper than this are refused, before they could exhaust the stack.
const MAX_DEPTH: usize = 100;

/// 64 bits that depend only on the value of ``key``: the same on every machine, process and run.
///
/// Keys that are equal hash the same, as Python has it: ``1``, ``1.0`` and ``True`` do. An ``int``
/// hashes to its value modulo 2**64. This is where :meth:`Stream.exchange` sends a record.
///
/// Args:
///     key: a number (``int``, ``float``, ``Decimal``, ``Fraction``, a NumPy scalar), ``str``, ``bytes``, ``bool``,
///         ``None``, ``date``, ``datetime``, ``time``, ``timedelta``, ``UUID``, ``Enum``, a type that
///         ``register_key`` knows, or a tuple, ``frozenset`` or frozen dataclass of them.
///
/// Returns:
///     An ``int`` from 0 to 2**64 - 1.
///
/// Raises:
///     TypeError: If ``key`` is, or holds, anything else; it names the type.
///
/// Examples:
///     >>> from pointstamp import stable_hash
///     >>> stable_hash(7), stable_hash(7.0), stable_hash(-1)
///     (7, 7, 18446744073709551615)
///     >>> stable_hash("timely")
///     26518521954623817
///     >>> stable_hash(("a", 1)) == stable_hash(("a", True))
///     True
#[pyfunction]
#[pyo3(signature = (key))]
pub(crate) fn stable_hash(key: &Bound<'_, PyAny>) -> PyResult<u64> {
    hash(key, 0)
}

/// The worker that has the key group of a key, of so many.
#[pyfunction]
pub(crate) fn worker_of_key(key: &Bound<'_, PyAny>, peers: usize) -> PyResult<usize> {
    Ok(worker_of_hash(route_hash(key)?, peers.max(1)))
}

/// The stable hash of a key, from which its worker follows.
///
/// # Errors
///
/// `TypeError` for a key that has no stable hash, naming its type.
#[inline]
pub(crate) fn route_hash(key: &Bound<'_, PyAny>) -> PyResult<u64> {
    if key.is_exact_instance_of::<PyInt>() {
        return Ok(hash_int(key));
    }
    hash(key, 0)
}

/// Refuses a key for which no worker can be found. Keys of common types are accepted without computing a
/// hash.
///
/// # Errors
///
/// As [`route_hash`].
pub(crate) fn check_route(key: &Bound<'_, PyAny>) -> PyResult<()> {
    if key.is_exact_instance_of::<PyInt>()
        || key.is_exact_instance_of::<PyString>()
        || key.is_exact_instance_of::<PyBytes>()
        || key.is_exact_instance_of::<PyFloat>()
        || key.is_none()
    {
        return Ok(());
    }
    route_hash(key).map(drop)
}

fn hash(key: &Bound<'_, PyAny>, depth: usize) -> PyResult<u64> {
    if let Ok(text) = key.cast::<PyString>() {
        hash_str(text)
    } else if key.is_instance_of::<PyInt>() {
        Ok(hash_int(key))
    } else if let Ok(tuple) = key.cast::<PyTuple>() {
        if depth == MAX_DEPTH {
            return Err(too_deep());
        }
        hash_tuple(
            tuple
                .iter_borrowed()
                .map(|element| hash(&element, depth + 1)),
        )
    } else if let Ok(bytes) = key.cast::<PyBytes>() {
        Ok(hash_bytes(bytes.as_bytes()))
    } else if let Ok(float) = key.cast::<PyFloat>() {
        Ok(hash_float(float.value()))
    } else if key.is_none() {
        Ok(hash_none())
    } else {
        hash_simplified(key, depth)
    }
}

/// Hashes a key of another type, by the simpler key that it equals.
fn hash_simplified(key: &Bound<'_, PyAny>, depth: usize) -> PyResult<u64> {
    static SIMPLIFY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = key.py();
    let simplify = SIMPLIFY.import(py, "pointstamp.keys", "simplify")?;
    let simpler = simplify.call1((key,))?;
    if simpler.is(py.NotImplemented()) {
        return Err(PyTypeError::new_err(format!(
            "{} has no stable hash: a key is a number, str, bytes, bool, None, date, time, UUID or Enum, or a tuple, \
             frozenset or frozen dataclass of them; convert it to one of these, or say which of them stands for it with \
             pointstamp.register_key",
            key.get_type().fully_qualified_name()?
        )));
    }
    if depth == MAX_DEPTH {
        return Err(too_deep());
    }
    hash(&simpler, depth + 1)
}

fn too_deep() -> PyErr {
    PyRecursionError::new_err(format!(
        "a key is nested more than {MAX_DEPTH} deep; route by a flatter key"
    ))
}

/// 64 bits of bytes under a tag of eight: the schemes of `pointstamp.keys`.
#[pyfunction]
pub(crate) fn tagged_hash(tag: [u8; 8], bytes: &[u8]) -> u64 {
    hash_tagged(tag, bytes)
}

/// Returns the value modulo 2^64 of an object that the caller knows to be an `int`.
#[inline]
fn hash_int(key: &Bound<'_, PyAny>) -> u64 {
    debug_assert!(key.is_instance_of::<PyInt>());
    // SAFETY: `key` is a live object, and a `Bound` proves that this thread is attached. For an
    // `int` (or a subclass) the call only reads its digits, so it runs no code and cannot fail.
    unsafe { ffi::PyLong_AsUnsignedLongLongMask(key.as_ptr()) }
}

#[inline]
fn hash_str(text: &Bound<'_, PyString>) -> PyResult<u64> {
    match text.to_str() {
        Ok(utf8) => Ok(hash_utf8(utf8.as_bytes())),
        Err(_) => hash_surrogates(text),
    }
}

/// A string with lone surrogates has no UTF-8 form proper, yet it is a key like any other.
#[cold]
fn hash_surrogates(text: &Bound<'_, PyString>) -> PyResult<u64> {
    let encoded = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
    Ok(hash_utf8(encoded.cast::<PyBytes>()?.as_bytes()))
}
