//! Streams of Arrow record batches: what `pointstamp.ArrowStream` calls.
//!
//! A batch enters Rust once and leaves it only for a function of the user's: hashing, partitioning, merging, slicing,
//! aggregating and joining happen without the interpreter, by the crate `pointstamp-columnar`. Each file holds
//! one family of operators.

pub(crate) mod aggregate;
pub(crate) mod by_key;
pub(crate) mod event_time;
pub(crate) mod ffi;
pub(crate) mod in_time;
pub(crate) mod input;
pub(crate) mod keyed;
pub(crate) mod map;
pub(crate) mod movement;
mod outbox;
pub(crate) mod picked;
pub(crate) mod router;
pub(crate) mod schema;
