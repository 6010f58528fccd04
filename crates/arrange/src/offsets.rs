//! Ascending offsets, in as few bytes as they need.
//!
//! Owns [`Offsets`], with which a column says where the entries of each of its rows end in the next
//! one. Invariant: offset 0 is 0 and offsets ascend. Where every row has one entry nothing is stored;
//! else four bytes each, and eight where offsets pass 2^32. Reading is a branch and a load.

use std::ops::Range;

use crate::bytes::{read_array, read_length, write_array, write_length};

/// The bounds of `len` consecutive ranges.
#[derive(Clone, Debug)]
pub(crate) enum Offsets {
    /// Each of so many rows has one entry.
    Each(usize),
    /// The ends, where they fit.
    Short(Vec<u32>),
    /// The ends.
    Long(Vec<u64>),
}

impl Default for Offsets {
    fn default() -> Self {
        Offsets::Each(0)
    }
}

/// True for an end that fits four bytes.
#[inline]
fn short(end: usize) -> bool {
    u32::try_from(end).is_ok()
}

#[allow(clippy::cast_possible_truncation)] // ends are positions in memory; `Short` is checked
impl Offsets {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Offsets::Each(len) => *len,
            Offsets::Short(ends) => ends.len(),
            Offsets::Long(ends) => ends.len(),
        }
    }

    /// The start of row `index`.
    #[inline]
    pub(crate) fn start(&self, index: usize) -> usize {
        match self {
            Offsets::Each(_) => index,
            _ if index == 0 => 0,
            Offsets::Short(ends) => ends[index - 1] as usize,
            Offsets::Long(ends) => ends[index - 1] as usize,
        }
    }

    /// The entries of row `index`.
    #[inline]
    pub(crate) fn range(&self, index: usize) -> Range<usize> {
        self.start(index)..self.start(index + 1)
    }

    /// The entries of a range of rows.
    #[inline]
    pub(crate) fn span(&self, rows: &Range<usize>) -> Range<usize> {
        self.start(rows.start)..self.start(rows.end)
    }

    /// True when each row has one entry and that is not stored.
    #[inline]
    pub(crate) fn is_each(&self) -> bool {
        matches!(self, Offsets::Each(_))
    }

    /// Adds a row that ends at `end`.
    #[inline]
    pub(crate) fn push(&mut self, end: usize) {
        match self {
            Offsets::Each(len) if end == *len + 1 => *len = end,
            Offsets::Short(ends) if short(end) => ends.push(end as u32),
            Offsets::Long(ends) => ends.push(end as u64),
            _ => self.widen(end),
        }
    }

    #[cold]
    fn widen(&mut self, end: usize) {
        match self {
            Offsets::Each(len) if short(end) => {
                *self = Offsets::Short((1..=*len as u32).chain([end as u32]).collect());
            }
            Offsets::Each(len) => {
                *self = Offsets::Long((1..=*len as u64).chain([end as u64]).collect());
            }
            Offsets::Short(ends) => {
                let ends = ends.iter().map(|end| u64::from(*end));
                *self = Offsets::Long(ends.chain([end as u64]).collect());
            }
            Offsets::Long(ends) => ends.push(end as u64),
        }
    }

    /// Adds `rows` of `other`, whose entries were appended at `base`.
    pub(crate) fn extend(&mut self, other: &Self, rows: Range<usize>, base: usize) {
        let first = other.start(rows.start);
        match (&mut *self, other) {
            (Offsets::Each(len), Offsets::Each(_)) if base == *len => *len += rows.len(),
            (Offsets::Short(ends), Offsets::Short(others))
                if short(base + (other.start(rows.end) - first)) =>
            {
                let shift = (base as u32).wrapping_sub(first as u32);
                ends.extend(others[rows].iter().map(|end| end.wrapping_add(shift)));
            }
            _ => {
                for row in rows {
                    self.push(base + other.start(row + 1) - first);
                }
            }
        }
    }

    /// Appends the offsets to `into`: their number, the bytes that each takes, and those that are stored.
    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        write_length(into, self.len());
        match self {
            Offsets::Each(_) => into.push(0),
            Offsets::Short(ends) => {
                into.push(4);
                write_array(into, ends.iter().map(|end| end.to_le_bytes()));
            }
            Offsets::Long(ends) => {
                into.push(8);
                write_array(into, ends.iter().map(|end| end.to_le_bytes()));
            }
        }
    }

    /// Takes offsets off the front of `from`; `None` unless they ascend.
    pub(crate) fn read(from: &mut &[u8]) -> Option<Self> {
        let len = read_length(from)?;
        match from.split_off_first()? {
            0 => Some(Offsets::Each(len)),
            4 => {
                let ends = read_array::<4>(from, len)?.iter();
                let ends: Vec<u32> = ends.map(|end| u32::from_le_bytes(*end)).collect();
                ends.is_sorted().then_some(Offsets::Short(ends))
            }
            8 => {
                let ends = read_array::<8>(from, len)?.iter();
                let ends: Vec<u64> = ends.map(|end| u64::from_le_bytes(*end)).collect();
                let fit = ends.last().is_none_or(|end| usize::try_from(*end).is_ok());
                (fit && ends.is_sorted()).then_some(Offsets::Long(ends))
            }
            _ => None,
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Offsets::Each(len) => *len = 0,
            Offsets::Short(ends) => ends.clear(),
            Offsets::Long(ends) => ends.clear(),
        }
    }

    pub(crate) fn shrink(&mut self) {
        match self {
            Offsets::Each(_) => {}
            Offsets::Short(ends) => ends.shrink_to_fit(),
            Offsets::Long(ends) => ends.shrink_to_fit(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Offsets::Each(_) => 0,
            Offsets::Short(ends) => ends.capacity() * size_of::<u32>(),
            Offsets::Long(ends) => ends.capacity() * size_of::<u64>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ends: &[usize]) -> Offsets {
        let mut offsets = Offsets::default();
        for end in ends {
            offsets.push(*end);
        }
        offsets
    }

    fn starts(offsets: &Offsets) -> Vec<usize> {
        (0..=offsets.len()).map(|i| offsets.start(i)).collect()
    }

    #[test]
    fn are_stored_only_where_they_are_needed() {
        let mut offsets = of(&[1, 2, 3]);
        assert!(offsets.is_each() && offsets.bytes() == 0);
        offsets.push(7);
        assert!(matches!(offsets, Offsets::Short(_)));
        offsets.push(1 << 33);
        assert!(matches!(offsets, Offsets::Long(_)));
        assert_eq!(starts(&offsets), [0, 1, 2, 3, 7, 1 << 33]);
        assert_eq!(offsets.range(3), 3..7);
        assert!((40..=80).contains(&offsets.bytes()));
    }

    #[test]
    fn parts_of_others_are_appended() {
        for other in [
            of(&[1, 2, 3, 4]),
            of(&[2, 3, 3, 9]),
            of(&[1, 2, 1 << 33, (1 << 33) + 1]),
        ] {
            let nearly_long = (1 << 32) - 3;
            for ours in [
                of(&[]),
                of(&[1, 2]),
                of(&[4]),
                of(&[nearly_long]),
                of(&[1 << 34]),
            ] {
                let base = ours.start(ours.len());
                let mut all = ours.clone();
                all.extend(&other, 1..4, base);
                let mut expected = starts(&ours);
                expected.extend((2..=4).map(|i| base + other.start(i) - other.start(1)));
                assert_eq!(starts(&all), expected);
            }
        }
    }
}
