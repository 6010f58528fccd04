//! The scheme that routes keys, over plain values.
//!
//! Owns the scheme below. It is a wire format: workers of one computation that run different builds, and records and
//! columns, must agree on it, so it never changes; the vectors in `tests/arrow/test_stable_hash.py` pin it.
//! `XXH3(seed, bytes)` is XXH3-64 and integers are written little-endian; a tag of eight ASCII characters is the
//! seed that they spell, little-endian.
//!
//! | key                          | hash                                                           |
//! |------------------------------|----------------------------------------------------------------|
//! | `int`, `bool`                | its value modulo 2^64, as it is: `exchange` sends `k` to worker `k % peers` |
//! | `float` of integral value    | as the `int` of that value, however large (`-0.0` is 0)        |
//! | any other `float`            | `XXH3("ps:float", the 8 bytes of its IEEE 754 double)`; every NaN as 0x7ff8000000000000 |
//! | `str`                        | `XXH3(0, UTF-8)`, lone surrogates encoded like other code points |
//! | `bytes`                      | `XXH3("ps:bytes", the bytes)`                                  |
//! | `None`                       | `XXH3("ps:none.", nothing)`                                    |
//! | `tuple`                      | `XXH3("ps:tuple", the 8 bytes of each element's hash, in order)` |
//!
//! Python's other keys (`pointstamp.keys`) have the form of the key that they equal, and otherwise:
//!
//! | key                          | hash                                                           |
//! |------------------------------|----------------------------------------------------------------|
//! | `Decimal` that no float equals | as in a column                                               |
//! | `Fraction` that no float or decimal equals | `XXH3("ps:fract", 32 bytes or more of the numerator, and of the denominator)` |
//! | `date`                       | as in a column of days                                         |
//! | `datetime`, `time`, `timedelta` | as in a column of microseconds, in UTC                      |
//! | `UUID`                       | as its 16 `bytes`                                              |
//! | `Enum`, frozen dataclass     | as the `tuple` of the class's name and the member's name, or the fields |
//! | `frozenset`                  | `XXH3("ps:fzset", the 8 bytes of each element's hash, in their order)` |
//!
//! Columns hold more:
//!
//! | column                       | hash                                                           |
//! |------------------------------|----------------------------------------------------------------|
//! | decimal of integral value    | as the `int` of that value                                     |
//! | any other decimal            | `XXH3("ps:decim", 32 bytes of the digits, 8 bytes of the scale)`, without trailing zeros |
//! | date, time, timestamp, duration | `XXH3("ps:time.", 8 bytes of the value in the column's unit)` |
//! | interval                     | `XXH3("ps:intvl", the bytes of the value)`                     |
//! | list, struct                 | as the `tuple` of its elements, or of its fields               |
//!
//! Invariant: keys that Python holds equal hash the same (`1 == 1.0 == True`, within tuples too). An integer is not
//! mixed: callers that need mixed bits, rather than a remainder, mix them.

use arrow_buffer::i256;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const FLOAT: u64 = u64::from_le_bytes(*b"ps:float");
const BYTES: u64 = u64::from_le_bytes(*b"ps:bytes");
const NONE: u64 = u64::from_le_bytes(*b"ps:none.");
const TUPLE: u64 = u64::from_le_bytes(*b"ps:tuple");
const DECIMAL: u64 = u64::from_le_bytes(*b"ps:decim");
const TIME: u64 = u64::from_le_bytes(*b"ps:time.");
const INTERVAL: u64 = u64::from_le_bytes(*b"ps:intvl");

/// The hash of `None`, and of a null in a column.
pub fn hash_none() -> u64 {
    xxh3_64_with_seed(&[], NONE)
}

/// The hash of a string, from its UTF-8 bytes.
pub fn hash_utf8(utf8: &[u8]) -> u64 {
    xxh3_64(utf8)
}

/// The hash of a byte string.
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, BYTES)
}

/// The hash of a float: the hash of the equal integer, if there is one.
pub fn hash_float(value: f64) -> u64 {
    if let Some(integer) = integral_modulo_2_64(value) {
        return integer;
    }
    let bits = if value.is_nan() {
        0x7ff8_0000_0000_0000
    } else {
        value.to_bits()
    };
    xxh3_64_with_seed(&bits.to_le_bytes(), FLOAT)
}

