//! Counts, sums and means per group, over a column at a time.
//!
//! The rules are those of pyarrow's `group_by`: nulls are skipped, and a group without values has a null sum and mean;
//! integers add up as `int64` or `uint64`, floats as doubles, decimals in the widest precision of their width; a mean is a
//! double, or a decimal rounded half away from zero. Unlike pyarrow's, a sum that its type cannot hold is an error.
//!
//! Sums of integers and decimals are exact, however large they grow in between: a word holds a sum modulo its width,
//! and [`Carries`] counts its overflows, for the few groups that need it. Whether a sum fits thus depends neither on
//! the order of the rows nor on where they are added up.
//!
//! The state of a group can travel: [`Accumulator::state`] returns it as a column, which [`Accumulator::merge`] of
//! another worker takes. A sum travels with its carry, and a mean with its count.

use std::collections::HashMap;
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
use arrow_schema::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, Fields};

use crate::error::{Beyond, Error};

/// The state of one function of a column, for each group.
pub(crate) trait Accumulator: Send + Sync {
    /// Adds the rows of a column; `groups[row]` is below `len`, the number of groups so far.
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error>;

    /// The results of these groups.
    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error>;

    /// The approximate size in bytes of the parts of these groups' results that have no fixed size.
    fn bytes_of(&self, _range: &Range<usize>) -> usize {
        0
    }

    /// The type of [`finish`](Self::finish)'s column.
    fn result_type(&self) -> DataType;

    /// The states of these groups, for [`merge`](Self::merge).
    fn state(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        self.finish(range)
    }

    /// The type of [`state`](Self::state)'s column.
    fn state_type(&self) -> DataType {
        self.result_type()
    }

    /// Merges the states of another accumulator of this kind; groups as in [`update`](Self::update).
    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error>;
}

/// The values of a column of one type.
pub(crate) trait Values {
    /// The type of a value.
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

/// The groups that have a value. As long as no column had a null, all have: a group comes from a row.
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

/// The number of values that are not null, or of rows.
#[derive(Default)]
pub(crate) struct Count {
    counts: Vec<i64>,
    /// Whether rows with a null value count.
    with_nulls: bool,
}

impl Count {
    /// Counts values that are not null.
    pub(crate) fn of_values() -> Self {
        Count::default()
    }

    /// Counts rows.
    pub(crate) fn of_rows() -> Self {
        Count {
            with_nulls: true,
            ..Count::default()
        }
    }
}

impl Accumulator for Count {
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.counts.resize(len, 0);
        let nulls = (!self.with_nulls).then(|| column.logical_nulls()).flatten();
        let mut count = |group: u32| self.counts[group as usize] += 1;
        match nulls.filter(|nulls| nulls.null_count() > 0) {
            None => groups.iter().for_each(|&group| count(group)),
            Some(nulls) => nulls.valid_indices().for_each(|row| count(groups[row])),
        }
        Ok(())
    }

    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        Ok(Arc::new(PrimitiveArray::<Int64Type>::from_iter_values(
            self.counts[range].iter().copied(),
        )))
    }

    fn result_type(&self) -> DataType {
        DataType::Int64
    }

    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error> {
        self.counts.resize(len, 0);
        Of::<Int64Type>::each(groups, states, |group, count| self.counts[group] += count);
        Ok(())
    }
}

/// The number of overflows of the sums of groups: a sum is `word + carry * 2^width`.
#[derive(Default)]
struct Carries(HashMap<usize, i64>);

impl Carries {
    /// Adds a value to the word of a group.
    #[inline]
    fn add<W: Word>(&mut self, word: &mut W, group: usize, value: W) {
        let (sum, is_over) = word.over(value);
        *word = sum;
        if is_over {
            self.carry(group, if value.is_negative() { -1 } else { 1 });
        }
    }

    /// Adds to a group's carry, which is less than the number of its values, of which there are fewer than 2^63.
    #[cold]
    fn carry(&mut self, group: usize, carry: i64) {
        let known = self.0.entry(group).or_default();
        *known += carry;
        if *known == 0 {
            self.0.remove(&group);
        }
    }

    fn of(&self, group: usize) -> i64 {
        if self.0.is_empty() {
            return 0;
        }
        self.0.get(&group).copied().unwrap_or_default()
    }

