//! Batches outside of memory, as the kernel sees them: pages of bytes that are written in order, once, and read back.
//!
//! Owns the traits [`Storage`], [`Writer`] and [`File`], which the caller implements: the kernel does no I/O of its own.
//! A page holds a range of keys with everything that they have, so that a look-up reads one.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// The decoded contents of a page, for a cache that does not know their type.
pub type Decoded = Arc<dyn Any + Send + Sync>;

/// The reason for which bytes could not be written or read.
#[derive(Clone, Debug)]
pub struct StorageError(Arc<dyn StdError + Send + Sync>);

impl StorageError {
    /// Wraps the caller's error.
    pub fn new(error: impl StdError + Send + Sync + 'static) -> Self {
        Self(Arc::new(error))
    }

    /// Returns the caller's error.
    pub fn cause(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl StdError for StorageError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

/// A place for batches that memory has no room for.
pub trait Storage: fmt::Debug + Send + Sync {
    /// Returns whether a batch of about so many bytes is to be stored rather than kept in memory.
    fn stores(&self, bytes: usize) -> bool;

    /// Returns the bytes from which on columns become a page.
    fn page_bytes(&self) -> usize;

    /// Begins a file.
    ///
    /// # Errors
    ///
    /// Errors of the caller.
    fn create(&self) -> Result<Box<dyn Writer>, StorageError>;
}

/// A file that is being written.
pub trait Writer: fmt::Debug + Send + Sync {
    /// Appends a page. Pages are numbered from 0.
    ///
    /// # Errors
    ///
    /// Errors of the caller.
    fn append(&mut self, page: &[u8]) -> Result<(), StorageError>;

    /// Ends the file, which is removed when nothing refers to it any more.
    ///
    /// # Errors
    ///
    /// Errors of the caller.
    fn finish(self: Box<Self>) -> Result<Arc<dyn File>, StorageError>;
}

/// A file of pages.
pub trait File: fmt::Debug + Send + Sync {
    /// Reads a page, as it was appended.
    ///
    /// # Errors
    ///
    /// Errors of the caller; a page that is not as it was.
    fn read(&self, page: usize) -> Result<Vec<u8>, StorageError>;

    /// Returns the decoded contents of a page, if they are in the cache.
    fn cached(&self, page: usize) -> Option<Decoded>;

    /// Puts the decoded contents of a page, of so many bytes, into the cache.
    fn cache(&self, page: usize, contents: Decoded, bytes: usize);

    /// Returns the number of bytes on disk.
    fn bytes(&self) -> u64;
}