/// The hash of bytes under a tag.
pub fn hash_tagged(tag: [u8; 8], bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, u64::from_le_bytes(tag))
}

/// The hash of a tuple, from the hashes of its elements.
///
/// # Errors
///
/// Whatever an element's hash failed with.
pub fn hash_tuple<E>(elements: impl ExactSizeIterator<Item = Result<u64, E>>) -> Result<u64, E> {
    let mut inline = [0_u8; 64];
    let mut boxed;
    let length = elements.len() * 8;
    let bytes = if length <= inline.len() {
        &mut inline[..length]
    } else {
        boxed = vec![0; length];
        &mut boxed[..]
    };
    for (slot, hash) in bytes.chunks_exact_mut(8).zip(elements) {
        slot.copy_from_slice(&hash?.to_le_bytes());
    }
    Ok(xxh3_64_with_seed(bytes, TUPLE))
}

/// The hash of a point in time or a span of it, in the column's unit.
pub(crate) fn hash_time(value: i64) -> u64 {
    xxh3_64_with_seed(&value.to_le_bytes(), TIME)
}

/// The hash of an interval of the calendar.
pub(crate) fn hash_interval(bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, INTERVAL)
}

/// The hash of the decimal `digits * 10^-scale`: the hash of the equal integer, if there is one.
pub(crate) fn hash_decimal(digits: i256, scale: i8) -> u64 {
    let ten = i256::from_i128(10);
    let (mut digits, mut scale) = (digits, scale);
    while scale > 0 && digits != i256::ZERO && digits.wrapping_rem(ten) == i256::ZERO {
        digits = digits.wrapping_div(ten);
        scale -= 1;
    }
    if digits == i256::ZERO {
        return 0;
    }
    if scale > 0 {
        let mut bytes = [0; 40];
        bytes[..32].copy_from_slice(&digits.to_le_bytes());
        bytes[32..].copy_from_slice(&i64::from(scale).to_le_bytes());
        return xxh3_64_with_seed(&bytes, DECIMAL);
    }
    let mut low = [0; 8];
    low.copy_from_slice(&digits.to_le_bytes()[..8]);
    let mut integer = u64::from_le_bytes(low);
    for _ in scale..0 {
        integer = integer.wrapping_mul(10);
    }
    integer
}

/// The value of an integral float modulo 2^64, or `None` when the float is not an integer.
fn integral_modulo_2_64(value: f64) -> Option<u64> {
    if !value.is_finite() || value.fract() != 0.0 {
        return None;
    }
    let bits = value.to_bits();
    let exponent = (bits >> 52) & 0x7ff;
    if exponent < 1023 {
        return Some(0); // an integer below 1 in magnitude
    }
    let significand = (bits & ((1 << 52) - 1)) | (1 << 52);
    // value = significand * 2^(exponent - 1075)
    let magnitude = match exponent {
        ..1075 => significand >> (1075 - exponent),
        1075..1139 => significand << (exponent - 1075), // the carry at the top is a multiple of 2^64
        _ => 0,
    };
    Some(if value < 0.0 {
        magnitude.wrapping_neg()
    } else {
        magnitude
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_hash_by_value_whatever_their_scale() {
        let decimal = |digits: i128, scale| hash_decimal(i256::from_i128(digits), scale);
        assert_eq!(decimal(700, 2), 7);
        assert_eq!(decimal(-700, 2), (-7_i64).cast_unsigned());
        assert_eq!(decimal(7, -2), 700);
        assert_eq!(decimal(0, 5), 0);
        assert_eq!(decimal(150, 2), decimal(15, 1));
        assert_ne!(decimal(15, 1), decimal(15, 2));
        assert_ne!(decimal(15, 1), decimal(-15, 1));
    }

    #[test]
    fn integral_floats_hash_as_integers() {
        assert_eq!(hash_float(-0.0), 0);
        assert_eq!(hash_float(3.0), 3);
        assert_eq!(hash_float(-1.0), u64::MAX);
        assert_eq!(hash_float(18_446_744_073_709_551_616.0), 0);
        assert_ne!(hash_float(0.5), 0);
        assert_eq!(hash_float(f64::NAN), hash_float(-f64::NAN));
    }
}
