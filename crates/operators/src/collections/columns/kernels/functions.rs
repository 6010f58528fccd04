//! Functions of values: text, parts of dates, intervals and rounding.

use std::sync::Arc;

use arrow_arith::arity::binary;
use arrow_arith::numeric::add;
use arrow_arith::temporal::{DatePart, date_part};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Float64Type, Int32Type, Int64Type, IntervalMonthDayNano,
    TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, Decimal128Array, Int64Array, IntervalMonthDayNanoArray, LargeStringArray,
    PrimitiveArray, Scalar as One,
};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use arrow_string::concat_elements::concat_elements_utf8;
use arrow_string::like::{contains, ends_with, ilike, like, starts_with};
use arrow_string::regexp::regexp_is_match_scalar;
use pointstamp_rows::expressions::Function;

use super::values::{Value, casted, combined};

const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Applies a function to values of the types that `typing` gives it.
pub(super) fn call(
    function: Function,
    argument: &str,
    of: &[Value],
    data_type: &DataType,
    len: usize,
) -> Result<Value, ArrowError> {
    let first = &of[0];
    let array = first.array();
    Ok(match function {
        Function::Like | Function::ILike => {
            // A backslash escapes nothing in SQL; in Arrow's patterns it does.
            let pattern = texts(of[1].array(), |text| text.replace('\\', "\\\\"));
            let pattern = of[1].with(pattern);
            let kernel = if function == Function::Like {
                like
            } else {
                ilike
            };
            let made = kernel(&*first.datum(), &*pattern.datum())?;
            combined(first, &pattern, Arc::new(made))
        }
        Function::StartsWith | Function::EndsWith | Function::Contains => {
            let kernel = match function {
                Function::StartsWith => starts_with,
                Function::EndsWith => ends_with,
                _ => contains,
            };
            let made = kernel(&*first.datum(), &*of[1].datum())?;
            combined(first, &of[1], Arc::new(made))
        }
        Function::Matches => {
            let text = array.as_string::<i64>();
            first.with(Arc::new(regexp_is_match_scalar(text, argument, None)?))
        }
        Function::Substr => {
            let (start, length) = part(argument)?;
            first.with(texts(array, |text| cut(text, start, length)))
        }
        Function::Lower => first.with(texts(array, str::to_lowercase)),
        Function::Upper => first.with(texts(array, str::to_uppercase)),
        Function::Trim => first.with(texts(array, |text| text.trim_matches(' ').to_owned())),
        Function::Length => {
            let text = array.as_string::<i64>();
            let count = |text: &str| i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            let made: Int64Array = text.iter().map(|text| text.map(count)).collect();
            first.with(Arc::new(made))
        }
        Function::Concat => {
            let mut made: Option<ArrayRef> = None;
            for value in of {
                let next = match value {
                    Value::Column(array) => Arc::clone(array),
                    Value::Constant(array) => Value::Constant(Arc::clone(array)).spread(len)?,
                };
                made = Some(match made {
                    None => next,
                    Some(before) => Arc::new(concat_elements_utf8(
                        before.as_string::<i64>(),
                        next.as_string::<i64>(),
                    )?),
                });
            }
            Value::Column(made.unwrap_or_else(|| arrow_array::new_null_array(data_type, len)))
        }
        Function::Extract => first.with(extracted(array, argument)?),
        Function::Truncate => first.with(truncated(array, argument)?),
        Function::AddInterval => first.with(later(array, interval(argument)?)?),
        Function::Abs | Function::Floor | Function::Ceil | Function::Round => {
            first.with(number(function, argument, array)?)
        }
        Function::Single => {
            let counts = of[1].array().as_primitive::<Int64Type>();
            if counts.iter().flatten().any(|count| count > 1) {
                return Err(ArrowError::ComputeError(
                    "a subquery that is used as a value has more than one row".to_owned(),
                ));
            }
            match first {
                Value::Column(array) => Value::Column(Arc::clone(array)),
                Value::Constant(array) => Value::Constant(Arc::clone(array)),
            }
        }
        Function::Cast
        | Function::TryCast
        | Function::Typed
        | Function::Case
        | Function::Coalesce
        | Function::IsIn
        | Function::Rem => {
            return Err(ArrowError::NotYetImplemented(function.name().to_owned()));
        }
    })
}

/// A function of each text.
fn texts(array: &ArrayRef, apply: impl Fn(&str) -> String) -> ArrayRef {
    let text = array.as_string::<i64>();
    let made: LargeStringArray = text.iter().map(|text| text.map(&apply)).collect();
    Arc::new(made)
}

/// The start and the length of `start` or `start,length`.
fn part(argument: &str) -> Result<(i64, Option<i64>), ArrowError> {
    let wrong = |_| ArrowError::InvalidArgumentError(format!("substr of {argument:?}"));
    let (start, length) = argument.split_once(',').unwrap_or((argument, ""));
    let length = match length {
        "" => None,
        length => Some(length.parse().map_err(wrong)?),
    };
    Ok((start.parse().map_err(wrong)?, length))
}

/// The characters from `start` on, where 1 is the first, and -1 the last; 0 is the one before the first.
fn cut(text: &str, start: i64, length: Option<i64>) -> String {
    let start = if start < 0 {
        let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        count + start
    } else {
        start - 1
    };
    let end = length.map_or(i64::MAX, |length| start.saturating_add(length));
    let at = |place: i64| usize::try_from(place).unwrap_or(0);
    let (start, end) = (at(start), at(end));
    text.chars()
        .skip(start)
        .take(end.saturating_sub(start))
        .collect()
}

