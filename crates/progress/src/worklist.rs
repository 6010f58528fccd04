//! Changes waiting to be propagated, smallest time first.
//!
//! Owns [`Worklist`]. A few of the smallest items are kept sorted, and the others in a heap. Where
//! changes have few consequences, as along a chain, the heap is never touched, and an item costs a
//! comparison with each that comes before it.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The number of items that are kept sorted.
const NEAR: usize = 16;

type Item<T> = (T, u32, i64);

/// Ordered by time, then by the number of the location.
#[derive(Clone, Debug)]
pub(crate) struct Worklist<T> {
    /// Descending, with distinct times and locations.
    near: Vec<Item<T>>,
    /// None comes before any in `near`.
    far: BinaryHeap<Reverse<Item<T>>>,
}

impl<T: Ord> Worklist<T> {
    pub(crate) fn new() -> Self {
        Self {
            near: Vec::with_capacity(NEAR + 1),
            far: BinaryHeap::new(),
        }
    }

    /// Adds a difference to a time at a location.
    #[inline]
    pub(crate) fn push(&mut self, time: T, location: u32, diff: i64) {
        let mut index = self.near.len();
        while index > 0 {
            let other = &mut self.near[index - 1];
            match other.0.cmp(&time).then(other.1.cmp(&location)) {
                Ordering::Less => index -= 1,
                Ordering::Equal => {
                    other.2 += diff;
                    return;
                }
                Ordering::Greater => break,
            }
        }
        if index > 0 || self.may_lead(&time, location) {
            self.near.insert(index, (time, location, diff));
            if self.near.len() > NEAR {
                self.far.push(Reverse(self.near.remove(0)));
            }
        } else {
            self.far.push(Reverse((time, location, diff)));
        }
    }

    /// True when an item that comes after all of `near` also comes before all of `far`, and `near` has space
    /// for it.
    fn may_lead(&self, time: &T, location: u32) -> bool {
        self.near.len() < NEAR
            && self
                .far
                .peek()
                .is_none_or(|Reverse(far)| (time, location) < (&far.0, far.1))
    }

    /// The smallest time and location with the sum of its differences, which is not zero.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Item<T>> {
        loop {
            let mut item = match self.near.pop() {
                Some(item) => item,
                None => self.far.pop()?.0,
            };
            if self.near.is_empty() && !self.far.is_empty() {
                while let Some(Reverse(more)) = self.pop_same(&item) {
                    item.2 += more.2;
                }
            }
            if item.2 != 0 {
                return Some(item);
            }
        }
    }

    fn pop_same(&mut self, item: &Item<T>) -> Option<Reverse<Item<T>>> {
        let Reverse(top) = self.far.peek()?;
        if top.1 == item.1 && top.0 == item.0 {
            self.far.pop()
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_items_come_in_order_too() {
        let mut worklist = Worklist::new();
        let mut expected = std::collections::BTreeMap::new();
        for index in 0..1_000u64 {
            let (time, location, diff) = (index * 7919 % 101, (index % 3) as u32, 1);
            worklist.push(time, location, diff);
            *expected.entry((time, location)).or_insert(0) += diff;
            if index % 5 == 0 {
                let (time, location, diff) = worklist.pop().unwrap();
                let (least, count) = expected.pop_first().unwrap();
                assert_eq!(((time, location), diff), (least, count));
            }
        }
        let popped = std::iter::from_fn(|| worklist.pop()).map(|(t, l, d)| ((t, l), d));
        assert!(popped.eq(expected));
    }

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
