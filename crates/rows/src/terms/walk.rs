//! Terms taken apart and put together as bytes, without the values.

use super::MAX_DEPTH;
use super::notes::{BOOL, FLOAT, Notes, finish, finish_len, put_moved, put_note, split};
use super::numbers::{self, Number, escaped_len, put_f64, put_i64};
use super::tag::{
    BYTES, END, FIRST_TYPE, FRACTION, FROZENSET, NAN, NEG_INF, NONE, PICKLED, STR, TUPLE,
};
use crate::{Layout, Symbol};

/// The length of the term at the start of `bytes`; adds its atoms. It recurses not at all: the bytes may be a file's.
pub(crate) fn skip(bytes: &[u8], atoms: &mut u32) -> Option<usize> {
    let (mut at, mut open) = (0, 0_usize);
    loop {
        *atoms += 1;
        match *bytes.get(at)? {
            TUPLE | FROZENSET => {
                at += 1;
                open += 1;
            }
            FIRST_TYPE..FRACTION => {
                at += 1;
                continue; // the term that it is taken apart into
            }
            _ => at += atom_len(&bytes[at..])?,
        }
        while open > 0 && *bytes.get(at)? == END {
            at += 1;
            open -= 1;
        }
        if open == 0 {
            return Some(at);
        }
    }
}

/// The length of a term that has no others in it.
fn atom_len(term: &[u8]) -> Option<usize> {
    match *term.first()? {
        NONE => Some(1),
        STR | BYTES => Some(1 + escaped_len(&term[1..])?.0),
        NEG_INF..=NAN => numbers::take_number(term).map(|(_, len)| len),
        _ => None,
    }
}

/// Whether a row's term is nested deeper than the row of a value can be. Free for short rows, and as fast as `skip` for
/// others.
#[inline]
pub fn is_too_deep(row: &[u8]) -> bool {
    // A level takes a byte at least.
    row.len() > MAX_DEPTH as usize && nests_too_deep(split(row).0)
}

fn nests_too_deep(term: &[u8]) -> bool {
    const MOST: usize = MAX_DEPTH as usize;
    // By open tuple or set: the levels that it adds, with the types before it.
    let mut levels = [0; MOST];
    let (mut at, mut open, mut depth, mut types) = (0, 0, 0, 0);
    while let Some(&tag) = term.get(at) {
        at += match tag {
            END if open == 0 => return false, // no row
            END => {
                open -= 1;
                depth -= levels[open];
                1
            }
            TUPLE | FROZENSET | FIRST_TYPE..FRACTION => {
                types += 1;
                if depth + types > MOST {
                    return true;
                }
                if tag < FIRST_TYPE {
                    depth += types;
                    levels[open] = types;
                    open += 1;
                    types = 0;
                }
                1
            }
            _ => {
                types = 0;
                match atom_len(&term[at..]) {
                    Some(len) => len,
                    None => return false, // no row
                }
            }
        };
    }
    false
}

/// Cuts a row of a tuple of two into a row of each, which are written to `key` and `value`. False where the row is of
/// something else.
pub fn cut_pair(row: &[u8], key: &mut Vec<u8>, value: &mut Vec<u8>) -> bool {
    cut_two(row, key, value).is_some()
}

fn cut_two(row: &[u8], key: &mut Vec<u8>, value: &mut Vec<u8>) -> Option<()> {
    let (term, notes) = split(row);
    let inside = term.strip_prefix(&[TUPLE])?.strip_suffix(&[END])?;
    let mut atoms = 0;
    let len = skip(inside, &mut atoms)?;
    let rest = inside.get(len..)?;
    let mut others = 0;
    if rest.is_empty() || skip(rest, &mut others)? != rest.len() {
        return None;
    }
    key.clear();
    value.clear();
    key.extend_from_slice(&inside[..len]);
    value.extend_from_slice(rest);
    if notes.is_empty() {
        key.push(0);
        value.push(0);
    } else {
        let before = key.len();
        put_moved(notes, 1, 1 + atoms, -1, key);
        finish_len(key.len() - before, key);
        let before = value.len();
        put_moved(notes, 1 + atoms, u32::MAX, -1 - i64::from(atoms), value);
        finish_len(value.len() - before, value);
    }
    Some(())
}

/// Appends the row of an element of a row's tuple; whether there is such an element.
pub fn cut(row: &[u8], index: usize, out: &mut Vec<u8>) -> bool {
    element(row, index, out).is_some()
}

fn element(row: &[u8], index: usize, out: &mut Vec<u8>) -> Option<()> {
    let (term, notes) = split(row);
    let mut rest = term.strip_prefix(&[TUPLE])?.strip_suffix(&[END])?;
    let mut atoms = 1;
    for _ in 0..index {
        let len = skip(rest, &mut atoms)?;
        rest = &rest[len..];
    }
    let before = atoms;
    let len = skip(rest, &mut atoms)?;
    out.extend_from_slice(&rest[..len]);
    let start = out.len();
    put_moved(notes, before, atoms, -i64::from(before), out);
    finish_len(out.len() - start, out);
    Some(())
}

/// Appends the row of a tuple, from the row of each element.
pub fn tuple(rows: &[&[u8]], out: &mut Vec<u8>) {
    out.push(TUPLE);
    for row in rows {
        out.extend_from_slice(split(row).0);
    }
    out.push(END);
    let start = out.len();
    let mut atoms = 1;
    for row in rows {
        let (term, notes) = split(row);
        put_moved(notes, 0, u32::MAX, i64::from(atoms), out);
        skip(term, &mut atoms);
    }
    finish_len(out.len() - start, out);
}

