//! Files of pages, without a name.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pointstamp_arrange::{Decoded, File as Stored, StorageError, Writer};
use pointstamp_store::page::{HEADER, Header, MOST, seal};

use crate::account::Account;
use crate::budget::{Budget, Cached};
use crate::error::Error;

/// A file of pages. It is written in order, and read in any.
pub(crate) struct Pages {
    file: File,
    budget: Arc<Budget>,
    operator: String,
    number: u64,
    /// The end of each page.
    ends: Vec<u64>,
    buffer: Vec<u8>,
}

impl Pages {
    pub(crate) fn create(account: &Account) -> Result<Self, StorageError> {
        let budget = Arc::clone(&account.budget);
        let operator = account.operator.clone();
        let file = tempfile::tempfile_in(budget.folder());
        let file = file.map_err(|cause| {
            let folder = budget.folder().to_owned();
            let operator = operator.clone();
            StorageError::new(Error::Write {
                operator,
                folder,
                cause,
            })
        })?;
        Ok(Pages {
            number: budget.next_file(),
            file,
            budget,
            operator,
            ends: Vec::new(),
            buffer: Vec::new(),
        })
    }

    fn start(&self, page: usize) -> u64 {
        if page == 0 { 0 } else { self.ends[page - 1] }
    }

    fn damaged(&self, what: String) -> StorageError {
        StorageError::new(Error::Damaged {
            operator: self.operator.clone(),
            folder: self.budget.folder().to_owned(),
            what,
        })
    }
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = formatter.debug_struct("Pages");
        debug
            .field("operator", &self.operator)
            .field("pages", &self.ends.len());
        debug.finish_non_exhaustive()
    }
}

impl Writer for Pages {
    fn append(&mut self, page: &[u8]) -> Result<(), StorageError> {
        self.buffer.clear();
        let first = self.ends.len() as u64;
        for part in page.chunks(MOST) {
            seal(part, first, &mut self.buffer);
        }
        self.file.write_all(&self.buffer).map_err(|cause| {
            StorageError::new(Error::Write {
                operator: self.operator.clone(),
                folder: self.budget.folder().to_owned(),
                cause,
            })
        })?;
        let written = self.buffer.len() as u64;
        self.budget.written.fetch_add(written, Ordering::Relaxed);
        self.ends.push(self.start(self.ends.len()) + written);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Arc<dyn Stored>, StorageError> {
        self.buffer = Vec::new();
        self.ends.shrink_to_fit();
        Ok(Arc::new(*self))
    }
}

impl Stored for Pages {
    fn read(&self, page: usize) -> Result<Vec<u8>, StorageError> {
        let (start, end) = (self.start(page), self.ends[page]);
        let mut stored = vec![0; usize::try_from(end - start).unwrap_or(usize::MAX)];
        read_at(&self.file, &mut stored, start).map_err(|cause| {
            StorageError::new(Error::Read {
                operator: self.operator.clone(),
                folder: self.budget.folder().to_owned(),
                cause,
            })
        })?;
        self.budget.read.fetch_add(end - start, Ordering::Relaxed);
        let mut rest = Bytes::from(stored);
        let mut contents = Vec::new();
        while let Some(header) = rest.first_chunk::<HEADER>() {
            let header = Header::read(header).map_err(|what| self.damaged(what))?;
            let stored = rest.get(HEADER..HEADER + header.stored);
            let stored = stored.map(|stored| rest.slice_ref(stored));
            let stored = stored.ok_or_else(|| self.damaged("a page is cut".to_owned()))?;
            if header.first != page as u64 {
                return Err(self.damaged("another page is in its place".to_owned()));
            }
            let part = header.open(stored).map_err(|what| self.damaged(what))?;
            contents.extend_from_slice(&part);
            rest = rest.slice(HEADER + header.stored..);
        }
        Ok(contents)
    }

    fn cached(&self, page: usize) -> Option<Decoded> {
        let found = self.budget.cache.get(&(self.number, page));
        let count = if found.is_some() {
            &self.budget.hits
        } else {
            &self.budget.misses
        };
        count.fetch_add(1, Ordering::Relaxed);
        found.map(|cached| cached.contents)
    }

    fn cache(&self, page: usize, contents: Decoded, bytes: usize) {
        let cached = Cached { contents, bytes };
        self.budget.cache.insert((self.number, page), cached);
    }

    fn bytes(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        for page in 0..self.ends.len() {
            self.budget.cache.remove(&(self.number, page));
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, into: &mut [u8], start: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    file.read_exact_at(into, start)
}

#[cfg(windows)]
fn read_at(file: &File, mut into: &mut [u8], mut start: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !into.is_empty() {
        let read = file.seek_read(into, start)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        into = &mut into[read..];
        start += read as u64;
    }
    Ok(())
}
