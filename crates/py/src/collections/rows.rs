//! Rows of Python values as the kernel keeps them: bytes, ordered by their terms.
//!
//! The notes at the end of a row ([`terms`]) travel with it and are not compared: of rows with one term, one stays.

use std::cmp::Ordering;
use std::ops::Range;

use pointstamp_arrange::{Bytes, Rows};

use super::terms::term_of;

/// A column of rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms(Bytes);

/// A row, ordered by its term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a>(pub(crate) &'a [u8]);

impl Ord for Row<'_> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        term_of(self.0).cmp(term_of(other.0))
    }
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
        term_of(self.0) == term_of(other.0)
    }
}

impl Eq for Row<'_> {}

impl Rows for Terms {
    type Item<'a> = Row<'a>;

    const EXACT: bool = false;

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn get(&self, index: usize) -> Row<'_> {
        Row(self.0.get(index))
    }

    #[inline]
    fn push(&mut self, row: Row<'_>) {
        self.0.push(row.0);
    }

    fn extend(&mut self, other: &Self, range: Range<usize>) {
        self.0.extend(&other.0, range);
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn shrink(&mut self) {
        self.0.shrink();
    }

    #[inline]
    fn compare(a: Row<'_>, b: Row<'_>) -> Ordering {
        a.cmp(&b)
    }

    #[inline]
    fn prefix(row: Row<'_>) -> u64 {
        Bytes::prefix(term_of(row.0))
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn write(&self, into: &mut Vec<u8>) {
        self.0.write(into);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Bytes::read(from).map(Terms)
    }
}
