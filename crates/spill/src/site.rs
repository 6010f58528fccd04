//! The files of an operator: how they are made, written and read, and the errors of that.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::budget::Budget;
use crate::error::Error;

/// The budget that an operator's files belong to, and the operator's name, for errors.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) budget: Arc<Budget>,
    pub(crate) operator: Arc<str>,
}

impl Site {
    /// Makes a file without a name.
    pub(crate) fn create(&self) -> Result<File, Error> {
        let made = self.budget.attempt();
        let made = made.and_then(|()| tempfile::tempfile_in(self.budget.folder()));
        made.map_err(|cause| self.cannot_write(cause))
    }

    /// Writes bytes at the end of a file.
    pub(crate) fn write(&self, mut file: &File, bytes: &[u8]) -> Result<(), Error> {
        let written = self.budget.attempt().and_then(|()| file.write_all(bytes));
        written.map_err(|cause| self.cannot_write(cause))?;
        let written = &self.budget.written;
        written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Reads all of `into` from a place in a file.
    pub(crate) fn read(&self, file: &File, into: &mut [u8], start: u64) -> Result<(), Error> {
        let read = self.budget.attempt();
        let read = read.and_then(|()| read_at(file, into, start));
        read.map_err(|cause| Error::Read {
            operator: self.operator.to_string(),
            folder: self.budget.folder().to_owned(),
            cause,
        })?;
        let read = &self.budget.read;
        read.fetch_add(into.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn cannot_write(&self, cause: io::Error) -> Error {
        Error::Write {
            operator: self.operator.to_string(),
            folder: self.budget.folder().to_owned(),
            cause,
        }
    }

    pub(crate) fn damaged(&self, what: impl Into<String>) -> Error {
        Error::Damaged {
            operator: self.operator.to_string(),
            folder: self.budget.folder().to_owned(),
            what: what.into(),
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