fn interval(argument: &str) -> Result<IntervalMonthDayNano, ArrowError> {
    let wrong = || ArrowError::InvalidArgumentError(format!("the interval {argument:?}"));
    let mut parts = argument.split(',').map(|part| part.parse::<i64>().ok());
    let mut next = || parts.next().flatten().ok_or_else(wrong);
    let months = i32::try_from(next()?).map_err(|_| wrong())?;
    let days = i32::try_from(next()?).map_err(|_| wrong())?;
    let nanos = next()?.checked_mul(1000).ok_or_else(wrong)?;
    Ok(IntervalMonthDayNano::new(months, days, nanos))
}

/// Timestamps so much later.
fn later(array: &ArrayRef, interval: IntervalMonthDayNano) -> Result<ArrayRef, ArrowError> {
    let interval = IntervalMonthDayNanoArray::from(vec![interval]);
    add(array, &One::new(interval))
}

fn extracted(array: &ArrayRef, part: &str) -> Result<ArrayRef, ArrowError> {
    let wanted = match part {
        "year" => DatePart::Year,
        "quarter" => DatePart::Quarter,
        "month" => DatePart::Month,
        "week" => DatePart::WeekISO,
        "day" => DatePart::Day,
        "dayofweek" => DatePart::DayOfWeekSunday0,
        "isodow" => DatePart::DayOfWeekMonday1,
        "dayofyear" => DatePart::DayOfYear,
        "hour" => DatePart::Hour,
        "minute" => DatePart::Minute,
        "second" => DatePart::Second,
        other => {
            return Err(ArrowError::InvalidArgumentError(format!(
                "dates have no part {other:?}"
            )));
        }
    };
    let array = casted(array, &MICROS, false)?;
    casted(&date_part(&array, wanted)?, &DataType::Int64, false)
}

fn truncated(array: &ArrayRef, part: &str) -> Result<ArrayRef, ArrowError> {
    const DAY: i64 = 86_400_000_000;
    let unit = match part {
        "second" => 1_000_000,
        "minute" => 60_000_000,
        "hour" => 3_600_000_000,
        _ => DAY,
    };
    let stamps = casted(array, &MICROS, false)?;
    let stamps = stamps.as_primitive::<TimestampMicrosecondType>();
    let floor = |value: i64| value - value.rem_euclid(unit);
    let floored = stamps.unary::<_, TimestampMicrosecondType>(floor);
    // Days since the start of the part.
    let since = |wanted: DatePart, first: i32| -> Result<ArrayRef, ArrowError> {
        let days = date_part(&floored, wanted)?;
        let days = days.as_primitive::<Int32Type>();
        let start: PrimitiveArray<TimestampMicrosecondType> =
            binary(&floored, days, |at, day: i32| {
                at - i64::from(day - first) * DAY
            })?;
        Ok(Arc::new(start.with_data_type(MICROS)) as ArrayRef)
    };
    let made: ArrayRef = match part {
        "year" => since(DatePart::DayOfYear, 1)?,
        "month" => since(DatePart::Day, 1)?,
        "week" => since(DatePart::DayOfWeekMonday0, 0)?,
        "quarter" => {
            // The first day of the quarter's month is that of its own month two, one or no months before.
            let month = since(DatePart::Day, 1)?;
            let parts = date_part(&month, DatePart::Month)?;
            let parts = parts.as_primitive::<Int32Type>();
            let back = |month: i32| IntervalMonthDayNano::new(-((month - 1) % 3), 0, 0);
            let back = parts.unary::<_, arrow_array::types::IntervalMonthDayNanoType>(back);
            add(&month, &back)?
        }
        "day" | "hour" | "minute" | "second" => Arc::new(floored),
        other => {
            return Err(ArrowError::InvalidArgumentError(format!(
                "dates have no part {other:?}"
            )));
        }
    };
    // Where clocks are put forward over the start of a part, it has none.
    casted(&made, array.data_type(), true)
}

fn number(function: Function, argument: &str, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if let Some(floats) = array.as_primitive_opt::<Float64Type>() {
        let digits: i32 = argument.parse().unwrap_or(0);
        let unit = 10_f64.powi(digits);
        let apply = |value: f64| match function {
            Function::Abs => value.abs(),
            Function::Floor => value.floor(),
            Function::Ceil => value.ceil(),
            _ => {
                let made = (value * unit).round() / unit;
                if made.is_finite() { made } else { value }
            }
        };
        return Ok(Arc::new(floats.unary::<_, Float64Type>(apply)));
    }
    if let Some(digits) = array.as_primitive_opt::<Decimal128Type>() {
        let DataType::Decimal128(precision, scale) = *array.data_type() else {
            return Ok(Arc::clone(array));
        };
        let unit = 10_i128.pow(scale.unsigned_abs().into());
        let apply = |value: i128| match function {
            Function::Abs => value.abs(),
            Function::Floor => value.div_euclid(unit),
            _ => -(-value).div_euclid(unit),
        };
        let made: Decimal128Array = digits.unary(apply);
        let scale = if function == Function::Abs { scale } else { 0 };
        return Ok(Arc::new(made.with_precision_and_scale(precision, scale)?));
    }
    if function == Function::Abs {
        let ints = array.as_primitive::<Int64Type>();
        let abs = |value: i64| {
            value.checked_abs().ok_or_else(|| {
                ArrowError::ArithmeticOverflow(format!("the absolute value of {value} has 65 bits"))
            })
        };
        return Ok(Arc::new(ints.try_unary::<_, Int64Type, _>(abs)?));
    }
    Ok(Arc::clone(array)) // integers have no fraction
}
