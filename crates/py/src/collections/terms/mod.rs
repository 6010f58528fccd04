//! Python values as rows of bytes, and back.
//!
//! A row is `term | notes | length of the notes`. The *term* is the value itself: two values are equal in Python exactly
//! when their terms are the same bytes (`1`, `1.0` and `True` are one term), and terms sort as the values do, values of
//! unlike types by type. The *notes* say what the term leaves open: that a number was a `bool`, or which class a tuple
//! had. They take no part in comparing, sorting or routing; of equal values one form stays. Most rows have none, which
//! costs one byte.
//!
//! ```text
//! term      END 00 | NONE 02 | number | STR 30 text 00 | BYTES 31 bytes 00 | TUPLE 32 term* END | FROZENSET 33 term* END
//!           | tag of a type 40.. term                               (a 00 in text or bytes is 00 FF)
//! number    integer | integer FRACTION FE, 8 bytes | integer FE 8 bytes FE ratio 00 | NEG_INF 0F | POS_INF 23 | NAN 24
//! integer   tag 11..21: 0, or 1 to 8 bytes big-endian, complemented where negative | BIG 10/22, u32 length, bytes
//! notes     (atom u32, kind u8, length u32, payload)*                (atoms are numbered as a walk over the term meets them)
//! length    00 | 01..FE the length | u32 length, FF
//! ```
//!
//! A fraction is kept beside the integer below it, so that floats and integers of any size sort among each other exactly. A
//! ratio that no float equals is behind the float below it.
//! Invariant: a term says where it ends, so that a tuple's parts can be cut out of it and be put together without a look
//! at the values. Cost: an `int`, a `str` or a tuple of them is read through the interpreter's C calls; other types go
//! through `pointstamp._terms`.

mod atoms;
mod decode;
mod encode;
mod notes;
mod numbers;
mod walk;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

pub(crate) use atoms::{Atom, Writer, atom, atoms, real};
pub(crate) use decode::decode;
pub(crate) use encode::encode;
pub(crate) use notes::term_of;
pub(crate) use walk::{
    Plain, are_unordered, bool, cut, cut_pair, float, ints, is_too_deep, may_hold_pickle, pair,
    plain_number, put_ints, truth, tuple,
};

const END: u8 = 0x00;
const NONE: u8 = 0x02;
const NEG_INF: u8 = 0x0f;
const NEG_BIG: u8 = 0x10;
const ZERO: u8 = 0x19;
const POS_BIG: u8 = 0x22;
const POS_INF: u8 = 0x23;
const NAN: u8 = 0x24;
const STR: u8 = 0x30;
const BYTES: u8 = 0x31;
const TUPLE: u8 = 0x32;
const FROZENSET: u8 = 0x33;
/// Tags of types that `pointstamp._terms` takes apart into another term.
const FIRST_TYPE: u8 = 0x40;
/// The tag of a value that is kept as its pickle, whose bytes have another order than the values.
const PICKLED: u8 = 0x60;
const FRACTION: u8 = 0xfe;
/// What follows a 00 inside text.
const ESCAPE: u8 = 0xff;

/// Terms nested deeper than this are refused, before they could exhaust the stack: values that are, rows that operators
/// put together, and what is read.
pub(crate) const MAX_DEPTH: u32 = 100;

/// The row of a value, for tests.
#[pyfunction]
pub(crate) fn encode_term<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let mut row = Vec::new();
    encode(value, &mut row)?;
    Ok(PyBytes::new(value.py(), &row))
}

/// The value of a row, for tests.
#[pyfunction]
pub(crate) fn decode_term<'py>(row: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
    decode(row.py(), row.as_bytes())
}

/// Whether a row is that of None.
#[inline]
pub(crate) fn is_none(row: &[u8]) -> bool {
    row.first() == Some(&NONE)
}
