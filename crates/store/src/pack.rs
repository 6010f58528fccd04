//! Packs: the file that one worker writes for one checkpoint.
//!
//! ```text
//! pack       sections | directory | footer
//! section    pages: those of each section lie together, in order
//! directory  postcard of `Directory`: name, lineage, and the sections with their places
//! footer     u64 offset of the directory | u64 its length | u32 its CRC-32C | u32 version | "PSTMPACK" | u32 CRC-32C of the 32 bytes before
//! ```
//!
//! Every byte is under a checksum, and there are no gaps. A section of the directory may be in an earlier pack:
//! unchanged sections are referred to. A reference always leads to a section that is stored, never to another
//! reference. The manifest has the length of the pack and the checksum of its directory, so that another pack in its
//! place is noticed.
//!
//! Writing takes the memory of a page; reading, that of one section or, by pages, of one [`READ`].

mod directory;
mod reader;
mod writer;

pub use directory::{Contents, Label, Section, SectionRef};
pub use reader::{PackReader, Pages};
pub use writer::{PackWriter, Packed, SectionWriter};

/// The version of the format.
pub const VERSION: u32 = 1;

/// The number of bytes that are read at once, at least where there are as many.
pub const READ: u64 = 1 << 20;
