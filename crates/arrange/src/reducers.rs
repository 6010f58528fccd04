//! Reducers that need nothing else.
//!
//! Owns [`Distinct`], [`Count`], [`Top`] and [`Sum`]. [`Top`] ignores values that occur a negative number of times,
//! and the others add them up. Sums are exact, in 128 bits, until they are returned.

use std::num::NonZeroU64;

use crate::error::{Error, Overflow};
use crate::reducer::{Lists, Reducer};
use crate::rows::{Rows, Units, Words, i64_of_word, word_of_f64, word_of_i64};

type Done = Result<(), Error>;

/// The sum of the counts of a list.
fn total<V: Rows>(inputs: &Lists<V>, index: usize) -> Result<i64, Overflow> {
    let counts = &inputs.diffs()[inputs.range(index)];
    let total: i128 = counts.iter().map(|count| i128::from(*count)).sum();
    i64::try_from(total).map_err(|_| Overflow)
}

/// Each key once, while its values add up to more than none.
#[derive(Clone, Copy, Debug)]
pub struct Distinct;

impl<K: Rows, V: Rows> Reducer<K, V, Units> for Distinct {
    fn reduce(&mut self, _keys: &K, inputs: &Lists<V>, outputs: &mut Lists<Units>) -> Done {
        for index in 0..inputs.len() {
            if total(inputs, index)? > 0 {
                outputs.push((), 1);
            }
            outputs.end();
        }
        Ok(())
    }

    fn once(&self) -> Option<Units> {
        Some(Units::new(1))
    }
}

/// Counts the values of each key, as the word of a signed integer; no output for a count of zero.
#[derive(Clone, Copy, Debug)]
pub struct Count;

impl<K: Rows, V: Rows> Reducer<K, V, Words> for Count {
    fn reduce(&mut self, _keys: &K, inputs: &Lists<V>, outputs: &mut Lists<Words>) -> Done {
        for index in 0..inputs.len() {
            match total(inputs, index)? {
                0 => {}
                count => outputs.push(word_of_i64(count), 1),
            }
            outputs.end();
        }
        Ok(())
    }
}

/// The first or last values of each key in their order, so many of them, each as often as it occurs.
#[derive(Clone, Copy, Debug)]
pub struct Top {
    /// The number of values, counted with their multiplicity.
    pub count: NonZeroU64,
    /// From the end of the order on.
    pub greatest: bool,
}

impl Top {
    /// The least value.
    pub const MIN: Self = Self {
        count: NonZeroU64::MIN,
        greatest: false,
    };
    /// The greatest value.
    pub const MAX: Self = Self {
        count: NonZeroU64::MIN,
        greatest: true,
    };

    fn take<'a, V: Rows>(
        self,
        list: impl Iterator<Item = (V::Item<'a>, i64)>,
        outputs: &mut Lists<V>,
    ) {
        let mut left = self.count.get();
        for (val, count) in list {
            let Some(count) = u64::try_from(count).ok().filter(|count| *count > 0) else {
                continue;
            };
            let taken = count.min(left);
            outputs.push(val, taken.cast_signed());
            left -= taken;
            if left == 0 {
                break;
            }
        }
        outputs.end();
    }
}

impl<K: Rows, V: Rows> Reducer<K, V, V> for Top {
    fn reduce(&mut self, _keys: &K, inputs: &Lists<V>, outputs: &mut Lists<V>) -> Done {
        for index in 0..inputs.len() {
            if self.greatest {
                self.take(inputs.list(index).rev(), outputs);
            } else {
                self.take(inputs.list(index), outputs);
            }
        }
        Ok(())
    }
}

/// The sum of signed integers as the word of one, or their mean as the word of a float.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// The mean instead, where there are values.
    pub mean: bool,
}

impl<K: Rows> Reducer<K, Words, Words> for Sum {
    fn reduce(&mut self, _keys: &K, inputs: &Lists<Words>, outputs: &mut Lists<Words>) -> Done {
        for index in 0..inputs.len() {
            let (mut sum, mut count) = (0_i128, 0_i128);
            for (val, times) in inputs.list(index) {
                let product = i128::from(i64_of_word(val)) * i128::from(times);
                sum = sum.checked_add(product).ok_or(Overflow)?;
                count += i128::from(times);
            }
            if !self.mean {
                let sum = i64::try_from(sum).map_err(|_| Overflow)?;
                outputs.push(word_of_i64(sum), 1);
            } else if count != 0 {
                #[allow(clippy::cast_precision_loss)] // a mean is rounded
                outputs.push(word_of_f64(sum as f64 / count as f64), 1);
            }
            outputs.end();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<W: Rows>(mut reducer: impl Reducer<Words, Words, W>, list: &[(i64, i64)]) -> Lists<W> {
        let mut inputs = Lists::default();
        for (val, count) in list {
            inputs.push(word_of_i64(*val), *count);
        }
        inputs.end();
        let mut outputs = Lists::default();
        let keys = Words::from(vec![0]);
        reducer
            .reduce(&keys, &inputs, &mut outputs)
            .expect("nothing overflows");
        assert_eq!(outputs.len(), 1);
        outputs
    }

    fn numbers(lists: &Lists<Words>) -> Vec<(i64, i64)> {
        lists
            .list(0)
            .map(|(val, count)| (i64_of_word(val), count))
            .collect()
    }

    #[test]
    fn values_that_occur_a_negative_number_of_times() {
        let list = [(-3, -2), (-1, 1), (4, 3), (9, -1)];
        assert_eq!(numbers(&run(Top::MIN, &list)), [(-1, 1)]);
        assert_eq!(numbers(&run(Top::MAX, &list)), [(4, 1)]);
        let top = Top {
            count: NonZeroU64::new(3).expect("not zero"),
            greatest: false,
        };
        assert_eq!(numbers(&run(top, &list)), [(-1, 1), (4, 2)]);
        assert_eq!(numbers(&run(Count, &list)), [(1, 1)]);
        assert_eq!(
            numbers(&run(Sum { mean: false }, &list)),
            [(6 - 1 + 12 - 9, 1)]
        );
        assert_eq!(run(Distinct, &list).list(0).count(), 1);
        assert_eq!(run(Distinct, &[(1, 1), (2, -1)]).list(0).count(), 0);
        assert_eq!(run(Count, &[(1, 1), (2, -1)]).list(0).count(), 0);
        let mean = run(Sum { mean: true }, &[(1, 1), (2, 1)]);
        assert_eq!(mean.list(0).next(), Some((word_of_f64(1.5), 1)));
    }

    #[test]
    fn sums_that_do_not_fit_are_refused() {
        let mut inputs = Lists::default();
        inputs.push(word_of_i64(i64::MAX), 2);
        inputs.end();
        let keys = Words::from(vec![0]);
        let mut outputs = Lists::default();
        let refused = Sum { mean: false }.reduce(&keys, &inputs, &mut outputs);
        assert!(matches!(refused, Err(Error::Overflow)));
        Sum { mean: true }
            .reduce(&keys, &inputs, &mut outputs)
            .expect("a mean fits");
    }
}