    /// The carries of some groups, as the column that travels with their words.
    fn column(&self, range: Range<usize>) -> ArrayRef {
        let mut carries = vec![0; range.len()];
        if !self.0.is_empty() {
            for (carry, group) in carries.iter_mut().zip(range) {
                *carry = self.of(group);
            }
        }
        Arc::new(PrimitiveArray::<Int64Type>::from(carries))
    }

    /// Adds the carries of such a column, nearly all of which are 0.
    fn merge(&mut self, groups: &[u32], column: &ArrayRef) {
        let carries = column.as_primitive::<Int64Type>().values();
        if carries.iter().fold(0, |any, carry| any | carry) == 0 {
            return;
        }
        for (&group, &carry) in groups.iter().zip(carries) {
            if carry != 0 {
                self.carry(group as usize, carry);
            }
        }
    }
}

/// A number in which sums are kept.
trait Word: Copy {
    /// The sum modulo the width, and whether the width was too small for it.
    fn over(self, value: Self) -> (Self, bool);

    /// Whether it is below zero.
    fn is_negative(self) -> bool;

    /// Whether it has no more digits than a decimal of its width; true for types that are no decimals.
    fn fits(self) -> bool {
        true
    }
}

impl Word for i64 {
    #[inline]
    fn over(self, value: Self) -> (Self, bool) {
        self.overflowing_add(value)
    }

    fn is_negative(self) -> bool {
        self < 0
    }
}

impl Word for u64 {
    #[inline]
    fn over(self, value: Self) -> (Self, bool) {
        self.overflowing_add(value)
    }

    fn is_negative(self) -> bool {
        false
    }
}

impl Word for i128 {
    #[inline]
    fn over(self, value: Self) -> (Self, bool) {
        self.overflowing_add(value)
    }

    fn is_negative(self) -> bool {
        self < 0
    }

    fn fits(self) -> bool {
        Decimal128Type::is_valid_decimal_precision(self, DECIMAL128_MAX_PRECISION)
    }
}

impl Word for i256 {
    #[inline]
    fn over(self, value: Self) -> (Self, bool) {
        match self.checked_add(value) {
            Some(sum) => (sum, false),
            None => (self.wrapping_add(value), true),
        }
    }

    fn is_negative(self) -> bool {
        i256::is_negative(self)
    }

    fn fits(self) -> bool {
        Decimal256Type::is_valid_decimal_precision(self, DECIMAL256_MAX_PRECISION)
    }
}

/// Floats have infinities, and never go over.
impl Word for f64 {
    #[inline]
    fn over(self, value: Self) -> (Self, bool) {
        (self + value, false)
    }

    fn is_negative(self) -> bool {
        self < 0.0
    }
}

/// A sum in `T`, of a column of `V`.
struct Sum<V, T: ArrowPrimitiveType> {
    result: DataType,
    /// The type of the state of a sum: its word, and the number of its overflows.
    state: Fields,
    sums: Vec<T::Native>,
    carries: Carries,
    seen: Seen,
    of: PhantomData<fn() -> V>,
}

impl<V: Values + 'static, T: ArrowPrimitiveType> Sum<V, T>
where
    T::Native: From<V::Value> + Word,
{
    fn boxed(result: DataType) -> Box<dyn Accumulator> {
        Box::new(Sum::<V, T> {
            state: Fields::from(vec![
                Field::new("sum", result.clone(), false),
                Field::new("carry", DataType::Int64, false),
            ]),
            result,
            sums: Vec::new(),
            carries: Carries::default(),
            seen: Seen::default(),
            of: PhantomData,
        })
    }
}

impl<V, T: ArrowPrimitiveType> Sum<V, T>
where
    T::Native: Word,
{
    /// Refuses sums that their type cannot hold.
    fn check(&self, mut range: Range<usize>) -> Result<(), Error> {
        let fits = |group: usize| self.sums[group].fits() && self.carries.of(group) == 0;
        match range.find(|&group| !fits(group)) {
            None => Ok(()),
            Some(group) => Err(Beyond::of(group, &self.result)),
        }
    }
}

