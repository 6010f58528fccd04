//! What a stream carries.

/// A batch of records. The engine moves batches and counts their records; it never looks at one.
///
/// `Clone` is used when a stream has several readers, and should be cheap (a shared reference).
pub trait Payload: Clone + Send + 'static {
    /// How many records the batch holds. Empty batches are not sent.
    fn len(&self) -> usize;

    /// Whether the batch holds no record.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Clone + Send + 'static> Payload for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }
}

/// A batch with its timestamp, as it travels along an edge.
#[derive(Debug, Clone)]
pub struct Message<P> {
    /// The timestamp of every record in the batch.
    pub time: pointstamp_order::Point,
    /// The records.
    pub data: P,
}
