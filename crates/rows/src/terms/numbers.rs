//! Numbers as terms: the greatest integer below, followed by the rest.

use std::borrow::Cow;

use super::tag::{END, ESCAPE, FRACTION, NAN, NEG_BIG, NEG_INF, POS_BIG, POS_INF, ZERO};

/// Appends an integer of at most 64 bits.
#[inline]
pub fn put_i64(value: i64, out: &mut Vec<u8>) {
    let magnitude = value.unsigned_abs();
    put_magnitude(value < 0, magnitude, out);
}

fn put_magnitude(negative: bool, magnitude: u64, out: &mut Vec<u8>) {
    let len = 8 - magnitude.leading_zeros() as usize / 8;
    #[allow(clippy::cast_possible_truncation, reason = "at most 8")]
    let size = len as u8;
    let bytes = magnitude.to_be_bytes();
    if negative {
        out.push(ZERO - size);
        out.extend(bytes[8 - len..].iter().map(|byte| !byte));
    } else {
        out.push(ZERO + size);
        out.extend_from_slice(&bytes[8 - len..]);
    }
}

/// An integer whose magnitude has 4 GiB or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Appends an integer from its magnitude, big-endian.
///
/// # Errors
///
/// [`TooLong`] for a magnitude of 4 GiB or more.
pub fn put_big(negative: bool, magnitude: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
    let start = magnitude
        .iter()
        .position(|&byte| byte != 0)
        .unwrap_or(magnitude.len());
    let magnitude = &magnitude[start..];
    if magnitude.len() <= 8 {
        let mut word = [0; 8];
        word[8 - magnitude.len()..].copy_from_slice(magnitude);
        put_magnitude(negative, u64::from_be_bytes(word), out);
        return Ok(());
    }
    let len = u32::try_from(magnitude.len()).map_err(|_| TooLong)?;
    if negative {
        out.push(NEG_BIG);
        out.extend((!len).to_be_bytes());
        out.extend(magnitude.iter().map(|byte| !byte));
    } else {
        out.push(POS_BIG);
        out.extend(len.to_be_bytes());
        out.extend_from_slice(magnitude);
    }
    Ok(())
}

/// Appends an integer of at most 128 bits.
pub(super) fn put_i128(value: i128, out: &mut Vec<u8>) {
    if let Ok(small) = i64::try_from(value) {
        return put_i64(small, out);
    }
    let fits = put_big(value < 0, &value.unsigned_abs().to_be_bytes(), out);
    debug_assert!(fits.is_ok(), "16 bytes");
}

/// Appends a float; returns whether it equals an integer, which is then written instead.
#[allow(clippy::float_cmp, reason = "exact on purpose")]
pub fn put_f64(value: f64, out: &mut Vec<u8>) -> bool {
    if value.is_nan() {
        out.push(NAN);
        return false;
    }
    if value.is_infinite() {
        out.push(if value < 0.0 { NEG_INF } else { POS_INF });
        return false;
    }
    let whole = value.trunc();
    if whole != value {
        // Below 2^53, as it has a fraction.
        #[allow(clippy::cast_possible_truncation, reason = "it is in range")]
        put_i64(value.floor() as i64, out);
        put_fraction(value < 0.0, (value - whole).abs(), out);
        return false;
    }
    if value.abs() < 9.2e18 {
        #[allow(clippy::cast_possible_truncation, reason = "it is in range")]
        put_i64(value as i64, out);
        return true;
    }
    let bits = value.abs().to_bits();
    let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
    let shift = (bits >> 52) as usize - 1075;
    let mut magnitude = (mantissa << (shift % 8)).to_be_bytes().to_vec();
    magnitude.resize(8 + shift / 8, 0);
    let fits = put_big(value < 0.0, &magnitude, out);
    debug_assert!(fits.is_ok(), "at most 128 bytes");
    true
}

/// Appends the rest of a number's magnitude beyond an integer: from 0 to 1, after the integer below the
/// number.
pub fn put_fraction(negative: bool, fraction: f64, out: &mut Vec<u8>) {
    let bits = fraction.to_bits();
    out.push(FRACTION);
    out.extend((if negative { !bits } else { bits }).to_be_bytes());
}

/// Appends a ratio, in characters that sort as ratios do and, behind a space, as text. Neither holds a 00.
pub fn put_ratio(text: &str, out: &mut Vec<u8>) {
    out.push(FRACTION);
    out.extend_from_slice(text.as_bytes());
    out.push(END);
}

/// A number that has been read.
pub enum Number<'a> {
    /// An integer of 64 bits.
    Int(i64),
    /// Whether it is negative, and the magnitude, big-endian.
    Big(bool, Vec<u8>),
    /// A float that no integer equals.
    Float(f64),
    /// A ratio that no float equals, as text.
    Ratio(&'a str),
}

