//! Counts, sums and means per group, over a column at a time.
//!
//! The rules are those of pyarrow's `group_by`: nulls are skipped, and a group without values has a null sum and mean;
//! integers add up modulo 2^64 as `int64` or `uint64`, floats as doubles, decimals in the widest precision of their
//! width; a mean is a double, or a decimal rounded half away from zero.
//!
//! What is known of a group can travel: [`Accumulator::state`] gives it as a column, which [`Accumulator::merge`] of
//! another worker takes. Nothing of the rules is lost on the way: sums wrap the same in any order, and a mean
//! travels as its sum and its count.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Decimal256Type, DecimalType, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, PrimitiveArray, StructArray};
use arrow_buffer::{NullBuffer, i256};
use arrow_schema::{DataType, Field, Fields};

use crate::error::Error;

/// What is known of each group about one column.
pub(crate) trait Accumulator: Send + Sync {
    /// Adds the rows of a column; `groups[row]` is below `len`, the number of groups so far.
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error>;

    /// The results of these groups.
    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error>;

    /// About how many bytes the results of these groups take that have no fixed size.
    fn bytes_of(&self, _range: &Range<usize>) -> usize {
        0
    }

    /// The type of [`finish`](Self::finish)'s column.
    fn result_type(&self) -> DataType;

    /// What is known of these groups, for [`merge`](Self::merge).
    fn state(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        self.finish(range)
    }

    /// The type of [`state`](Self::state)'s column.
    fn state_type(&self) -> DataType {
        self.result_type()
    }

    /// Adds what another accumulator of this kind knew; groups as in [`update`](Self::update).
    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error>;
}

/// The values of a column of one type.
pub(crate) trait Values {
    /// What a value is.
    type Value: Copy;

    /// Calls `add(group, value)` for each value that is not null.
    fn each(groups: &[u32], column: &ArrayRef, add: impl FnMut(usize, Self::Value));
}

/// Columns of a primitive type.
pub(crate) struct Of<T>(PhantomData<T>);

impl<T: ArrowPrimitiveType> Values for Of<T> {
    type Value = T::Native;

    fn each(groups: &[u32], column: &ArrayRef, mut add: impl FnMut(usize, T::Native)) {
        let column = column.as_primitive::<T>();
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
}

/// Columns of booleans.
pub(crate) struct Truths;

impl Values for Truths {
    type Value = bool;

    fn each(groups: &[u32], column: &ArrayRef, mut add: impl FnMut(usize, bool)) {
        for (&group, value) in groups.iter().zip(column.as_boolean()) {
            if let Some(value) = value {
                add(group as usize, value);
            }
        }
    }
}

/// Columns of nulls, as integers of which there are none.
struct Nulls;

impl Values for Nulls {
    type Value = i64;

    fn each(_groups: &[u32], _column: &ArrayRef, _add: impl FnMut(usize, i64)) {}
}

/// Which groups have a value. As long as no column had a null, all have: a group comes from a row.
#[derive(Default)]
pub(crate) struct Seen {
    len: usize,
    marks: Option<Vec<bool>>,
}

impl Seen {
    /// Makes room for `len` groups that a column's rows belong to; the marks are to be set by the caller if there are
    /// any.
    pub(crate) fn grow(&mut self, len: usize, column: &ArrayRef) -> Option<&mut Vec<bool>> {
        if self.marks.is_none() && column.logical_null_count() > 0 {
            self.marks = Some(vec![true; self.len]);
        }
        self.len = len;
        if let Some(marks) = &mut self.marks {
            marks.resize(len, false);
        }
        self.marks.as_mut()
    }

    /// The groups without a value, as the nulls of a column.
    pub(crate) fn nulls(&self, range: Range<usize>) -> Option<NullBuffer> {
        self.marks
            .as_ref()
            .map(|marks| NullBuffer::from(&marks[range]))
    }
}

/// Calls `add(group, value)` for each value, and marks its group.
pub(crate) fn each_seen<V: Values>(
    seen: &mut Seen,
    (groups, len): (&[u32], usize),
    column: &ArrayRef,
    mut add: impl FnMut(usize, V::Value),
) {
    match seen.grow(len, column) {
        None => V::each(groups, column, add),
        Some(marks) => V::each(groups, column, |group, value| {
            add(group, value);
            marks[group] = true;
        }),
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

    fn result_type(&self) -> DataType {
        DataType::Int64
    }

    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error> {
        self.0.resize(len, 0);
        Of::<Int64Type>::each(groups, states, |group, count| self.0[group] += count);
        Ok(())
    }
}

/// A sum in `T`, of a column of `V`.
struct Sum<V, T: ArrowPrimitiveType> {
    result: DataType,
    sums: Vec<T::Native>,
    seen: Seen,
    of: PhantomData<fn() -> V>,
}

impl<V: Values + 'static, T: ArrowPrimitiveType> Sum<V, T>
where
    T::Native: From<V::Value>,
{
    fn boxed(result: DataType) -> Box<dyn Accumulator> {
        Box::new(Sum::<V, T> {
            result,
            sums: Vec::new(),
            seen: Seen::default(),
            of: PhantomData,
        })
    }
}

impl<V: Values, T: ArrowPrimitiveType> Accumulator for Sum<V, T>
where
    T::Native: From<V::Value>,
{
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.sums.resize(len, T::Native::ZERO);
        let sums = &mut self.sums;
        each_seen::<V>(&mut self.seen, (groups, len), column, |group, value| {
            sums[group] = sums[group].add_wrapping(value.into());
        });
        Ok(())
    }

    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        let sums = self.sums[range.clone()].to_vec().into();
        let sums = PrimitiveArray::<T>::new(sums, self.seen.nulls(range));
        Ok(Arc::new(sums.with_data_type(self.result.clone())))
    }

