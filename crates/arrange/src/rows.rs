//! Columns of rows in memory: the kernel's interface to keys and values.
//!
//! Owns [`Rows`] and its three layouts: [`Words`], [`Bytes`] and [`Units`]. The kernel orders rows,
//! compares them and copies them, and knows nothing else about them; their maker uses an
//! encoding that preserves the order that is wanted. A row refers to nothing outside of its column.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::Range;

use crate::bytes::{read_length, read_words, write_length, write_words};
use crate::hash::hash_of;
use crate::offsets::Offsets;

/// A column of rows that are ordered and copied.
pub trait Rows: Clone + Default + Debug + Send + Sync + 'static {
    /// A row, read in place.
    type Item<'a>: Copy + Ord + Debug;

    /// True when rows of this column with the same [`prefix`](Self::prefix) are equal.
    fn is_exact(&self) -> bool;

    /// The number of rows.
    fn len(&self) -> usize;

    /// The row at `index`.
    fn get(&self, index: usize) -> Self::Item<'_>;

    /// Appends a row.
    fn push(&mut self, row: Self::Item<'_>);

    /// Appends a range of another column.
    fn extend(&mut self, other: &Self, range: Range<usize>);

    /// Removes every row and keeps the memory.
    fn clear(&mut self);

    /// Reserves memory for so many rows like the rows of another column, where their size is known.
    fn reserve_for(&mut self, other: &Self, rows: usize) {
        let _ = (other, rows);
    }

    /// Returns memory that is not used.
    fn shrink(&mut self);

    /// Compares rows of any two columns.
    fn compare(a: Self::Item<'_>, b: Self::Item<'_>) -> Ordering;

    /// The first bits of a row as a number: where prefixes differ, rows are ordered as they are.
    fn prefix(row: Self::Item<'_>) -> u64;

    /// A hash of a row: [`hash_of`] what rows that are equal have in common, also in other columns. `memory` may be
    /// used.
    fn hash(row: Self::Item<'_>, memory: &mut Vec<u8>) -> u64;

    /// The bytes of memory held.
    fn bytes(&self) -> usize;

    /// Appends the column to `into`, to be read again by [`read`](Self::read).
    fn write(&self, into: &mut Vec<u8>);

    /// Reads a column in the format of [`write`](Self::write) from the front of `from`; `None` where it is
    /// damaged.
    fn read(from: &mut &[u8]) -> Option<Self>;

    /// True without rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first index in `range`, whose rows ascend, with a row at or after `row`; its end if there is none.
    /// Takes time in the logarithm of the distance.
    #[inline]
    fn seek(&self, range: Range<usize>, row: Self::Item<'_>) -> usize {
        seek_by(range, |index| {
            Self::compare(self.get(index), row) == Ordering::Less
        })
    }
}

/// The first index in `range` for which `before` is false; its end if there is none. The indices for which it
/// is true come first. Takes time in the logarithm of the distance. A column whose rows are all of one kind
/// [seeks](Rows::seek) with a specialised comparison.
#[inline]
pub fn seek_by(range: Range<usize>, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, end) = (range.start, range.end);
    if low >= end || !before(low) {
        return low;
    }
    // Invariant: `low` is before, and `high`, if it is in the range, is not.
    let mut step = 1;
    while low + step < end && before(low + step) {
        low += step;
        step *= 2;
    }
    let mut high = end.min(low + step);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Rows of one 64-bit word each: unsigned integers, and order-preserving images of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(Vec<u64>);

impl Words {
    /// The rows.
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }
}

impl From<Vec<u64>> for Words {
    fn from(rows: Vec<u64>) -> Self {
        Self(rows)
    }
}

impl FromIterator<u64> for Words {
    fn from_iter<I: IntoIterator<Item = u64>>(rows: I) -> Self {
        Self(rows.into_iter().collect())
    }
}

/// Maps a signed integer to a word, such that the order of the words is the order of the integers.
#[inline]
pub const fn word_of_i64(number: i64) -> u64 {
    number.cast_unsigned() ^ (1 << 63)
}

/// The signed integer of a word made by [`word_of_i64`].
#[inline]
pub const fn i64_of_word(word: u64) -> i64 {
    (word ^ (1 << 63)).cast_signed()
}

/// Maps a float to a word, such that the order of the words is IEEE's total order, in which -0.0 comes before
/// 0.0 and NaN with its sign at the ends.
#[inline]
pub const fn word_of_f64(number: f64) -> u64 {
    let bits = number.to_bits();
    bits ^ if bits >> 63 == 1 { u64::MAX } else { 1 << 63 }
}

/// The float of a word made by [`word_of_f64`].
#[inline]
pub const fn f64_of_word(word: u64) -> f64 {
    f64::from_bits(word ^ if word >> 63 == 1 { 1 << 63 } else { u64::MAX })
}

impl Rows for Words {
    type Item<'a> = u64;

    #[inline]
    fn is_exact(&self) -> bool {
        true
    }

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn get(&self, index: usize) -> u64 {
        self.0[index]
    }

    #[inline]
    fn push(&mut self, row: u64) {
        self.0.push(row);
    }

    #[inline]
    fn extend(&mut self, other: &Self, range: Range<usize>) {
        self.0.extend_from_slice(&other.0[range]);
    }

    fn reserve_for(&mut self, _other: &Self, rows: usize) {
        self.0.reserve(rows);
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    #[inline]
    fn compare(a: u64, b: u64) -> Ordering {
        a.cmp(&b)
    }

    #[inline]
    fn prefix(row: u64) -> u64 {
        row
    }

    #[inline]
    fn hash(row: u64, _: &mut Vec<u8>) -> u64 {
        hash_of(&row)
    }

    fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }

    fn write(&self, into: &mut Vec<u8>) {
        write_words(into, self.0.iter().copied());
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        read_words(from).map(Self)
    }
}

/// Rows of any length, compared byte by byte, in one arena.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    arena: Vec<u8>,
    ends: Offsets,
}

