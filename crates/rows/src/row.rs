//! A row: one value as the kernel of collections sees it.

use std::cmp::Ordering;

use crate::Layout;
use crate::terms::{self, Plain, term_of};

/// A row, ordered by its term.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// A value made of integers.
    Ints(Layout, &'a [i64]),
    /// The term and the notes of any value.
    Term(&'a [u8]),
}

impl Row<'_> {
    /// The row of `None`, which is also the value of records without one.
    pub const UNIT: Row<'static> = Row::Ints(Layout::NONE, &[]);

    /// Appends the term.
    pub fn put_term(self, out: &mut Vec<u8>) {
        match self {
            Row::Ints(layout, words) => terms::put_ints(layout.symbols(), words, out),
            Row::Term(row) => out.extend_from_slice(term_of(row)),
        }
    }

    /// Appends the term and the notes.
    pub fn put(self, out: &mut Vec<u8>) {
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
    pub fn is(self, other: Row<'_>) -> bool {
        match (self, other) {
            (Row::Ints(layout, words), Row::Ints(other, others)) => {
                layout == other && words == others
            }
            (Row::Term(row), Row::Term(other)) => row == other,
            _ => false,
        }
    }

    /// Whether it is `None`.
    #[inline]
    pub fn is_none(self) -> bool {
        match self {
            Row::Ints(layout, _) => layout == Layout::NONE,
            Row::Term(row) => terms::is_none(row), // beside rows of other layouts
        }
    }

    /// Whether it is a float that is not a number.
    #[inline]
    pub fn is_nan(self) -> bool {
        matches!(self.number(), Some(Plain::Float(value)) if value.is_nan())
    }

    /// Whether it is `True` or `False`; nothing for others.
    pub fn truth(self) -> Option<bool> {
        match self {
            Row::Ints(..) => None,
            Row::Term(row) => terms::truth(row),
        }
    }

    /// The float that it is in a column of numbers; nothing for others.
    pub fn real(self) -> Option<f64> {
        match self {
            #[allow(clippy::cast_precision_loss, reason = "as Python converts")]
            Row::Ints(Layout::INT, [only]) => Some(*only as f64),
            Row::Ints(..) => None,
            Row::Term(row) => terms::real(row),
        }
    }

    /// Whether another row can differ from it in parts that have no order of their own.
    #[inline]
    pub fn may_be_unordered(self) -> bool {
        match self {
            Row::Term(row) => terms::may_hold_pickle(row),
            Row::Ints(..) => false,
        }
    }

    /// Whether this row and another differ in parts that have no order of their own.
    #[inline]
    pub fn is_unordered_with(self, other: Row<'_>) -> bool {
        match (self, other) {
            (Row::Term(row), Row::Term(other)) => terms::are_unordered(row, other),
            _ => false,
        }
    }

    /// The number that it is, if it is a `bool`, a `float`, or an `int` of 128 bits.
    #[inline]
    pub fn number(self) -> Option<Plain> {
        match self {
            Row::Ints(Layout::INT, [only]) => Some(Plain::Int(*only)),
            Row::Ints(..) => None,
            Row::Term(row) => terms::plain_number(row),
        }
    }
}

impl Ord for Row<'_> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        // For short contents, which are inlined; a call for all others.
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
