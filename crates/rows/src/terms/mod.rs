//! Values as rows of bytes.
//!
//! A row is `term | notes | length of the notes`. The *term* is the value itself: two values are equal in Python
//! exactly when their terms are the same bytes (`1`, `1.0` and `True` are one term), and terms sort as the values do,
//! values of unlike types by type. The *notes* have the rest: that a number was a `bool`, or the class of a tuple.
//! They take no part in comparing, sorting or routing; of equal values one form stays. Most rows have none, which
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
//! at the values.

mod atoms;
mod notes;
mod numbers;
pub mod tag;
mod walk;

pub use atoms::{Atom, Writer, atom, atoms, real};
pub use notes::{BOOL, FLOAT, Notes, finish, put_moved, put_note, split, term_of};
pub use numbers::{
    Number, TooLong, escaped_len, put_big, put_escaped, put_f64, put_fraction, put_i64, put_ratio,
    take_number, unescaped,
};
pub use walk::{
    Plain, are_unordered, bool, cut, cut_pair, float, ints, is_too_deep, may_hold_pickle, pair,
    plain_number, put_ints, truth, tuple,
};

/// The maximum depth of terms, which keeps recursion from exhausting the stack: deeper values, rows that
/// operators build, and encoded terms are refused.
pub const MAX_DEPTH: u32 = 100;

/// Whether a row is the row of None.
#[inline]
pub fn is_none(row: &[u8]) -> bool {
    row.first() == Some(&tag::NONE)
}
