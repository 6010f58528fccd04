//! Values of expressions: a column, or one value for all rows; and their casts.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Datum, Scalar as One, UInt32Array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take;

/// The value of a node for each row.
pub(super) enum Value {
    Column(ArrayRef),
    /// One value, which all rows have.
    Constant(ArrayRef),
}

impl Value {
    pub(super) fn datum(&self) -> Box<dyn Datum> {
        match self {
            Value::Column(array) => Box::new(Arc::clone(array)),
            Value::Constant(array) => Box::new(One::new(Arc::clone(array))),
        }
    }

    pub(super) fn array(&self) -> &ArrayRef {
        let (Value::Column(array) | Value::Constant(array)) = self;
        array
    }

    /// The same, of another array.
    pub(super) fn with(&self, array: ArrayRef) -> Value {
        match self {
            Value::Column(_) => Value::Column(array),
            Value::Constant(_) => Value::Constant(array),
        }
    }

    /// A column of so many rows.
    pub(super) fn spread(self, len: usize) -> Result<ArrayRef, ArrowError> {
        match self {
            Value::Column(array) => Ok(array),
            Value::Constant(array) => take(&array, &UInt32Array::from(vec![0; len]), None),
        }
    }
}

/// The value of a kernel's result: constant where both arguments are.
pub(super) fn combined(a: &Value, b: &Value, made: ArrayRef) -> Value {
    match (a, b) {
        (Value::Constant(_), Value::Constant(_)) => Value::Constant(made),
        _ => Value::Column(made),
    }
}

/// A cast; with an error where a value has none in the type, or safely to null.
pub(super) fn casted(
    array: &ArrayRef,
    data_type: &DataType,
    safe: bool,
) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == data_type {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions {
        safe,
        ..CastOptions::default()
    };
    // Arrow cuts fractions off; SQL rounds them.
    if array.data_type().is_floating() && data_type.is_integer() {
        return cast_with_options(&rounded(array), data_type, &options);
    }
    cast_with_options(array, data_type, &options)
}

/// Floats without fractions, ties to even integers.
fn rounded(array: &ArrayRef) -> ArrayRef {
    match array.as_primitive_opt::<Float64Type>() {
        Some(floats) => Arc::new(floats.unary::<_, Float64Type>(f64::round_ties_even)),
        None => Arc::clone(array),
    }
}
