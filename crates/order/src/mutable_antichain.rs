//! Counted elements, and the frontier of those with a positive count.
//!
//! Owns [`MutableAntichain`]. Invariant: the frontier holds exactly the minimal elements among
//! those whose count is positive; counts may be negative for a while. The counts are kept in the
//! linear extension `Ord`, so that the frontier is found by looking only at what follows an
//! element that left it, and in a total order at its successor alone.

use std::collections::BTreeMap;

use crate::PartialOrder;

/// A multiset of elements, which may owe some, and its frontier.
///
/// ```
/// use pointstamp_order::MutableAntichain;
///
/// let mut times = MutableAntichain::new();
/// assert_eq!(times.update(4u64, 2).collect::<Vec<_>>(), vec![(4, 1)]);
/// assert_eq!(times.update(6, 1).count(), 0);
/// assert_eq!(times.update(4, -1).count(), 0);
/// assert_eq!(times.update(4, -1).collect::<Vec<_>>(), vec![(4, -1), (6, 1)]);
/// assert_eq!(times.frontier(), &[6]);
/// ```
#[derive(Clone, Debug)]
pub struct MutableAntichain<T> {
    counts: BTreeMap<T, i64>,
    frontier: Vec<T>,
    changes: Vec<(T, i64)>,
}

impl<T> MutableAntichain<T> {
    /// An empty collection, without an allocation.
    pub const fn new() -> Self {
        Self {
            counts: BTreeMap::new(),
            frontier: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// The minimal elements among those with a positive count, in no particular order.
    #[inline]
    pub fn frontier(&self) -> &[T] {
        &self.frontier
    }

    /// True when no element has a positive count.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frontier.is_empty()
    }

    /// Forgets every count.
    pub fn clear(&mut self) {
        self.counts.clear();
        self.frontier.clear();
    }
}

impl<T: PartialOrder> MutableAntichain<T> {
    /// True when some element with a positive count comes strictly before `time`.
    #[inline]
    pub fn less_than(&self, time: &T) -> bool {
        self.frontier()
            .iter()
            .any(|element| element.less_than(time))
    }

    /// True when some element with a positive count comes before `time` or equals it.
    #[inline]
    pub fn less_equal(&self, time: &T) -> bool {
        self.frontier()
            .iter()
            .any(|element| element.less_equal(time))
    }
}

impl<T: PartialOrder + Ord + Clone> MutableAntichain<T> {
    /// A collection that holds one `element`.
    pub fn from_elem(element: T) -> Self {
        let mut result = Self::new();
        result.update(element, 1);
        result
    }

    /// Changes the count of `time` by `diff`, and yields the changes to the frontier:
    /// `-1` for an element that left it, `1` for one that joined.
    pub fn update(&mut self, time: T, diff: i64) -> std::vec::Drain<'_, (T, i64)> {
        let mut changes = std::mem::take(&mut self.changes);
        changes.clear();
        self.update_into(time, diff, &mut changes);
        self.changes = changes;
        self.changes.drain(..)
    }

