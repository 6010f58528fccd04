//! Columns of rows: integers side by side while they have one layout, and bytes otherwise.

use std::cmp::Ordering;
use std::ops::Range;

use pointstamp_arrange::{Bytes, Rows, hash_of, read_array, seek_by, word_of_i64, write_array};

use crate::terms::term_of;
use crate::{Layout, Row};

/// A column of rows.
#[derive(Clone, Debug)]
pub enum Cells {
    /// Rows of one layout; of any, while there is no row.
    Ints(Ints),
    /// Rows of any kind, as terms with their notes.
    Terms(Bytes),
}

/// Rows of integers, `width` for each.
#[derive(Clone, Debug)]
pub struct Ints {
    layout: Layout,
    width: usize,
    len: usize,
    words: Vec<i64>,
}

impl Ints {
    fn new(layout: Layout) -> Self {
        Ints {
            layout,
            width: layout.width(),
            len: 0,
            words: Vec::new(),
        }
    }

    #[inline]
    fn push(&mut self, words: &[i64]) {
        append(&mut self.words, words);
        self.len += 1;
    }

    /// The first row in a range at or after a row of the same layout, by comparison of integers: the searched
    /// row is examined once, and not at every step.
    #[inline]
    fn seek(&self, range: Range<usize>, row: &[i64]) -> usize {
        match *row {
            [] => range.start,
            [word] => seek_by(range, |index| self.words[index] < word),
            [first, second] => {
                let rows = self.words.as_chunks::<2>().0;
                seek_by(range, |index| {
                    (rows[index][0], rows[index][1]) < (first, second)
                })
            }
            _ => seek_by(range, |index| {
                self.words[index * self.width..][..self.width] < *row
            }),
        }
    }
}

/// Appends integers, which are few: without the call that copies many.
#[inline]
pub(crate) fn append(words: &mut Vec<i64>, others: &[i64]) {
    match *others {
        [word] => words.push(word),
        [a, b] => words.extend([a, b]),
        [a, b, c] => words.extend([a, b, c]),
        _ => words.extend_from_slice(others),
    }
}

impl Default for Cells {
    fn default() -> Self {
        Cells::Ints(Ints::new(Layout::EMPTY))
    }
}

impl Cells {
    /// A column of rows of integers; their number is a multiple of the layout's.
    pub fn of_ints(layout: Layout, len: usize, words: Vec<i64>) -> Self {
        debug_assert_eq!(words.len(), layout.width() * len);
        Cells::Ints(Ints {
            len,
            words,
            ..Ints::new(layout)
        })
    }

    /// Adds a row of a different kind than the present ones.
    #[cold]
    fn push_other(&mut self, row: Row<'_>) {
        if self.is_empty() {
            *self = match row {
                Row::Ints(layout, _) => Cells::Ints(Ints::new(layout)),
                Row::Term(_) => Cells::Terms(Bytes::default()),
            };
            return self.push(row);
        }
        let mut term = Vec::new();
        if let Cells::Ints(_) = self {
            let mut rows = Bytes::default();
            for index in 0..self.len() {
                term.clear();
                self.get(index).put(&mut term);
                rows.push(&term);
            }
            *self = Cells::Terms(rows);
        }
        if let Cells::Terms(rows) = self {
            term.clear();
            row.put(&mut term);
            rows.push(&term);
        }
    }
}

/// The order of integers in 32 bits, as far as 32 bits can distinguish them.
#[inline]
fn half(word: i64) -> u64 {
    #[allow(clippy::cast_possible_truncation, reason = "it is clamped")]
    let clamped = word.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
    u64::from(clamped.cast_unsigned() ^ 1 << 31)
}

/// Whether 32 bits distinguish an integer from every other.
#[inline]
fn is_short(word: i64) -> bool {
    i64::from(i32::MIN) < word && word < i64::from(i32::MAX)
}

/// The order of three integers in 62 bits, as far as these can distinguish them: the first one of 21, the
/// second of 21 and the third of 20 while they fit, after two bits that mark whether they do. A first one
/// that does not fit has all bits.
#[inline]
fn three(first: i64, second: i64, third: i64) -> u64 {
    if first >= TINY {
        return 2 << 62 | first.cast_unsigned() >> 1;
    }
    if first < -TINY {
        return word_of_i64(first) >> 1;
    }
    let mut prefix = 1 << 62 | (first + TINY).cast_unsigned() << 41;
    prefix |= (second.clamp(-TINY, TINY - 1) + TINY).cast_unsigned() << 20;
    if is_tiny(second) {
        let half = TINY / 2;
        prefix |= (third.clamp(-half, half - 1) + half).cast_unsigned();
    }
    prefix
}

/// Integers from the negative of this up to it have 21 bits.
const TINY: i64 = 1 << 20;

/// Whether 21 bits distinguish an integer from every other.
#[inline]
fn is_tiny(word: i64) -> bool {
    -TINY < word && word < TINY - 1
}

/// Whether the bits of three integers distinguish them from all others.
fn are_tiny(words: &[i64]) -> bool {
    let half = TINY / 2;
    is_tiny(words[0]) && is_tiny(words[1]) && -half < words[2] && words[2] < half - 1
}

