//! Counts, sums and means per group, over a column at a time.
//!
//! The rules are those of pyarrow's `group_by`: nulls are skipped, and a group without values has a null sum and mean;
//! integers add up modulo 2^64 as `int64` or `uint64`, floats as doubles, decimals in the widest precision of their
//! width; a mean is a double, or a decimal rounded half away from zero.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Decimal256Type, DecimalType, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, PrimitiveArray};
use arrow_buffer::i256;
use arrow_schema::DataType;

use crate::error::Error;

/// What is known of each group about one column.
pub(crate) trait Accumulator: Send {
    /// Adds the rows of a column; `groups[row]` is below `len`, the number of groups so far.
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error>;

    /// The results of these groups.
    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error>;
}

/// Calls `add(group, value)` for each value that is not null.
pub(crate) fn for_each<T: ArrowPrimitiveType>(
    groups: &[u32],
    column: &PrimitiveArray<T>,
    mut add: impl FnMut(usize, T::Native),
) {
    match column.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => {
            for (&group, &value) in groups.iter().zip(column.values()) {
                add(group as usize, value);
            }
        }
        Some(nulls) => {
            for row in nulls.valid_indices() {
                add(groups[row] as usize, column.values()[row]);
            }
        }
    }
}

/// How many values are not null.
#[derive(Default)]
pub(crate) struct Count(Vec<i64>);

impl Accumulator for Count {
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.0.resize(len, 0);
        match column
            .logical_nulls()
            .filter(|nulls| nulls.null_count() > 0)
        {
            None => groups.iter().for_each(|&group| self.0[group as usize] += 1),
            Some(nulls) => {
                for row in nulls.valid_indices() {
                    self.0[groups[row] as usize] += 1;
                }
            }
        }
        Ok(())
    }

    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        Ok(Arc::new(PrimitiveArray::<Int64Type>::from_iter_values(
            self.0[range].iter().copied(),
        )))
    }
}

/// Feeds a column's values, as another type, to a function of group and value.
type Feed<V> = fn(&[u32], &ArrayRef, &mut dyn FnMut(usize, V));

/// A sum in `T`, of a column whose values `feed` converts.
pub(crate) struct Sum<T: ArrowPrimitiveType> {
    feed: Feed<T::Native>,
    result: DataType,
    sums: Vec<T::Native>,
    some: Vec<bool>,
}

impl<T: ArrowPrimitiveType> Sum<T> {
    fn boxed(result: DataType, feed: Feed<T::Native>) -> Box<dyn Accumulator> {
        Box::new(Sum::<T> {
            feed,
            result,
            sums: Vec::new(),
            some: Vec::new(),
        })
    }
}

impl<T: ArrowPrimitiveType> Accumulator for Sum<T> {
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.sums.resize(len, T::Native::ZERO);
        self.some.resize(len, false);
        let (sums, some) = (&mut self.sums, &mut self.some);
        (self.feed)(groups, column, &mut |group, value| {
            sums[group] = sums[group].add_wrapping(value);
            some[group] = true;
        });
        Ok(())
    }

    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        let values = self.sums[range.clone()].iter().zip(&self.some[range]);
        let sums: PrimitiveArray<T> = values.map(|(&sum, &some)| some.then_some(sum)).collect();
        Ok(Arc::new(sums.with_data_type(self.result.clone())))
    }
}

/// A mean in doubles.
struct Mean {
    feed: Feed<f64>,
    sums: Vec<(f64, u64)>,
}

impl Accumulator for Mean {
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.sums.resize(len, (0.0, 0));
        let sums = &mut self.sums;
        (self.feed)(groups, column, &mut |group, value| {
            sums[group].0 += value;
            sums[group].1 += 1;
        });
        Ok(())
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "a mean of 2^53 rows may be off in the last bit"
    )]
    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        let means: PrimitiveArray<Float64Type> = self.sums[range]
            .iter()
            .map(|&(sum, count)| (count > 0).then(|| sum / count as f64))
            .collect();
        Ok(Arc::new(means))
    }
}

/// A mean of decimals, rounded half away from zero.
struct DecimalMean<T: DecimalType> {
    count: fn(i64) -> T::Native,
    result: DataType,
    sums: Vec<(T::Native, i64)>,
}

impl<T: DecimalType + ArrowPrimitiveType> Accumulator for DecimalMean<T> {
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.sums.resize(len, (T::Native::ZERO, 0));
        let sums = &mut self.sums;
        for_each(groups, column.as_primitive::<T>(), |group, value| {
            sums[group].0 = sums[group].0.add_wrapping(value);
            sums[group].1 += 1;
        });
        Ok(())
    }

    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        let mean = |&(sum, count): &(T::Native, i64)| {
            if count == 0 {
                return None;
            }
            let (zero, one) = (T::Native::ZERO, T::Native::ONE);
            let divisor = (self.count)(count);
            let (quotient, rest) = (sum.div_wrapping(divisor), sum.mod_wrapping(divisor));
            let rest = if rest.is_lt(zero) {
                rest.neg_wrapping()
            } else {
                rest
            };
            // rest >= divisor - rest: at least half of it is left over
            Some(if rest.is_lt(divisor.sub_wrapping(rest)) {
                quotient
            } else if sum.is_lt(zero) {
                quotient.sub_wrapping(one)
            } else {
                quotient.add_wrapping(one)
            })
        };
        let means: PrimitiveArray<T> = self.sums[range].iter().map(mean).collect();
        Ok(Arc::new(means.with_data_type(self.result.clone())))
    }
}

