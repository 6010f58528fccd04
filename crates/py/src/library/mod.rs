//! Operators of the library that process records in Rust.
//!
//! Each file holds one operator as a function of a stream, which `pointstamp.Stream`'s method of that name calls. An
//! operator attaches once for all waiting batches, and reads the frontier only if it has records that wait for one.

pub(crate) mod count;
pub(crate) mod delay;
pub(crate) mod event_time;
pub(crate) mod running;
pub(crate) mod sketch;
