//! Batches worth moving: large ones are sliced, tiny ones merged.
//!
//! A message should carry enough rows that its own cost does not matter, and few enough bytes that a queue of them
//! stays small and work spreads evenly. Slices share the memory of their batch; merging copies, so only
//! batches below [`WORTH_MOVING`] rows are merged.

use arrow_array::{Array, RecordBatch};
use arrow_select::concat::concat_batches;

/// A batch of this many rows is sent as it is, rather than copied to be merged with others.
pub const WORTH_MOVING: usize = 16 * 1024;

/// The most rows that one message carries.
pub const MAX_ROWS: usize = 128 * 1024;

/// About the most bytes that one message carries.
pub const MAX_BYTES: usize = 16 << 20;

/// The batch in slices that are small enough to move; none when it has no rows.
pub fn slices(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> + use<> {
    let rows = batch.num_rows();
    let mut step = MAX_ROWS;
    if rows > 1 {
        let bytes = bytes_of(batch);
        if bytes > MAX_BYTES {
            step = step.min((MAX_BYTES / bytes.div_ceil(rows)).max(1));
        }
    }
    let batch = batch.clone();
    (0..rows).step_by(step).map(move |start| {
        if rows <= step {
            batch.clone()
        } else {
            batch.slice(start, step.min(rows - start))
        }
    })
}

/// The approximate number of bytes that the rows of a batch take.
pub fn bytes_of(batch: &RecordBatch) -> usize {
    let size = |column: &dyn Array| match column.to_data().get_slice_memory_size() {
        Ok(bytes) => bytes,
        Err(_) => column.get_array_memory_size(),
    };
    batch.columns().iter().map(|column| size(&**column)).sum()
}

/// Merges the tiny batches of a sequence, and slices the large ones. The rows keep their order.
#[derive(Debug, Default)]
pub struct Merger {
    waiting: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl Merger {
    /// A merger that holds nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a batch; calls `emit` with batches that are ready to be sent.
    ///
    /// # Errors
    ///
    /// Errors of `emit`; rows that it did not take are lost.
    pub fn push<E>(
        &mut self,
        batch: RecordBatch,
        mut emit: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let bytes = bytes_of(&batch);
        if batch.num_rows() >= WORTH_MOVING || bytes >= MAX_BYTES / 4 {
            self.flush(&mut emit)?;
            return slices(&batch).try_for_each(emit);
        }
        self.rows += batch.num_rows();
        self.bytes += bytes;
        self.waiting.push(batch);
        if self.rows >= WORTH_MOVING || self.bytes >= MAX_BYTES / 4 {
            self.flush(emit)?;
        }
        Ok(())
    }

    /// Emits the waiting rows.
    ///
    /// # Errors
    ///
    /// Errors of `emit`; rows that it did not take are lost.
    pub fn flush<E>(
        &mut self,
        mut emit: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        (self.rows, self.bytes) = (0, 0);
        let waiting = std::mem::take(&mut self.waiting);
        match waiting.as_slice() {
            [] => Ok(()),
            [only] => emit(only.clone()),
            [first, ..] => match concat_batches(&first.schema(), &waiting) {
                Ok(merged) => emit(merged),
                // Dictionaries whose keys are too narrow for the values of all: they are passed on one by one.
                Err(_) => waiting.into_iter().try_for_each(emit),
            },
        }
    }

    /// Drops the waiting rows.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