impl<V: Values, T: ArrowPrimitiveType> Accumulator for Sum<V, T>
where
    T::Native: From<V::Value> + Word,
{
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.sums.resize(len, T::Native::ZERO);
        let (sums, carries) = (&mut self.sums, &mut self.carries);
        each_seen::<V>(&mut self.seen, (groups, len), column, |group, value| {
            carries.add(&mut sums[group], group, value.into());
        });
        Ok(())
    }

    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        self.check(range.clone())?;
        let sums = self.sums[range.clone()].to_vec().into();
        let sums = PrimitiveArray::<T>::new(sums, self.seen.nulls(range));
        Ok(Arc::new(sums.with_data_type(self.result.clone())))
    }

    fn result_type(&self) -> DataType {
        self.result.clone()
    }

    fn state(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        let sums = PrimitiveArray::<T>::new(self.sums[range.clone()].to_vec().into(), None);
        let columns = vec![
            Arc::new(sums.with_data_type(self.result.clone())) as ArrayRef,
            self.carries.column(range.clone()),
        ];
        let nulls = self.seen.nulls(range);
        let state = StructArray::try_new(self.state.clone(), columns, nulls)?;
        Ok(Arc::new(state))
    }

    fn state_type(&self) -> DataType {
        DataType::Struct(self.state.clone())
    }

    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error> {
        self.sums.resize(len, T::Native::ZERO);
        let columns = states.as_struct().columns();
        // Of a group without values the sum is zero: it is added, and says nothing.
        let words = columns[0].as_primitive::<T>().values();
        for (&group, &word) in groups.iter().zip(words) {
            let group = group as usize;
            self.carries.add(&mut self.sums[group], group, word);
        }
        self.carries.merge(groups, &columns[1]);
        if let Some(marks) = self.seen.grow(len, states) {
            for (row, &group) in groups.iter().enumerate() {
                marks[group as usize] |= states.is_valid(row);
            }
        }
        Ok(())
    }
}

/// The type of the state of a mean: its sum, and the number of its values.
fn mean_state() -> Fields {
    Fields::from(vec![
        Field::new("sum", DataType::Float64, false),
        Field::new("count", DataType::Int64, false),
    ])
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
        let means = &self.means[range];
        let sums = PrimitiveArray::<Float64Type>::from_iter_values(means.iter().map(|mean| mean.0));
        let counts = PrimitiveArray::<Int64Type>::from_iter_values(means.iter().map(|mean| mean.1));
        let columns: Vec<ArrayRef> = vec![Arc::new(sums), Arc::new(counts)];
        Ok(Arc::new(StructArray::try_new(mean_state(), columns, None)?))
    }

    fn state_type(&self) -> DataType {
        DataType::Struct(mean_state())
    }

    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error> {
        self.means.resize(len, (0.0, 0));
        let columns = states.as_struct().columns();
        let sums = columns[0].as_primitive::<Float64Type>().values();
        let counts = columns[1].as_primitive::<Int64Type>().values();
        for ((&group, &added), &values) in groups.iter().zip(sums).zip(counts) {
            let (sum, count) = &mut self.means[group as usize];
            *sum += added;
            *count += values;
        }
        Ok(())
    }
}

/// A mean of decimals, rounded half away from zero.
struct DecimalMean<T: DecimalType> {
    result: DataType,
    means: Vec<(T::Native, i64)>,
    carries: Carries,
}

impl<T: DecimalType + ArrowPrimitiveType> DecimalMean<T>
where
    T::Native: Decimal,
{
    fn boxed(result: &DataType) -> Box<dyn Accumulator> {
        Box::new(DecimalMean::<T> {
            result: result.clone(),
            means: Vec::new(),
            carries: Carries::default(),
        })
    }

    /// The type of the state of a mean: its sum, the number of its overflows, and the number of its values.
    fn fields() -> Fields {
        Fields::from(vec![
            Field::new("sum", T::DEFAULT_TYPE, false),
            Field::new("carry", DataType::Int64, false),
            Field::new("count", DataType::Int64, false),
        ])
    }

    fn mean(&self, group: usize) -> Option<T::Native> {
        let (sum, count) = self.means[group];
        if count == 0 {
            return None;
        }
        let carry = self.carries.of(group);
        if carry != 0 {
            return Some(T::Native::of_wide(sum, carry, count.unsigned_abs()));
        }
        let (zero, one) = (T::Native::ZERO, T::Native::ONE);
        let divisor = T::Native::of_count(count);
        // A count is not -1, and nothing else goes over: the rest is less than the divisor.
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
    }
}

