//! Streams that leave a dataflow and come back: what `Stream.capture_into` and `Scope.replay` call.
//!
//! The form of the bytes is `pointstamp-events`'; here are its ends. A capturing operator writes every event when it
//! happens (`writer`); a [`feed::EventFeed`] reads a file itself, or is fed by a thread of Python's with what a socket gives;
//! one operator plays any number of feeds and queues (`replay`). The interpreter is needed for pickled records alone.

mod batches;
mod body;
pub(crate) mod feed;
mod known;
pub(crate) mod replay;
mod seeking;
pub(crate) mod writer;
