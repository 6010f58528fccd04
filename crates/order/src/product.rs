//! Products of orders: [`Product`] and tuples, compared coordinate by coordinate.
//!
//! `Ord` is lexicographic, which extends the coordinatewise order. Summaries are products of
//! summaries. Every operation is one operation per coordinate.

use crate::{PartialOrder, PathSummary, Timestamp};

/// A pair under the product order: a time and the time within it, such as an epoch and a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Product<A, B> {
    /// The time in the enclosing scope.
    pub outer: A,
    /// The time within it.
    pub inner: B,
}

impl<A, B> Product<A, B> {
    /// Pairs `outer` with `inner`.
    pub fn new(outer: A, inner: B) -> Self {
        Self { outer, inner }
    }
}

impl<A: PartialOrder, B: PartialOrder> PartialOrder for Product<A, B> {
    #[inline]
    fn less_equal(&self, other: &Self) -> bool {
        self.outer.less_equal(&other.outer) && self.inner.less_equal(&other.inner)
    }

    #[inline]
    fn lower_bound(&self, other: &Self) -> Option<Self> {
        Some(Product {
            outer: self.outer.lower_bound(&other.outer)?,
            inner: self.inner.lower_bound(&other.inner)?,
        })
    }
}

impl<A: Timestamp, B: Timestamp> Timestamp for Product<A, B> {
    type Summary = Product<A::Summary, B::Summary>;
}

impl<A, B, S, R> PathSummary<Product<A, B>> for Product<S, R>
where
    S: PathSummary<A>,
    R: PathSummary<B>,
{
    #[inline]
    fn results_in(&self, time: &Product<A, B>) -> Option<Product<A, B>> {
        Some(Product {
            outer: self.outer.results_in(&time.outer)?,
            inner: self.inner.results_in(&time.inner)?,
        })
    }

    #[inline]
    fn followed_by(&self, other: &Self) -> Option<Self> {
        Some(Product {
            outer: self.outer.followed_by(&other.outer)?,
            inner: self.inner.followed_by(&other.inner)?,
        })
    }
}

macro_rules! tuples {
    ($($time:ident $summary:ident $index:tt),*) => {
        impl<$($time: PartialOrder),*> PartialOrder for ($($time,)*) {
            #[inline]
            fn less_equal(&self, other: &Self) -> bool {
                $(self.$index.less_equal(&other.$index))&&*
            }

            #[inline]
            fn lower_bound(&self, other: &Self) -> Option<Self> {
                Some(($(self.$index.lower_bound(&other.$index)?,)*))
            }
        }

        impl<$($time: Timestamp),*> Timestamp for ($($time,)*) {
            type Summary = ($($time::Summary,)*);
        }

        impl<$($time, $summary: PathSummary<$time>),*> PathSummary<($($time,)*)> for ($($summary,)*) {
            #[inline]
            fn results_in(&self, time: &($($time,)*)) -> Option<($($time,)*)> {
                Some(($(self.$index.results_in(&time.$index)?,)*))
            }

            #[inline]
            fn followed_by(&self, other: &Self) -> Option<Self> {
                Some(($(self.$index.followed_by(&other.$index)?,)*))
            }
        }
    };
}

tuples!(A R 0, B S 1);
tuples!(A R 0, B S 1, C T 2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_compare_by_coordinate() {
        let (a, b) = (Product::new(1u64, 5u64), Product::new(2, 3));
        assert!(!a.less_equal(&b) && !b.less_equal(&a));
        assert!(a.less_than(&Product::new(2, 5)));
        assert!(!a.less_than(&a));
        assert!((1u64, 2u32).less_equal(&(1, 2)));
        assert!(!(1u64, 2u32, 0u8).less_equal(&(1, 1, 7)));
    }

    #[test]
    fn products_advance_by_coordinate() {
        assert_eq!(
            Product::new(0u64, 1u64).results_in(&Product::new(7, 7)),
            Some(Product::new(7, 8))
        );
        assert_eq!((0u64, 1u8).results_in(&(7, 255)), None);
        assert_eq!((1u64, 1u8).followed_by(&(2, 3)), Some((3, 4)));
    }
}
