//! A row of its own: values, pairs and parts as rows.

use crate::cells::append;
use crate::{Layout, Row, Symbol, terms};

/// A row that is written repeatedly. Where a value is made of integers, so is its row: a row that is kept as a term
/// is no such value, or has notes.
#[derive(Clone, Debug, Default)]
pub struct RowBuf {
    /// The layout of `words`; nothing where the row is `term`.
    layout: Option<Layout>,
    words: Vec<i64>,
    term: Vec<u8>,
}

impl RowBuf {
    /// The row.
    #[inline]
    pub fn get(&self) -> Row<'_> {
        match self.layout {
            Some(layout) => Row::Ints(layout, &self.words),
            None => Row::Term(&self.term),
        }
    }

    /// A row like another.
    pub fn of(row: Row<'_>) -> Self {
        let mut buffer = RowBuf::default();
        buffer.copy(row);
        buffer
    }

    /// A row like another.
    #[inline]
    pub fn copy(&mut self, row: Row<'_>) {
        match row {
            Row::Ints(layout, words) => {
                self.layout = Some(layout);
                self.words.clear();
                append(&mut self.words, words);
            }
            Row::Term(row) => {
                self.layout = None;
                self.term.clear();
                self.term.extend_from_slice(row);
            }
        }
    }

    /// The row of an element of a row's tuple; whether there is such an element.
    pub fn cut(&mut self, row: Row<'_>, index: usize) -> bool {
        match row {
            Row::Ints(layout, words) => {
                let Some(mut elements) = layout.elements() else {
                    return false;
                };
                let before = elements.by_ref().take(index);
                let start = before.map(Layout::width).sum::<usize>();
                let Some(element) = elements.next() else {
                    return false;
                };
                self.copy(Row::Ints(element, &words[start..start + element.width()]));
                true
            }
            Row::Term(row) => {
                self.term.clear();
                self.layout = None;
                if !terms::cut(row, index, &mut self.term) {
                    return false;
                }
                self.words.clear();
                self.layout = terms::ints(&self.term, &mut self.words);
                true
            }
        }
    }

    /// The row of a tuple, from the row of each element.
    pub fn tuple(&mut self, parts: &[RowBuf]) {
        self.words.clear();
        self.layout = Layout::EMPTY.then(Symbol::Open);
        for part in parts {
            self.layout = self
                .layout
                .zip(part.layout)
                .and_then(|(before, layout)| before.and(layout));
            self.words.extend_from_slice(&part.words);
        }
        self.layout = self.layout.and_then(|layout| layout.then(Symbol::Close));
        if self.layout.is_none() {
            self.term.clear();
            let mut space: Vec<Vec<u8>> = parts.iter().map(|_| Vec::new()).collect();
            let rows = parts.iter().zip(&mut space);
            let rows: Vec<&[u8]> = rows.map(|(part, space)| whole(part.get(), space)).collect();
            terms::tuple(&rows, &mut self.term);
        }
    }

    /// Whether the row is nested deeper than [`MAX_DEPTH`](crate::terms::MAX_DEPTH): operators refuse such a row.
    #[inline]
    pub fn is_too_deep(&self) -> bool {
        self.layout.is_none() && terms::is_too_deep(&self.term)
    }

    /// The row of a bool.
    pub fn bool(&mut self, value: bool) {
        self.layout = None;
        self.term.clear();
        terms::bool(value, &mut self.term);
    }

    /// The row of a float.
    pub fn float(&mut self, value: f64) -> Row<'_> {
        self.layout = None;
        self.term.clear();
        terms::float(value, &mut self.term);
        self.get()
    }

    /// The row of an integer.
    #[inline]
    pub fn int(&mut self, value: i64) -> Row<'_> {
        self.words.clear();
        self.words.push(value);
        self.layout = Some(Layout::INT);
        self.get()
    }

    /// The row that a function writes, of a term and notes.
    ///
    /// # Errors
    ///
    /// The errors of the function.
    pub fn term<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Row<'_>, E> {
        self.layout = None;
        self.term.clear();
        write(&mut self.term)?;
        self.words.clear();
        self.layout = terms::ints(&self.term, &mut self.words);
        Ok(self.get())
    }

    /// The row that a function writes, of a term and notes, for a value that is not made of integers alone.
    ///
    /// # Errors
    ///
    /// The errors of the function.
    pub fn other_term<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Row<'_>, E> {
        self.layout = None;
        self.words.clear();
        self.term.clear();
        write(&mut self.term)?;
        Ok(self.get())
    }

    /// The row of integers that a function writes; a layout, if there is one.
    #[inline]
    pub fn ints(&mut self, write: impl FnOnce(&mut Vec<i64>) -> Option<Layout>) -> bool {
        self.words.clear();
        self.layout = write(&mut self.words);
        self.layout.is_some()
    }

    /// The row of a tuple of two, from the row of each.
    #[inline]
    pub fn pair(&mut self, first: Row<'_>, second: Row<'_>) -> Row<'_> {
        if let (Row::Ints(layout, words), Row::Ints(other, others)) = (first, second)
            && let Some(layout) = Layout::pair(layout, other)
        {
            self.words.clear();
            append(&mut self.words, words);
            append(&mut self.words, others);
            self.layout = Some(layout);
        } else {
            self.layout = None;
            self.term.clear();
            let (mut space, mut other) = (Vec::new(), Vec::new());
            terms::pair(
                whole(first, &mut space),
                whole(second, &mut other),
                &mut self.term,
            );
        }
        self.get()
    }
}

