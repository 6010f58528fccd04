//! One rule for the floats in keys: `-0.0` is `0.0`, and all NaNs are one value, of any width and at any depth.
//!
//! It is the rule by which keys are routed (see [`crate::hash`]), so rows that belong together are on one worker. Cost: a
//! copy of the floats; columns without any are left as they are.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, FixedSizeListArray, GenericListArray, OffsetSizeTrait,
    PrimitiveArray, StructArray, make_array,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, FieldRef};

use crate::error::Error;

type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// Whether values of a type hold floats.
pub(crate) fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => true,
        DataType::Dictionary(_, value) => has_floats(value),
        DataType::RunEndEncoded(_, field)
        | DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _) => has_floats(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        _ => false,
    }
}

/// Replaces each float of the column by the representative of its equal values.
///
/// # Errors
///
/// An error of a kernel.
pub(crate) fn canonical(column: &ArrayRef) -> Result<ArrayRef, Error> {
    if !has_floats(column.data_type()) {
        return Ok(Arc::clone(column));
    }
    Ok(match column.data_type() {
        // Adding zero makes -0.0 a 0.0.
        DataType::Float16 => each::<Float16Type>(column, |value| {
            if value.is_nan() {
                Half::NAN
            } else {
                value + Half::ZERO
            }
        }),
        DataType::Float32 => each::<Float32Type>(column, |value| {
            if value.is_nan() {
                f32::NAN
            } else {
                value + 0.0
            }
        }),
        DataType::Float64 => each::<Float64Type>(column, |value| {
            if value.is_nan() {
                f64::NAN
            } else {
                value + 0.0
            }
        }),
        DataType::List(field) => list::<i32>(column, field)?,
        DataType::LargeList(field) => list::<i64>(column, field)?,
        DataType::FixedSizeList(field, width) => {
            let list = column.as_fixed_size_list();
            Arc::new(FixedSizeListArray::try_new_with_length(
                Arc::clone(field),
                *width,
                canonical(list.values())?,
                list.nulls().cloned(),
                list.len(),
            )?)
        }
        DataType::Struct(fields) => {
            let rows = column.as_struct();
            let columns = rows.columns().iter().map(canonical);
            Arc::new(StructArray::try_new(
                fields.clone(),
                columns.collect::<Result<_, _>>()?,
                rows.nulls().cloned(),
            )?)
        }
        DataType::Dictionary(..) => {
            let dictionary = column.as_any_dictionary();
            dictionary.with_values(canonical(dictionary.values())?)
        }
        // Runs: the ends as they are, and the values.
        _ => {
            let data = column.to_data();
            let mut children = data.child_data().to_vec();
            for child in &mut children {
                *child = canonical(&make_array(child.clone()))?.to_data();
            }
            make_array(data.into_builder().child_data(children).build()?)
        }
    })
}

fn each<T: ArrowPrimitiveType>(
    column: &ArrayRef,
    canonical: impl Fn(T::Native) -> T::Native,
) -> ArrayRef {
    let made: PrimitiveArray<T> = column.as_primitive::<T>().unary(canonical);
    Arc::new(made)
}

/// Restricts a slice to its own elements.
fn list<O: OffsetSizeTrait>(column: &ArrayRef, field: &FieldRef) -> Result<ArrayRef, Error> {
    let list = column.as_list::<O>();
    let (offsets, values) = elements_of(list);
    Ok(Arc::new(GenericListArray::<O>::try_new(
        Arc::clone(field),
        offsets,
        canonical(&values)?,
        list.nulls().cloned(),
    )?))
}

/// The elements of a list column's rows, for a slice only those of its rows, and the start of each row's
/// elements.
pub(crate) fn elements_of<O: OffsetSizeTrait>(
    list: &GenericListArray<O>,
) -> (OffsetBuffer<O>, ArrayRef) {
    let offsets = list.offsets();
    let (first, end) = (offsets[0], offsets[offsets.len() - 1]);
    let elements = list
        .values()
        .slice(first.as_usize(), (end - first).as_usize());
    let offsets: ScalarBuffer<O> = offsets.iter().map(|&offset| offset - first).collect();
    (OffsetBuffer::new(offsets), elements)
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{DictionaryArray, Float64Array, Int32Array, ListArray, RunArray};
    use arrow_schema::Field;

    use super::*;

    /// Floats of one sign and kind, and of the other.
    fn twins() -> (ArrayRef, ArrayRef) {
        let other = f64::from_bits(0xfff8_0000_0000_1234);
        (
            Arc::new(Float64Array::from(vec![
                Some(0.0),
                None,
                Some(f64::NAN),
                Some(1.5),
            ])),
            Arc::new(Float64Array::from(vec![
                Some(-0.0),
                None,
                Some(other),
                Some(1.5),
            ])),
        )
    }

    /// The same in every form that holds floats.
    fn forms(floats: &ArrayRef) -> Vec<ArrayRef> {
        let field = |data_type: &DataType| Arc::new(Field::new("item", data_type.clone(), true));
        let offsets = || OffsetBuffer::new(vec![0, 1, 1, 3, 4].into());
        let list: ArrayRef = Arc::new(
            ListArray::try_new(
                field(floats.data_type()),
                offsets(),
                Arc::clone(floats),
                None,
            )
            .unwrap(),
        );
        let keys = Int32Array::from(vec![Some(2), None, Some(0), Some(1)]);
        let ends = Int32Array::from(vec![1, 2, 4, 9]);
        vec![
            Arc::clone(floats),
            arrow_cast::cast(floats, &DataType::Float32).unwrap(),
            arrow_cast::cast(floats, &DataType::Float16).unwrap(),
            Arc::new(StructArray::from(vec![(
                field(floats.data_type()),
                Arc::clone(floats),
            )])),
            Arc::new(StructArray::from(vec![(
                field(list.data_type()),
                Arc::clone(&list),
            )])),
            list.slice(1, 3),
            list,
            Arc::new(FixedSizeListArray::new(
                field(floats.data_type()),
                2,
                Arc::clone(floats),
                None,
            )),
            Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::clone(floats))),
            Arc::new(RunArray::try_new(&ends, floats).unwrap()),
        ]
    }

    #[test]
    fn floats_that_are_equal_have_equal_bits() {
        let (one, other) = twins();
        for (one, other) in forms(&one).iter().zip(forms(&other)) {
            // The comparison is of bits.
            let bits = |column: &ArrayRef| canonical(column).unwrap().to_data();
            assert_eq!(bits(one), bits(&other));
            assert_ne!(one.to_data(), other.to_data());
        }
    }
}
