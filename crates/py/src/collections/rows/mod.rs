//! Rows of Python values and of columns, as the kernel keeps them.
//!
//! A [`Row`] is integers and their [`Layout`], where the value is an integer of 64 bits, `None`, or a tuple of such, and else
//! a term and its notes ([`terms`](super::terms)). Both are the same value to the kernel where their terms are: an order and
//! a hash see one as they see the other. [`Cells`] is a column of rows: words side by side while all rows have one layout,
//! bytes from the first row on that has another. So integers are sorted, merged and joined as integers, in one type and
//! without a choice to be made while the dataflow is built. [`RowBuf`] is a row of its own.
//!
//! The notes at the end of a term travel with it and are not compared: of rows with one term, one stays.

mod buffer;
mod cells;
mod layout;

use std::cmp::Ordering;

use pyo3::prelude::*;
use pyo3::types::{PyNone, PyTuple};

pub(crate) use buffer::{Cutter, RowBuf};
pub(crate) use cells::Cells;
pub(crate) use layout::{Layout, Symbol};

use super::terms::{self, Plain, term_of};

/// A row, ordered by its term.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Row<'a> {
    /// A value made of integers.
    Ints(Layout, &'a [i64]),
    /// The term and the notes of any value.
    Term(&'a [u8]),
}

impl Row<'_> {
    /// The row of `None`, which stands for the value where there is none.
    pub(crate) const UNIT: Row<'static> = Row::Ints(Layout::NONE, &[]);

    /// Appends the term.
    pub(crate) fn put_term(self, out: &mut Vec<u8>) {
        match self {
            Row::Ints(layout, words) => terms::put_ints(layout.symbols(), words, out),
            Row::Term(row) => out.extend_from_slice(term_of(row)),
        }
    }

    /// Appends the term and the notes.
    pub(crate) fn put(self, out: &mut Vec<u8>) {
        match self {
            Row::Ints(layout, words) => {
                terms::put_ints(layout.symbols(), words, out);
                out.push(0);
            }
            Row::Term(row) => out.extend_from_slice(row),
        }
    }

    /// Whether it is the same row, and not only one with the same term.
    #[inline]
    pub(crate) fn is(self, other: Row<'_>) -> bool {
        match (self, other) {
            (Row::Ints(layout, words), Row::Ints(other, others)) => {
                layout == other && words == others
            }
            (Row::Term(row), Row::Term(other)) => row == other,
            _ => false,
        }
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// What restoring a value of a class of the user's raises.
    pub(crate) fn decode(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Row::Ints(Layout::INT, [only]) => Ok(only.into_pyobject(py)?.into_any()),
            Row::Ints(layout, words) => value_of(py, layout, &mut words.iter()),
            Row::Term(row) => terms::decode(py, row),
        }
    }

    /// Whether it is `None`.
    #[inline]
    pub(crate) fn is_none(self) -> bool {
        match self {
            Row::Ints(layout, _) => layout == Layout::NONE,
            Row::Term(row) => terms::is_none(row), // beside rows of other layouts
        }
    }

    /// Whether it is a float that is not a number.
    #[inline]
    pub(crate) fn is_nan(self) -> bool {
        matches!(self.number(), Some(Plain::Float(value)) if value.is_nan())
    }

    /// Whether it is `True` or `False`; nothing for others.
    pub(crate) fn truth(self) -> Option<bool> {
        match self {
            Row::Ints(..) => None,
            Row::Term(row) => terms::truth(row),
        }
    }

    /// The float that it is in a column of numbers; nothing for others.
    pub(crate) fn real(self) -> Option<f64> {
        match self {
            #[allow(clippy::cast_precision_loss, reason = "as Python converts")]
            Row::Ints(Layout::INT, [only]) => Some(*only as f64),
            Row::Ints(..) => None,
            Row::Term(row) => terms::real(row),
        }
    }

    /// Whether there can be another from which it differs in what has no order of its own.
    #[inline]
    pub(crate) fn may_be_unordered(self) -> bool {
        match self {
            Row::Term(row) => terms::may_hold_pickle(row),
            Row::Ints(..) => false,
        }
    }

    /// Whether this and another differ in what has no order of its own.
    #[inline]
    pub(crate) fn is_unordered_with(self, other: Row<'_>) -> bool {
        match (self, other) {
            (Row::Term(row), Row::Term(other)) => terms::are_unordered(row, other),
            _ => false,
        }
    }

    /// The number that it is, if it is a `bool`, a `float`, or an `int` of 128 bits.
    #[inline]
    pub(crate) fn number(self) -> Option<Plain> {
        match self {
            Row::Ints(Layout::INT, [only]) => Some(Plain::Int(*only)),
            Row::Ints(..) => None,
            Row::Term(row) => terms::plain_number(row),
        }
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

impl Ord for Row<'_> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        // What is small enough to be put in place; a call for all others.
        match (self, other) {
            (Row::Ints(layout, [word]), Row::Ints(than, [other])) if layout == than => {
                word.cmp(other)
            }
            _ => compare(*self, *other),
        }
    }
}

/// Compares any rows.
#[inline(never)]
fn compare(row: Row<'_>, other: Row<'_>) -> Ordering {
    match (row, other) {
        (Row::Ints(layout, words), Row::Ints(than, others)) if layout == than => {
            match (words, others) {
                ([first, second], [other, another]) => {
                    first.cmp(other).then_with(|| second.cmp(another))
                }
                _ => words.cmp(others),
            }
        }
        (Row::Term(row), Row::Term(other)) => term_of(row).cmp(term_of(other)),
        _ => unlike(row, other),
    }
}

/// Compares rows of which the terms are not at hand.
#[cold]
fn unlike(row: Row<'_>, other: Row<'_>) -> Ordering {
    let (mut term, mut than) = (Vec::new(), Vec::new());
    row.put_term(&mut term);
    other.put_term(&mut than);
    term.cmp(&than)
}

impl PartialOrd for Row<'_> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Row<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Row<'_> {}