/// The number at the start of `bytes`, and its length. Nothing where the bytes are not a number's.
pub fn take_number(bytes: &[u8]) -> Option<(Number<'_>, usize)> {
    let tag = *bytes.first()?;
    match tag {
        NEG_INF => return Some((Number::Float(f64::NEG_INFINITY), 1)),
        POS_INF => return Some((Number::Float(f64::INFINITY), 1)),
        NAN => return Some((Number::Float(f64::NAN), 1)),
        NEG_BIG | POS_BIG => {
            let negative = tag == NEG_BIG;
            let len = u32::from_be_bytes(bytes.get(1..5)?.try_into().ok()?);
            let len = (if negative { !len } else { len }) as usize;
            let end = 5_usize.checked_add(len)?;
            let magnitude = bytes.get(5..end)?;
            if bytes.get(end) == Some(&FRACTION) {
                // No float is so large and has a fraction.
                return ratio(bytes, end + 9);
            }
            let magnitude = magnitude
                .iter()
                .map(|&byte| if negative { !byte } else { byte })
                .collect();
            return Some((Number::Big(negative, magnitude), end));
        }
        _ => {}
    }
    let (negative, len) = if tag < ZERO {
        (true, (ZERO - tag) as usize)
    } else {
        (false, (tag - ZERO) as usize)
    };
    let mut word = [0; 8];
    word[8usize.checked_sub(len)?..].copy_from_slice(bytes.get(1..=len)?);
    if negative {
        word[8 - len..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    let magnitude = u64::from_be_bytes(word);
    let end = 1 + len;
    if bytes.get(end) != Some(&FRACTION) {
        return Some((small_or_big(negative, magnitude), end));
    }
    let bits = u64::from_be_bytes(bytes.get(end + 1..end + 9)?.try_into().ok()?);
    let end = end + 9;
    if bytes.get(end) == Some(&FRACTION) {
        return ratio(bytes, end);
    }
    #[allow(
        clippy::cast_precision_loss,
        reason = "an integer below a fraction is below 2^53"
    )]
    let value = if negative {
        // The integer below a negative number is one further from zero than its whole part.
        -(magnitude.checked_sub(1)? as f64 + f64::from_bits(!bits))
    } else {
        magnitude as f64 + f64::from_bits(bits)
    };
    Some((Number::Float(value), end))
}

/// The ratio whose text follows the mark at `mark`.
fn ratio(bytes: &[u8], mark: usize) -> Option<(Number<'_>, usize)> {
    if bytes.get(mark) != Some(&FRACTION) {
        return None;
    }
    let rest = bytes.get(mark + 1..)?;
    let len = rest.iter().position(|&byte| byte == END)?;
    let text = std::str::from_utf8(&rest[..len]).ok()?;
    let (_, ratio) = text.split_once(' ')?;
    Some((Number::Ratio(ratio), mark + len + 2))
}

fn small_or_big<'a>(negative: bool, magnitude: u64) -> Number<'a> {
    let signed = i64::try_from(i128::from(magnitude) * if negative { -1 } else { 1 });
    signed.map_or_else(
        |_| Number::Big(negative, magnitude.to_be_bytes().to_vec()),
        Number::Int,
    )
}

/// The integer of a magnitude, big-endian, where 128 bits hold it.
pub(super) fn wide(negative: bool, magnitude: &[u8]) -> Option<i128> {
    let start = magnitude.iter().position(|byte| *byte != 0);
    let digits = &magnitude[start.unwrap_or(magnitude.len())..];
    let mut bytes = [0; 16];
    bytes[16_usize.checked_sub(digits.len())?..].copy_from_slice(digits);
    let size = u128::from_be_bytes(bytes);
    if negative {
        0_i128.checked_sub_unsigned(size)
    } else {
        i128::try_from(size).ok()
    }
}

/// The float of a magnitude that was made of one.
pub(super) fn real(negative: bool, magnitude: &[u8]) -> f64 {
    let float = (magnitude.iter()).fold(0.0, |sum, byte| sum * 256.0 + f64::from(*byte));
    if negative { -float } else { float }
}

/// Appends text or bytes and their end.
pub fn put_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.contains(&END) {
        for &byte in bytes {
            out.push(byte);
            if byte == END {
                out.push(ESCAPE);
            }
        }
    } else {
        out.extend_from_slice(bytes);
    }
    out.push(END);
}

/// The end of text or bytes that begin at the start of `bytes`, including the end's mark, and whether they
/// hold escapes.
pub fn escaped_len(bytes: &[u8]) -> Option<(usize, bool)> {
    let (mut at, mut escapes) = (0, false);
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == END)?;
        if bytes.get(at + 1) != Some(&ESCAPE) {
            return Some((at + 1, escapes));
        }
        escapes = true;
        at += 2;
    }
}

/// Text or bytes as they were before they were escaped.
pub fn unescaped(bytes: &[u8], escapes: bool) -> Cow<'_, [u8]> {
    if !escapes {
        return bytes.into();
    }
    let mut plain = Vec::with_capacity(bytes.len());
    let mut after_end = false;
    for &byte in bytes {
        if !(after_end && byte == ESCAPE) {
            plain.push(byte);
        }
        after_end = byte == END;
    }
    plain.into()
}
