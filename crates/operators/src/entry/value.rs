//! Values as a model of rows: an order of a few lines, and rows made of them.

use std::cmp::Ordering;

use pointstamp_rows::terms::{self, Atom, tag};
use pointstamp_rows::{Row, RowBuf};

/// A value. Numbers are small, so that a float holds each of them exactly.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    None,
    Number(f64),
    Text(String),
    Tuple(Vec<Value>),
}

impl Value {
    pub(crate) fn pair(first: Value, second: Value) -> Value {
        Value::Tuple(vec![first, second])
    }

    /// The element of a tuple at an index.
    ///
    /// # Panics
    ///
    /// When it has none: programs are drawn so that they do not ask for it.
    pub(crate) fn part(&self, index: usize) -> Value {
        match self {
            Value::Tuple(parts) => parts[index].clone(),
            other => panic!("{other:?} is no tuple"),
        }
    }

    pub(crate) fn number(&self) -> f64 {
        match self {
            Value::Number(number) => *number,
            other => panic!("{other:?} is no number"),
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Value::None)
    }

    fn rank(&self) -> u8 {
        match self {
            Value::None => 0,
            Value::Number(_) => 1,
            Value::Text(_) => 2,
            Value::Tuple(_) => 3,
        }
    }

    /// Writes the value as a row.
    pub(crate) fn row(&self) -> RowBuf {
        let mut row = RowBuf::default();
        match self {
            Value::None => row.copy(Row::UNIT),
            #[allow(clippy::cast_possible_truncation, reason = "it is small and whole")]
            Value::Number(number) if number.fract() == 0.0 => {
                row.int(*number as i64);
            }
            Value::Number(number) => {
                row.float(*number);
            }
            Value::Text(text) => {
                let written = row.other_term(|out| {
                    out.push(tag::STR);
                    terms::put_escaped(text.as_bytes(), out);
                    terms::finish(&[], out);
                    Ok::<_, std::convert::Infallible>(())
                });
                let _row = written.unwrap();
            }
            Value::Tuple(parts) => row.tuple(&parts.iter().map(Value::row).collect::<Vec<_>>()),
        }
        row
    }

    /// Reads the value of a row.
    pub(crate) fn of(row: Row<'_>) -> Value {
        if row.is_none() {
            return Value::None;
        }
        if let Some(number) = row.number() {
            return Value::Number(number.float());
        }
        if let Row::Term(bytes) = row
            && let Some(Atom::Text(text)) = terms::atom(bytes)
        {
            return Value::Text(String::from_utf8(text.into_owned()).expect("it was text"));
        }
        let (mut part, mut parts) = (RowBuf::default(), Vec::new());
        while part.cut(row, parts.len()) {
            parts.push(Value::of(part.get()));
        }
        Value::Tuple(parts)
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            // A sum of zeros may be a negative one, which is the same number.
            (Value::Number(a), Value::Number(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Tuple(a), Value::Tuple(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}
