//! What a worker asks of the ports that it serves.

/// Somebody who is told that a channel has messages.
pub(crate) trait Arrival {
    /// The channel was empty and has messages now, or it may have.
    fn arrived(&self);
}

/// Something that `main` may leave open and that must be closed for the dataflow to end.
pub(crate) trait Close {
    /// Closes it.
    fn close(&self);
}
