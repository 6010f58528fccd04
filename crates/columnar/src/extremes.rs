//! The least and the greatest value per group.
//!
//! Nulls are skipped, a group without values has null, and NaN is the greatest number.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, LargeBinaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Decimal256Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowNativeTypeOp, BooleanArray, PrimitiveArray, new_null_array,
};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};

use crate::accumulate::{Accumulator, Of, Seen, each_seen};
use crate::error::Error;
use crate::extent::check_reach;

/// The end of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Least,
    Greatest,
}

impl End {
    /// Whether a value replaces the extreme so far.
    fn takes<V: PartialOrd + ?Sized>(self, value: &V, found: &V) -> bool {
        // A value that does not equal itself is a NaN, the greatest of all.
        let is_nan = |value: &V| value.partial_cmp(value).is_none();
        match self {
            End::Least => value < found || is_nan(found),
            End::Greatest => value > found || is_nan(value),
        }
    }
}

/// The extreme over a type; `None` where it is not defined.
pub(crate) fn extreme(end: End, data_type: &DataType) -> Option<Box<dyn Accumulator>> {
    use DataType as D;
    macro_rules! primitive {
        ($type:ty) => {
            primitive!(
                $type,
                <$type as ArrowPrimitiveType>::Native::MIN_TOTAL_ORDER
            )
        };
        ($type:ty, $least:expr) => {
            Box::new(Primitives::<$type> {
                end,
                data_type: data_type.clone(),
                none: match end {
                    End::Least => <$type as ArrowPrimitiveType>::Native::MAX_TOTAL_ORDER,
                    End::Greatest => $least,
                },
                found: Vec::new(),
                seen: Seen::default(),
            })
        };
    }
    Some(match data_type {
        D::Null => Box::new(Nothing),
        D::Boolean => Box::new(Booleans {
            end,
            found: Vec::new(),
        }),
        D::Int8 => primitive!(Int8Type),
        D::Int16 => primitive!(Int16Type),
        D::Int32 => primitive!(Int32Type),
        D::Int64 => primitive!(Int64Type),
        D::UInt8 => primitive!(UInt8Type),
        D::UInt16 => primitive!(UInt16Type),
        D::UInt32 => primitive!(UInt32Type),
        D::UInt64 => primitive!(UInt64Type),
        D::Float32 => primitive!(Float32Type, f32::NEG_INFINITY),
        D::Float64 => primitive!(Float64Type, f64::NEG_INFINITY),
        D::Decimal128(..) => primitive!(Decimal128Type),
        D::Decimal256(..) => primitive!(Decimal256Type),
        D::Date32 => primitive!(Date32Type),
        D::Date64 => primitive!(Date64Type),
        D::Time32(TimeUnit::Second) => primitive!(Time32SecondType),
        D::Time32(_) => primitive!(Time32MillisecondType),
        D::Time64(TimeUnit::Microsecond) => primitive!(Time64MicrosecondType),
        D::Time64(_) => primitive!(Time64NanosecondType),
        D::Timestamp(TimeUnit::Second, _) => primitive!(TimestampSecondType),
        D::Timestamp(TimeUnit::Millisecond, _) => primitive!(TimestampMillisecondType),
        D::Timestamp(TimeUnit::Microsecond, _) => primitive!(TimestampMicrosecondType),
        D::Timestamp(TimeUnit::Nanosecond, _) => primitive!(TimestampNanosecondType),
        D::Utf8
        | D::LargeUtf8
        | D::Utf8View
        | D::Binary
        | D::LargeBinary
        | D::BinaryView
        | D::FixedSizeBinary(_) => Box::new(Bytes {
            end,
            data_type: data_type.clone(),
            found: Vec::new(),
        }),
        _ => return None,
    })
}

/// The extreme of nulls.
struct Nothing;

impl Accumulator for Nothing {
    fn update(&mut self, _groups: &[u32], _len: usize, _column: &ArrayRef) -> Result<(), Error> {
        Ok(())
    }

    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        Ok(new_null_array(&DataType::Null, range.len()))
    }

    fn result_type(&self) -> DataType {
        DataType::Null
    }

    fn merge(&mut self, _groups: &[u32], _len: usize, _states: &ArrayRef) -> Result<(), Error> {
        Ok(())
    }
}

struct Primitives<T: ArrowPrimitiveType> {
    end: End,
    data_type: DataType,
    /// The extreme of a group without values: the opposite end of the type, which any value replaces.
    none: T::Native,
    found: Vec<T::Native>,
    seen: Seen,
}

