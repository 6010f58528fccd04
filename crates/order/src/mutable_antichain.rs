//! Counted elements, and the frontier of those with a positive count.
//!
//! Owns [`MutableAntichain`]. Invariant: the frontier holds exactly the minimal elements among
//! those whose count is positive; counts may be negative for a while.
//!
//! Up to two elements, as in most places of a dataflow, are held inline: an update costs a few comparisons and no
//! allocation. More are kept sorted in the linear extension `Ord`, apart from the frontier. An update behind the
//! frontier is put off at the cost of a push. When an element leaves the frontier, the search for its successors
//! starts there, ends at the first in a total order, and skips blocks behind the frontier in a partial order with
//! [lower bounds](PartialOrder::lower_bound).

mod many;
mod sorted_counts;

use many::Many;

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
pub struct MutableAntichain<T>(Counts<T>);

/// No count held inline is zero.
#[derive(Clone, Debug)]
enum Counts<T> {
    None,
    One(T, i64),
    /// In order; not both in the frontier.
    Two([(T, i64); 2]),
    Many(Box<Many<T>>),
}

impl<T> MutableAntichain<T> {
    /// An empty collection, without an allocation.
    pub const fn new() -> Self {
        Self(Counts::None)
    }

    /// The minimal elements among those with a positive count, in no particular order.
    #[inline]
    pub fn frontier(&self) -> &[T] {
        match &self.0 {
            Counts::One(time, 1..) | Counts::Two([(time, 1..), _] | [_, (time, 1..)]) => {
                std::slice::from_ref(time)
            }
            Counts::None | Counts::One(..) | Counts::Two(_) => &[],
            Counts::Many(many) => many.frontier(),
        }
    }

    /// True when no element has a positive count.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frontier().is_empty()
    }

    /// Forgets every count.
    pub fn clear(&mut self) {
        match &mut self.0 {
            Counts::Many(many) => many.clear(),
            few => *few = Counts::None,
        }
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
    ///
    /// [`MutableAntichain::update_into`] does the same without an allocation for the changes.
    pub fn update(&mut self, time: T, diff: i64) -> std::vec::IntoIter<(T, i64)> {
        let mut changes = Vec::new();
        self.update_into(time, diff, &mut changes);
        changes.into_iter()
    }

    /// Applies all changes, and yields the net changes to the frontier.
    pub fn update_iter(
        &mut self,
        updates: impl IntoIterator<Item = (T, i64)>,
    ) -> std::vec::IntoIter<(T, i64)> {
        let mut changes = Vec::new();
        for (time, diff) in updates {
            self.update_into(time, diff, &mut changes);
        }
        net(&mut changes);
        changes.into_iter()
    }

    /// Changes the count of `time` by `diff`, and appends the changes to the frontier to `changes`.
    #[inline]
    pub fn update_into(&mut self, time: T, diff: i64, changes: &mut Vec<(T, i64)>) {
        match &mut self.0 {
            Counts::Many(many) => many.update(time, diff, changes),
            Counts::None => {
                if diff > 0 {
                    changes.push((time.clone(), 1));
                }
                if diff != 0 {
                    self.0 = Counts::One(time, diff);
                }
            }
            Counts::One(held, count) if *held == time => {
                let before = *count;
                *count += diff;
                let after = *count;
                if after == 0 {
                    self.0 = Counts::None;
                }
                if (before > 0) != (after > 0) {
                    changes.push((time, if after > 0 { 1 } else { -1 }));
                }
            }
            _ => self.update_two(time, diff, changes),
        }
    }

    /// Updates the counts when one element beside the new one is held, or two are.
    fn update_two(&mut self, time: T, diff: i64, changes: &mut Vec<(T, i64)>) {
        let (before, counts) = match std::mem::replace(&mut self.0, Counts::None) {
            Counts::One(held, count) if diff != 0 => {
                let before = (count > 0).then(|| held.clone());
                let (held, new) = ((held, count), (time, diff));
                (
                    before,
                    if held.0 < new.0 {
                        [held, new]
                    } else {
                        [new, held]
                    },
                )
            }
            Counts::Two(mut counts) if counts.iter().any(|(held, _)| *held == time) => {
                let before = counts.iter().find(|(_, count)| *count > 0);
                let before = before.map(|(held, _)| held.clone());
                counts[usize::from(counts[0].0 != time)].1 += diff;
                (before, counts)
            }
            Counts::Two([first, second]) => {
                // A third element: after this there may be any number.
                let mut many = Many::new();
                for (held, count) in [first, second] {
                    many.update(held, count, &mut Vec::new());
                }
                many.update(time, diff, changes);
                self.0 = Counts::Many(Box::new(many));
                return;
            }
            other => {
                self.0 = other;
                return;
            }
        };
        let incomparable =
            counts[0].1 > 0 && counts[1].1 > 0 && !counts[0].0.less_equal(&counts[1].0);
        if incomparable {
            let mut many = Many::new();
            for (held, count) in counts {
                many.update(held, count, &mut Vec::new());
            }
            let joined = many
                .frontier()
                .iter()
                .filter(|time| before.as_ref() != Some(time));
            changes.extend(joined.map(|time| (time.clone(), 1)));
            self.0 = Counts::Many(Box::new(many));
            return;
        }
        self.0 = match counts {
            [(_, 0), (time, count)] | [(time, count), (_, 0)] => Counts::One(time, count),
            counts => Counts::Two(counts),
        };
        let after = self.frontier().first();
        if before.as_ref() != after {
            let after = after.map(|time| (time.clone(), 1));
            changes.extend(before.map(|time| (time, -1)).into_iter().chain(after));
        }
    }

    /// The count of `time`.
    pub fn count_for(&self, time: &T) -> i64 {
        match &self.0 {
            Counts::One(held, count) if held == time => *count,
            Counts::Two([(held, count), _] | [_, (held, count)]) if held == time => *count,
            Counts::None | Counts::One(..) | Counts::Two(_) => 0,
            Counts::Many(many) => many.count_for(time),
        }
    }

    /// Every element with a count other than zero, in order.
    pub fn counts(&self) -> Vec<(T, i64)> {
        match &self.0 {
            Counts::None => Vec::new(),
            Counts::One(time, count) => vec![(time.clone(), *count)],
            Counts::Two(counts) => counts.to_vec(),
            Counts::Many(many) => many.counts(),
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
