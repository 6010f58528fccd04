//! The partial order of times.
//!
//! Owns [`PartialOrder`] and its implementations for `()`, the unsigned integers and arrays. The
//! implementations for pairs live in [`product`](crate::Product), the engine's in
//! [`point`](crate::Point). Every operation is a few comparisons.

/// A reflexive, antisymmetric and transitive order in which two elements may be incomparable.
///
/// Where a type is also [`Ord`] and used as a [`Timestamp`](crate::Timestamp) or in a
/// [`MutableAntichain`](crate::MutableAntichain), its `Ord` has to be a linear extension of this
/// order: `a.less_equal(b)` implies `a <= b`.
pub trait PartialOrder: Eq {
    /// True when `self` comes before `other` or equals it.
    fn less_equal(&self, other: &Self) -> bool;

    /// True when `self` comes strictly before `other`.
    fn less_than(&self, other: &Self) -> bool {
        self.less_equal(other) && self != other
    }

    /// True when any element that may occur beside this one is comparable with it.
    ///
    /// It is a property of the kind of element, such as its number of coordinates, and lets
    /// collections stop looking once they have found the first element. `false` is always correct.
    fn totally_ordered(&self) -> bool {
        false
    }

    /// An element at or before both, and the greatest such where there is one.
    ///
    /// Collections use it to skip many elements at a time; `None`, that nothing is known, is always
    /// correct.
    fn lower_bound(&self, other: &Self) -> Option<Self>
    where
        Self: Sized,
    {
        let _ = other;
        None
    }
}

impl PartialOrder for () {
    fn less_equal(&self, _other: &Self) -> bool {
        true
    }

    fn totally_ordered(&self) -> bool {
        true
    }

    fn lower_bound(&self, _other: &Self) -> Option<Self> {
        Some(())
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl PartialOrder for $integer {
            #[inline]
            fn less_equal(&self, other: &Self) -> bool {
                self <= other
            }

            #[inline]
            fn less_than(&self, other: &Self) -> bool {
                self < other
            }

            #[inline]
            fn totally_ordered(&self) -> bool {
                true
            }

            #[inline]
            fn lower_bound(&self, other: &Self) -> Option<Self> {
                Some(*self.min(other))
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, u128, usize);

/// The product order: coordinate by coordinate. `Ord` is lexicographic, which extends it.
impl<T: PartialOrder + Copy, const N: usize> PartialOrder for [T; N] {
    // Indexed: of `zip` and `all` parts are called and not inlined where crates are not optimised together.
    #[inline]
    #[allow(clippy::needless_range_loop)]
    fn less_equal(&self, other: &Self) -> bool {
        for i in 0..N {
            if !self[i].less_equal(&other[i]) {
                return false;
            }
        }
        true
    }

    #[inline]
    fn totally_ordered(&self) -> bool {
        N == 0 || (N == 1 && self[0].totally_ordered())
    }

    #[inline]
    fn lower_bound(&self, other: &Self) -> Option<Self> {
        let mut bound = *self;
        for (ours, theirs) in bound.iter_mut().zip(other) {
            *ours = ours.lower_bound(theirs)?;
        }
        Some(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_compare_coordinate_by_coordinate() {
        assert!([1u64, 2].less_equal(&[1, 3]) && [1u64, 2].less_than(&[2, 2]));
        assert!(![1u64, 2].less_equal(&[2, 1]) && ![2u64, 1].less_equal(&[1, 2]));
        assert_eq!([1u64, 5].lower_bound(&[3, 4]), Some([1, 4]));
        assert!([7u64].totally_ordered() && ![7u64, 7].totally_ordered());
    }
}