    fn result_type(&self) -> DataType {
        self.result.clone()
    }

    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error> {
        self.sums.resize(len, T::Native::ZERO);
        let sums = &mut self.sums;
        each_seen::<Of<T>>(&mut self.seen, (groups, len), states, |group, sum| {
            sums[group] = sums[group].add_wrapping(sum);
        });
        Ok(())
    }
}

/// The type of a mean on its way: its sum, and how many values it is of.
fn mean_state(sum: DataType) -> Fields {
    Fields::from(vec![
        Field::new("sum", sum, false),
        Field::new("count", DataType::Int64, false),
    ])
}

/// Sums and counts as one column.
fn mean_states<T: ArrowPrimitiveType>(
    means: &[(T::Native, i64)],
    sum: &DataType,
) -> Result<ArrayRef, Error> {
    let sums = PrimitiveArray::<T>::from_iter_values(means.iter().map(|mean| mean.0));
    let counts = PrimitiveArray::<Int64Type>::from_iter_values(means.iter().map(|mean| mean.1));
    let columns: Vec<ArrayRef> = vec![Arc::new(sums.with_data_type(sum.clone())), Arc::new(counts)];
    let state = StructArray::try_new(mean_state(sum.clone()), columns, None)?;
    Ok(Arc::new(state))
}

/// Adds sums and counts that came as one column.
fn merge_means<T: ArrowPrimitiveType>(
    means: &mut Vec<(T::Native, i64)>,
    groups: &[u32],
    len: usize,
    states: &ArrayRef,
) {
    means.resize(len, (T::Native::ZERO, 0));
    let columns = states.as_struct().columns();
    let (sums, counts) = (
        columns[0].as_primitive::<T>().values(),
        columns[1].as_primitive::<Int64Type>().values(),
    );
    for ((&group, &sum), &count) in groups.iter().zip(sums).zip(counts) {
        let mean = &mut means[group as usize];
        *mean = (mean.0.add_wrapping(sum), mean.1 + count);
    }
}

/// A number as a double.
trait Double: Copy {
    fn double(self) -> f64;
}

macro_rules! double {
    ($($type:ty)*) => {
        $(impl Double for $type {
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless, reason = "means of integers are means of doubles")]
            fn double(self) -> f64 {
                self as f64
            }
        })*
    };
}

double!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);

impl Double for bool {
    fn double(self) -> f64 {
        u8::from(self).into()
    }
}

/// A mean in doubles.
struct Mean<V> {
    means: Vec<(f64, i64)>,
    of: PhantomData<fn() -> V>,
}

impl<V: Values> Accumulator for Mean<V>
where
    V::Value: Double,
{
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.means.resize(len, (0.0, 0));
        let means = &mut self.means;
        V::each(groups, column, |group, value| {
            let mean = &mut means[group];
            *mean = (mean.0 + value.double(), mean.1 + 1);
        });
        Ok(())
    }

    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        let means: PrimitiveArray<Float64Type> = self.means[range]
            .iter()
            .map(|&(sum, count)| (count > 0).then(|| sum / count.double()))
            .collect();
        Ok(Arc::new(means))
    }

    fn result_type(&self) -> DataType {
        DataType::Float64
    }

    fn state(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        mean_states::<Float64Type>(&self.means[range], &DataType::Float64)
    }

    fn state_type(&self) -> DataType {
        DataType::Struct(mean_state(DataType::Float64))
    }

    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error> {
        merge_means::<Float64Type>(&mut self.means, groups, len, states);
        Ok(())
    }
}

