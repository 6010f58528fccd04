//! Sets of mutually incomparable elements.
//!
//! Owns [`Antichain`]. Invariant: no element is less than or equal to another. Most antichains in
//! a dataflow have at most one element, which is held inline without an allocation. Insertion and
//! the comparisons look at each element once.

use std::fmt;

use crate::PartialOrder;

/// A set of elements none of which comes before another.
///
/// ```
/// use pointstamp_order::Antichain;
///
/// let mut antichain = Antichain::new();
/// assert!(antichain.insert((2u64, 5u64)));
/// assert!(antichain.insert((3, 3)));
/// assert!(!antichain.insert((3, 6))); // after (2, 5)
/// assert!(antichain.less_equal(&(3, 4)));
/// assert!(!antichain.less_than(&(3, 3)));
///
/// assert!(antichain.insert((1, 4))); // before (2, 5), which it replaces
/// assert_eq!(antichain, Antichain::from_iter([(3, 3), (1, 4)]));
/// ```
#[derive(Clone)]
pub struct Antichain<T> {
    elements: Elements<T>,
}

/// At most one element inline; `Many` may hold any number, so that capacity is kept.
#[derive(Clone)]
enum Elements<T> {
    One(Option<T>),
    Many(Vec<T>),
}

impl<T> Antichain<T> {
    /// The empty antichain, which nothing comes after.
    pub const fn new() -> Self {
        Self {
            elements: Elements::One(None),
        }
    }

    /// The antichain of one element.
    pub const fn from_elem(element: T) -> Self {
        Self {
            elements: Elements::One(Some(element)),
        }
    }

    /// The elements, in no particular order.
    #[inline]
    pub fn elements(&self) -> &[T] {
        match &self.elements {
            Elements::One(element) => element.as_slice(),
            Elements::Many(elements) => elements,
        }
    }

    /// Iterates over the elements, in no particular order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.elements().iter()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.elements().len()
    }

    /// True when there is no element.
    pub fn is_empty(&self) -> bool {
        self.elements().is_empty()
    }

    /// Removes every element.
    pub fn clear(&mut self) {
        match &mut self.elements {
            Elements::One(element) => *element = None,
            Elements::Many(elements) => elements.clear(),
        }
    }

    /// The elements as a vector.
    pub fn into_vec(self) -> Vec<T> {
        match self.elements {
            Elements::One(element) => element.into_iter().collect(),
            Elements::Many(elements) => elements,
        }
    }
}

impl<T: PartialOrder> Antichain<T> {
    /// Adds `element` unless one of the elements is less than or equal to it, and removes the
    /// elements that it comes before. True when it was added.
    pub fn insert(&mut self, element: T) -> bool {
        if self.less_equal(&element) {
            return false;
        }
        match &mut self.elements {
            Elements::Many(elements) => {
                elements.retain(|other| !element.less_equal(other));
                elements.push(element);
            }
            Elements::One(slot) => match slot.take() {
                Some(other) if !element.less_equal(&other) => {
                    self.elements = Elements::Many(vec![other, element]);
                }
                _ => *slot = Some(element),
            },
        }
        true
    }

    /// Inserts each element; true when any was added.
    pub fn extend(&mut self, elements: impl IntoIterator<Item = T>) -> bool {
        let mut added = false;
        for element in elements {
            added |= self.insert(element);
        }
        added
    }

    /// True when some element comes strictly before `other`.
    #[inline]
    pub fn less_than(&self, other: &T) -> bool {
        self.iter().any(|element| element.less_than(other))
    }

    /// True when some element comes before `other` or equals it.
    #[inline]
    pub fn less_equal(&self, other: &T) -> bool {
        self.iter().any(|element| element.less_equal(other))
    }
}

/// One antichain comes before another when everything at or after an element of the second is
/// also at or after an element of the first.
impl<T: PartialOrder> PartialOrder for Antichain<T> {
    fn less_equal(&self, other: &Self) -> bool {
        other
            .iter()
            .all(|element| Antichain::less_equal(self, element))
    }
}

/// Equality as sets.
impl<T: PartialEq> PartialEq for Antichain<T> {
    fn eq(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.elements(), other.elements());
        ours.len() == theirs.len() && (ours == theirs || ours.iter().all(|a| theirs.contains(a)))
    }
}

impl<T: Eq> Eq for Antichain<T> {}

impl<T> Default for Antichain<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Antichain<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

impl<T: PartialOrder> FromIterator<T> for Antichain<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut result = Self::new();
        result.extend(elements);
        result
    }
}

impl<T: PartialOrder> From<Vec<T>> for Antichain<T> {
    fn from(elements: Vec<T>) -> Self {
        elements.into_iter().collect()
    }
}

impl<T> IntoIterator for Antichain<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        match self.elements {
            Elements::One(element) => element.into_iter().chain(Vec::new()),
            Elements::Many(elements) => None.into_iter().chain(elements),
        }
    }
}

impl<'a, T> IntoIterator for &'a Antichain<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_only_minimal_elements() {
        let mut antichain = Antichain::new();
        assert!(antichain.insert(7u64));
        assert!(!antichain.insert(7));
        assert!(!antichain.insert(9));
        assert!(antichain.insert(3));
        assert_eq!(antichain.elements(), &[3]);
        assert!(antichain.less_equal(&3) && !antichain.less_than(&3));
        antichain.clear();
        assert!(antichain.is_empty() && !antichain.less_equal(&u64::MAX));
    }

    #[test]
    fn one_element_may_replace_many() {
        let mut antichain: Antichain<(u64, u64)> = (0..5).map(|i| (i, 5 - i)).collect();
        assert_eq!(antichain.len(), 5);
        assert!(antichain.insert((0, 0)));
        assert_eq!(antichain.into_vec(), vec![(0, 0)]);
    }

    #[test]
    fn antichains_are_sets_and_are_ordered() {
        let low: Antichain<(u64, u64)> = [(0, 2), (2, 0)].into_iter().collect();
        let same: Antichain<(u64, u64)> = [(2, 0), (0, 2)].into_iter().collect();
        let high = Antichain::from_elem((2, 2));
        assert_eq!(low, same);
        assert_ne!(low, high);
        assert!(PartialOrder::less_than(&low, &high));
        assert!(PartialOrder::less_equal(&high, &Antichain::new()));
        assert!(!PartialOrder::less_equal(&high, &low));
    }
}
