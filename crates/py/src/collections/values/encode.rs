//! Values to rows.

use pyo3::exceptions::{PyOverflowError, PyRecursionError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};

use pointstamp_rows::terms::tag::{BYTES, END, FROZENSET, NONE, STR, TUPLE};
use pointstamp_rows::terms::{
    self, BOOL, FLOAT, MAX_DEPTH, put_big, put_escaped, put_f64, put_fraction, put_i64, put_ratio,
};

/// The result of `pointstamp._row_values.take_apart` for a value that equals one of another class.
const SAME: u8 = 0;
/// For a ratio that no float equals.
const RATIO: u8 = 1;

/// Appends the row of a value.
///
/// # Errors
///
/// `TypeError` for a value that cannot be hashed or kept; it names the type.
pub(crate) fn encode(value: &Bound<'_, PyAny>, row: &mut Vec<u8>) -> PyResult<()> {
    let mut writer = Writer {
        term: row,
        notes: Vec::new(),
        atoms: 0,
    };
    writer.put(value, 0)?;
    let notes = writer.notes;
    terms::finish(&notes, row);
    Ok(())
}

struct Writer<'a> {
    term: &'a mut Vec<u8>,
    notes: Vec<u8>,
    atoms: u32,
}

impl Writer<'_> {
    fn put(&mut self, value: &Bound<'_, PyAny>, depth: u32) -> PyResult<()> {
        let atom = self.atoms;
        self.atoms += 1;
        if value.is_exact_instance_of::<PyInt>() {
            return put_int(value, self.term);
        }
        if let Ok(text) = value.cast_exact::<PyString>() {
            self.term.push(STR);
            return put_text(text, self.term);
        }
        if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            if depth == MAX_DEPTH {
                return Err(PyRecursionError::new_err(format!(
                    "a record nests tuples more than {MAX_DEPTH} deep: a collection takes flatter ones"
                )));
            }
            self.term.push(TUPLE);
            for element in tuple.iter_borrowed() {
                self.put(&element, depth + 1)?;
            }
            self.term.push(END);
            return Ok(());
        }
        if let Ok(float) = value.cast_exact::<PyFloat>() {
            if put_f64(float.value(), self.term) {
                terms::put_note(atom, FLOAT, &[], &mut self.notes);
            }
            return Ok(());
        }
        if value.is_none() {
            self.term.push(NONE);
            return Ok(());
        }
        if let Ok(flag) = value.cast_exact::<PyBool>() {
            put_i64(i64::from(flag.is_true()), self.term);
            terms::put_note(atom, BOOL, &[], &mut self.notes);
            return Ok(());
        }
        if let Ok(bytes) = value.cast_exact::<PyBytes>() {
            self.term.push(BYTES);
            put_escaped(bytes.as_bytes(), self.term);
            return Ok(());
        }
        self.put_other(value, atom, depth)
    }

    /// A value of another class, by its parts.
    fn put_other(&mut self, value: &Bound<'_, PyAny>, atom: u32, depth: u32) -> PyResult<()> {
        if depth == MAX_DEPTH {
            return Err(PyRecursionError::new_err(format!(
                "a record nests values more than {MAX_DEPTH} deep: a collection takes flatter ones"
            )));
        }
        let parts = take_apart(value.py())?.bind(value.py()).call1((value,))?;
        let (tag, inner, kind, payload): (u8, Bound<'_, PyAny>, u8, Bound<'_, PyBytes>) =
            parts.extract()?;
        if kind != 0 {
            terms::put_note(atom, kind, payload.as_bytes(), &mut self.notes);
        }
        match tag {
            SAME => {
                // The same atom: the note is about the value that replaces it.
                self.atoms = atom;
                let before = self.notes.len();
                self.put(&inner, depth + 1)?;
                if kind != 0 {
                    self.drop_note_of(atom, before);
                }
                Ok(())
            }
            RATIO => {
                let (below, negative, fraction, text): (Bound<'_, PyAny>, bool, f64, String) =
                    inner.extract()?;
                put_int(&below, self.term)?;
                put_fraction(negative, fraction, self.term);
                put_ratio(&text, self.term);
                Ok(())
            }
            FROZENSET => self.put_set(&inner, depth),
            tag => {
                self.term.push(tag);
                self.put(&inner, depth + 1)
            }
        }
    }

    /// Removes a note of this atom that begins at `at`: the value is replaced by one of another class.
    fn drop_note_of(&mut self, atom: u32, at: usize) {
        let mut rest = terms::Notes(&self.notes[at..]);
        if rest.atom() == Some(atom) {
            rest.take();
            let rest = rest.0.len();
            let end = self.notes.len() - rest;
            self.notes.drain(at..end);
        }
    }

    /// The elements of a set, in the order of their terms.
    fn put_set(&mut self, elements: &Bound<'_, PyAny>, depth: u32) -> PyResult<()> {
        let mut parts = Vec::new();
        for element in elements.try_iter()? {
            let (mut term, mut atoms) = (Vec::new(), 0);
            let mut writer = Writer {
                term: &mut term,
                notes: Vec::new(),
                atoms,
            };
            writer.put(&element?, depth + 1)?;
            atoms += writer.atoms;
            let notes = writer.notes;
            parts.push((term, notes, atoms));
        }
        parts.sort_unstable();
        self.term.push(FROZENSET);
        for (term, notes, atoms) in parts {
            self.term.extend_from_slice(&term);
            terms::put_moved(&notes, 0, u32::MAX, i64::from(self.atoms), &mut self.notes);
            self.atoms += atoms;
        }
        self.term.push(END);
        Ok(())
    }
}

/// Appends an `int` of any size.
fn put_int(value: &Bound<'_, PyAny>, term: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(small) = value.extract::<i64>() {
        put_i64(small, term);
        return Ok(());
    }
    let negative = value.lt(0)?;
    let magnitude = value.call_method0("__abs__")?;
    let bits: usize = magnitude.call_method0("bit_length")?.extract()?;
    let bytes = magnitude.call_method1("to_bytes", (bits.div_ceil(8), "big"))?;
    put_big(negative, bytes.cast::<PyBytes>()?.as_bytes(), term)
        .map_err(|_| PyOverflowError::new_err("an int of 4 GiB or more cannot be in a collection"))
}

fn put_text(text: &Bound<'_, PyString>, term: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(utf8) = text.to_str() {
        put_escaped(utf8.as_bytes(), term);
        return Ok(());
    }
    // Lone surrogates, which UTF-8 proper does not have.
    let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
    put_escaped(bytes.cast::<PyBytes>()?.as_bytes(), term);
    Ok(())
}

fn take_apart(py: Python<'_>) -> PyResult<&Py<PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FUNCTION.get_or_try_init(py, || {
        Ok(py
            .import("pointstamp._row_values")?
            .getattr("take_apart")?
            .unbind())
    })
}
