//! Routing keys to 64 bits, the same on every machine, in every process and run (`stable_hash`).
//!
//! Owns the scheme below. It is a wire format: workers of one computation that run different
//! builds, and columns hashed without Python, must agree on it, so it never changes; the vectors
//! in `tests/test_stable_hash.py` pin it. `XXH3(seed, bytes)` is XXH3-64 and integers are written
//! little-endian; a tag of eight ASCII characters is the seed that they spell, little-endian.
//!
//! | key                          | hash                                                           |
//! |------------------------------|----------------------------------------------------------------|
//! | `int`, `bool`                | its value modulo 2^64, as it is: `exchange` sends `k` to worker `k % peers` |
//! | `float` of integral value    | as the `int` of that value, however large (`-0.0` is 0)        |
//! | any other `float`            | `XXH3("ps:float", the 8 bytes of its IEEE 754 double)`; every NaN as 0x7ff8000000000000 |
//! | `str`                        | `XXH3(0, UTF-8)`, lone surrogates encoded like other code points |
//! | `bytes`                      | `XXH3("ps:bytes", the bytes)`                                  |
//! | `None`                       | `XXH3("ps:none.", nothing)`                                    |
//! | `tuple`                      | `XXH3("ps:tuple", the 8 bytes of each element's hash, in order)` |
//!
//! Invariant: keys that Python holds equal hash the same (`1 == 1.0 == True`, within tuples too).
//! Subclasses (a named tuple, an `IntEnum`) hash as their base, with which they compare equal.
//! An integer is not mixed: callers that need mixed bits, rather than a remainder, mix them.
//!
//! Cost: one C call and one compare for an exact `int`; one C call and XXH3 over the bytes for a
//! `str` (the interpreter keeps the UTF-8 form of a `str` that is not ASCII); no allocation for
//! tuples of up to eight elements.

use pyo3::exceptions::{PyRecursionError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString, PyTuple};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const FLOAT: u64 = u64::from_le_bytes(*b"ps:float");
const BYTES: u64 = u64::from_le_bytes(*b"ps:bytes");
const NONE: u64 = u64::from_le_bytes(*b"ps:none.");
const TUPLE: u64 = u64::from_le_bytes(*b"ps:tuple");

/// Tuples nested deeper than this are refused, before they could exhaust the stack.
const MAX_DEPTH: usize = 100;

/// The hash of `None`, and of a null in a column.
pub(crate) fn hash_none() -> u64 {
    xxh3_64_with_seed(&[], NONE)
}

/// The hash of a string, from its UTF-8 bytes.
pub(crate) fn hash_utf8(utf8: &[u8]) -> u64 {
    xxh3_64(utf8)
}

/// The hash of a byte string.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, BYTES)
}

/// The hash of a float: that of the integer it equals, if it equals one.
pub(crate) fn hash_float(value: f64) -> u64 {
    if let Some(integer) = integral_modulo_2_64(value) {
        return integer;
    }
    let bits = if value.is_nan() {
        0x7ff8_0000_0000_0000
    } else {
        value.to_bits()
    };
    xxh3_64_with_seed(&bits.to_le_bytes(), FLOAT)
}

/// The hash of a tuple, from the hashes of its elements.
pub(crate) fn hash_tuple(elements: impl ExactSizeIterator<Item = PyResult<u64>>) -> PyResult<u64> {
    let mut inline = [0_u8; 64];
    let mut boxed;
    let length = elements.len() * 8;
    let bytes = if length <= inline.len() {
        &mut inline[..length]
    } else {
        boxed = vec![0; length];
        &mut boxed[..]
    };
    for (slot, hash) in bytes.chunks_exact_mut(8).zip(elements) {
        slot.copy_from_slice(&hash?.to_le_bytes());
    }
    Ok(xxh3_64_with_seed(bytes, TUPLE))
}

/// The value of an integral float modulo 2^64, or `None` when the float is not an integer.
fn integral_modulo_2_64(value: f64) -> Option<u64> {
    if !value.is_finite() || value.fract() != 0.0 {
        return None;
    }
    let bits = value.to_bits();
    let exponent = (bits >> 52) & 0x7ff;
    if exponent < 1023 {
        return Some(0); // an integer below 1 in magnitude
    }
    let significand = (bits & ((1 << 52) - 1)) | (1 << 52);
    // value = significand * 2^(exponent - 1075)
    let magnitude = match exponent {
        ..1075 => significand >> (1075 - exponent),
        1075..1139 => significand << (exponent - 1075), // what leaves at the top is a multiple of 2^64
        _ => 0,
    };
    Some(if value < 0.0 {
        magnitude.wrapping_neg()
    } else {
        magnitude
    })
}

/// 64 bits that depend only on the value of ``key``: the same on every machine, process and run.
///
/// Keys that are equal hash the same, as Python has it: ``1``, ``1.0`` and ``True`` do. An ``int``
/// hashes to its value modulo 2**64. This is where :meth:`Stream.exchange` sends a record.
///
/// Args:
///     key: an ``int``, ``str``, ``bytes``, ``bool``, ``None`` or ``float``, or a tuple of them.
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

/// Where a record with this key goes: to worker `route_hash(key) % peers`.
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

fn hash(key: &Bound<'_, PyAny>, depth: usize) -> PyResult<u64> {
    if let Ok(text) = key.cast::<PyString>() {
        hash_str(text)
    } else if key.is_instance_of::<PyInt>() {
        Ok(hash_int(key))
    } else if let Ok(tuple) = key.cast::<PyTuple>() {
        if depth == MAX_DEPTH {
            return Err(PyRecursionError::new_err(format!(
                "a key nests tuples more than {MAX_DEPTH} deep; route by a flatter key"
            )));
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
        Err(PyTypeError::new_err(format!(
            "{} has no stable hash: a key is an int, str, bytes, bool, None or float, or a tuple of them; convert it to one of these",
            key.get_type().fully_qualified_name()?
        )))
    }
}

/// The value modulo 2^64 of an object that the caller knows to be an `int`.
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
