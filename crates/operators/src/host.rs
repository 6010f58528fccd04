//! Batches of records that only the host language understands.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pointstamp_channels::Encoder;
use pointstamp_engine::error::UserResult;

/// A batch of records of the host language.
pub trait HostBatch: Any + Send + Sync {
    /// Returns the number of records.
    fn len(&self) -> usize;

    /// Returns true if the batch holds no record.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns about how many bytes of memory the records take. It costs little.
    fn footprint(&self) -> usize;

    /// Returns a batch of `len` records from the one at `at` on.
    fn slice(&self, at: usize, len: usize) -> Arc<dyn HostBatch>;

    /// Writes the records. The bytes before them are a multiple of 16.
    ///
    /// # Errors
    ///
    /// When a record has no form as bytes.
    fn encode(&self, out: &mut Encoder) -> UserResult<()>;
}

/// Reads what [`HostBatch::encode`] wrote. Bytes that no host batch wrote are [`Error::Unreadable`](crate::Error::Unreadable).
pub type HostDecoder = fn(&Bytes) -> UserResult<Arc<dyn HostBatch>>;

static DECODER: OnceLock<HostDecoder> = OnceLock::new();

/// Sets the function that reads host batches which come from other processes. The first one stays.
pub fn register_host_decoder(decoder: HostDecoder) {
    let _the_first_stays = DECODER.set(decoder);
}

/// Returns the registered decoder, if there is one.
pub(crate) fn decoder() -> Option<HostDecoder> {
    DECODER.get().copied()
}
