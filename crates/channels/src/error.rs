//! What can go wrong when workers open a channel.

use crate::ChannelId;

/// A channel could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// Two workers opened the same channel for messages of different types.
    #[error(
        "channel {id} carries another type of message on another worker: build the same dataflow on every worker"
    )]
    TypeMismatch {
        /// The channel.
        id: ChannelId,
    },
    /// One worker opened the same channel twice.
    #[error("worker {worker} opened channel {id} twice: a channel has one receiver on each worker")]
    OpenedTwice {
        /// The channel.
        id: ChannelId,
        /// The worker that asked again.
        worker: usize,
    },
}
