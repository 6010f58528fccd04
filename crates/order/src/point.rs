//! The engine's timestamp: a point in N^k under the product order.
//!
//! Owns [`Point`]. A scope at nesting depth `d` has points of a fixed number of coordinates;
//! entering a scope appends coordinates and leaving it removes them. Invariant: up to three
//! coordinates are inline, with the unused ones zero, and more are in one boxed slice, so that
//! equal points have equal representations. Points of different lengths are incomparable.
//! Comparing costs a few instructions per coordinate; cloning up to three copies four words.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::PartialOrder;

/// Coordinates that fit without an allocation.
const INLINE: usize = 3;

/// A point with any number of `u64` coordinates.
///
/// ```
/// use pointstamp_order::{PartialOrder, Point};
///
/// let time = Point::new(&[3, 1]);
/// assert!(time.less_than(&Point::new(&[3, 2])));
/// assert!(!time.less_equal(&Point::new(&[4, 0])));
/// assert_eq!(time.extend(&[0]).coords(), &[3, 1, 0]);
/// assert_eq!(time.truncate(1), Point::new(&[3]));
/// ```
#[derive(Clone, Eq)]
pub struct Point(Repr);

#[derive(Clone, Eq)]
enum Repr {
    Inline(Dims, [u64; INLINE]),
    Boxed(Box<[u64]>),
}

/// The number of coordinates that are inline, as a whole word: points are then moved word by word, which
/// processors do several times faster than in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
enum Dims {
    Zero,
    One,
    Two,
    Three,
}

impl Dims {
    const ALL: [Self; INLINE + 1] = [Self::Zero, Self::One, Self::Two, Self::Three];
}

impl Point {
    /// The least point of `dims` coordinates: all zero.
    #[inline]
    pub fn minimum(dims: usize) -> Self {
        if dims <= INLINE {
            Self::inline(dims, [0; INLINE])
        } else {
            Self(Repr::Boxed(vec![0; dims].into()))
        }
    }

    /// The point with these coordinates.
    #[inline]
    pub fn new(coords: &[u64]) -> Self {
        if coords.len() <= INLINE {
            let mut inline = [0; INLINE];
            inline[..coords.len()].copy_from_slice(coords);
            Self::inline(coords.len(), inline)
        } else {
            Self(Repr::Boxed(coords.into()))
        }
    }

    #[inline]
    fn inline(dims: usize, coords: [u64; INLINE]) -> Self {
        Self(Repr::Inline(Dims::ALL[dims], coords))
    }

    /// The coordinates, outermost first.
    #[inline]
    pub fn coords(&self) -> &[u64] {
        match &self.0 {
            Repr::Inline(dims, coords) => &coords[..*dims as usize],
            Repr::Boxed(coords) => coords,
        }
    }

    /// The number of coordinates.
    #[inline]
    pub fn dims(&self) -> usize {
        match &self.0 {
            Repr::Inline(dims, _) => *dims as usize,
            Repr::Boxed(coords) => coords.len(),
        }
    }

    /// The coordinate at `index`, counted from the outermost.
    #[inline]
    pub fn get(&self, index: usize) -> Option<u64> {
        self.coords().get(index).copied()
    }

    /// The last coordinate, of the innermost scope.
    #[inline]
    pub fn last(&self) -> Option<u64> {
        self.coords().last().copied()
    }

    /// The first `dims` coordinates; the whole point if it has no more.
    #[must_use]
    #[inline]
    pub fn truncate(&self, dims: usize) -> Self {
        Self::new(&self.coords()[..dims.min(self.dims())])
    }

    /// This point with `coords` appended.
    #[must_use]
    pub fn extend(&self, coords: &[u64]) -> Self {
        self.coords().iter().chain(coords).copied().collect()
    }

    /// This point with the last coordinate replaced.
    ///
    /// A point without coordinates is returned as it is.
    #[must_use]
    #[inline]
    pub fn with_last(&self, last: u64) -> Self {
        let mut result = self.clone();
        if let Some(coord) = result.coords_mut().last_mut() {
            *coord = last;
        }
        result
    }

    /// The least point at or after both, if they have the same number of coordinates.
    pub fn join(&self, other: &Self) -> Option<Self> {
        self.combine(other, u64::max)
    }

    /// The greatest point at or before both, if they have the same number of coordinates.
    #[inline]
    pub fn meet(&self, other: &Self) -> Option<Self> {
        self.combine(other, u64::min)
    }

    #[inline]
    fn combine(&self, other: &Self, choose: impl Fn(u64, u64) -> u64) -> Option<Self> {
        (self.dims() == other.dims()).then(|| {
            let mut result = self.clone();
            for (ours, theirs) in result.coords_mut().iter_mut().zip(other.coords()) {
                *ours = choose(*ours, *theirs);
            }
            result
        })
    }

    #[inline]
    pub(crate) fn coords_mut(&mut self) -> &mut [u64] {
        match &mut self.0 {
            Repr::Inline(dims, coords) => &mut coords[..*dims as usize],
            Repr::Boxed(coords) => coords,
        }
    }
}

