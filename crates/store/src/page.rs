//! Pages: the pieces in which sections of packs, and runs on disk, are written.
//!
//! ```text
//! u32 stored length | u32 length | u64 first | u8 encoding: 0 plain, 1 LZ4 | 3 zeros | u32 CRC-32C of the 20 bytes before and of the stored bytes
//! the stored bytes
//! ```
//!
//! All numbers are little-endian. `first` is the position of the page in its object: in a section the offset of its
//! first byte, in a run the number of its first row. So a page in another's place is noticed. A page is compressed
//! where that saves a sixteenth of it. Reading a page allocates [`MOST`] bytes at most.

use bytes::Bytes;
use crc32c::{crc32c, crc32c_append};
use lz4_flex::block;

/// The length of the header of a page.
pub const HEADER: usize = 24;
/// The length of the pages that are written, before compression.
pub const USUAL: usize = 64 << 10;
/// The greatest length of a page, before compression.
pub const MOST: usize = 1 << 20;

/// Appends a page.
///
/// # Panics
///
/// If the page is empty or longer than [`MOST`].
pub fn seal(bytes: &[u8], first: u64, to: &mut Vec<u8>) {
    assert!(
        (1..=MOST).contains(&bytes.len()),
        "a page of {} bytes",
        bytes.len()
    );
    let start = to.len();
    to.resize(
        start + HEADER + block::get_maximum_output_size(bytes.len()),
        0,
    );
    let compressed = block::compress_into(bytes, &mut to[start + HEADER..]);
    let limit = bytes.len() - bytes.len() / 16;
    let (stored, encoding) = match compressed {
        Ok(stored) if stored < limit => (stored, 1),
        _ => {
            to[start + HEADER..][..bytes.len()].copy_from_slice(bytes);
            (bytes.len(), 0)
        }
    };
    to.truncate(start + HEADER + stored);
    let mut header = [0; HEADER];
    header[0..4].copy_from_slice(&small(stored).to_le_bytes());
    header[4..8].copy_from_slice(&small(bytes.len()).to_le_bytes());
    header[8..16].copy_from_slice(&first.to_le_bytes());
    header[16] = encoding;
    let sum = crc32c_append(crc32c(&header[..20]), &to[start + HEADER..]);
    header[20..].copy_from_slice(&sum.to_le_bytes());
    to[start..][..HEADER].copy_from_slice(&header);
}

fn small(len: usize) -> u32 {
    u32::try_from(len).expect("at most MOST")
}

/// The header of a page. The checksum covers the body, too, so the fields are checked by [`Header::open`] only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The length of the stored bytes behind the header.
    pub stored: usize,
    /// The length of the page.
    pub len: usize,
    /// The position of the page.
    pub first: u64,
    compressed: bool,
    sum: u32,
    seed: u32,
}

impl Header {
    /// Reads a header. Its lengths are within the bounds of a page.
    ///
    /// # Errors
    ///
    /// A description of the error.
    pub fn read(bytes: &[u8; HEADER]) -> Result<Header, String> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let (stored, len) = (word(0) as usize, word(4) as usize);
        let compressed = bytes[16] == 1;
        let stored_so = if compressed {
            stored < len
        } else {
            stored == len
        };
        if !(1..=MOST).contains(&len) || !stored_so || bytes[16] > 1 || bytes[17..20] != [0; 3] {
            return Err("this is no header of a page".to_owned());
        }
        Ok(Header {
            stored,
            len,
            first: u64::from(word(8)) | u64::from(word(12)) << 32,
            compressed,
            sum: word(20),
            seed: crc32c(&bytes[..20]),
        })
    }

    /// Returns the page with these stored bytes.
    ///
    /// # Errors
    ///
    /// A description of the error.
    pub fn open(&self, stored: Bytes) -> Result<Bytes, String> {
        if stored.len() != self.stored || crc32c_append(self.seed, &stored) != self.sum {
            return Err("a page does not match its checksum".to_owned());
        }
        if !self.compressed {
            return Ok(stored);
        }
        let mut page = vec![0; self.len];
        match block::decompress_into(&stored, &mut page) {
            Ok(len) if len == self.len => Ok(page.into()),
            _ => Err("a page cannot be decompressed".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pointstamp_testkit::cases;
    use proptest::prelude::*;

    fn open(bytes: &[u8]) -> Result<(Header, Bytes), String> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>().ok_or("cut")?;
        let header = Header::read(header)?;
        let page = header.open(Bytes::copy_from_slice(rest))?;
        Ok((header, page))
    }

    fn pages() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 1..200),
            (any::<u8>(), 1..5000_usize).prop_map(|(byte, len)| vec![byte; len]),
        ]
    }

    proptest! {
        #![proptest_config(cases(200))]

        #[test]
        fn a_page_comes_back(bytes in pages(), first in any::<u64>()) {
            let mut sealed = Vec::new();
            seal(&bytes, first, &mut sealed);
            let (header, page) = open(&sealed).unwrap();
            prop_assert_eq!(page, bytes);
            prop_assert_eq!(header.first, first);
        }

        #[test]
        fn a_changed_bit_is_noticed(bytes in pages(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let mut sealed = Vec::new();
            seal(&bytes, 7, &mut sealed);
            let at = at.index(sealed.len());
            sealed[at] ^= 1 << bit;
            prop_assert!(open(&sealed).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = open(&bytes);
            // With a right checksum, as damage is not:
            if let Some((header, body)) = bytes.split_first_chunk::<HEADER>() {
                let mut header = *header;
                header[0..4].copy_from_slice(&small(body.len()).to_le_bytes());
                header[6..8].copy_from_slice(&[0; 2]);
                header[16..20].copy_from_slice(&[1, 0, 0, 0]);
                let sum = crc32c_append(crc32c(&header[..20]), body);
                header[20..].copy_from_slice(&sum.to_le_bytes());
                if let Ok((header, page)) = open(&[&header, body].concat()) {
                    prop_assert_eq!(page.len(), header.len);
                }
            }
        }
    }

    #[test]
    fn only_what_shrinks_is_compressed() {
        let (mut plain, mut compressed) = (Vec::new(), Vec::new());
        let random: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..))
            .take(USUAL)
            .collect();
        seal(&random, 0, &mut plain);
        seal(&vec![0; USUAL], 0, &mut compressed);
        assert_eq!(plain.len(), HEADER + USUAL);
        assert!(compressed.len() < USUAL / 100);
    }
}