/// The word type of a decimal.
trait Decimal: Word + ArrowNativeTypeOp {
    /// A number of values.
    fn of_count(count: i64) -> Self;

    /// The mean of `count` values whose sum is `sum + carry * 2^width`: it is between two of them.
    fn of_wide(sum: Self, carry: i64, count: u64) -> Self;
}

impl Decimal for i128 {
    fn of_count(count: i64) -> Self {
        count.into()
    }

    fn of_wide(sum: Self, carry: i64, count: u64) -> Self {
        let carries = i256::from_parts(0, carry.into());
        let sum = i256::from_i128(sum).wrapping_add(carries);
        i256::of_wide(sum, 0, count).as_i128()
    }
}

impl Decimal for i256 {
    fn of_count(count: i64) -> Self {
        i256::from_i128(count.into())
    }

    /// Long division of the magnitude, 64 bits at a time.
    fn of_wide(sum: Self, carry: i64, count: u64) -> Self {
        let (low, high) = sum.to_parts();
        let above = carry - i64::from(high < 0);
        let halves = |word: u128| [word & u128::from(u64::MAX), word >> 64];
        let mut limbs = [0; 5];
        limbs[..2].copy_from_slice(&halves(low));
        limbs[2..4].copy_from_slice(&halves(high.cast_unsigned()));
        limbs[4] = u128::from(above.cast_unsigned());
        let is_negative = above < 0;
        if is_negative {
            let mut one = 1;
            for limb in &mut limbs {
                let negated = (*limb ^ u128::from(u64::MAX)) + one;
                (*limb, one) = (negated & u128::from(u64::MAX), negated >> 64);
            }
        }
        let (divisor, mut rest) = (u128::from(count), 0);
        for limb in limbs.iter_mut().rev() {
            let part = rest << 64 | *limb;
            (*limb, rest) = (part / divisor, part % divisor);
        }
        let low = limbs[1] << 64 | limbs[0];
        let high = limbs[3] << 64 | limbs[2];
        let rounded = i256::from_parts(low, high.cast_signed())
            .wrapping_add(i256::from_i128(i128::from(rest >= divisor - rest)));
        if is_negative {
            rounded.wrapping_neg()
        } else {
            rounded
        }
    }
}

impl<T: DecimalType + ArrowPrimitiveType> Accumulator for DecimalMean<T>
where
    T::Native: Decimal,
{
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.means.resize(len, (T::Native::ZERO, 0));
        let (means, carries) = (&mut self.means, &mut self.carries);
        Of::<T>::each(groups, column, |group, value| {
            let (sum, count) = &mut means[group];
            carries.add(sum, group, value);
            *count += 1;
        });
        Ok(())
    }

    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        let means: PrimitiveArray<T> = range.map(|group| self.mean(group)).collect();
        Ok(Arc::new(means.with_data_type(self.result.clone())))
    }

    fn result_type(&self) -> DataType {
        self.result.clone()
    }

    fn state(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        let means = &self.means[range.clone()];
        let sums = PrimitiveArray::<T>::from_iter_values(means.iter().map(|mean| mean.0));
        let counts = PrimitiveArray::<Int64Type>::from_iter_values(means.iter().map(|mean| mean.1));
        let columns = vec![
            Arc::new(sums) as ArrayRef,
            self.carries.column(range),
            Arc::new(counts),
        ];
        Ok(Arc::new(StructArray::try_new(
            Self::fields(),
            columns,
            None,
        )?))
    }

    fn state_type(&self) -> DataType {
        DataType::Struct(Self::fields())
    }

    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error> {
        self.means.resize(len, (T::Native::ZERO, 0));
        let columns = states.as_struct().columns();
        let sums = columns[0].as_primitive::<T>().values();
        let counts = columns[2].as_primitive::<Int64Type>().values();
        for ((&group, &added), &values) in groups.iter().zip(sums).zip(counts) {
            let group = group as usize;
            let (sum, count) = &mut self.means[group];
            self.carries.add(sum, group, added);
            *count += values;
        }
        self.carries.merge(groups, &columns[1]);
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
        D::Decimal128(..) => DecimalMean::<Decimal128Type>::boxed(data_type),
        D::Decimal256(..) => DecimalMean::<Decimal256Type>::boxed(data_type),
        _ => return None,
    })
}
