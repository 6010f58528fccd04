//! Counts in a map: the model of change batches and mutable antichains.
//!
//! Owns [`CountModel`], which recomputes everything it is asked for from the map.

use std::collections::BTreeMap;

use pointstamp_order::PartialOrder;

/// Counts per element, by the book.
#[derive(Clone, Debug, Default)]
pub struct CountModel<T> {
    counts: BTreeMap<T, i64>,
}

impl<T: PartialOrder + Ord + Clone> CountModel<T> {
    /// Nothing is counted.
    pub fn new() -> Self {
        Self {
            counts: BTreeMap::new(),
        }
    }

    /// Changes the count of `element`.
    pub fn update(&mut self, element: T, diff: i64) {
        *self.counts.entry(element).or_insert(0) += diff;
    }

    /// The count of `element`.
    pub fn count_for(&self, element: &T) -> i64 {
        self.counts.get(element).copied().unwrap_or(0)
    }

    /// Every element with a count other than zero, in order.
    pub fn counts(&self) -> Vec<(T, i64)> {
        let counts = self.counts.iter().filter(|(_, count)| **count != 0);
        counts
            .map(|(element, count)| (element.clone(), *count))
            .collect()
    }

    /// The minimal elements among those with a positive count, in order.
    pub fn frontier(&self) -> Vec<T> {
        let positive = || self.counts.iter().filter(|(_, count)| **count > 0);
        let minimal = |element: &T| !positive().any(|(other, _)| other.less_than(element));
        positive()
            .map(|(element, _)| element)
            .filter(|e| minimal(e))
            .cloned()
            .collect()
    }
}
