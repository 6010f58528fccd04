//! Reports of the threads that connect and listen while a cluster forms.

use std::sync::Arc;

use super::handshake::Established;

/// The function that logs refused connections and similar events, in sentences.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// A report of the threads that connect and listen.
pub(crate) enum Report {
    /// Another process is there.
    Established(Box<Established>),
    /// Another process is there and cannot be in the same cluster.
    Refused { process: usize, reason: String },
    /// The gate is done with one connection.
    Done(u64),
}
