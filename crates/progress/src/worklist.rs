//! Changes waiting to be propagated, smallest time first.
//!
//! Owns [`Worklist`]: a heap with one item kept beside it. Where a change has one consequence, as
//! along a chain, the consequence is the smallest item and never enters the heap, so that a step
//! costs one comparison.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Ordered by time, then by the number of the location.
#[derive(Debug)]
pub(crate) struct Worklist<T> {
    /// No greater than anything in the heap when the heap was last looked at; may be absent.
    first: Option<(T, u32, i64)>,
    heap: BinaryHeap<Reverse<(T, u32, i64)>>,
}

impl<T: Ord> Worklist<T> {
    pub(crate) fn new() -> Self {
        Self {
            first: None,
            heap: BinaryHeap::new(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, time: T, location: u32, diff: i64) {
        let item = (time, location, diff);
        match &mut self.first {
            None => self.first = Some(item),
            Some(first) if (&item.0, item.1) < (&first.0, first.1) => {
                let other = std::mem::replace(first, item);
                self.heap.push(Reverse(other));
            }
            Some(_) => self.heap.push(Reverse(item)),
        }
    }

    /// The smallest time and location with the sum of its differences, which is not zero.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(T, u32, i64)> {
        loop {
            let (time, location, mut diff) = self.pop_one()?;
            while let Some(more) = self.pop_same(&time, location) {
                diff += more;
            }
            if diff != 0 {
                return Some((time, location, diff));
            }
        }
    }

    #[inline]
    fn pop_one(&mut self) -> Option<(T, u32, i64)> {
        match (self.first.take(), self.heap.peek()) {
            (Some(first), Some(Reverse(top))) if (&top.0, top.1) < (&first.0, first.1) => {
                self.first = Some(first);
                self.heap.pop().map(|Reverse(item)| item)
            }
            (Some(first), _) => Some(first),
            (None, _) => self.heap.pop().map(|Reverse(item)| item),
        }
    }

    #[inline]
    fn pop_same(&mut self, time: &T, location: u32) -> Option<i64> {
        let same = |item: &(T, u32, i64)| item.1 == location && item.0 == *time;
        if self.first.as_ref().is_some_and(same) {
            return self.first.take().map(|(_, _, diff)| diff);
        }
        if self.heap.peek().is_some_and(|Reverse(item)| same(item)) {
            return self.heap.pop().map(|Reverse((_, _, diff))| diff);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_order_and_added_up() {
        let mut worklist = Worklist::new();
        for (time, location, diff) in [
            (3, 0, 1),
            (1, 5, 1),
            (2, 2, 1),
            (1, 4, 2),
            (3, 0, 1),
            (2, 2, -1),
            (1, 5, 1),
        ] {
            worklist.push(time, location, diff);
        }
        let popped: Vec<_> = std::iter::from_fn(|| worklist.pop()).collect();
        assert_eq!(popped, vec![(1, 4, 2), (1, 5, 2), (3, 0, 2)]);
    }
}
