//! Records of a worker's activity: totals of each operator and, if requested, a log of every event.
//!
//! [`Recorder`] observes the engine ([`pointstamp_engine::observe`]). The log is read as Arrow record batches.

mod event;
mod recorder;
#[cfg(test)]
mod tests;
mod totals;

pub use recorder::{MOST_EVENTS, Recorder};
pub use totals::{Done, Totals};
