//! The times of a scope, in the type that the kernels are fastest with.
//!
//! Owns [`ScopeTime`], which converts points of a scope to numbers, arrays of two and three, or leaves them as they are.
//!
//! Cost: a conversion copies the coordinates; only points of more than three coordinates may allocate.

use pointstamp_arrange::{Sealed as SealedBatch, Time};
use pointstamp_order::{Antichain, Point};
use pointstamp_rows::Cells;

use super::sealed::Sealed;
use crate::Error;

/// A time of a scope, in a type that fits the number of its coordinates.
pub trait ScopeTime: Time {
    /// Converts a point of the scope.
    fn of(point: &Point) -> Self;

    /// Makes a time of coordinates; missing ones, of `dims`, are zero, and excess ones are dropped: a
    /// defective peer may send any number of them.
    fn of_coords(coords: &[u64], dims: usize) -> Self;

    /// Converts the time to a point.
    fn point(&self) -> Point;

    /// Wraps an arrangement's batch for its stream.
    fn seal(batch: SealedBatch<Cells, Cells, Self>) -> Sealed;

    /// Takes an arrangement's batch from its stream.
    ///
    /// # Errors
    ///
    /// [`Error::OtherScope`] for a batch whose times have another number of coordinates.
    fn unseal(sealed: Sealed) -> Result<SealedBatch<Cells, Cells, Self>, Error>;
}

/// Implements wrapping and unwrapping by one variant of [`Sealed`].
macro_rules! sealed_as {
    ($variant:ident) => {
        #[inline]
        fn seal(batch: SealedBatch<Cells, Cells, Self>) -> Sealed {
            Sealed::$variant(batch)
        }

        #[inline]
        fn unseal(sealed: Sealed) -> Result<SealedBatch<Cells, Cells, Self>, Error> {
            match sealed {
                Sealed::$variant(batch) => Ok(batch),
                _ => Err(Error::OtherScope),
            }
        }
    };
}

impl ScopeTime for u64 {
    #[inline]
    fn of(point: &Point) -> Self {
        point.coords()[0]
    }

    #[inline]
    fn of_coords(coords: &[u64], _dims: usize) -> Self {
        coords.first().copied().unwrap_or(0)
    }

    #[inline]
    fn point(&self) -> Point {
        Point::new(&[*self])
    }

    sealed_as!(One);
}

/// Implements [`ScopeTime`] for an array of coordinates.
macro_rules! array_time {
    ($dims:literal, $variant:ident) => {
        impl ScopeTime for [u64; $dims] {
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

            sealed_as!($variant);
        }
    };
}

array_time!(2, Two);
array_time!(3, Three);

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
        let zeros = std::iter::repeat(0);
        coords.iter().copied().chain(zeros).take(dims).collect()
    }

    #[inline]
    fn point(&self) -> Point {
        self.clone()
    }

    sealed_as!(Many);
}

/// Converts a frontier to the kernels' type.
pub fn frontier_of<T: ScopeTime>(frontier: &[Point]) -> Antichain<T> {
    frontier.iter().map(T::of).collect()
}

/// Runs code with `$T` as the type of times of so many coordinates.
#[macro_export]
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
