//! Pieces of state: a checkpoint writes and reads them without knowing the operator.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::UserResult;

/// The contents of a piece of state, which never change.
pub trait Content: Send + Sync + 'static {
    /// Writes the contents, on any thread. Called by each attempt of a checkpoint, until one has succeeded.
    ///
    /// # Errors
    ///
    /// When a part of it cannot be encoded, or errors of `out`.
    fn write(&self, out: &mut dyn Write) -> UserResult<()>;

    /// Notes that a checkpoint has the contents: they are not written again. Called on any thread, after [`Content::write`].
    fn settle(&self) {}
}

impl Content for Bytes {
    fn write(&self, out: &mut dyn Write) -> UserResult<()> {
        Ok(out.write_all(self)?)
    }
}

/// A piece of an operator's state. Clones share it.
///
/// A checkpoint refers to an earlier one for a piece that both have. So state that changes in parts is given as pieces, of which the unchanged ones are the
/// same as before.
#[derive(Clone)]
pub struct Piece(Arc<dyn Content>);

impl Piece {
    /// A piece with these contents.
    pub fn new(contents: impl Content) -> Self {
        Piece(Arc::new(contents))
    }

    /// Writes the contents.
    ///
    /// # Errors
    ///
    /// As [`Content::write`].
    pub fn write(&self, out: &mut dyn Write) -> UserResult<()> {
        self.0.write(out)
    }

    /// Notes that a checkpoint has the piece.
    pub fn settle(&self) {
        self.0.settle();
    }

    /// The contents as bytes.
    ///
    /// # Errors
    ///
    /// As [`Content::write`].
    pub fn to_bytes(&self) -> UserResult<Bytes> {
        let mut bytes = Vec::new();
        self.0.write(&mut bytes)?;
        Ok(bytes.into())
    }

    /// A number that no other piece has while this one is kept.
    pub fn number(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>().addr()
    }
}

impl From<Vec<u8>> for Piece {
    fn from(bytes: Vec<u8>) -> Self {
        Piece::new(Bytes::from(bytes))
    }
}

impl PartialEq for Piece {
    /// Whether it is the same piece.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Piece {}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Piece")
    }
}
