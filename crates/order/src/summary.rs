//! The engine's path summary: keep some coordinates, advance them, append others.
//!
//! Owns [`Summary`]. Naiad's observation is that a path can only drop inner coordinates of a point, add to those that
//! stay, and append new ones; any sequence of these has the same form. Every operation costs a few instructions per
//! coordinate.

use std::cmp::Ordering;
use std::fmt;

use crate::{PartialOrder, PathSummary, Point, Timestamp};

/// Truncates a point to `keep` coordinates, adds `increments[..keep]`, and appends the other
/// increments as they are.
///
/// ```
/// use pointstamp_order::{PathSummary, Point, Summary};
///
/// let enter = Summary::new(1, &[0, 0]); // from one coordinate to two
/// let twice = Summary::step(2, 2);
/// let leave = Summary::identity(1); // of two coordinates, the first stays
/// assert_eq!(enter.results_in(&Point::new(&[5])), Some(Point::new(&[5, 0])));
///
/// let path = enter.followed_by(&twice).unwrap();
/// assert_eq!(path, Summary::new(1, &[0, 2]));
/// assert_eq!(path.followed_by(&leave), Some(Summary::identity(1)));
/// assert_eq!(twice.results_in(&Point::new(&[5, u64::MAX - 1])), None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Summary {
    keep: usize,
    increments: Point,
}

impl Summary {
    /// The summary that changes nothing on points of `dims` coordinates.
    pub fn identity(dims: usize) -> Self {
        Self {
            keep: dims,
            increments: Point::minimum(dims),
        }
    }

    /// The summary that adds `increment` to the last of `dims` coordinates.
    ///
    /// Without coordinates there is nothing to add to, and the result is the identity.
    pub fn step(dims: usize, increment: u64) -> Self {
        Self {
            keep: dims,
            increments: Point::minimum(dims).with_last(increment),
        }
    }

    /// Keeps `keep` coordinates and adds the first increments to them, then appends the rest.
    ///
    /// `keep` beyond the number of increments means all of them.
    pub fn new(keep: usize, increments: &[u64]) -> Self {
        Self {
            keep: keep.min(increments.len()),
            increments: Point::new(increments),
        }
    }

    /// The summary that adds one increment to each coordinate.
    pub fn from_increments(increments: &[u64]) -> Self {
        Self::new(increments.len(), increments)
    }

    /// The number of coordinates of a timestamp that stay.
    #[inline]
    pub fn keep(&self) -> usize {
        self.keep
    }

    /// The increments of the coordinates that stay, followed by the coordinates that are appended.
    #[inline]
    pub fn increments(&self) -> &[u64] {
        self.increments.coords()
    }

    /// The number of coordinates of a result.
    #[inline]
    pub fn dims(&self) -> usize {
        self.increments.dims()
    }

    /// True when points of `self.dims()` coordinates stay as they are.
    pub fn is_identity(&self) -> bool {
        self.keep == self.dims() && self.increments().iter().all(|increment| *increment == 0)
    }

    /// The effect of a path with this summary, inside a scope, on the first `dims` coordinates of a point
    /// that enters the scope, takes the path and leaves.
    #[must_use]
    pub fn truncate(&self, dims: usize) -> Self {
        Self {
            keep: self.keep.min(dims),
            increments: self.increments.truncate(dims),
        }
    }
}

impl PathSummary<Point> for Summary {
    #[inline]
    fn results_in(&self, time: &Point) -> Option<Point> {
        let coords = time.coords().get(..self.keep)?;
        let mut result = self.increments.clone();
        for (result, coord) in result.coords_mut().iter_mut().zip(coords) {
            *result = result.checked_add(*coord)?;
        }
        Some(result)
    }

    #[inline]
    fn followed_by(&self, other: &Self) -> Option<Self> {
        Some(Self {
            keep: self.keep.min(other.keep),
            increments: other.results_in(&self.increments)?,
        })
    }
}

/// Same length of result, no more coordinates kept, and no increment greater.
impl PartialOrder for Summary {
    #[inline]
    fn less_equal(&self, other: &Self) -> bool {
        self.keep <= other.keep && self.increments.less_equal(&other.increments)
    }
}

impl Ord for Summary {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.increments, self.keep).cmp(&(&other.increments, other.keep))
    }
}

impl PartialOrd for Summary {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "keep {} add {}", self.keep, self.increments)
    }
}

impl Timestamp for Point {
    type Summary = Summary;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_compose_across_scopes() {
        let time = Point::new(&[4, 7]);
        let first = Summary::new(1, &[1, 0, 5]); // leave, advance, enter two
        let second = Summary::new(3, &[0, 2, 1]);
        let both = first.followed_by(&second).unwrap();
        assert_eq!(both, Summary::new(1, &[1, 2, 6]));
        assert_eq!(
            both.results_in(&time),
            second.results_in(&first.results_in(&time).unwrap())
        );
    }

    #[test]
    fn overflow_travels_nowhere() {
        let step = Summary::step(1, u64::MAX);
        assert_eq!(step.results_in(&Point::new(&[1])), None);
        assert_eq!(
            step.results_in(&Point::new(&[0])),
            Some(Point::new(&[u64::MAX]))
        );
        assert_eq!(step.followed_by(&Summary::step(1, 1)), None);
        // A point that is too short has nothing to keep.
        assert_eq!(Summary::identity(2).results_in(&Point::new(&[1])), None);
    }

    #[test]
    fn truncation_is_entering_then_leaving() {
        let inner = Summary::new(2, &[0, 3, 0]);
        for dims in 0..=3 {
            let enter = Summary::new(dims, &[0; 3]);
            let leave = Summary::identity(dims);
            let path = enter
                .followed_by(&inner)
                .unwrap()
                .followed_by(&leave)
                .unwrap();
            assert_eq!(inner.truncate(dims), path);
        }
        assert!(Summary::identity(3).truncate(1).is_identity());
    }
}
