//! Values of expressions: a column, or one value for all rows; and their casts.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::as_datetime_with_timezone;
use arrow_array::timezone::Tz;
use arrow_array::types::{Float64Type, TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{ArrayRef, BooleanArray, Datum, LargeStringArray, Scalar as One, UInt32Array};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType, TimeUnit};
use arrow_select::take::take;
use pointstamp_rows::expressions::Relation;

/// The value of a node for each row.
pub(crate) enum Value {
    Column(ArrayRef),
    /// One value, which all rows have.
    Constant(ArrayRef),
}

impl Value {
    pub(crate) fn datum(&self) -> Box<dyn Datum> {
        match self {
            Value::Column(array) => Box::new(Arc::clone(array)),
            Value::Constant(array) => Box::new(One::new(Arc::clone(array))),
        }
    }

    pub(crate) fn array(&self) -> &ArrayRef {
        let (Value::Column(array) | Value::Constant(array)) = self;
        array
    }

    /// The same, of another array.
    pub(crate) fn with(&self, array: ArrayRef) -> Value {
        match self {
            Value::Column(_) => Value::Column(array),
            Value::Constant(_) => Value::Constant(array),
        }
    }

    /// A column of so many rows.
    pub(crate) fn spread(self, len: usize) -> Result<ArrayRef, ArrowError> {
        match self {
            Value::Column(array) => Ok(array),
            Value::Constant(array) => take(&array, &UInt32Array::from(vec![0; len]), None),
        }
    }
}

/// The value of a kernel's result: constant where both arguments are.
pub(crate) fn combined(a: &Value, b: &Value, made: ArrayRef) -> Value {
    match (a, b) {
        (Value::Constant(_), Value::Constant(_)) => Value::Constant(made),
        _ => Value::Column(made),
    }
}

/// The kernel of a comparison.
pub(crate) fn comparison(
    relation: Relation,
) -> fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, ArrowError> {
    match relation {
        Relation::Eq => cmp::eq,
        Relation::Ne => cmp::neq,
        Relation::Lt => cmp::lt,
        Relation::Le => cmp::lt_eq,
        Relation::Gt => cmp::gt,
        Relation::Ge => cmp::gt_eq,
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
    let plain = |array: &ArrayRef| cast_with_options(array, data_type, &options);
    match (array.data_type(), data_type) {
        // Arrow cuts fractions off; SQL rounds them.
        (from, to) if from.is_floating() && to.is_integer() => plain(&rounded(array)?),
        (DataType::Decimal128(_, scale), to) if *scale > 0 && to.is_integer() => {
            plain(&cast_with_options(array, &WHOLE, &options)?)
        }
        (DataType::Timestamp(_, Some(zone)), DataType::Timestamp(_, None)) => {
            plain(&local(array, zone)?)
        }
        (from, to) if to.is_string() && (from.is_floating() || is_timestamp(from)) => {
            let written = if is_timestamp(from) { timestamp } else { float };
            let text = cast_with_options(array, &DataType::LargeUtf8, &options)?;
            let text = text.as_string::<i64>().iter();
            let text: LargeStringArray = text.map(|text| text.map(written)).collect();
            plain(&(Arc::new(text) as ArrayRef))
        }
        _ => plain(array),
    }
}

/// Decimals without fractions.
const WHOLE: DataType = DataType::Decimal128(38, 0);

/// Timestamps of a zone as its clocks show them, in microseconds or nanoseconds.
fn local(array: &ArrayRef, zone: &str) -> Result<ArrayRef, ArrowError> {
    let zone: Tz = zone.parse()?;
    if let Some(stamps) = array.as_primitive_opt::<TimestampNanosecondType>() {
        let made = stamps.unary_opt::<_, TimestampNanosecondType>(|at| {
            let local = as_datetime_with_timezone::<TimestampNanosecondType>(at, zone)?;
            local.naive_local().and_utc().timestamp_nanos_opt()
        });
        return Ok(Arc::new(made));
    }
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    let stamps = cast(array, &micros)?;
    let stamps = stamps.as_primitive::<TimestampMicrosecondType>();
    let made = stamps.unary_opt::<_, TimestampMicrosecondType>(|at| {
        let local = as_datetime_with_timezone::<TimestampMicrosecondType>(at, zone)?;
        Some(local.naive_local().and_utc().timestamp_micros())
    });
    Ok(Arc::new(made))
}

fn is_timestamp(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(..))
}

/// A float as SQL writes it, of its text as Rust writes it.
fn float(text: &str) -> String {
    text.to_lowercase()
}

/// A timestamp as SQL writes it, of its text by RFC 3339: `2025-03-01 23:30:00.5+00`.
fn timestamp(text: &str) -> String {
    let text = text.replacen('T', " ", 1);
    let zone = text
        .find(['Z', '+'])
        .or_else(|| text.rfind('-').filter(|at| *at > 10));
    let (time, zone) = text.split_at(zone.unwrap_or(text.len()));
    let time = match time.split_once('.') {
        Some((_, fraction)) => {
            let zeros = fraction.len() - fraction.trim_end_matches('0').len();
            time[..time.len() - zeros].trim_end_matches('.')
        }
        None => time,
    };
    let zone = if zone == "Z" {
        "+00"
    } else {
        zone.strip_suffix(":00").unwrap_or(zone)
    };
    format!("{time}{zone}")
}

/// Floats without fractions, ties to even integers.
fn rounded(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let floats = cast(array, &DataType::Float64)?;
    let floats = floats.as_primitive::<Float64Type>();
    Ok(Arc::new(
        floats.unary::<_, Float64Type>(f64::round_ties_even),
    ))
}