/// The term and the notes of a row, written into `space` where they are not contiguous in memory.
pub(crate) fn whole<'a>(row: Row<'a>, space: &'a mut Vec<u8>) -> &'a [u8] {
    if let Row::Term(row) = row {
        return row;
    }
    space.clear();
    row.put(space);
    space
}

/// The rows of both elements of a row's tuple of two, written into buffers where they are not contiguous in
/// memory; `None` where the value is not such a tuple.
#[inline]
fn cut_pair<'a>(
    row: Row<'a>,
    key: &'a mut RowBuf,
    value: &'a mut RowBuf,
) -> Option<(Row<'a>, Row<'a>)> {
    match row {
        Row::Ints(layout, words) => {
            let (first, second) = layout.cut_pair()?;
            let (left, right) = words.split_at(first.width());
            Some((Row::Ints(first, left), Row::Ints(second, right)))
        }
        Row::Term(row) => {
            if !terms::cut_pair(row, &mut key.term, &mut value.term) {
                return None;
            }
            for part in [&mut *key, &mut *value] {
                part.words.clear();
                part.layout = terms::ints(&part.term, &mut part.words);
            }
            Some((key.get(), value.get()))
        }
    }
}

/// Cuts rows of pairs one after the other; rows of one layout are cut by the plan of the first.
#[derive(Debug, Default)]
pub struct Cutter {
    key: RowBuf,
    value: RowBuf,
    /// A layout of pairs, and the layouts and the width that it is cut by.
    last: Option<(Layout, [Layout; 2], usize)>,
}

impl Cutter {
    /// The rows of both elements, as `cut_pair` gives them.
    #[inline]
    pub fn cut<'a>(&'a mut self, row: Row<'a>) -> Option<(Row<'a>, Row<'a>)> {
        let Row::Ints(layout, words) = row else {
            return cut_pair(row, &mut self.key, &mut self.value);
        };
        let (parts, width) = match self.last {
            Some((last, parts, width)) if last == layout => (parts, width),
            _ => {
                let (first, second) = layout.cut_pair()?;
                self.last = Some((layout, [first, second], first.width()));
                ([first, second], first.width())
            }
        };
        let (left, right) = words.split_at(width);
        Some((Row::Ints(parts[0], left), Row::Ints(parts[1], right)))
    }
}
