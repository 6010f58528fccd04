//! Writing a pack, in the memory of a page.

use std::collections::BTreeMap;
use std::io;
use std::mem;

use crc32c::{crc32c, crc32c_append};
use serde::{Deserialize, Serialize};

use super::directory::{Contents, Directory, Footer, Label, Section, SectionRef};
use super::reader::PackReader;
use crate::error::Error;
use crate::names::Lineage;
use crate::page;
use crate::store::{Store, Upload};

/// A pack that is being written. Dropped before it is finished, it leaves nothing.
pub struct PackWriter {
    upload: Box<dyn Upload>,
    worker: u32,
    directory: Directory,
    position: u64,
    references: BTreeMap<String, BTreeMap<u32, u64>>,
    /// The pages that are not passed on yet.
    sealed: Vec<u8>,
    /// Whether a section was begun and not finished.
    amid: bool,
}

/// The leader's information about a pack, for a manifest. It crosses processes by its serde encoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packed {
    /// The name of the pack.
    pub name: String,
    /// The worker that wrote it.
    pub worker: u32,
    /// The length in bytes.
    pub size: u64,
    /// The length of its sections, in bytes.
    pub stored: u64,
    /// The CRC-32C of the directory.
    pub sum: u32,
    /// The sections that it has or refers to: for each pack, indexes and stored lengths.
    pub references: BTreeMap<String, BTreeMap<u32, u64>>,
}

impl PackWriter {
    pub(crate) fn new(
        store: &dyn Store,
        name: String,
        lineage: Lineage,
        worker: u32,
    ) -> Result<Self, Error> {
        Ok(PackWriter {
            upload: store.upload(&name)?,
            worker,
            directory: Directory {
                name,
                lineage,
                sections: Vec::new(),
            },
            position: 0,
            references: BTreeMap::new(),
            sealed: Vec::new(),
            amid: false,
        })
    }

    /// Returns the number of bytes that were written.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Begins a section, which must be finished before anything else is written.
    pub fn section(&mut self, label: Label) -> SectionWriter<'_> {
        self.amid = true;
        SectionWriter {
            pack: self,
            label,
            page: Vec::new(),
            len: 0,
            stored: 0,
            sum: 0,
        }
    }

    /// Writes a section of these bytes.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn put(&mut self, label: Label, bytes: &[u8]) -> Result<SectionRef, Error> {
        let mut section = self.section(label);
        section.append(bytes)?;
        section.finish()
    }

    /// Adds a section that an earlier pack has, by reference.
    pub fn refer(&mut self, label: Label, section: &SectionRef) {
        self.count(section);
        self.directory.sections.push(Section {
            label,
            contents: Contents::Referred(section.clone()),
        });
    }

    /// Writes a section that an earlier pack has once more, as it is stored there. Every page is checked.
    ///
    /// # Errors
    ///
    /// Errors of the store and of reading.
    pub fn copy(
        &mut self,
        label: Label,
        from: &PackReader,
        section: &SectionRef,
    ) -> Result<SectionRef, Error> {
        self.amid = true;
        let mut pages = from.pages(section)?;
        while let Some(page) = pages.next_stored() {
            let (header, stored) = page?;
            self.write(&header)?;
            self.write(&stored)?;
        }
        self.add(label, section.stored, section.len, section.sum)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.upload.write(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn count(&mut self, section: &SectionRef) {
        let of = self.references.entry(section.pack.clone()).or_default();
        of.insert(section.index, section.stored);
    }

    /// Adds the section whose bytes were written last.
    fn add(&mut self, label: Label, stored: u64, len: u64, sum: u32) -> Result<SectionRef, Error> {
        let index = u32::try_from(self.directory.sections.len())
            .map_err(|_| Error::Misuse("a pack has at most 2**32 sections".to_owned()))?;
        let section = SectionRef {
            pack: self.directory.name.clone(),
            index,
            stored,
            len,
            sum,
        };
        self.count(&section);
        self.directory.sections.push(Section {
            label,
            contents: Contents::Stored {
                offset: self.position - stored,
                stored,
                len,
                sum,
            },
        });
        self.amid = false;
        Ok(section)
    }

    /// Writes directory and footer, and makes the pack appear, durably.
    ///
    /// # Errors
    ///
    /// Errors of the store; [`Error::Misuse`] where a section was begun and not finished.
    pub fn finish(mut self) -> Result<Packed, Error> {
        if self.amid {
            let what = format!(
                "{}: a section was begun and not finished",
                self.directory.name
            );
            return Err(Error::Misuse(what));
        }
        let directory = postcard::to_stdvec(&self.directory)
            .map_err(|error| Error::Misuse(format!("a directory cannot be encoded: {error}")))?;
        let footer = Footer {
            offset: self.position,
            len: directory.len() as u64,
            sum: crc32c(&directory),
        };
        self.write(&directory)?;
        self.write(&footer.write())?;
        self.upload.finish()?;
        self.references
            .entry(self.directory.name.clone())
            .or_default();
        Ok(Packed {
            name: self.directory.name,
            worker: self.worker,
            size: self.position,
            stored: footer.offset,
            sum: footer.sum,
            references: self.references,
        })
    }
}

/// A section that is being written. Dropped before it is finished, it spoils the pack.
pub struct SectionWriter<'a> {
    pack: &'a mut PackWriter,
    label: Label,
    page: Vec<u8>,
    len: u64,
    stored: u64,
    sum: u32,
}

impl SectionWriter<'_> {
    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn append(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let room = page::USUAL - self.page.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.page.extend_from_slice(now);
            bytes = later;
            if self.page.len() == page::USUAL {
                self.seal()?;
            }
        }
        Ok(())
    }

    fn seal(&mut self) -> Result<(), Error> {
        let mut sealed = mem::take(&mut self.pack.sealed);
        sealed.clear();
        page::seal(&self.page, self.len, &mut sealed);
        self.len += self.page.len() as u64;
        self.stored += sealed.len() as u64;
        self.sum = crc32c_append(self.sum, &sealed);
        self.page.clear();
        let written = self.pack.write(&sealed);
        self.pack.sealed = sealed;
        written
    }

    /// Ends the section.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn finish(mut self) -> Result<SectionRef, Error> {
        if !self.page.is_empty() {
            self.seal()?;
        }
        self.pack.add(self.label, self.stored, self.len, self.sum)
    }
}

impl io::Write for SectionWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