/// A feed of a column of primitive values.
macro_rules! feed {
    ($type:ty, $convert:expr) => {
        |groups, column, add| {
            for_each(groups, column.as_primitive::<$type>(), |group, value| {
                add(group, $convert(value));
            });
        }
    };
}

/// A feed of a column of booleans.
macro_rules! feed_booleans {
    ($convert:expr) => {
        |groups, column, add| {
            for (&group, value) in groups.iter().zip(column.as_boolean()) {
                if let Some(value) = value {
                    add(group as usize, $convert(value));
                }
            }
        }
    };
}

/// The sum over a type, and the type of the result; `None` where it is not defined.
pub(crate) fn sum(data_type: &DataType) -> Option<(Box<dyn Accumulator>, DataType)> {
    use DataType as D;
    let result = match data_type {
        D::Null | D::Int8 | D::Int16 | D::Int32 | D::Int64 => D::Int64,
        D::Boolean | D::UInt8 | D::UInt16 | D::UInt32 | D::UInt64 => D::UInt64,
        D::Float32 | D::Float64 => D::Float64,
        D::Decimal128(_, scale) => D::Decimal128(38, *scale),
        D::Decimal256(_, scale) => D::Decimal256(76, *scale),
        _ => return None,
    };
    let made = result.clone();
    let sum = match data_type {
        D::Null => Sum::<Int64Type>::boxed(made, |_, _, _| ()),
        D::Int8 => Sum::<Int64Type>::boxed(made, feed!(Int8Type, i64::from)),
        D::Int16 => Sum::<Int64Type>::boxed(made, feed!(Int16Type, i64::from)),
        D::Int32 => Sum::<Int64Type>::boxed(made, feed!(Int32Type, i64::from)),
        D::Int64 => Sum::<Int64Type>::boxed(made, feed!(Int64Type, i64::from)),
        D::Boolean => Sum::<UInt64Type>::boxed(made, feed_booleans!(u64::from)),
        D::UInt8 => Sum::<UInt64Type>::boxed(made, feed!(UInt8Type, u64::from)),
        D::UInt16 => Sum::<UInt64Type>::boxed(made, feed!(UInt16Type, u64::from)),
        D::UInt32 => Sum::<UInt64Type>::boxed(made, feed!(UInt32Type, u64::from)),
        D::UInt64 => Sum::<UInt64Type>::boxed(made, feed!(UInt64Type, u64::from)),
        D::Float32 => Sum::<Float64Type>::boxed(made, feed!(Float32Type, f64::from)),
        D::Float64 => Sum::<Float64Type>::boxed(made, feed!(Float64Type, f64::from)),
        D::Decimal128(..) => Sum::<Decimal128Type>::boxed(made, feed!(Decimal128Type, i128::from)),
        _ => Sum::<Decimal256Type>::boxed(made, feed!(Decimal256Type, i256::from)),
    };
    Some((sum, result))
}

/// The mean over a type, and the type of the result; `None` where it is not defined.
#[allow(
    clippy::cast_precision_loss,
    reason = "means of integers are means of doubles"
)]
pub(crate) fn mean(data_type: &DataType) -> Option<(Box<dyn Accumulator>, DataType)> {
    use DataType as D;
    let feed: Feed<f64> = match data_type {
        D::Null => |_, _, _| (),
        D::Boolean => feed_booleans!(|value| f64::from(u8::from(value))),
        D::Int8 => feed!(Int8Type, f64::from),
        D::Int16 => feed!(Int16Type, f64::from),
        D::Int32 => feed!(Int32Type, f64::from),
        D::Int64 => feed!(Int64Type, |value| value as f64),
        D::UInt8 => feed!(UInt8Type, f64::from),
        D::UInt16 => feed!(UInt16Type, f64::from),
        D::UInt32 => feed!(UInt32Type, f64::from),
        D::UInt64 => feed!(UInt64Type, |value| value as f64),
        D::Float32 => feed!(Float32Type, f64::from),
        D::Float64 => feed!(Float64Type, f64::from),
        D::Decimal128(..) => {
            let mean = DecimalMean::<Decimal128Type> {
                count: i128::from,
                result: data_type.clone(),
                sums: Vec::new(),
            };
            return Some((Box::new(mean), data_type.clone()));
        }
        D::Decimal256(..) => {
            let mean = DecimalMean::<Decimal256Type> {
                count: |count| i256::from_i128(count.into()),
                result: data_type.clone(),
                sums: Vec::new(),
            };
            return Some((Box::new(mean), data_type.clone()));
        }
        _ => return None,
    };
    let mean = Mean {
        feed,
        sums: Vec::new(),
    };
    Some((Box::new(mean), D::Float64))
}