impl PartialEq for Point {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl PartialEq for Repr {
    #[inline]
    #[allow(clippy::needless_bitwise_bool)] // without branches, and without a call to compare memory
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Repr::Inline(dims, a), Repr::Inline(other_dims, b)) => {
                dims == other_dims && a[0] == b[0] && a[1] == b[1] && a[2] == b[2]
            }
            (Repr::Boxed(a), Repr::Boxed(b)) => a == b,
            _ => false,
        }
    }
}

impl PartialOrder for Point {
    #[inline]
    #[allow(clippy::needless_bitwise_bool)] // without branches: it is the hottest comparison
    fn less_equal(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // Unused coordinates are zero on both sides.
            (Repr::Inline(dims, a), Repr::Inline(other_dims, b)) => {
                (dims == other_dims) & (a[0] <= b[0]) & (a[1] <= b[1]) & (a[2] <= b[2])
            }
            (Repr::Boxed(a), Repr::Boxed(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a <= b)
            }
            _ => false,
        }
    }

    #[inline]
    fn totally_ordered(&self) -> bool {
        self.dims() <= 1
    }

    #[inline]
    fn lower_bound(&self, other: &Self) -> Option<Self> {
        self.meet(other)
    }
}

/// Lexicographic, with a point before its extensions.
impl Ord for Point {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Inline(dims, a), Repr::Inline(other_dims, b)) => {
                // Padding with zeros keeps the order, and the length decides between equal ones.
                (a[0], a[1], a[2], dims).cmp(&(b[0], b[1], b[2], other_dims))
            }
            _ => self.coords().cmp(other.coords()),
        }
    }
}

impl PartialOrd for Point {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Point {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.coords().hash(state);
    }
}

impl From<&[u64]> for Point {
    fn from(coords: &[u64]) -> Self {
        Self::new(coords)
    }
}

impl<const N: usize> From<[u64; N]> for Point {
    fn from(coords: [u64; N]) -> Self {
        Self::new(&coords)
    }
}

impl From<Vec<u64>> for Point {
    fn from(coords: Vec<u64>) -> Self {
        if coords.len() <= INLINE {
            Self::new(&coords)
        } else {
            Self(Repr::Boxed(coords.into()))
        }
    }
}

impl FromIterator<u64> for Point {
    fn from_iter<I: IntoIterator<Item = u64>>(coords: I) -> Self {
        let mut inline = [0; INLINE];
        let mut coords = coords.into_iter();
        let mut dims = 0;
        while let Some(coord) = coords.next() {
            if dims == INLINE {
                let rest = std::iter::once(coord).chain(coords);
                return Self(Repr::Boxed(inline.into_iter().chain(rest).collect()));
            }
            inline[dims] = coord;
            dims += 1;
        }
        Self::inline(dims, inline)
    }
}

impl fmt::Debug for Point {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Formats a point as Python programs write times: `()`, `3`, `(3, 1)`.
impl fmt::Display for Point {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.coords() {
            [only] => write!(formatter, "{only}"),
            coords => {
                formatter.write_str("(")?;
                for (index, coord) in coords.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(formatter, "{comma}{coord}")?;
                }
                formatter.write_str(")")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_points_are_built_alike() {
        for dims in 0..6 {
            let coords: Vec<u64> = (1..=dims).collect();
            let point = Point::new(&coords);
            assert_eq!(point.coords(), coords);
            assert_eq!(coords.iter().copied().collect::<Point>(), point);
            assert_eq!(Point::from(coords.clone()), point);
            assert_eq!(
                point.truncate(2),
                Point::new(&coords[..coords.len().min(2)])
            );
            assert_eq!(point.extend(&[9]).truncate(coords.len()), point);
            assert!(Point::minimum(coords.len()).less_equal(&point));
        }
    }

    #[test]
    fn lengths_are_incomparable_but_sorted() {
        let (short, long) = (Point::new(&[1]), Point::new(&[1, 0]));
        assert!(!short.less_equal(&long) && !long.less_equal(&short));
        assert!(short < long);
        assert!(Point::new(&[1, 0]) < Point::new(&[2]));
        assert!(Point::new(&[1, 2, 3]) < Point::new(&[1, 2, 3, 0]));
        assert_eq!(short.join(&long), None);
    }

    #[test]
    fn joins_and_meets_are_bounds() {
        let (a, b) = (Point::new(&[1, 5, 2, 2]), Point::new(&[3, 4, 2, 0]));
        assert_eq!(a.join(&b), Some(Point::new(&[3, 5, 2, 2])));
        assert_eq!(a.meet(&b), Some(Point::new(&[1, 4, 2, 0])));
    }

    #[test]
    fn points_print_as_python_writes_them() {
        assert_eq!(Point::new(&[]).to_string(), "()");
        assert_eq!(Point::new(&[7]).to_string(), "7");
        assert_eq!(format!("{:?}", Point::new(&[7, 1])), "(7, 1)");
    }
}