/// A mean of decimals, rounded half away from zero.
struct DecimalMean<T: DecimalType> {
    count: fn(i64) -> T::Native,
    result: DataType,
    means: Vec<(T::Native, i64)>,
}

impl<T: DecimalType + ArrowPrimitiveType> DecimalMean<T> {
    fn boxed(result: &DataType, count: fn(i64) -> T::Native) -> Box<dyn Accumulator> {
        Box::new(DecimalMean::<T> {
            count,
            result: result.clone(),
            means: Vec::new(),
        })
    }
}

impl<T: DecimalType + ArrowPrimitiveType> Accumulator for DecimalMean<T> {
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.means.resize(len, (T::Native::ZERO, 0));
        let means = &mut self.means;
        Of::<T>::each(groups, column, |group, value| {
            let mean = &mut means[group];
            *mean = (mean.0.add_wrapping(value), mean.1 + 1);
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
        let means: PrimitiveArray<T> = self.means[range].iter().map(mean).collect();
        Ok(Arc::new(means.with_data_type(self.result.clone())))
    }

    fn result_type(&self) -> DataType {
        self.result.clone()
    }

    fn state(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        mean_states::<T>(&self.means[range], &T::DEFAULT_TYPE)
    }

    fn state_type(&self) -> DataType {
        DataType::Struct(mean_state(T::DEFAULT_TYPE))
    }

    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error> {
        merge_means::<T>(&mut self.means, groups, len, states);
        Ok(())
    }
}

/// The sum over a type; `None` where it is not defined.
pub(crate) fn sum(data_type: &DataType) -> Option<Box<dyn Accumulator>> {
    use DataType as D;
    Some(match data_type {
        D::Null => Sum::<Nulls, Int64Type>::boxed(D::Int64),
        D::Int8 => Sum::<Of<Int8Type>, Int64Type>::boxed(D::Int64),
        D::Int16 => Sum::<Of<Int16Type>, Int64Type>::boxed(D::Int64),
        D::Int32 => Sum::<Of<Int32Type>, Int64Type>::boxed(D::Int64),
        D::Int64 => Sum::<Of<Int64Type>, Int64Type>::boxed(D::Int64),
        D::Boolean => Sum::<Truths, UInt64Type>::boxed(D::UInt64),
        D::UInt8 => Sum::<Of<UInt8Type>, UInt64Type>::boxed(D::UInt64),
        D::UInt16 => Sum::<Of<UInt16Type>, UInt64Type>::boxed(D::UInt64),
        D::UInt32 => Sum::<Of<UInt32Type>, UInt64Type>::boxed(D::UInt64),
        D::UInt64 => Sum::<Of<UInt64Type>, UInt64Type>::boxed(D::UInt64),
        D::Float32 => Sum::<Of<Float32Type>, Float64Type>::boxed(D::Float64),
        D::Float64 => Sum::<Of<Float64Type>, Float64Type>::boxed(D::Float64),
        D::Decimal128(_, scale) => {
            Sum::<Of<Decimal128Type>, Decimal128Type>::boxed(D::Decimal128(38, *scale))
        }
        D::Decimal256(_, scale) => {
            Sum::<Of<Decimal256Type>, Decimal256Type>::boxed(D::Decimal256(76, *scale))
        }
        _ => return None,
    })
}

/// The mean over a type; `None` where it is not defined.
pub(crate) fn mean(data_type: &DataType) -> Option<Box<dyn Accumulator>> {
    use DataType as D;
    fn doubles<V: Values + 'static>() -> Box<dyn Accumulator>
    where
        V::Value: Double,
    {
        let means = Vec::new();
        Box::new(Mean::<V> {
            means,
            of: PhantomData,
        })
    }
    Some(match data_type {
        D::Null => doubles::<Nulls>(),
        D::Boolean => doubles::<Truths>(),
        D::Int8 => doubles::<Of<Int8Type>>(),
        D::Int16 => doubles::<Of<Int16Type>>(),
        D::Int32 => doubles::<Of<Int32Type>>(),
        D::Int64 => doubles::<Of<Int64Type>>(),
        D::UInt8 => doubles::<Of<UInt8Type>>(),
        D::UInt16 => doubles::<Of<UInt16Type>>(),
        D::UInt32 => doubles::<Of<UInt32Type>>(),
        D::UInt64 => doubles::<Of<UInt64Type>>(),
        D::Float32 => doubles::<Of<Float32Type>>(),
        D::Float64 => doubles::<Of<Float64Type>>(),
        D::Decimal128(..) => DecimalMean::<Decimal128Type>::boxed(data_type, i128::from),
        D::Decimal256(..) => {
            DecimalMean::<Decimal256Type>::boxed(data_type, |count| i256::from_i128(count.into()))
        }
        _ => return None,
    })
}