    /// Applies all changes, and yields the net changes to the frontier.
    pub fn update_iter(
        &mut self,
        updates: impl IntoIterator<Item = (T, i64)>,
    ) -> std::vec::Drain<'_, (T, i64)> {
        let mut changes = std::mem::take(&mut self.changes);
        changes.clear();
        for (time, diff) in updates {
            self.update_into(time, diff, &mut changes);
        }
        net(&mut changes);
        self.changes = changes;
        self.changes.drain(..)
    }

    /// Changes the count of `time` by `diff`, and appends the changes to the frontier to `changes`.
    pub fn update_into(&mut self, time: T, diff: i64, changes: &mut Vec<(T, i64)>) {
        let count = self.counts.entry(time.clone()).or_insert(0);
        let before = *count;
        *count += diff;
        let after = *count;
        if after == 0 {
            self.counts.remove(&time);
        }
        if before <= 0 && after > 0 {
            self.arrived(time, changes);
        } else if before > 0 && after <= 0 {
            self.departed(&time, changes);
        }
    }

    /// The count of `time`.
    pub fn count_for(&self, time: &T) -> i64 {
        self.counts.get(time).copied().unwrap_or(0)
    }

    /// Every element with a count other than zero, in order.
    pub fn counts(&self) -> Vec<(T, i64)> {
        self.counts
            .iter()
            .map(|(time, count)| (time.clone(), *count))
            .collect()
    }

    fn arrived(&mut self, time: T, changes: &mut Vec<(T, i64)>) {
        if self.less_equal(&time) {
            return;
        }
        self.frontier.retain(|element| {
            let after = time.less_equal(element);
            if after {
                changes.push((element.clone(), -1));
            }
            !after
        });
        self.frontier.push(time.clone());
        changes.push((time, 1));
    }

    fn departed(&mut self, time: &T, changes: &mut Vec<(T, i64)>) {
        let Some(index) = self.frontier.iter().position(|element| element == time) else {
            return;
        };
        self.frontier.swap_remove(index);
        changes.push((time.clone(), -1));
        for (next, count) in self.counts.range(time..) {
            if *count > 0
                && time.less_equal(next)
                && !self.frontier.iter().any(|f| f.less_equal(next))
            {
                self.frontier.push(next.clone());
                changes.push((next.clone(), 1));
                if next.totally_ordered() {
                    break;
                }
            }
        }
    }
}

/// Adds up the changes per element.
fn net<T: Ord>(changes: &mut Vec<(T, i64)>) {
    if changes.len() < 2 {
        return;
    }
    changes.sort_by(|a, b| a.0.cmp(&b.0));
    changes.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    changes.retain(|(_, diff)| *diff != 0);
}

impl<T> Default for MutableAntichain<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: PartialOrder + Ord + Clone> FromIterator<(T, i64)> for MutableAntichain<T> {
    fn from_iter<I: IntoIterator<Item = (T, i64)>>(updates: I) -> Self {
        let mut result = Self::new();
        result.update_iter(updates);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_slides() {
        let mut times = MutableAntichain::new();
        for i in 0..100u64 {
            times.update(i, 1);
        }
        for i in 0..99 {
            assert_eq!(times.frontier(), &[i]);
            let changes: Vec<_> = times.update_iter([(i, -1), (i + 100, 1)]).collect();
            assert_eq!(changes, vec![(i, -1), (i + 1, 1)]);
        }
    }

    #[test]
    fn incomparable_elements_share_the_frontier() {
        let mut times: MutableAntichain<(u64, u64)> = [((0, 0), 1)].into_iter().collect();
        times.update_iter([((1, 0), 1), ((0, 1), 1), ((1, 1), 1)]);
        let changes: Vec<_> = times.update_iter([((0, 0), -1)]).collect();
        assert_eq!(changes, vec![((0, 0), -1), ((0, 1), 1), ((1, 0), 1)]);
        assert!(times.less_than(&(1, 1)) && !times.less_equal(&(0, 0)));
    }

    #[test]
    fn counts_may_be_negative_for_a_while() {
        let mut times = MutableAntichain::new();
        assert_eq!(times.update(5u64, -1).count(), 0);
        assert!(times.is_empty());
        assert_eq!(times.update(5, 1).count(), 0);
        assert_eq!(times.count_for(&5), 0);
        assert_eq!(times.update(5, 1).count(), 1);
    }

    #[test]
    fn changes_that_cancel_are_not_reported() {
        let mut times = MutableAntichain::from_elem(1u64);
        assert_eq!(
            times
                .update_iter([(1, -1), (0, 1), (0, -1), (1, 1)])
                .count(),
            0
        );
        assert_eq!(times.counts(), vec![(1, 1)]);
    }
}
