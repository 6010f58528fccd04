//! A file of events that is being read, and the detection of another file in its place.
//!
//! A capture may be rewritten under the name, in the same file or in another one, while it is read: later bytes would
//! belong to another capture. So the file is compared after each read with the bytes that were read of it: its first
//! bytes, the last before the reader's offset, and its length. A file that is not regular is only read. Each read
//! costs two short reads more.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Result, Seek, SeekFrom};
use std::path::Path;

use pointstamp_events::frame::checksum;

/// The number of bytes, at the beginning of a file and before an offset, by which the file is recognised.
const KNOWN: usize = 4 << 10;

/// A file, and the bytes that were read of it.
#[derive(Debug)]
pub(super) struct KnownFile {
    file: File,
    /// The number of bytes read.
    at: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
    /// It can be read again.
    regular: bool,
}

impl KnownFile {
    /// Opens a file, at its beginning.
    ///
    /// # Errors
    ///
    /// Errors of the file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let regular = file.metadata().is_ok_and(|about| about.is_file());
        Ok(KnownFile {
            file,
            at: 0,
            head: Vec::new(),
            tail: Vec::new(),
            regular,
        })
    }

    /// Whether it is a regular file, rather than a pipe, which would be waited for.
    pub(super) fn is_regular(&self) -> bool {
        self.regular
    }

    /// Returns the error if the file does not have the bytes that were read any more.
    ///
    /// # Errors
    ///
    /// Errors of the file.
    pub(super) fn changed(&mut self) -> Result<Option<String>> {
        if !self.regular {
            return Ok(None);
        }
        let head = self.bytes(0, self.head.len())?;
        let tail = self.bytes(self.at - self.tail.len() as u64, self.tail.len())?;
        let len = self.file.metadata()?.len(); // after these were read: it may be shortened in between
        if len < self.at {
            let at = self.at;
            let what = format!("it was shortened: it has {len} bytes, and {at} were read");
            return Ok(Some(what));
        }
        let same = head == self.head && tail == self.tail;
        Ok((!same)
            .then(|| "it was written anew: what was read of it stands there no more".to_owned()))
    }

    /// Whether another file has its name by now. A name without a file says nothing: there may be one in a moment.
    pub(super) fn is_replaced(&self, path: &Path) -> bool {
        let (Ok(own), Ok(there)) = (self.file.metadata(), path.metadata()) else {
            return false;
        };
        self.regular && !is_same(&own, &there)
    }

    /// Returns a checksum of the file before an offset in it, by which it is recognised; `None` for a file
    /// that is not a regular one.
    ///
    /// # Errors
    ///
    /// Errors of the file.
    pub(super) fn mark(&mut self, place: u64) -> Result<Option<u32>> {
        if !self.regular {
            return Ok(None);
        }
        let size = usize::try_from(place).map_or(KNOWN, |place| place.min(KNOWN));
        let head = self.bytes(0, size)?;
        let tail = self.bytes(place - size as u64, size)?;
        Ok(Some(checksum([head.as_slice(), tail.as_slice()])))
    }

    /// Seeks to an offset: the bytes before it count as read. Returns the length of the file.
    ///
    /// # Errors
    ///
    /// Errors of the file.
    pub(super) fn go_to(&mut self, place: u64) -> Result<u64> {
        let len = self.file.metadata()?.len();
        let size = usize::try_from(place).map_or(KNOWN, |place| place.min(KNOWN));
        self.head = self.bytes(0, size)?;
        self.tail = self.bytes(place - size as u64, size)?;
        self.at = place;
        self.file.seek(SeekFrom::Start(place))?;
        Ok(len)
    }

    /// The bytes at a place, as many as there are. The file is read on where it was.
    fn bytes(&mut self, place: u64, size: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(size);
        self.file.seek(SeekFrom::Start(place))?;
        let got = (&self.file).take(size as u64).read_to_end(&mut bytes);
        self.file.seek(SeekFrom::Start(self.at))?;
        got.map(|_| bytes)
    }
}

impl Read for KnownFile {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let got = loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        let came = &buffer[..got];
        self.at += got as u64;
        if self.regular {
            let lacks = KNOWN - self.head.len();
            self.head.extend_from_slice(&came[..got.min(lacks)]);
            let last = &came[got.saturating_sub(KNOWN)..];
            let goes = (self.tail.len() + last.len()).saturating_sub(KNOWN);
            self.tail.drain(..goes);
            self.tail.extend_from_slice(last);
        }
        Ok(got)
    }
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same(_one: &Metadata, _other: &Metadata) -> bool {
    true // nothing says which file it is
}
