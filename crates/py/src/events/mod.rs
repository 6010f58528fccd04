//! Captures, as `Stream.capture_into` and `Scope.replay` use them.
//!
//! What writes, reads and plays events is in `pointstamp_operators::captures`; here are targets and sources that are objects of
//! Python's (pipes, connections), warnings, and conversions.

mod failure;
pub(crate) mod feed;
pub(crate) mod replay;
pub(crate) mod writer;
