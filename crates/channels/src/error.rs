//! The errors of channels.

use crate::{ChannelId, MAX_BODY};

/// A channel could not be opened, or a message not be sent along it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// A message is longer than a frame may be.
    #[error(
        "a batch of {len} bytes is too long to go to another process: the limit is {MAX_BODY} bytes, so make batches of fewer records"
    )]
    TooLong {
        /// Its bytes.
        len: usize,
    },
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
        /// The worker that opened the channel twice.
        worker: usize,
    },
}
