//! Changes to counts, gathered now and consolidated later.
//!
//! Owns [`ChangeBatch`]. A change is appended; changes to one item are added up when the batch is
//! looked at, or when at least half of it has not been consolidated since it last was. The idea is
//! timely dataflow's. An update costs a push and, amortised, the logarithm of the number of
//! distinct items in comparisons; the memory follows the number of distinct items.

/// A collection of changes `(item, difference)`.
///
/// The readable part is consolidated: each item occurs once, in order, and no difference is zero.
///
/// ```
/// use pointstamp_order::ChangeBatch;
///
/// let mut batch = ChangeBatch::new();
/// batch.update("a", 1);
/// batch.update("b", -1);
/// batch.update("a", -1);
/// assert_eq!(batch.drain().collect::<Vec<_>>(), vec![("b", -1)]);
/// assert!(batch.is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct ChangeBatch<T> {
    /// Everything in `..clean` is consolidated; later entries were appended since.
    updates: Vec<(T, i64)>,
    clean: usize,
}

/// Up to this many updates are not worth consolidating before a reader looks.
const SMALL: usize = 32;

impl<T> ChangeBatch<T> {
    /// An empty batch, without an allocation.
    pub const fn new() -> Self {
        Self {
            updates: Vec::new(),
            clean: 0,
        }
    }

    /// An empty batch with room for `capacity` updates.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            updates: Vec::with_capacity(capacity),
            clean: 0,
        }
    }

    /// True when there are updates, even if they cancel. Costs nothing.
    #[inline]
    pub fn has_updates(&self) -> bool {
        !self.updates.is_empty()
    }

    /// Forgets every change.
    pub fn clear(&mut self) {
        self.updates.clear();
        self.clean = 0;
    }
}

impl<T: Ord> ChangeBatch<T> {
    /// Changes the count of `item` by `diff`.
    #[inline]
    pub fn update(&mut self, item: T, diff: i64) {
        self.updates.push((item, diff));
        self.maintain_bounds();
    }

    /// Applies each of the changes.
    pub fn extend(&mut self, changes: impl IntoIterator<Item = (T, i64)>) {
        self.updates.extend(changes);
        self.maintain_bounds();
    }

    /// The changes in order.
    pub fn iter(&mut self) -> std::slice::Iter<'_, (T, i64)> {
        self.compact();
        self.updates.iter()
    }

    /// Removes and yields the changes in order.
    pub fn drain(&mut self) -> std::vec::Drain<'_, (T, i64)> {
        self.compact();
        self.clean = 0;
        self.updates.drain(..)
    }

    /// Moves every change to `other`.
    pub fn drain_into(&mut self, other: &mut Self) {
        if other.updates.is_empty() {
            std::mem::swap(self, other);
        } else {
            other.updates.append(&mut self.updates);
            other.maintain_bounds();
        }
        self.clear();
    }

    /// The changes in order, as a vector.
    pub fn into_inner(mut self) -> Vec<(T, i64)> {
        self.compact();
        self.updates
    }

    /// True when the changes cancel out. Consolidates only where it has to.
    pub fn is_empty(&mut self) -> bool {
        // More consolidated changes than others: not all of them can cancel.
        if self.clean > self.updates.len() / 2 {
            return false;
        }
        self.compact();
        self.updates.is_empty()
    }

    /// The number of items whose count changes.
    pub fn len(&mut self) -> usize {
        self.compact();
        self.updates.len()
    }

    /// Consolidates the changes.
    #[inline]
    pub fn compact(&mut self) {
        if self.clean < self.updates.len() {
            self.consolidate();
        }
    }

    fn consolidate(&mut self) {
        if self.updates.len() <= 2 * SMALL || self.clean == 0 {
            self.updates.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        } else {
            // The consolidated prefix and the sorted rest are two runs, which a stable sort merges.
            self.updates[self.clean..].sort_unstable_by(|a, b| a.0.cmp(&b.0));
            if self.updates[self.clean].0 <= self.updates[self.clean - 1].0 {
                self.updates.sort_by(|a, b| a.0.cmp(&b.0));
            }
        }
        self.add_up();
        self.clean = self.updates.len();
    }

    /// Adds up sorted updates to one item, and drops those whose sum is zero.
    fn add_up(&mut self) {
        let mut kept = 0;
        let mut next = 0;
        while next < self.updates.len() {
            let first = next;
            let mut sum = self.updates[first].1;
            next += 1;
            while next < self.updates.len() && self.updates[next].0 == self.updates[first].0 {
                sum += self.updates[next].1;
                next += 1;
            }
            if sum != 0 {
                self.updates.swap(kept, first);
                self.updates[kept].1 = sum;
                kept += 1;
            }
        }
        self.updates.truncate(kept);
    }

    #[inline]
    fn maintain_bounds(&mut self) {
        if self.updates.len() > SMALL && self.updates.len() / 2 >= self.clean {
            self.compact();
        }
    }
}

impl<T> Default for ChangeBatch<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Equality of the net changes.
impl<T: Ord + Clone> PartialEq for ChangeBatch<T> {
    fn eq(&self, other: &Self) -> bool {
        self.clone().into_inner() == other.clone().into_inner()
    }
}

impl<T: Ord> FromIterator<(T, i64)> for ChangeBatch<T> {
    fn from_iter<I: IntoIterator<Item = (T, i64)>>(changes: I) -> Self {
        let mut result = Self::new();
        result.extend(changes);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_add_up() {
        let mut batch: ChangeBatch<u64> = [(3, 1), (1, 2), (3, -1), (2, 1)].into_iter().collect();
        assert_eq!(batch.len(), 2);
        assert_eq!(
            batch.iter().copied().collect::<Vec<_>>(),
            vec![(1, 2), (2, 1)]
        );
        batch.update(1, -2);
        batch.update(2, -1);
        assert!(batch.is_empty());
    }

    #[test]
    fn memory_follows_the_distinct_items() {
        let mut batch = ChangeBatch::new();
        for round in 0..10_000u64 {
            batch.update(round % 7, 1);
            batch.update(round, 1);
            batch.update(round, -1);
        }
        assert!(batch.updates.len() <= SMALL);
        assert_eq!(batch.iter().map(|(_, diff)| diff).sum::<i64>(), 10_000);
    }

    #[test]
    fn drain_into_moves_everything() {
        let mut from: ChangeBatch<u64> = [(1, 1), (2, 1)].into_iter().collect();
        let mut into: ChangeBatch<u64> = [(2, -1)].into_iter().collect();
        from.drain_into(&mut into);
        assert!(from.is_empty());
        assert_eq!(into.into_inner(), vec![(1, 1)]);
    }
}
