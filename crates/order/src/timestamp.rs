//! Timestamps, and the summaries of paths.
//!
//! Owns [`Timestamp`] and [`PathSummary`], and implements both for `()` and the unsigned integers,
//! whose summary is the increment. The traits follow timely dataflow's; a result may be absent,
//! because a time that leaves the representable range travels nowhere.

use std::fmt::Debug;
use std::hash::Hash;

use crate::PartialOrder;

/// A logical time that messages and capabilities carry.
///
/// `Ord` must be a linear extension of [`PartialOrder`]: it is the order in which times are processed, so that no
/// time is processed before one that could lead to it.
pub trait Timestamp: Clone + Eq + Ord + Hash + Debug + PartialOrder + 'static {
    /// The effect of a path of the dataflow on a timestamp.
    type Summary: PathSummary<Self>;
}

/// A function on timestamps that describes a path, or the least that a set of paths does.
///
/// These laws hold, where no result counts as later than every result:
///
/// * results only advance: `t.less_equal(&s.results_in(&t)?)`, and strictly so where the summary is
///   strictly greater than the identity;
/// * results are monotone: `t1.less_equal(&t2)` implies that `t1`'s result is before `t2`'s;
/// * summaries are ordered as their results are: `s1.less_equal(&s2)` exactly when on every
///   timestamp the result of `s1` is before the result of `s2`;
/// * a path is the composition of its parts: where `s1` and then `s2` have results, the result of
///   `s1.followed_by(&s2)` is the same. Where they have none it has none either, unless `s2`
///   drops the coordinate that `s1` could not advance; a time is then thought possible that never
///   comes, which is safe.
pub trait PathSummary<T>: Clone + Eq + Ord + Debug + PartialOrder + 'static {
    /// The timestamp that `time` becomes at the end of the path; `None` if it cannot arrive.
    fn results_in(&self, time: &T) -> Option<T>;

    /// This path and then `other`; `None` if nothing can ever travel both.
    fn followed_by(&self, other: &Self) -> Option<Self>;
}

impl Timestamp for () {
    type Summary = ();
}

impl PathSummary<()> for () {
    fn results_in(&self, _time: &()) -> Option<()> {
        Some(())
    }

    fn followed_by(&self, _other: &Self) -> Option<Self> {
        Some(())
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Timestamp for $integer {
            type Summary = $integer;
        }

        impl PathSummary<$integer> for $integer {
            #[inline]
            fn results_in(&self, time: &$integer) -> Option<$integer> {
                time.checked_add(*self)
            }

            #[inline]
            fn followed_by(&self, other: &Self) -> Option<Self> {
                self.checked_add(*other)
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, u128, usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_advance_until_they_overflow() {
        assert_eq!(1u64.results_in(&4), Some(5));
        assert_eq!(1u64.results_in(&u64::MAX), None);
        assert_eq!(200u8.followed_by(&100), None);
    }
}
