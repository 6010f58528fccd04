//! Captures: streams that leave a dataflow and come back.
//!
//! The form of the bytes is that of the crate `pointstamp-events`; here are its ends. A capturing operator writes every event when
//! it happens to a [`Target`]. A [`Feed`] reads a file itself, or is fed by another thread; a [`Queue`] holds events in memory.
//! One operator plays any number of feeds and queues into a scope ([`replay()`]).
//!
//! | module | owns |
//! |---|---|
//! | `body` | batches of events as bytes |
//! | `writer` | the capturing operator, and files as targets |
//! | `queue` | captures in memory |
//! | `feed` | the events of a capture, read as they are wanted |
//! | `capture_file` | files that may grow, and must not change otherwise |
//! | `replay` | the operator that plays captures |

mod body;
mod capture_file;
mod error;
mod feed;
mod queue;
mod replay;
mod writer;

pub use error::CaptureError;
pub use feed::{Beginning, Feed, Next};
pub use queue::{Queue, Taken};
pub use replay::{Source, replay};
pub use writer::{FileTarget, Target, capture};
