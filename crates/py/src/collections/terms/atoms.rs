//! Tuples of plain values as terms, written and read without the interpreter: the rows of columns.

use std::borrow::Cow;

use super::decode::unescaped;
use super::notes::split;
use super::numbers::{self, Number, put_escaped, put_f64, put_i128};
use super::{BYTES, END, NAN, NEG_INF, NONE, STR, TUPLE};

/// Writes a tuple, value by value. What is written has no notes: a float that an integer equals is that integer.
pub(crate) struct Writer<'a>(&'a mut Vec<u8>);

impl<'a> Writer<'a> {
    /// A tuple that begins at the end of `term`.
    pub(crate) fn tuple(term: &'a mut Vec<u8>) -> Self {
        term.push(TUPLE);
        Writer(term)
    }

    pub(crate) fn none(&mut self) {
        self.0.push(NONE);
    }

    pub(crate) fn int(&mut self, value: i128) {
        put_i128(value, self.0);
    }

    pub(crate) fn float(&mut self, value: f64) {
        // Fails for numbers of more than 4 GiB alone, which a float is not.
        let _is_whole = put_f64(value, self.0);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.0.push(STR);
        put_escaped(text.as_bytes(), self.0);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.push(BYTES);
        put_escaped(bytes, self.0);
    }

    /// Ends the tuple and its row.
    pub(crate) fn end(self) {
        self.0.extend([END, 0]);
    }
}

/// A value that a column can hold.
pub(crate) enum Atom<'a> {
    None,
    Int(i64),
    /// An integer of more than 64 bits.
    Wide(i128),
    Float(f64),
    Text(Cow<'a, [u8]>),
    Bytes(Cow<'a, [u8]>),
}

/// The value of a row that is no tuple; nothing for values that a column cannot hold.
pub(crate) fn atom(row: &[u8]) -> Option<Atom<'_>> {
    let mut term = split(row).0;
    take(&mut term).filter(|_| term.is_empty())
}

/// The number of a row, as a float, where it is one of a column of numbers: there a float that an integer equals is that
/// integer.
pub(crate) fn real(row: &[u8]) -> Option<f64> {
    match atom(row)? {
        Atom::Float(value) => Some(value),
        #[allow(clippy::cast_precision_loss, reason = "as Python converts")]
        Atom::Int(value) => Some(value as f64),
        #[allow(clippy::cast_precision_loss, reason = "as Python converts")]
        Atom::Wide(value) => Some(value as f64),
        Atom::None | Atom::Text(_) | Atom::Bytes(_) => None,
    }
}

/// The values of a row of a tuple; nothing for others. It ends early at a value that a column cannot hold.
pub(crate) fn atoms(row: &[u8]) -> Option<impl Iterator<Item = Atom<'_>>> {
    let term = split(row).0;
    let mut rest = term.strip_prefix(&[TUPLE])?.strip_suffix(&[END])?;
    Some(std::iter::from_fn(move || take(&mut rest)))
}

fn take<'a>(term: &mut &'a [u8]) -> Option<Atom<'a>> {
    let (tag, rest) = term.split_first()?;
    let (atom, len) = match *tag {
        NONE => (Atom::None, 1),
        STR | BYTES => {
            let (len, escapes) = numbers::escaped_len(rest)?;
            let bytes = unescaped(&rest[..len - 1], escapes);
            let atom = if *tag == STR {
                Atom::Text(bytes)
            } else {
                Atom::Bytes(bytes)
            };
            (atom, 1 + len)
        }
        NEG_INF..=NAN => {
            let (number, len) = numbers::take(term)?;
            (of_number(&number)?, len)
        }
        _ => return None,
    };
    *term = &term[len..];
    Some(atom)
}

fn of_number<'a>(number: &Number<'_>) -> Option<Atom<'a>> {
    Some(match number {
        Number::Int(value) => Atom::Int(*value),
        Number::Float(value) => Atom::Float(*value),
        // Only a float is so large that 128 bits do not hold it, of what a column can hold.
        Number::Big(negative, magnitude) => match numbers::wide(*negative, magnitude) {
            Some(value) => Atom::Wide(value),
            None => Atom::Float(numbers::real(*negative, magnitude)),
        },
        Number::Ratio(_) => return None,
    })
}
