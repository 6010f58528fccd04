//! Reading a pack: its directory, then the sections that are wanted.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use crc32c::{crc32c, crc32c_append};

use super::READ;
use super::directory::{Contents, Directory, FOOTER, Footer, Section, SectionRef};
use crate::error::{Error, StoreError};
use crate::names::Lineage;
use crate::page::{self, Header};
use crate::store::Store;

/// A pack whose directory was read. Clones share it.
#[derive(Debug, Clone)]
pub struct PackReader {
    store: Arc<dyn Store>,
    directory: Arc<Directory>,
    sum: u32,
}

/// Returns an error of reading at an offset: a missing object is named by `by`, and a truncated one is
/// damaged.
pub(crate) fn failed(error: StoreError, by: &str, at: u64) -> Error {
    if error.is_missing() {
        return Error::Missing {
            object: error.object,
            by: by.to_owned(),
        };
    }
    if error.is_cut() {
        return Error::damaged(error.object, at, error.source.to_string());
    }
    error.into()
}

impl PackReader {
    /// Reads the directory of a pack of `size` bytes, which `by` names.
    pub(crate) fn open(
        store: Arc<dyn Store>,
        name: &str,
        size: u64,
        lineage: Lineage,
        by: &str,
    ) -> Result<Self, Error> {
        let tail_len = size.min(READ);
        if tail_len < FOOTER as u64 {
            return Err(Error::damaged(name, size, "it is shorter than a pack"));
        }
        let read = |range: Range<u64>| {
            let at = range.start;
            store
                .read(name, range)
                .map_err(|error| failed(error, by, at))
        };
        let tail = read(size - tail_len..size)?;
        let footer = tail
            .last_chunk::<FOOTER>()
            .ok_or_else(|| Error::damaged(name, size, "it is cut"))?;
        let footer = Footer::read(name, footer, size)?;
        let end = size - FOOTER as u64;
        let bytes = if footer.len <= tail_len - FOOTER as u64 {
            let len = usize::try_from(footer.len).expect("at most what was read");
            tail.slice(tail.len() - FOOTER - len..tail.len() - FOOTER)
        } else {
            read(footer.offset..end)?
        };
        if crc32c(&bytes) != footer.sum {
            let what = "the directory does not match its checksum";
            return Err(Error::damaged(name, footer.offset, what));
        }
        let directory = Directory::read(name, &bytes, footer.offset)?;
        if directory.lineage != lineage {
            return Err(Error::Lineage {
                object: name.to_owned(),
                found: directory.lineage,
                expected: lineage,
            });
        }
        Ok(PackReader {
            store,
            directory: Arc::new(directory),
            sum: footer.sum,
        })
    }

    /// Returns the name of the pack.
    pub fn name(&self) -> &str {
        &self.directory.name
    }

    /// Returns the CRC-32C of the directory.
    pub fn sum(&self) -> u32 {
        self.sum
    }

    /// Returns the sections that the pack has or refers to.
    pub fn sections(&self) -> &[Section] {
        &self.directory.sections
    }

    /// Returns the stored section of an index, as others refer to it.
    pub fn stored(&self, index: u32) -> Option<SectionRef> {
        let section = self.directory.sections.get(index as usize)?;
        match section.contents {
            Contents::Stored {
                stored, len, sum, ..
            } => Some(SectionRef {
                pack: self.directory.name.clone(),
                index,
                stored,
                len,
                sum,
            }),
            Contents::Referred(_) => None,
        }
    }

    /// Returns the pages of a section that is stored in this pack.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] where the pack has no such section.
    pub fn pages(&self, section: &SectionRef) -> Result<Pages, Error> {
        let stored = self.stored(section.index);
        let found = self.directory.sections.get(section.index as usize);
        let (
            Some(stored),
            Some(Section {
                contents: Contents::Stored { offset, .. },
                ..
            }),
        ) = (stored, found)
        else {
            let what = format!("it has no section {}, which is referred to", section.index);
            return Err(Error::damaged(self.name(), 0, what));
        };
        if stored != *section {
            let what = format!(
                "section {} is not the one that is referred to",
                section.index
            );
            return Err(Error::damaged(self.name(), *offset, what));
        }
        Ok(Pages {
            pack: self.clone(),
            start: *offset,
            position: *offset,
            end: *offset + stored.stored,
            fetched: *offset,
            buffer: Bytes::new(),
            len: 0,
            sum: 0,
            section: stored,
            ended: false,
        })
    }