/// Whether a row can hold a value that is kept as its pickle: it has the byte that such a value begins with.
pub fn may_hold_pickle(row: &[u8]) -> bool {
    split(row).0.contains(&PICKLED)
}

/// Whether two rows differ in a value that is kept as its pickle first, so that their order means nothing.
pub fn are_unordered(row: &[u8], other: &[u8]) -> bool {
    let (term, other) = (split(row).0, split(other).0);
    let differs = term.iter().zip(other).position(|(a, b)| a != b);
    differs.is_some_and(|at| is_in_pickle(term, at).unwrap_or(false))
}

/// Whether a place in a term is within the pickle of a value.
fn is_in_pickle(term: &[u8], place: usize) -> Option<bool> {
    let mut at = 0;
    while at <= place {
        at += match *term.get(at)? {
            PICKLED => {
                let len = skip(&term[at..], &mut 0)?;
                if at < place && place < at + len {
                    return Some(true);
                }
                len
            }
            TUPLE | FROZENSET | END | FIRST_TYPE..FRACTION => 1,
            _ => skip(&term[at..], &mut 0)?,
        };
    }
    Some(false)
}

/// Appends the row of a bool.
pub fn bool(value: bool, out: &mut Vec<u8>) {
    put_i64(i64::from(value), out);
    let mut note = Vec::new();
    put_note(0, BOOL, &[], &mut note);
    finish(&note, out);
}

/// The bool that a row is of; nothing for others.
pub fn truth(row: &[u8]) -> Option<bool> {
    let (term, notes) = split(row);
    match (numbers::take_number(term)?, Notes(notes).take()?) {
        ((Number::Int(value), len), (0, BOOL, _)) if len == term.len() => Some(value != 0),
        _ => None,
    }
}

/// Appends the row of a tuple of two, from the row of each.
pub fn pair(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let ((first, key_notes), (second, value_notes)) = (split(key), split(value));
    out.push(TUPLE);
    out.extend_from_slice(first);
    out.extend_from_slice(second);
    out.push(END);
    if key_notes.is_empty() && value_notes.is_empty() {
        out.push(0);
        return;
    }
    let before = out.len();
    put_moved(key_notes, 0, u32::MAX, 1, out);
    if !value_notes.is_empty() {
        let mut atoms = 0;
        skip(first, &mut atoms);
        put_moved(value_notes, 0, u32::MAX, 1 + i64::from(atoms), out);
    }
    // A row whose parts have notes of their own class (a named tuple as a record) is a plain tuple now.
    finish_len(out.len() - before, out);
}

/// Appends the term of a value that is made of integers.
pub fn put_ints(symbols: impl Iterator<Item = Symbol>, words: &[i64], out: &mut Vec<u8>) {
    let mut words = words.iter();
    for symbol in symbols {
        match symbol {
            Symbol::None => out.push(NONE),
            Symbol::Int => put_i64(words.next().copied().unwrap_or_default(), out),
            Symbol::Open => out.push(TUPLE),
            Symbol::Close => out.push(END),
        }
    }
}

/// The layout of a row whose value is made of integers, which are appended to `words`; `None` for other rows,
/// and for rows with notes.
pub fn ints(row: &[u8], words: &mut Vec<i64>) -> Option<Layout> {
    let (mut term, notes) = split(row);
    if !notes.is_empty() {
        return None;
    }
    let mut layout = Layout::EMPTY;
    while let Some(&tag) = term.first() {
        let (symbol, len) = match tag {
            NONE => (Symbol::None, 1),
            TUPLE => (Symbol::Open, 1),
            END => (Symbol::Close, 1),
            NEG_INF..=NAN => match numbers::take_number(term)? {
                (Number::Int(value), len) => {
                    words.push(value);
                    (Symbol::Int, len)
                }
                _ => return None,
            },
            _ => return None,
        };
        layout = layout.then(symbol)?;
        term = &term[len..];
    }
    Some(layout)
}

/// Appends the row of a float.
pub fn float(value: f64, out: &mut Vec<u8>) {
    let integral = put_f64(value, out);
    let mut note = Vec::new();
    if integral {
        put_note(0, FLOAT, &[], &mut note);
    }
    finish(&note, out);
}

/// A number that can be calculated with here.
pub enum Plain {
    /// An integer of 64 bits, or a bool.
    Int(i64),
    /// An integer of more than 64 bits.
    Wide(i128),
    /// A float.
    Float(f64),
}

impl Plain {
    /// The nearest float.
    #[allow(clippy::cast_precision_loss, reason = "as Python converts")]
    pub fn float(&self) -> f64 {
        match self {
            Plain::Int(value) => *value as f64,
            Plain::Wide(value) => *value as f64,
            Plain::Float(value) => *value,
        }
    }
}

/// The number of a row that is a `bool`, a `float`, or an `int` of 128 bits; nothing for others.
pub fn plain_number(row: &[u8]) -> Option<Plain> {
    let (term, notes) = split(row);
    let kind = Notes(notes).take().map(|(_, kind, _)| kind);
    let (number, len) = numbers::take_number(term)?;
    if len != term.len() {
        return None;
    }
    Some(match (number, kind) {
        (Number::Int(value), None | Some(BOOL)) => Plain::Int(value),
        #[allow(clippy::cast_precision_loss, reason = "it was made of a float")]
        (Number::Int(value), Some(FLOAT)) => Plain::Float(value as f64),
        (Number::Big(negative, magnitude), None) => {
            Plain::Wide(numbers::wide(negative, &magnitude)?)
        }
        (Number::Big(negative, magnitude), Some(FLOAT)) => {
            Plain::Float(numbers::real(negative, &magnitude))
        }
        (Number::Float(value), None) => Plain::Float(value),
        _ => return None,
    })
}
