//! Rows to values.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyFrozenSet, PyInt, PyString, PyTuple};

use crate::errors::CodecError;
use pointstamp_rows::terms::tag::{
    BYTES, END, FIRST_TYPE, FRACTION, FROZENSET, NAN, NEG_INF, NONE, STR, TUPLE,
};
use pointstamp_rows::terms::{
    BOOL, FLOAT, MAX_DEPTH, Notes, Number, escaped_len, split, take_number, unescaped,
};

/// The value of a row.
///
/// # Errors
///
/// `CodecError` where the bytes are not a row's, and exceptions of restoring a value of a user's class.
pub(crate) fn decode<'py>(py: Python<'py>, row: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (term, notes) = split(row);
    let mut reader = Reader {
        py,
        term,
        notes: Notes(notes),
        atoms: 0,
    };
    let value = reader.take(0)?;
    if reader.term.is_empty() {
        Ok(value)
    } else {
        Err(not_a_row())
    }
}

#[cold]
fn not_a_row() -> PyErr {
    CodecError::new_err("these bytes are not a record of a collection")
}

struct Reader<'a, 'py> {
    py: Python<'py>,
    term: &'a [u8],
    notes: Notes<'a>,
    atoms: u32,
}

impl<'a, 'py> Reader<'a, 'py> {
    fn take(&mut self, depth: u32) -> PyResult<Bound<'py, PyAny>> {
        if depth > MAX_DEPTH {
            return Err(not_a_row()); // that of no value
        }
        let atom = self.atoms;
        self.atoms += 1;
        let note = if self.notes.atom() == Some(atom) {
            self.notes.take()
        } else {
            None
        };
        let tag = *self.term.first().ok_or_else(not_a_row)?;
        let value = match tag {
            NEG_INF..=NAN => self.number()?,
            STR => {
                let text = self.escaped()?;
                match std::str::from_utf8(&text) {
                    Ok(text) => PyString::new(self.py, text).into_any(),
                    Err(_) => PyBytes::new(self.py, &text)
                        .call_method1("decode", ("utf-8", "surrogatepass"))?,
                }
            }
            BYTES => PyBytes::new(self.py, &self.escaped()?).into_any(),
            TUPLE => PyTuple::new(self.py, self.elements(depth)?)?.into_any(),
            FROZENSET => PyFrozenSet::new(self.py, self.elements(depth)?)?.into_any(),
            NONE => {
                self.term = &self.term[1..];
                self.py.None().into_bound(self.py)
            }
            FIRST_TYPE..FRACTION => {
                self.term = &self.term[1..];
                let inner = self.take(depth + 1)?;
                put_together(self.py)?.bind(self.py).call1((tag, inner))?
            }
            _ => return Err(not_a_row()),
        };
        match note {
            None => Ok(value),
            Some((_, BOOL, _)) => Ok(PyBool::new(self.py, value.is_truthy()?)
                .to_owned()
                .into_any()),
            Some((_, FLOAT, _)) => Ok(PyFloat::new(self.py, value.extract()?).into_any()),
            Some((_, kind, payload)) => {
                restore(self.py)?
                    .bind(self.py)
                    .call1((kind, value, PyBytes::new(self.py, payload)))
            }
        }
    }

    fn elements(&mut self, depth: u32) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.term = &self.term[1..];
        let mut elements = Vec::new();
        loop {
            match self.term.first() {
                Some(&END) => break,
                Some(_) => elements.push(self.take(depth + 1)?),
                None => return Err(not_a_row()),
            }
        }
        self.term = &self.term[1..];
        Ok(elements)
    }

    fn number(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let (number, len) = take_number(self.term).ok_or_else(not_a_row)?;
        self.term = &self.term[len..];
        Ok(match number {
            Number::Int(value) => value.into_pyobject(self.py)?.into_any(),
            Number::Float(value) => PyFloat::new(self.py, value).into_any(),
            Number::Big(negative, magnitude) => {
                let magnitude = PyBytes::new(self.py, &magnitude);
                let int = self.py.get_type::<PyInt>();
                let value = int.call_method1("from_bytes", (magnitude, "big"))?;
                if negative { value.neg()? } else { value }
            }
            Number::Ratio(text) => self
                .py
                .import("fractions")?
                .call_method1("Fraction", (text,))?,
        })
    }

    fn escaped(&mut self) -> PyResult<Cow<'a, [u8]>> {
        let (len, escapes) = escaped_len(&self.term[1..]).ok_or_else(not_a_row)?;
        let bytes = &self.term[1..len];
        self.term = &self.term[1 + len..];
        Ok(unescaped(bytes, escapes))
    }
}

fn put_together(py: Python<'_>) -> PyResult<&Py<PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FUNCTION.get_or_try_init(py, || function(py, "put_together"))
}

fn restore(py: Python<'_>) -> PyResult<&Py<PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FUNCTION.get_or_try_init(py, || function(py, "restore"))
}

fn function(py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
    Ok(py.import("pointstamp._row_values")?.getattr(name)?.unbind())
}
