//! Tuples of plain values as terms, written and read without the interpreter: the rows of columns.

use std::borrow::Cow;

use super::notes::split;
use super::numbers::{self, Number, put_escaped, put_f64, put_i128, unescaped};
use super::tag::{BYTES, END, NAN, NEG_INF, NONE, STR, TUPLE};

/// Writes a row, value by value. The written values have no notes: a float that an integer equals is that integer.
pub struct Writer<'a>(&'a mut Vec<u8>);

impl<'a> Writer<'a> {
    /// A row that begins at the end of `term`.
    pub fn new(term: &'a mut Vec<u8>) -> Self {
        Writer(term)
    }

    /// Begins a tuple, of the values that are written next.
    pub fn open(&mut self) {
        self.0.push(TUPLE);
    }

    /// Ends the tuple that was begun last.
    pub fn close(&mut self) {
        self.0.push(END);
    }

    /// Appends `None`.
    pub fn none(&mut self) {
        self.0.push(NONE);
    }

    /// Appends an integer.
    pub fn int(&mut self, value: i128) {
        put_i128(value, self.0);
    }

    /// Appends a float.
    pub fn float(&mut self, value: f64) {
        put_f64(value, self.0);
    }

    /// Appends text.
    pub fn text(&mut self, text: &str) {
        self.0.push(STR);
        put_escaped(text.as_bytes(), self.0);
    }

    /// Appends bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.push(BYTES);
        put_escaped(bytes, self.0);
    }

    /// Appends a term.
    pub fn term(&mut self, term: &[u8]) {
        self.0.extend_from_slice(term);
    }

    /// Ends the row.
    pub fn end(self) {
        self.0.push(0);
    }
}

/// A value that a column can hold.
pub enum Atom<'a> {
    /// `None`.
    None,
    /// An integer of 64 bits.
    Int(i64),
    /// An integer of more than 64 bits.
    Wide(i128),
    /// A float that no integer equals, or that 128 bits do not hold.
    Float(f64),
    /// Text in UTF-8.
    Text(Cow<'a, [u8]>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
}

/// The value of a row that is no tuple; nothing for values that a column cannot hold.
pub fn atom(row: &[u8]) -> Option<Atom<'_>> {
    let mut term = split(row).0;
    take(&mut term).filter(|_| term.is_empty())
}

/// The number of a row, as a float, where it is one of a column of numbers: there a float that an integer equals is that
/// integer.
pub fn real(row: &[u8]) -> Option<f64> {
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
pub fn atoms(row: &[u8]) -> Option<impl Iterator<Item = Atom<'_>>> {
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
            let (number, len) = numbers::take_number(term)?;
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
        // Of the values of columns, only floats exceed 128 bits.
        Number::Big(negative, magnitude) => match numbers::wide(*negative, magnitude) {
            Some(value) => Atom::Wide(value),
            None => Atom::Float(numbers::real(*negative, magnitude)),
        },
        Number::Ratio(_) => return None,
    })
}
