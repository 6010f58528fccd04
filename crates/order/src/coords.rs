//! Points of a fixed number of coordinates, for trackers of one depth.
//!
//! Owns [`Coords`] and its path summary [`Shift`]. They have the meaning of [`Point`] and [`Summary`], where every
//! point has `N` coordinates: there is no length to check, no allocation, and loops over coordinates unroll. One
//! coordinate costs as much as a `u64`.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::{PartialOrder, PathSummary, Point, Summary, Timestamp};

/// A point in N^`N` under the product order.
///
/// ```
/// use pointstamp_order::{Coords, PartialOrder, Point};
///
/// let time = Coords::new([3, 1]);
/// assert!(time.less_than(&Coords::new([3, 2])));
/// assert!(!time.less_equal(&Coords::new([4, 0])));
/// assert_eq!(Coords::from_point(&Point::new(&[3, 1])), Some(time));
/// assert_eq!(Coords::<3>::from_point(&Point::new(&[3, 1])), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Coords<const N: usize>([u64; N]);

impl<const N: usize> Coords<N> {
    /// The point with these coordinates, outermost first.
    #[inline]
    pub const fn new(coords: [u64; N]) -> Self {
        Self(coords)
    }

    /// The same point, if it has `N` coordinates.
    #[inline]
    pub fn from_point(point: &Point) -> Option<Self> {
        point.coords().try_into().ok().map(Self)
    }

    /// The same point.
    #[inline]
    pub fn to_point(self) -> Point {
        Point::new(&self.0)
    }

    /// The coordinates, outermost first.
    #[inline]
    pub const fn coords(&self) -> &[u64; N] {
        &self.0
    }
}

impl<const N: usize> PartialOrder for Coords<N> {
    #[inline]
    #[allow(clippy::needless_bitwise_bool)] // without branches
    fn less_equal(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        pairs.fold(true, |so_far, (a, b)| so_far & (a <= b))
    }

    #[inline]
    fn totally_ordered(&self) -> bool {
        N <= 1
    }

    #[inline]
    fn lower_bound(&self, other: &Self) -> Option<Self> {
        let mut result = *self;
        for (ours, theirs) in result.0.iter_mut().zip(&other.0) {
            *ours = (*ours).min(*theirs);
        }
        Some(result)
    }
}

/// Lexicographic.
impl<const N: usize> Ord for Coords<N> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if let ([a, b], [c, d]) = (&self.0[..], &other.0[..]) {
            // As one number: a subtraction then shows whether one is less than another.
            let whole = |first: u64, second: u64| u128::from(first) << 64 | u128::from(second);
            return whole(*a, *b).cmp(&whole(*c, *d));
        }
        let pairs = self.0.iter().zip(&other.0).rev();
        pairs.fold(Ordering::Equal, |inner, (a, b)| a.cmp(b).then(inner)) // without branches
    }
}

impl<const N: usize> PartialOrd for Coords<N> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> Hash for Coords<N> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        for coord in &self.0 {
            state.write_u64(*coord);
        }
    }
}

impl<const N: usize> fmt::Debug for Coords<N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_point(), formatter)
    }
}

impl<const N: usize> Timestamp for Coords<N> {
    type Summary = Shift<N>;
}

/// Keeps the first coordinates of a point and adds to them, and sets the others.
///
/// ```
/// use pointstamp_order::{Coords, PathSummary, Shift, Summary};
///
/// let next = Shift::<2>::from_summary(&Summary::step(2, 1)).unwrap();
/// assert_eq!(next.results_in(&Coords::new([4, 7])), Some(Coords::new([4, 8])));
/// assert_eq!(Shift::<2>::from_summary(&Summary::step(1, 1)), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shift<const N: usize> {
    keep: usize,
    increments: [u64; N],
}

impl<const N: usize> Shift<N> {
    /// The summary that changes nothing.
    pub const IDENTITY: Self = Self {
        keep: N,
        increments: [0; N],
    };

