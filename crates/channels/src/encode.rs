//! Messages as bytes.
//!
//! A message becomes a list of segments, so that a large part (a column, a pickled buffer) is written to a connection
//! from its own memory; it is read back from one contiguous block, which it may share.

use bytes::{Bytes, BytesMut};

/// Why a message could not be turned into bytes, or back.
pub type CodecError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// A type that may cross to another process.
pub trait Encode: Sized + Send + 'static {
    /// Writes the message. It is called on the worker's own thread.
    ///
    /// # Errors
    ///
    /// When the message has no form as bytes; nothing is sent then.
    fn encode(&self, out: &mut Encoder) -> Result<(), CodecError>;

    /// Reads bytes in the format of `encode`, on the receiving worker's own thread. `bytes` begins where `encode`
    /// began, at the alignment that the encoder had there, and may be kept and shared.
    ///
    /// # Errors
    ///
    /// When the bytes do not have the format of `encode`. No bytes make it panic, or allocate more than in proportion
    /// to them.
    fn decode(bytes: Bytes) -> Result<Self, CodecError>;

    /// The approximate number of bytes of memory that the message holds while it waits in a queue.
    fn footprint(&self) -> usize;
}

/// The buffer into which a message's bytes are written.
#[derive(Debug, Default)]
pub struct Encoder {
    segments: Vec<Bytes>,
    open: BytesMut,
    len: usize,
}

/// Segments at least this long are not copied into the block that is being written.
const SHARED: usize = 4096;

impl Encoder {
    /// An encoder without bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of bytes written so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was put yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies bytes in.
    pub fn put_slice(&mut self, bytes: &[u8]) {
        self.open.extend_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Adds bytes without copying them, where they are many.
    pub fn put_bytes(&mut self, bytes: Bytes) {
        if bytes.len() < SHARED {
            return self.put_slice(&bytes);
        }
        self.len += bytes.len();
        self.close_segment();
        self.segments.push(bytes);
    }

    /// Adds zeros until the number of bytes is a multiple of `alignment`.
    pub fn align(&mut self, alignment: usize) {
        let len = self.len.next_multiple_of(alignment);
        self.open.resize(self.open.len() + (len - self.len), 0);
        self.len = len;
    }

    /// The bytes, in order.
    pub fn finish(mut self) -> Vec<Bytes> {
        self.close_segment();
        self.segments
    }

    fn close_segment(&mut self) {
        if !self.open.is_empty() {
            self.segments.push(self.open.split().freeze());
        }
    }
}

impl Encode for u64 {
    fn encode(&self, out: &mut Encoder) -> Result<(), CodecError> {
        out.put_slice(&self.to_le_bytes());
        Ok(())
    }

    fn decode(bytes: Bytes) -> Result<Self, CodecError> {
        Ok(u64::from_le_bytes(bytes.as_ref().try_into()?))
    }

    fn footprint(&self) -> usize {
        size_of::<u64>()
    }
}

impl Encode for Bytes {
    fn encode(&self, out: &mut Encoder) -> Result<(), CodecError> {
        out.put_bytes(self.clone());
        Ok(())
    }

    fn decode(bytes: Bytes) -> Result<Self, CodecError> {
        Ok(bytes)
    }

    fn footprint(&self) -> usize {
        self.len()
    }
}

impl Encode for String {
    fn encode(&self, out: &mut Encoder) -> Result<(), CodecError> {
        out.put_slice(self.as_bytes());
        Ok(())
    }

    fn decode(bytes: Bytes) -> Result<Self, CodecError> {
        Ok(std::str::from_utf8(&bytes)?.to_owned())
    }

    fn footprint(&self) -> usize {
        self.len()
    }
}
