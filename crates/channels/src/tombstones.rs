//! The dataflows that have ended, as ranges of their numbers: a program that runs one dataflow after another keeps one range.

use std::collections::BTreeMap;

/// A set of numbers that is cheap where they are neighbours.
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    /// The first of each range, and the one after its last. No two ranges touch.
    ranges: BTreeMap<u64, u64>,
}

impl Tombstones {
    pub(crate) fn contains(&self, number: u32) -> bool {
        let number = u64::from(number);
        let before = self.ranges.range(..=number).next_back();
        before.is_some_and(|(_, &end)| number < end)
    }

    pub(crate) fn insert(&mut self, number: u32) {
        if self.contains(number) {
            return;
        }
        let number = u64::from(number);
        let (mut first, mut end) = (number, number + 1);
        if let Some((&start, &stop)) = self.ranges.range(..number).next_back()
            && stop == number
        {
            first = start;
        }
        if let Some(stop) = self.ranges.remove(&end) {
            end = stop;
        }
        self.ranges.insert(first, end);
    }

    #[cfg(test)]
    pub(crate) fn ranges(&self) -> usize {
        self.ranges.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range_in_whatever_order_they_come() {
        let mut stones = Tombstones::default();
        for number in [5, 3, 9, 4, u32::MAX, 0, 2, 8, 5] {
            stones.insert(number);
        }
        let there: Vec<u32> = (0..12).filter(|&n| stones.contains(n)).collect();
        assert_eq!(there, [0, 2, 3, 4, 5, 8, 9]);
        assert!(stones.contains(u32::MAX));
        assert_eq!(stones.ranges(), 4);
        stones.insert(1);
        assert_eq!(stones.ranges(), 3);
    }
}
