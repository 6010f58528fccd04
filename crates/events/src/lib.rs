//! The events of a stream as bytes.
//!
//! A capture is the sequence of a stream's events, as an operator sees them: changes to the frontier, and batches at
//! times. This is its form outside of memory, for files, sockets and topics, as `docs/design/capture.md` describes
//! it:
//!
//! - [`frame`]: pieces of known length under two checksums, of which any may be the last.
//! - [`event`]: the contents of the frames. Batches are bytes here: the owners of their types encode and decode them.
//! - [`decoder`]: frames and events from bytes that come in pieces.
//! - [`promise`]: the permitted order of events, so that a replay is a stream.
//!
//! The crate is pure: it opens nothing and starts nothing. No bytes make it panic, read for ever, or allocate more
//! than in proportion to them.

#![forbid(unsafe_code)]

mod body;
pub mod decoder;
#[cfg(any(test, feature = "fuzzing"))]
pub mod entry;
pub mod event;
pub mod frame;
pub mod promise;

pub use decoder::{Decoder, Item};
pub use event::{Contents, EncodedEvent, Run, Start};
pub use frame::{Damage, MAGIC};
pub use promise::{Broken, Promise};
