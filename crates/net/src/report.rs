//! Reports of the threads that connect and listen while a cluster forms.

use std::sync::Arc;

use super::handshake::Established;

/// Where strangers and the like are reported, in sentences.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// What the threads that connect and listen report.
pub(crate) enum Report {
    /// Another process is there.
    Established(Box<Established>),
    /// Another process is there and cannot be in the same cluster.
    Refused { process: usize, reason: String },
    /// The gate is done with one connection.
    Heard(u64),
}
