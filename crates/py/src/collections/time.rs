//! The times of a scope, in the type that the kernel is fastest with.

use pointstamp_arrange::Time;
use pointstamp_order::{Antichain, Point};

/// A time of a scope whose timestamps have a number of coordinates that the type, or the value, knows.
pub(crate) trait ScopeTime: Time {
    /// The time of a point of the scope.
    fn of(point: &Point) -> Self;

    /// The time of coordinates of which those that are left out, of so many, are zero.
    fn of_coords(coords: &[u64], dims: usize) -> Self;

    /// The point.
    fn point(&self) -> Point;
}

impl ScopeTime for u64 {
    #[inline]
    fn of(point: &Point) -> Self {
        point.coords()[0]
    }

    #[inline]
    fn of_coords(coords: &[u64], _dims: usize) -> Self {
        coords[0]
    }

    #[inline]
    fn point(&self) -> Point {
        Point::new(&[*self])
    }
}

impl<const N: usize> ScopeTime for [u64; N] {
    #[inline]
    fn of(point: &Point) -> Self {
        std::array::from_fn(|index| point.coords()[index])
    }

    #[inline]
    fn of_coords(coords: &[u64], _dims: usize) -> Self {
        std::array::from_fn(|index| coords.get(index).copied().unwrap_or(0))
    }

    #[inline]
    fn point(&self) -> Point {
        Point::new(self)
    }
}

impl ScopeTime for Point {
    #[inline]
    fn of(point: &Point) -> Self {
        point.clone()
    }

    #[inline]
    fn of_coords(coords: &[u64], dims: usize) -> Self {
        if coords.len() == dims {
            return Point::new(coords);
        }
        let zeros = std::iter::repeat_n(0, dims - coords.len());
        coords.iter().copied().chain(zeros).collect()
    }

    #[inline]
    fn point(&self) -> Point {
        self.clone()
    }
}

/// A frontier in the kernel's type.
pub(crate) fn frontier_of<T: ScopeTime>(frontier: &[Point]) -> Antichain<T> {
    frontier.iter().map(T::of).collect()
}

/// Runs code with `$T` as the type for so many coordinates.
macro_rules! by_dims {
    ($dims:expr, $T:ident => $code:expr) => {
        match $dims {
            1 => {
                type $T = u64;
                $code
            }
            2 => {
                type $T = [u64; 2];
                $code
            }
            3 => {
                type $T = [u64; 3];
                $code
            }
            _ => {
                type $T = ::pointstamp_order::Point;
                $code
            }
        }
    };
}
pub(crate) use by_dims;
