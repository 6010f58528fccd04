//! A budget of memory for operators' state, and files for what is over.
//!
//! Owns [`Budget`], one for a process, and [`Account`], one for each operator that keeps state: it says what the state
//! takes, and is the [`Storage`] of its batches. The budget has two shares: state in memory, and a cache of pages of the
//! state on disk. A batch is stored where state would be over its share otherwise. Where small batches have added up to
//! that, each operator that runs is asked to store its largest.
//!
//! Files have no name: they are gone when nothing refers to them, and when the process ends, however it ends. Each page is
//! under a checksum (see [`pointstamp_store::page`]), is read by a call and never mapped, so that a page that cannot be
//! read is an error and not a signal.
//!
//! State that is no batches is in a [`Log`] of records: an index in memory finds a key's record by a hash.
//!
//! Cost: a decision is an addition; a page is written once, and read for each look-up that the cache does not answer.

#![forbid(unsafe_code)]

mod account;
mod budget;
mod error;
mod file;
mod log;
mod site;

pub use account::Account;
pub use budget::{Budget, Traffic};
pub use error::Error;
pub use log::{Found, Group, Log, Pinned, Place, Scan};
pub use pointstamp_arrange::Storage;
