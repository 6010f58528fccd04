//! The directory and the footer of a pack.

use std::ops::Range;

use crc32c::crc32c;
use serde::{Deserialize, Serialize};

use super::VERSION;
use crate::error::Error;
use crate::names::Lineage;

/// The identity of a section for operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The identity of the operator.
    pub operator: String,
    /// The part of the operator: its state, the queue of an input, an outbox.
    pub part: String,
    /// The name of the encoding of the bytes.
    pub codec: String,
    /// The version of this encoding.
    pub version: u32,
    /// The key groups that the section holds; all, where it is `None`.
    pub groups: Option<Range<u16>>,
}

/// A section that is stored in a pack, as others refer to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SectionRef {
    /// The name of the pack.
    pub pack: String,
    /// The index of the section in the pack's directory.
    pub index: u32,
    /// The length in the pack, in bytes.
    pub stored: u64,
    /// The length of the contents, in bytes.
    pub len: u64,
    /// The CRC-32C of the stored bytes.
    pub sum: u32,
}

/// A section of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The label.
    pub label: Label,
    /// The position.
    pub contents: Contents,
}

/// The position of the bytes of a section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contents {
    /// In this pack.
    Stored {
        /// The offset in the pack.
        offset: u64,
        /// The length in the pack.
        stored: u64,
        /// The length of the contents.
        len: u64,
        /// The CRC-32C of the stored bytes.
        sum: u32,
    },
    /// In an earlier pack.
    Referred(SectionRef),
}

/// The contents of a pack's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Directory {
    pub(super) name: String,
    pub(super) lineage: Lineage,
    pub(super) sections: Vec<Section>,
}

pub(super) const MAGIC: &[u8; 8] = b"PSTMPACK";
pub(super) const FOOTER: usize = 36;

/// The end of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) sum: u32,
}

impl Footer {
    pub(super) fn write(&self) -> [u8; FOOTER] {
        let mut bytes = [0; FOOTER];
        bytes[0..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.sum.to_le_bytes());
        bytes[20..24].copy_from_slice(&VERSION.to_le_bytes());
        bytes[24..32].copy_from_slice(MAGIC);
        let sum = crc32c(&bytes[..32]);
        bytes[32..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads the footer of a pack of `size` bytes, and checks that its offsets are within the pack.
    pub(super) fn read(pack: &str, bytes: &[u8; FOOTER], size: u64) -> Result<Footer, Error> {
        let at = size - FOOTER as u64;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        if &bytes[24..32] != MAGIC {
            return Err(Error::damaged(pack, at, "it does not end as a pack does"));
        }
        if word(32) != crc32c(&bytes[..32]) {
            return Err(Error::damaged(
                pack,
                at,
                "the footer does not match its checksum",
            ));
        }
        if word(20) != VERSION {
            return Err(Error::Newer {
                object: pack.to_owned(),
                version: word(20),
                known: VERSION,
            });
        }
        let footer = Footer {
            offset: long(0),
            len: long(8),
            sum: word(16),
        };
        if footer.offset.checked_add(footer.len) != Some(at) {
            return Err(Error::damaged(
                pack,
                at,
                "the directory and the footer do not meet",
            ));
        }
        Ok(footer)
    }
}

impl Directory {
    /// Reads a directory that matches its checksum, and checks that it describes all bytes before it.
    pub(super) fn read(pack: &str, bytes: &[u8], offset: u64) -> Result<Directory, Error> {
        let damaged = |what: &str| Error::damaged(pack, offset, what);
        let (directory, rest) = postcard::take_from_bytes::<Directory>(bytes)
            .map_err(|_| damaged("the directory cannot be read"))?;
        if !rest.is_empty() {
            return Err(damaged("bytes follow the directory"));
        }
        let mut end = 0_u64;
        for section in &directory.sections {
            if let Contents::Stored { offset, stored, .. } = section.contents {
                if offset != end {
                    return Err(damaged("its sections do not lie one behind the other"));
                }
                end = end
                    .checked_add(stored)
                    .ok_or_else(|| damaged("a section is too long"))?;
            }
        }
        if end != offset {
            return Err(damaged(
                "its sections do not end where the directory begins",
            ));
        }
        if directory.name != pack {
            let what = format!("this is {}", directory.name);
            return Err(damaged(&what));
        }
        Ok(directory)
    }
}