impl Rows for Cells {
    type Item<'a> = Row<'a>;

    fn is_exact(&self) -> bool {
        match self {
            Cells::Ints(ints) => match ints.width {
                0 | 1 => true,
                2 => ints.words.iter().all(|word| is_short(*word)),
                3 => ints.words.chunks_exact(3).all(are_tiny),
                _ => false,
            },
            Cells::Terms(_) => false,
        }
    }

    #[inline]
    fn len(&self) -> usize {
        match self {
            Cells::Ints(ints) => ints.len,
            Cells::Terms(rows) => rows.len(),
        }
    }

    #[inline]
    fn get(&self, index: usize) -> Row<'_> {
        match self {
            Cells::Ints(ints) => {
                let start = index * ints.width;
                Row::Ints(ints.layout, &ints.words[start..start + ints.width])
            }
            Cells::Terms(rows) => Row::Term(rows.get(index)),
        }
    }

    #[inline]
    fn push(&mut self, row: Row<'_>) {
        match (&mut *self, row) {
            (Cells::Ints(ints), Row::Ints(layout, words)) if ints.layout == layout => {
                ints.push(words);
            }
            (Cells::Terms(rows), Row::Term(row)) => rows.push(row),
            _ => self.push_other(row),
        }
    }

    fn extend(&mut self, other: &Self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        if self.is_empty() {
            self.push(other.get(range.start));
            return self.extend(other, range.start + 1..range.end);
        }
        match (&mut *self, other) {
            (Cells::Ints(ints), Cells::Ints(others)) if ints.layout == others.layout => {
                let words = range.start * ints.width..range.end * ints.width;
                ints.words.extend_from_slice(&others.words[words]);
                ints.len += range.len();
            }
            (Cells::Terms(rows), Cells::Terms(others)) => rows.extend(others, range),
            _ => range.for_each(|index| self.push(other.get(index))),
        }
    }

    fn clear(&mut self) {
        match self {
            Cells::Ints(ints) => {
                ints.words.clear();
                ints.len = 0;
            }
            Cells::Terms(rows) => rows.clear(),
        }
    }

    fn reserve_for(&mut self, other: &Self, rows: usize) {
        if let (Cells::Ints(ints), Cells::Ints(others)) = (self, other) {
            if ints.len == 0 {
                *ints = Ints::new(others.layout);
            }
            if ints.layout == others.layout {
                ints.words.reserve(ints.width * rows);
            }
        }
    }

    fn hash(row: Row<'_>, memory: &mut Vec<u8>) -> u64 {
        memory.clear();
        row.put_term(memory);
        hash_of(&memory[..])
    }

    fn shrink(&mut self) {
        match self {
            Cells::Ints(ints) => ints.words.shrink_to_fit(),
            Cells::Terms(rows) => rows.shrink(),
        }
    }

    #[inline]
    fn compare(a: Row<'_>, b: Row<'_>) -> Ordering {
        a.cmp(&b)
    }

    fn seek(&self, range: Range<usize>, row: Row<'_>) -> usize {
        match (self, row) {
            (Cells::Ints(ints), Row::Ints(layout, words)) if ints.layout == layout => {
                ints.seek(range, words)
            }
            _ => seek_by(range, |index| self.get(index) < row),
        }
    }

    #[inline]
    fn prefix(row: Row<'_>) -> u64 {
        match row {
            Row::Ints(_, []) => 0,
            Row::Ints(_, [only]) => word_of_i64(*only),
            Row::Ints(_, [first, second]) => {
                half(*first) << 32 | if is_short(*first) { half(*second) } else { 0 }
            }
            Row::Ints(_, [first, second, other, ..]) => three(*first, *second, *other),
            Row::Term(row) => Bytes::prefix(term_of(row)),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Cells::Ints(ints) => ints.words.capacity() * size_of::<i64>(),
            Cells::Terms(rows) => rows.bytes(),
        }
    }

    fn write(&self, into: &mut Vec<u8>) {
        match self {
            Cells::Ints(numbers) => {
                into.extend(numbers.layout.word().to_le_bytes());
                into.extend((numbers.len as u64).to_le_bytes());
                write_array(into, numbers.words.iter().map(|word| word.to_le_bytes()));
            }
            Cells::Terms(rows) => {
                into.extend(0_u64.to_le_bytes());
                rows.write(into);
            }
        }
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let word =
            |from: &mut &[u8]| Some(u64::from_le_bytes(from.split_off(..8)?.try_into().ok()?));
        let layout = match word(from)? {
            0 => return Bytes::read(from).map(Cells::Terms),
            layout => Layout::from_word(layout)?,
        };
        let len = usize::try_from(word(from)?).ok()?;
        if layout == Layout::EMPTY && len != 0 {
            return None;
        }
        let words = read_array::<8>(from, len.checked_mul(layout.width())?)?.iter();
        let words = words.map(|word| i64::from_le_bytes(*word)).collect();
        Some(Cells::of_ints(layout, len, words))
    }
}
