//! Python's values as rows, and back.
//!
//! An `int`, a `str` or a tuple of them is read through the interpreter's C calls; values of other types go through
//! `pointstamp._row_values`. How rows are laid out is the business of `pointstamp_rows`.

mod decode;
mod encode;

use pointstamp_rows::{Layout, Row, RowBuf, Symbol};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyNone, PyTuple};

/// Rows that become values.
pub(crate) trait ToPython {
    /// The value.
    ///
    /// # Errors
    ///
    /// Exceptions of restoring a value of a user's class.
    fn decode(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>>;
}

impl ToPython for Row<'_> {
    fn decode(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Row::Ints(Layout::INT, [only]) => Ok(only.into_pyobject(py)?.into_any()),
            Row::Ints(layout, words) => value_of(py, layout, &mut words.iter()),
            Row::Term(row) => decode::decode(py, row),
        }
    }
}

/// Rows that are made of values.
pub(crate) trait FromPython {
    /// The row of a value.
    ///
    /// # Errors
    ///
    /// `TypeError` for a value that cannot be hashed or kept; it names the type.
    fn encode(&mut self, value: &Bound<'_, PyAny>) -> PyResult<Row<'_>>;
}

impl FromPython for RowBuf {
    fn encode(&mut self, value: &Bound<'_, PyAny>) -> PyResult<Row<'_>> {
        if self.ints(|words| ints_of(value, Layout::EMPTY, words)) {
            return Ok(self.get());
        }
        self.other_term(|term| encode::encode(value, term))
    }
}

/// The value of a layout, from as many integers as it has.
fn value_of<'py>(
    py: Python<'py>,
    layout: Layout,
    words: &mut std::slice::Iter<'_, i64>,
) -> PyResult<Bound<'py, PyAny>> {
    if layout == Layout::NONE {
        return Ok(PyNone::get(py).to_owned().into_any());
    }
    let Some(elements) = layout.elements() else {
        let word = words.next().copied().unwrap_or_default();
        return Ok(word.into_pyobject(py)?.into_any());
    };
    let elements = elements.map(|element| value_of(py, element, words));
    let elements = elements.collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, elements)?.into_any())
}

/// Returns the layout of a value, after the layout of the values before it; its integers are written to
/// `words`. `None` where the value is not made of integers alone.
fn ints_of(value: &Bound<'_, PyAny>, before: Layout, words: &mut Vec<i64>) -> Option<Layout> {
    if value.is_exact_instance_of::<PyInt>() {
        words.push(value.extract().ok()?);
        return before.then(Symbol::Int);
    }
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        let mut layout = before.then(Symbol::Open)?;
        for element in tuple.iter_borrowed() {
            layout = ints_of(&element, layout, words)?;
        }
        return layout.then(Symbol::Close);
    }
    if value.is_none() {
        return before.then(Symbol::None);
    }
    None
}

/// The row of a value, for tests.
#[pyfunction]
pub(crate) fn encode_term<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let mut row = Vec::new();
    encode::encode(value, &mut row)?;
    Ok(PyBytes::new(value.py(), &row))
}

/// The value of a row, for tests.
#[pyfunction]
pub(crate) fn decode_term<'py>(row: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
    decode::decode(row.py(), row.as_bytes())
}
