//! Batches of records that only the host language understands.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pointstamp_channels::Encoder;
use pointstamp_engine::error::UserResult;

/// The number of records that an operator of the host puts into one batch at most.
///
/// Chosen by measuring word count at several sizes (`make bench`): below this, the fixed cost of a batch shows (about
/// 5 microseconds for each operator); with several times as many, two workers became slower, likely because the
/// records that a `flat_map` makes of a batch leave the core's cache before they are read.
pub const MAX_BATCH: usize = 1024;

/// A batch of records of the host language.
pub trait HostBatch: Any + Send + Sync {
    /// Returns the number of records.
    fn len(&self) -> usize;

    /// Returns true if the batch holds no record.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the approximate number of bytes of memory that the records take. It costs little.
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

/// A batch of the host that is a column of a [`Timed`](crate::Timed): of times, of keys, or of records.
pub trait HostColumn: HostBatch {
    /// Returns the numbers of a column of times. It costs a conversion of each.
    ///
    /// # Errors
    ///
    /// For an element that is no time.
    fn times(&self) -> UserResult<Vec<u64>>;

    /// Returns a column of the elements at these places, which are in the column.
    ///
    /// # Errors
    ///
    /// Errors of the host.
    fn select(&self, places: &[usize]) -> UserResult<Arc<dyn HostColumn>>;

    /// Returns a copy of the elements in this range, which is in the column.
    ///
    /// # Errors
    ///
    /// Errors of the host.
    fn cut(&self, range: Range<usize>) -> UserResult<Arc<dyn HostColumn>>;

    /// Writes columns of the host together, so that shared data is written once. The bytes before them are a
    /// multiple of 16.
    ///
    /// # Errors
    ///
    /// When an element has no form as bytes.
    fn encode_columns(&self, columns: &[&dyn HostColumn], out: &mut Encoder) -> UserResult<()>;
}

/// Reads a batch in the format of [`HostBatch::encode`]. Malformed bytes are
/// [`Error::Unreadable`](crate::Error::Unreadable).
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

/// Reads so many columns in the format of [`HostColumn::encode_columns`].
pub type ColumnsDecoder = fn(&Bytes, usize) -> UserResult<Vec<Arc<dyn HostColumn>>>;

static COLUMNS_DECODER: OnceLock<ColumnsDecoder> = OnceLock::new();

/// Sets the function that reads columns of the host which come from other processes. The first one stays.
pub fn register_columns_decoder(decoder: ColumnsDecoder) {
    let _the_first_stays = COLUMNS_DECODER.set(decoder);
}

/// Returns the registered decoder of columns, if there is one.
pub(crate) fn columns_decoder() -> Option<ColumnsDecoder> {
    COLUMNS_DECODER.get().copied()
}