impl Rows for Bytes {
    type Item<'a> = &'a [u8];

    #[inline]
    fn is_exact(&self) -> bool {
        false
    }

    #[inline]
    fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    fn get(&self, index: usize) -> &[u8] {
        &self.arena[self.ends.range(index)]
    }

    #[inline]
    fn push(&mut self, row: &[u8]) {
        self.arena.extend_from_slice(row);
        self.ends.push(self.arena.len());
    }

    fn extend(&mut self, other: &Self, range: Range<usize>) {
        let base = self.arena.len();
        self.arena
            .extend_from_slice(&other.arena[other.ends.span(&range)]);
        self.ends.extend(&other.ends, range, base);
    }

    fn clear(&mut self) {
        self.arena.clear();
        self.ends.clear();
    }

    fn shrink(&mut self) {
        self.arena.shrink_to_fit();
        self.ends.shrink();
    }

    #[inline]
    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    #[inline]
    fn prefix(row: &[u8]) -> u64 {
        if let Some(first) = row.first_chunk() {
            return u64::from_be_bytes(*first);
        }
        let mut first = [0; 8];
        first[..row.len()].copy_from_slice(row);
        u64::from_be_bytes(first)
    }

    #[inline]
    fn hash(row: &[u8], _: &mut Vec<u8>) -> u64 {
        hash_of(row)
    }

    fn bytes(&self) -> usize {
        self.arena.capacity() + self.ends.bytes()
    }

    fn write(&self, into: &mut Vec<u8>) {
        self.ends.write(into);
        into.extend_from_slice(&self.arena);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let ends = Offsets::read(from)?;
        let arena = from.split_off(..ends.start(ends.len()))?.to_vec();
        Some(Self { arena, ends })
    }
}

/// Rows that carry nothing: the values of a collection without values.
#[derive(Clone, Debug, Default)]
pub struct Units(usize);

impl Units {
    /// So many of them.
    pub fn new(len: usize) -> Self {
        Self(len)
    }
}

impl Rows for Units {
    type Item<'a> = ();

    #[inline]
    fn is_exact(&self) -> bool {
        true
    }

    #[inline]
    fn len(&self) -> usize {
        self.0
    }

    #[inline]
    fn get(&self, _index: usize) {}

    #[inline]
    fn push(&mut self, _row: ()) {
        self.0 += 1;
    }

    #[inline]
    fn extend(&mut self, _other: &Self, range: Range<usize>) {
        self.0 += range.len();
    }

    fn clear(&mut self) {
        self.0 = 0;
    }

    fn shrink(&mut self) {}

    #[inline]
    fn compare(_a: (), _b: ()) -> Ordering {
        Ordering::Equal
    }

    #[inline]
    fn prefix(_row: ()) -> u64 {
        0
    }

    #[inline]
    fn hash(_row: (), _: &mut Vec<u8>) -> u64 {
        0
    }

    fn bytes(&self) -> usize {
        0
    }

    fn write(&self, into: &mut Vec<u8>) {
        write_length(into, self.0);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        read_length(from).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeking_finds_the_first_at_or_after() {
        let rows: Words = (0..100).map(|i| i / 3 * 2).collect();
        for start in [0, 1, 7, 50, 99, 100] {
            for target in 0..70 {
                let expected = (start..100).find(|i| rows.get(*i) >= target).unwrap_or(100);
                assert_eq!(rows.seek(start..100, target), expected);
            }
        }
    }

    #[test]
    fn images_keep_the_order() {
        let numbers = [i64::MIN, -7, -1, 0, 1, 3, i64::MAX];
        assert!(numbers.map(word_of_i64).is_sorted());
        assert_eq!(numbers.map(word_of_i64).map(i64_of_word), numbers);
        let floats = [
            f64::NEG_INFINITY,
            -1.5,
            -0.0,
            0.0,
            1e-300,
            2.0,
            f64::INFINITY,
            f64::NAN,
        ];
        let words = floats.map(word_of_f64);
        assert!(words.is_sorted());
        let back = words.map(f64_of_word).map(f64::to_bits);
        assert_eq!(back, floats.map(f64::to_bits));
    }

    #[test]
    fn bytes_are_compared_as_strings_and_by_prefix() {
        let strings: [&[u8]; 7] = [b"", b"a", b"a\0", b"aaaaaaaa", b"aaaaaaaab", b"b", b"\xff"];
        let mut rows = Bytes::default();
        for a in strings {
            rows.push(a);
            for b in strings {
                if Bytes::prefix(a) != Bytes::prefix(b) {
                    assert_eq!(
                        Bytes::prefix(a).cmp(&Bytes::prefix(b)),
                        Bytes::compare(a, b)
                    );
                }
            }
        }
        let mut part = Bytes::default();
        part.push(b"xyz");
        part.extend(&rows, 3..6);
        assert_eq!(
            (part.len(), part.get(0), part.get(2)),
            (4, &b"xyz"[..], &b"aaaaaaaab"[..])
        );
    }
}
