//! The system calls of a local store, as a trait: [`Files`] makes them, [`Failing`](crate::failing::Failing) makes some of them fail,
//! and [`SimulatedDisk`](crate::SimulatedDisk) loses power.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

/// System calls on files and folders. Each may fail, with or without an effect.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Creates a file, which must not exist, and opens it for writing.
    ///
    /// # Errors
    ///
    /// Errors of the system; `AlreadyExists`.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Gives a file a second name, which must not exist.
    ///
    /// # Errors
    ///
    /// Errors of the system; `AlreadyExists`.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file another name in its folder, in place of the file of that name.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name of a file.
    ///
    /// # Errors
    ///
    /// Errors of the system; `NotFound`.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Creates a folder, which must not exist.
    ///
    /// # Errors
    ///
    /// Errors of the system; `AlreadyExists`.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;

    /// Returns the length of a file in bytes.
    ///
    /// # Errors
    ///
    /// Errors of the system; `NotFound`.
    fn size(&self, path: &Path) -> io::Result<u64>;

    /// Reads a range of a file, which the file has.
    ///
    /// # Errors
    ///
    /// Errors of the system; `NotFound`; `UnexpectedEof`.
    fn read(&self, path: &Path, range: Range<u64>) -> io::Result<Vec<u8>>;

    /// Lists the names in a folder.
    ///
    /// # Errors
    ///
    /// Errors of the system; `NotFound`.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
}

/// A file that is open for writing.
pub trait OpenFile: Send {
    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the bytes durable.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    fn sync(&mut self) -> io::Result<()>;
}

/// The files of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files;

impl Disk for Files {
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Box::new(file))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        // Windows has no such call; its file systems write names in order.
        if cfg!(windows) {
            return Ok(());
        }
        File::open(path)?.sync_all()
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        let found = fs::metadata(path)?;
        if found.is_file() {
            Ok(found.len())
        } else {
            Err(io::Error::other("this is no file"))
        }
    }

    fn read(&self, path: &Path, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let len = range.end.saturating_sub(range.start);
        // A missing range is not allocated, either.
        if file.metadata()?.len() < range.end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.seek(SeekFrom::Start(range.start))?;
        let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            // A name that is not Unicode is none of ours.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }
}

impl OpenFile for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}
