//! The names of channels.

use std::fmt;

/// Names a channel: the same number on every worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelId {
    /// The dataflow, in the order in which the workers build them.
    pub dataflow: u32,
    /// The channel within it, in the order in which they are opened.
    pub channel: u32,
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.dataflow, self.channel)
    }
}
