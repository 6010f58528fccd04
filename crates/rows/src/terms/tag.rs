//! The first byte of each part of a term.

/// The end of a tuple, of a set, or of text and bytes.
pub const END: u8 = 0x00;
/// `None`.
pub const NONE: u8 = 0x02;
/// Negative infinity: the least number.
pub const NEG_INF: u8 = 0x0f;
/// An integer below the range of 64 bits.
pub const NEG_BIG: u8 = 0x10;
/// Zero. An integer of `n` bytes has the tag `ZERO + n`, a negative one `ZERO - n`.
pub const ZERO: u8 = 0x19;
/// An integer above the range of 64 bits.
pub const POS_BIG: u8 = 0x22;
/// Infinity.
pub const POS_INF: u8 = 0x23;
/// Not a number: the greatest number.
pub const NAN: u8 = 0x24;
/// Text.
pub const STR: u8 = 0x30;
/// Bytes.
pub const BYTES: u8 = 0x31;
/// A tuple.
pub const TUPLE: u8 = 0x32;
/// A set, whose elements are in the order of their terms.
pub const FROZENSET: u8 = 0x33;
/// The first tag of the types that are taken apart into another term.
pub const FIRST_TYPE: u8 = 0x40;
/// A value that is kept as its pickle. The order of the bytes is not the order of the values.
pub const PICKLED: u8 = 0x60;
/// The mark between the integer below a number and its fraction.
pub const FRACTION: u8 = 0xfe;
/// The byte behind a 00 inside text.
pub const ESCAPE: u8 = 0xff;