    /// The same summary, if its results have `N` coordinates.
    pub fn from_summary(summary: &Summary) -> Option<Self> {
        Some(Self {
            keep: summary.keep(),
            increments: summary.increments().try_into().ok()?,
        })
    }

    /// The same summary.
    pub fn to_summary(self) -> Summary {
        Summary::new(self.keep, &self.increments)
    }
}

impl<const N: usize> PathSummary<Coords<N>> for Shift<N> {
    #[inline]
    fn results_in(&self, time: &Coords<N>) -> Option<Coords<N>> {
        let mut result = self.increments;
        for (index, (result, coord)) in result.iter_mut().zip(&time.0).enumerate() {
            if index < self.keep {
                *result = result.checked_add(*coord)?;
            }
        }
        Some(Coords(result))
    }

    #[inline]
    fn followed_by(&self, other: &Self) -> Option<Self> {
        Some(Self {
            keep: self.keep.min(other.keep),
            increments: other.results_in(&Coords(self.increments))?.0,
        })
    }
}

/// No more coordinates kept, and no increment greater.
impl<const N: usize> PartialOrder for Shift<N> {
    #[inline]
    fn less_equal(&self, other: &Self) -> bool {
        self.keep <= other.keep && Coords(self.increments).less_equal(&Coords(other.increments))
    }
}

impl<const N: usize> Ord for Shift<N> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (Coords(self.increments), self.keep).cmp(&(Coords(other.increments), other.keep))
    }
}

impl<const N: usize> PartialOrd for Shift<N> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> fmt::Debug for Shift<N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_summary(), formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything there is to say of points and summaries of `N` coordinates up to 2, and of the greatest.
    fn agrees<const N: usize>() {
        let values = [0, 1, 2, u64::MAX];
        let mut all = vec![Vec::new()];
        for _ in 0..N {
            let longer =
                |coords: &Vec<u64>| values.map(|value| [coords.clone(), vec![value]].concat());
            all = all.iter().flat_map(longer).collect();
        }
        let points: Vec<Point> = all.iter().map(|coords| Point::new(coords)).collect();
        let summaries = (0..=N).flat_map(|keep| all.iter().map(move |c| Summary::new(keep, c)));
        let summaries: Vec<Summary> = summaries.collect();
        let coords = |point: &Point| Coords::<N>::from_point(point).unwrap();
        let shift = |summary: &Summary| Shift::<N>::from_summary(summary).unwrap();
        for a in &points {
            assert_eq!(coords(a).to_point(), *a);
            assert_eq!(coords(a).coords()[..], *a.coords());
            for b in &points {
                assert_eq!(a.less_equal(b), coords(a).less_equal(&coords(b)));
                assert_eq!(a.cmp(b), coords(a).cmp(&coords(b)));
                assert_eq!(a == b, coords(a) == coords(b));
                let bound = coords(a).lower_bound(&coords(b));
                assert_eq!(a.lower_bound(b), bound.map(Coords::to_point));
            }
            assert_eq!(a.totally_ordered(), coords(a).totally_ordered());
        }
        for a in &summaries {
            assert_eq!(shift(a).to_summary(), *a);
            for b in &summaries {
                assert_eq!(a.less_equal(b), shift(a).less_equal(&shift(b)));
                assert_eq!(a.cmp(b), shift(a).cmp(&shift(b)));
                let path = shift(a).followed_by(&shift(b));
                assert_eq!(a.followed_by(b), path.map(Shift::to_summary));
            }
            for time in &points {
                let result = shift(a).results_in(&coords(time));
                assert_eq!(a.results_in(time), result.map(Coords::to_point));
            }
        }
        assert!(Shift::<N>::IDENTITY.to_summary().is_identity());
    }

    #[test]
    fn coordinates_of_a_fixed_number_are_points() {
        agrees::<0>();
        agrees::<1>();
        agrees::<2>();
    }

    #[test]
    fn other_numbers_are_refused() {
        assert_eq!(Coords::<1>::from_point(&Point::new(&[1, 2])), None);
        assert_eq!(Shift::<1>::from_summary(&Summary::new(1, &[1, 2])), None);
    }
}
