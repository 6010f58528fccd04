//! The interface of object storage: a folder, or an object store.
//!
//! An object has a name such as `packs/5.1.0`: parts of `a-z`, `0-9`, `.` and `-`, separated by `/`. No part begins with a dot.
//! Objects are whole: an object exists with all of its bytes, durably, or not at all. An object is never changed, except for
//! [`Store::put`].
//!
//! A call that returns an error may have taken effect, may take effect later, or never will. The protocol
//! ([`Execution`](crate::Execution)) assumes nothing else.

use std::fmt;
use std::io;
use std::ops::Range;

use bytes::Bytes;

use crate::error::StoreError;

/// The answer to a [`Store::create`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// The object did not exist; now it does, durably.
    Created,
    /// The object existed, and is as it was. It is durable.
    Exists,
}

/// An object in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The whole name.
    pub name: String,
    /// The length in bytes.
    pub size: u64,
}

/// A place for objects. Calls block; several threads may call at once.
pub trait Store: fmt::Debug + Send + Sync {
    /// Returns the place, for messages: a path or a URL.
    fn place(&self) -> String;

    /// Begins a large object, which appears when it is finished.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    fn upload(&self, name: &str) -> Result<Box<dyn Upload>, StoreError>;

    /// Creates an object of these bytes, unless one of this name exists.
    ///
    /// # Errors
    ///
    /// Errors of the store. The caller then does not know whether the object was created, and tries again with the
    /// same bytes.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, StoreError>;

    /// Writes an object of these bytes, in place of the one of this name.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let mut upload = self.upload(name)?;
        upload.write(bytes)?;
        upload.finish()
    }

    /// Reads a whole object. Allocates no more than its size.
    ///
    /// # Errors
    ///
    /// Errors of the store; [`StoreError::is_missing`] where no such object exists.
    fn get(&self, name: &str) -> Result<Bytes, StoreError>;

    /// Reads a range of an object. Allocates no more than the object's size.
    ///
    /// # Errors
    ///
    /// Errors of the store; [`StoreError::is_missing`] where no such object exists, [`StoreError::is_cut`] where it
    /// ends before the range does.
    fn read(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError>;

    /// Lists the objects in a folder (`log`, or the empty string for the top), in no order. Every object whose
    /// creation was confirmed before the call is listed. A folder that does not exist is empty.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError>;

    /// Deletes an object. An object that does not exist is deleted already.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    fn delete(&self, name: &str) -> Result<(), StoreError>;

    /// Deletes the temporary files of killed writers, for the objects whose names are `dead`.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    fn sweep(&self, dead: &dyn Fn(&str) -> bool) -> Result<(), StoreError>;
}

/// An object that is being written. Dropped before it is finished, it leaves nothing.
pub trait Upload: Send {
    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// Errors of the store. The upload cannot be finished then.
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError>;

    /// Makes the object appear, durably.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    fn finish(self: Box<Self>) -> Result<(), StoreError>;
}

/// Returns an error that says where an object ends, for [`Store::read`].
pub(crate) fn cut(range: &Range<u64>, size: u64) -> io::Error {
    let what = format!("it ends at byte {size}, before byte {}", range.end);
    io::Error::new(io::ErrorKind::UnexpectedEof, what)
}

#[cfg(test)]
pub(crate) fn is_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(legal);
    name.split('/').all(part)
}
