//! Any number of counted elements and their frontier.
//!
//! Owns [`Many`]. Invariant: the elements of the frontier, with their counts, are kept apart from all others, each of
//! which comes behind one of them or has a count that is not positive. A change behind the frontier is put off
//! without a search; a change to the count of an element of the frontier needs no search.

use super::sorted_counts::SortedCounts;
use crate::PartialOrder;

#[derive(Clone, Debug)]
pub(super) struct Many<T> {
    frontier: Vec<T>,
    /// The counts of the frontier's elements, all positive.
    heads: Vec<i64>,
    rest: SortedCounts<T>,
}

impl<T> Many<T> {
    pub(super) const fn new() -> Self {
        Self {
            frontier: Vec::new(),
            heads: Vec::new(),
            rest: SortedCounts::new(),
        }
    }

    #[inline]
    pub(super) fn frontier(&self) -> &[T] {
        &self.frontier
    }

    pub(super) fn clear(&mut self) {
        self.frontier.clear();
        self.heads.clear();
        self.rest.clear();
    }
}

impl<T: PartialOrder + Ord + Clone> Many<T> {
    pub(super) fn update(&mut self, time: T, diff: i64, changes: &mut Vec<(T, i64)>) {
        for (index, element) in self.frontier.iter().enumerate() {
            if element.less_equal(&time) {
                if *element != time {
                    self.rest.add(time, diff);
                    return;
                }
                self.heads[index] += diff;
                if self.heads[index] <= 0 {
                    self.depart(index, changes);
                }
                return;
            }
        }
        self.update_undominated(time, diff, changes);
    }

    /// Updates an element that no element of the frontier precedes: its count includes the part that is still in
    /// `rest`.
    fn update_undominated(&mut self, time: T, diff: i64, changes: &mut Vec<(T, i64)>) {
        if diff <= 0 {
            self.rest.add(time, diff);
            return;
        }
        let owed = if self.rest.may_owe() {
            self.rest.take(&time)
        } else {
            0
        };
        let count = owed + diff;
        if count <= 0 {
            self.rest.add(time, count);
            return;
        }
        for index in (0..self.frontier.len()).rev() {
            if time.less_equal(&self.frontier[index]) {
                let element = self.frontier.swap_remove(index);
                self.rest
                    .add(element.clone(), self.heads.swap_remove(index));
                changes.push((element, -1));
            }
        }
        self.frontier.push(time.clone());
        self.heads.push(count);
        changes.push((time, 1));
    }

    /// Removes the element at `index` from the frontier, and adds the elements that it alone preceded.
    fn depart(&mut self, index: usize, changes: &mut Vec<(T, i64)>) {
        let Self {
            frontier,
            heads,
            rest,
        } = self;
        let time = frontier.swap_remove(index);
        let owed = heads.swap_remove(index);
        if owed < 0 {
            rest.add(time.clone(), owed);
        }
        changes.push((time.clone(), -1));
        rest.take_minimal(&time, frontier, |frontier, element, count| {
            changes.push((element.clone(), 1));
            frontier.push(element);
            heads.push(count);
        });
    }

    pub(super) fn count_for(&self, time: &T) -> i64 {
        match self.frontier.iter().position(|element| element == time) {
            Some(index) => self.heads[index],
            None => self.rest.count_for(time),
        }
    }

    pub(super) fn counts(&self) -> Vec<(T, i64)> {
        let mut counts = self.rest.to_vec();
        counts.extend(
            self.frontier
                .iter()
                .cloned()
                .zip(self.heads.iter().copied()),
        );
        counts.sort_by(|a, b| a.0.cmp(&b.0));
        counts
    }
}
