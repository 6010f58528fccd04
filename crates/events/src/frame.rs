//! Frames: pieces of known length, under two checksums.
//!
//! ```text
//! u32 length of the body in units of 16 bytes | u8 kind | 3 zeros | u32 CRC-32C of the body | u32 CRC-32C of the 12 bytes before
//! the body, with zeros up to a multiple of 16
//! ```
//!
//! All numbers are little-endian. The header has a checksum of its own, so that a damaged length is detected before a
//! byte of the body is waited for; and with it, a file that ends before its frame does was truncated, and not
//! damaged.

use bytes::Bytes;
use crc32c::{crc32c, crc32c_append};

/// The first bytes of a capture.
pub const MAGIC: [u8; 16] = *b"POINTSTAMPEVENTS";

/// The checksum of bytes that lie in pieces.
pub fn checksum<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    let add = |sum, piece: &[u8]| crc32c_append(sum, piece);
    pieces.into_iter().fold(0, add)
}

/// Everything begins at a multiple of this.
pub const UNIT: usize = 16;

/// The length of a header.
pub const HEADER: usize = 16;

/// A body is at most this long: 1 GiB.
pub const MOST: usize = 1 << 30;

/// Damage of the bytes, with its offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("damaged at byte {offset}: {what}")]
pub struct Damage {
    /// The offset of the frame, from the beginning of the capture.
    pub offset: u64,
    /// The damage.
    pub what: String,
}

/// A body that is longer than [`MOST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an event of {0} bytes is longer than a capture takes, which is {MOST}: send smaller batches"
)]
pub struct TooLong(pub usize);

/// Returns a frame as bytes: its header, and the body, with zeros up to the next unit.
///
/// # Errors
///
/// [`TooLong`].
pub fn frame(kind: u8, body: Vec<Bytes>) -> Result<Vec<Bytes>, TooLong> {
    let len: usize = body.iter().map(Bytes::len).sum();
    if len > MOST {
        return Err(TooLong(len));
    }
    let padding = len.next_multiple_of(UNIT) - len;
    let zeros = Bytes::from_static(&[0; UNIT]).slice(..padding);
    let mut sum = 0;
    for piece in body.iter().chain([&zeros]) {
        sum = crc32c_append(sum, piece);
    }
    let units = u32::try_from((len + padding) / UNIT).map_err(|_| TooLong(len))?;
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(&units.to_le_bytes());
    header.extend_from_slice(&[kind, 0, 0, 0]);
    header.extend_from_slice(&sum.to_le_bytes());
    let own = crc32c(&header);
    header.extend_from_slice(&own.to_le_bytes());
    let mut pieces = Vec::with_capacity(body.len() + 2);
    pieces.push(Bytes::from(header));
    pieces.extend(body);
    if padding > 0 {
        pieces.push(zeros);
    }
    Ok(pieces)
}

/// The fields of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: u8,
    pub(crate) len: usize,
    pub(crate) sum: u32,
}

impl Header {
    /// Reads a header.
    pub(crate) fn read(bytes: [u8; HEADER]) -> Result<Header, String> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if word(12) != crc32c(&bytes[..12]) {
            return Err("the header of an event does not match its checksum".to_owned());
        }
        let len = (word(0) as usize).saturating_mul(UNIT);
        if len > MOST || bytes[5..8] != [0; 3] {
            return Err("the header of an event says what no event has".to_owned());
        }
        Ok(Header {
            kind: bytes[4],
            len,
            sum: word(8),
        })
    }

    /// Whether this is the body.
    pub(crate) fn fits(&self, body: &[u8]) -> bool {
        body.len() == self.len && crc32c(body) == self.sum
    }
}