impl<T: ArrowPrimitiveType> Accumulator for Primitives<T> {
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.found.resize(len, self.none);
        // The end is looked at once, not for each value.
        match self.end {
            End::Least => look::<T>(self, groups, len, column, |value, found| {
                End::Least.takes(value, found)
            }),
            End::Greatest => look::<T>(self, groups, len, column, |value, found| {
                End::Greatest.takes(value, found)
            }),
        }
        Ok(())
    }

    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        let found = self.found[range.clone()].to_vec().into();
        let found = PrimitiveArray::<T>::new(found, self.seen.nulls(range));
        Ok(Arc::new(found.with_data_type(self.data_type.clone())))
    }

    fn result_type(&self) -> DataType {
        self.data_type.clone()
    }

    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error> {
        self.update(groups, len, states)
    }
}

fn look<T: ArrowPrimitiveType>(
    state: &mut Primitives<T>,
    groups: &[u32],
    len: usize,
    column: &ArrayRef,
    takes: impl Fn(&T::Native, &T::Native) -> bool,
) {
    let found = &mut state.found;
    each_seen::<Of<T>>(&mut state.seen, (groups, len), column, |group, value| {
        let found = &mut found[group];
        *found = if takes(&value, found) { value } else { *found };
    });
}

struct Booleans {
    end: End,
    found: Vec<Option<bool>>,
}

impl Accumulator for Booleans {
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.found.resize(len, None);
        for (&group, value) in groups.iter().zip(column.as_boolean()) {
            let Some(value) = value else { continue };
            let found = &mut self.found[group as usize];
            if found.is_none_or(|found| self.end.takes(&value, &found)) {
                *found = Some(value);
            }
        }
        Ok(())
    }

    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        Ok(Arc::new(
            self.found[range].iter().copied().collect::<BooleanArray>(),
        ))
    }

    fn result_type(&self) -> DataType {
        DataType::Boolean
    }

    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error> {
        self.update(groups, len, states)
    }
}

struct Bytes {
    end: End,
    data_type: DataType,
    found: Vec<Option<Vec<u8>>>,
}

impl Bytes {
    fn look_at<'a>(&mut self, groups: &[u32], values: impl Iterator<Item = Option<&'a [u8]>>) {
        for (&group, value) in groups.iter().zip(values) {
            let Some(value) = value else { continue };
            match &mut self.found[group as usize] {
                Some(found) if self.end.takes(value, found.as_slice()) => {
                    found.clear();
                    found.extend_from_slice(value);
                }
                Some(_) => {}
                none => *none = Some(value.to_vec()),
            }
        }
    }
}

impl Accumulator for Bytes {
    fn update(&mut self, groups: &[u32], len: usize, column: &ArrayRef) -> Result<(), Error> {
        self.found.resize(len, None);
        match column.data_type() {
            DataType::Utf8 => {
                let column = column.as_string::<i32>();
                self.look_at(groups, column.iter().map(|value| value.map(str::as_bytes)));
            }
            DataType::LargeUtf8 => {
                let column = column.as_string::<i64>();
                self.look_at(groups, column.iter().map(|value| value.map(str::as_bytes)));
            }
            DataType::Utf8View => {
                let column = column.as_string_view();
                self.look_at(groups, column.iter().map(|value| value.map(str::as_bytes)));
            }
            DataType::BinaryView => self.look_at(groups, column.as_binary_view().iter()),
            DataType::Binary => self.look_at(groups, column.as_binary::<i32>().iter()),
            DataType::LargeBinary => self.look_at(groups, column.as_binary::<i64>().iter()),
            _ => self.look_at(groups, column.as_fixed_size_binary().iter()),
        }
        Ok(())
    }

    fn finish(&self, range: Range<usize>) -> Result<ArrayRef, Error> {
        check_reach(self.bytes_of(&range), &range)?;
        let found = &self.found[range];
        if let DataType::FixedSizeBinary(width) = self.data_type {
            let mut builder = FixedSizeBinaryBuilder::with_capacity(found.len(), width);
            for value in found {
                match value {
                    Some(value) => builder.append_value(value)?,
                    None => builder.append_null(),
                }
            }
            return Ok(Arc::new(builder.finish()));
        }
        let mut builder = LargeBinaryBuilder::with_capacity(found.len(), 0);
        for value in found {
            builder.append_option(value.as_deref());
        }
        let found: ArrayRef = Arc::new(builder.finish());
        Ok(cast(&found, &self.data_type)?)
    }

    fn bytes_of(&self, range: &Range<usize>) -> usize {
        let found = self.found[range.clone()].iter().flatten();
        found.map(Vec::len).sum()
    }

    fn result_type(&self) -> DataType {
        self.data_type.clone()
    }

    fn merge(&mut self, groups: &[u32], len: usize, states: &ArrayRef) -> Result<(), Error> {
        self.update(groups, len, states)
    }
}
