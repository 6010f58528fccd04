//! A batch of an arrangement as a message carries it, in the type of its scope's times.
//!
//! Invariant: it stays on its worker. Clones share the batch.

use pointstamp_arrange::Sealed as SealedBatch;
use pointstamp_order::Point;
use pointstamp_rows::Cells;

/// A batch of an arrangement on its way to the arrangement's readers, on this worker.
#[derive(Clone)]
pub enum Sealed {
    /// A batch in a scope whose times have one coordinate.
    One(SealedBatch<Cells, Cells, u64>),
    /// A batch in a scope whose times have two coordinates.
    Two(SealedBatch<Cells, Cells, [u64; 2]>),
    /// A batch in a scope whose times have three coordinates.
    Three(SealedBatch<Cells, Cells, [u64; 3]>),
    /// A batch in a scope whose times have more coordinates.
    Many(SealedBatch<Cells, Cells, Point>),
}

impl Sealed {
    /// Returns the number of updates.
    pub fn len(&self) -> usize {
        match self {
            Sealed::One(sealed) => sealed.batch.len(),
            Sealed::Two(sealed) => sealed.batch.len(),
            Sealed::Three(sealed) => sealed.batch.len(),
            Sealed::Many(sealed) => sealed.batch.len(),
        }
    }

    /// Returns true if there is no update.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
