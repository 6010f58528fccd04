//! Captures, as `Stream.capture_into` and `Scope.replay` use them.
//!
//! Writing, reading and replaying of events is in `pointstamp_operators::captures`; this module has targets and
//! sources that are objects of Python's (pipes, connections), warnings, and conversions.

mod failure;
pub(crate) mod feed;
pub(crate) mod replay;
pub(crate) mod writer;
