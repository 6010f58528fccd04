//! Times as the kernel uses them: a lattice, and the effect of compaction on a time.
//!
//! Owns [`Time`] and the functions on frontiers that need joins. Invariant: `Ord` is a linear
//! extension of the partial order, so that a sweep in that order never meets a time before one that
//! leads to it. One operation is a few instructions per coordinate.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::hash::Hash;

use pointstamp_order::{Antichain, PartialOrder, Point};

/// A time in N^k under the product order, with least upper and greatest lower bounds.
///
/// ```
/// use pointstamp_arrange::{Time, advance};
/// use pointstamp_order::Antichain;
///
/// assert_eq!([1u64, 5].join(&[3, 4]), [3, 5]);
/// assert_eq!([1u64, 5].meet(&[3, 4]), [1, 4]);
/// // A reader at 7 or later cannot tell 2 from 7 any more.
/// assert_eq!(advance(&2, &Antichain::from_elem(7u64)), 7);
/// ```
pub trait Time: PartialOrder + Ord + Hash + Clone + Debug + Send + Sync + 'static {
    /// True when any two times are comparable, which spares operators the search for joins of times.
    const TOTAL: bool;

    /// The least time at or after both. Both have the same number of coordinates.
    #[must_use]
    fn join(&self, other: &Self) -> Self;

    /// The greatest time at or before both. Both have the same number of coordinates.
    #[must_use]
    fn meet(&self, other: &Self) -> Self;

    /// Compares as `cmp` does; for arrays it is inlined where the comparison of slices is called.
    #[inline]
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    /// Appends the coordinates to `into`.
    fn write(&self, into: &mut Vec<u64>);

    /// The time with these coordinates; `None` where the type has another number of them.
    fn read(coords: &[u64]) -> Option<Self>;
}

impl Time for u64 {
    const TOTAL: bool = true;

    #[inline]
    fn join(&self, other: &Self) -> Self {
        *self.max(other)
    }

    #[inline]
    fn meet(&self, other: &Self) -> Self {
        *self.min(other)
    }

    fn write(&self, into: &mut Vec<u64>) {
        into.push(*self);
    }

    fn read(coords: &[u64]) -> Option<Self> {
        <[u64; 1]>::read(coords).map(|[only]| only)
    }
}

impl<const N: usize> Time for [u64; N] {
    const TOTAL: bool = N <= 1;

    #[inline]
    fn join(&self, other: &Self) -> Self {
        let mut joined = *self;
        for i in 0..N {
            joined[i] = joined[i].max(other[i]);
        }
        joined
    }

    #[inline]
    fn meet(&self, other: &Self) -> Self {
        let mut met = *self;
        for i in 0..N {
            met[i] = met[i].min(other[i]);
        }
        met
    }

    #[inline]
    #[allow(clippy::needless_range_loop)]
    fn order(&self, other: &Self) -> Ordering {
        for i in 0..N {
            if self[i] != other[i] {
                return self[i].cmp(&other[i]);
            }
        }
        Ordering::Equal
    }

    fn write(&self, into: &mut Vec<u64>) {
        into.extend(self);
    }

    fn read(coords: &[u64]) -> Option<Self> {
        coords.try_into().ok()
    }
}

/// Points of one scope: all have the same number of coordinates.
impl Time for Point {
    const TOTAL: bool = false;

    #[inline]
    fn join(&self, other: &Self) -> Self {
        Point::join(self, other).expect("times of one scope have the same number of coordinates")
    }

    #[inline]
    fn meet(&self, other: &Self) -> Self {
        Point::meet(self, other).expect("times of one scope have the same number of coordinates")
    }

    fn write(&self, into: &mut Vec<u64>) {
        into.extend(self.coords());
    }

    fn read(coords: &[u64]) -> Option<Self> {
        Some(Point::new(coords))
    }
}

/// All of these times once, in their linear order.
pub(crate) fn in_order<T: Time>(times: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut times: Vec<T> = times.into_iter().collect();
    times.sort_unstable();
    times.dedup();
    times
}

/// The representative of `time` for readers at or after `since`: it compares with every time that they may
/// query exactly as `time` does, and times that they cannot distinguish have the same one.
///
/// With an empty `since` nothing is read any more; the time is returned as it is.
#[inline]
pub fn advance<T: Time>(time: &T, since: &Antichain<T>) -> T {
    let mut elements = since.iter();
    let Some(first) = elements.next() else {
        return time.clone();
    };
    elements.fold(time.join(first), |result, element| {
        result.meet(&time.join(element))
    })
}

/// The earliest frontier at or after both: times before it are complete in both.
pub fn join_frontiers<T: Time>(a: &Antichain<T>, b: &Antichain<T>) -> Antichain<T> {
    let pairs = a.iter().flat_map(|x| b.iter().map(|y| x.join(y)));
    pairs.collect()
}

/// The latest frontier at or before both.
pub fn meet_frontiers<T: Time>(a: &Antichain<T>, b: &Antichain<T>) -> Antichain<T> {
    a.iter().chain(b).cloned().collect()
}

/// The greatest time at or before each; `None` of none.
pub(crate) fn meet_all<'a, T: Time>(times: impl IntoIterator<Item = &'a T>) -> Option<T> {
    let mut times = times.into_iter();
    let first = times.next()?.clone();
    Some(times.fold(first, |meet, time| meet.meet(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn representatives_compare_as_the_time_does_from_since_on() {
        let since: Antichain<[u64; 2]> = [[1, 3], [2, 1]].into_iter().collect();
        let all = || (0..5).flat_map(|x| (0..5).map(move |y| [x, y]));
        for time in all() {
            let advanced = advance(&time, &since);
            for read in all().filter(|read| since.less_equal(read)) {
                assert_eq!(time.less_equal(&read), advanced.less_equal(&read));
            }
            for other in all() {
                let alike = all()
                    .filter(|read| since.less_equal(read))
                    .all(|read| time.less_equal(&read) == other.less_equal(&read));
                assert_eq!(alike, advanced == advance(&other, &since));
            }
        }
    }

    #[test]
    fn arrays_are_ordered_as_their_slices_are() {
        let all = || (0..27u64).map(|n| [n / 9, n / 3 % 3, n % 3]);
        for (a, b) in all().flat_map(|a| all().map(move |b| (a, b))) {
            assert_eq!(a.order(&b), a.cmp(&b));
        }
    }

    #[test]
    fn frontiers_join_and_meet() {
        let a: Antichain<[u64; 2]> = [[0, 2], [2, 0]].into_iter().collect();
        let b = Antichain::from_elem([1, 1]);
        assert_eq!(
            join_frontiers(&a, &b),
            [[1, 2], [2, 1]].into_iter().collect()
        );
        assert_eq!(
            meet_frontiers(&a, &b),
            [[0, 2], [1, 1], [2, 0]].into_iter().collect()
        );
        assert!(join_frontiers(&a, &Antichain::new()).is_empty());
    }
}