    /// Reads a section that is stored in this pack.
    ///
    /// # Errors
    ///
    /// Errors of the store, and [`Error::Damaged`].
    pub fn read(&self, section: &SectionRef) -> Result<Bytes, Error> {
        let mut pages = self.pages(section)?;
        let Some(first) = pages.next().transpose()? else {
            return Ok(Bytes::new());
        };
        let Some(second) = pages.next().transpose()? else {
            return Ok(first);
        };
        // Grows with the bytes that have arrived, and not with the lengths in the directory.
        let mut whole = BytesMut::from(&first[..]);
        whole.extend_from_slice(&second);
        for page in pages {
            whole.extend_from_slice(&page?);
        }
        Ok(whole.freeze())
    }
}

/// The pages of a section, in order. After the last one, the checksum of the section is compared.
#[derive(Debug)]
pub struct Pages {
    pack: PackReader,
    start: u64,
    position: u64,
    end: u64,
    /// The offset behind the buffer.
    fetched: u64,
    buffer: Bytes,
    len: u64,
    sum: u32,
    section: SectionRef,
    ended: bool,
}

impl Pages {
    fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(self.pack.name(), self.position, what)
    }

    /// Fetches until the buffer has at least `len` bytes.
    fn fetch(&mut self, len: usize) -> Result<(), Error> {
        if self.buffer.len() >= len {
            return Ok(());
        }
        let lacking = (len - self.buffer.len()) as u64;
        if lacking > self.end - self.fetched {
            return Err(self.damaged("a page ends behind its section"));
        }
        // The little that is left of the buffer is read again: that is cheaper than a copy of what comes.
        let from = self.fetched - self.buffer.len() as u64;
        let until = self.end.min(from + (len as u64).max(READ));
        let read = self.pack.store.read(self.pack.name(), from..until);
        self.buffer = read.map_err(|error| failed(error, "a manifest", from))?;
        self.fetched = until;
        Ok(())
    }

    /// Returns the header and the stored bytes of the next page, once they are checked.
    pub(super) fn next_stored(&mut self) -> Option<Result<(Bytes, Bytes), Error>> {
        self.step()
            .map(|step| step.map(|(header, stored, _)| (header, stored)))
    }

    fn step(&mut self) -> Option<Result<(Bytes, Bytes, Bytes), Error>> {
        if self.ended {
            return None;
        }
        let step = self.try_step();
        self.ended = !matches!(step, Ok(Some(_)));
        step.transpose()
    }

    fn try_step(&mut self) -> Result<Option<(Bytes, Bytes, Bytes)>, Error> {
        if self.position == self.end {
            if self.sum != self.section.sum || self.len != self.section.len {
                self.position = self.start;
                return Err(self.damaged("a section does not match its checksum"));
            }
            return Ok(None);
        }
        self.fetch(page::HEADER)?;
        let bytes = self.buffer.slice(..page::HEADER);
        let header: &[u8; page::HEADER] = bytes.first_chunk().expect("a header");
        let header = Header::read(header).map_err(|what| self.damaged(what))?;
        self.fetch(page::HEADER + header.stored)?;
        self.buffer.advance(page::HEADER);
        let stored = self.buffer.split_to(header.stored);
        let page = header
            .open(stored.clone())
            .map_err(|what| self.damaged(what))?;
        if header.first != self.len {
            return Err(self.damaged("a page lies in another's place"));
        }
        self.sum = crc32c_append(crc32c_append(self.sum, &bytes), &stored);
        self.len += page.len() as u64;
        self.position += (page::HEADER + stored.len()) as u64;
        Ok(Some((bytes, stored, page)))
    }
}

impl Iterator for Pages {
    type Item = Result<Bytes, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().map(|step| step.map(|(_, _, page)| page))
    }
}
