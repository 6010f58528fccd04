//! The interface of connections to other processes.
//!
//! [`Transport`] is implemented by the connections of a cluster and, for tests, by queues in memory. It knows frames
//! and their order, not their meaning: [`Fabric`](crate::Fabric) takes frames of channels, and the computation
//! control frames.

use std::sync::Arc;

use bytes::Bytes;

use crate::ChannelId;

/// A frame's body is at most this long.
pub const MAX_BODY: usize = (1 << 31) - 1;

/// The alignment of bodies that are passed on, in bytes.
const ALIGNED: usize = 16;

/// Joins the segments of a body into one block, aligned as [`Receive::frame`] requires: for a transport
/// within one program.
pub fn joined(segments: &[Bytes]) -> Bytes {
    let len: usize = segments.iter().map(Bytes::len).sum();
    let mut block = Vec::<u8>::with_capacity(len + ALIGNED - 1);
    let offset = block.as_ptr().align_offset(ALIGNED).min(ALIGNED - 1);
    block.resize(offset, 0);
    for segment in segments {
        block.extend_from_slice(segment);
    }
    Bytes::from(block).slice(offset..)
}

/// The receiver of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Recipient {
    /// A channel's message for one worker of the receiving process, by its number within that process.
    Worker(ChannelId, u32),
    /// A channel's message for every worker of the receiving process.
    Everyone(ChannelId),
    /// A sum of a channel's messages, for every worker of the receiving process and for the processes that it
    /// relays for.
    Sum {
        /// The channel.
        id: ChannelId,
        /// The number of messages.
        count: u32,
        /// Whether relays pass it on without waiting for other messages.
        at_once: bool,
    },
    /// The computation itself.
    Control,
}

/// The way in which a process leaves a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Farewell {
    /// All its workers have come to their end.
    Done,
    /// It stops because something failed, here or elsewhere.
    Failed {
        /// The process where it began.
        origin: u32,
        /// The failure.
        reason: Reason,
    },
}

/// The reason why a process stops before its end, as text for people. Reasons that a reader may have to
/// distinguish are variants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Its program failed, or was interrupted: a sentence, and under it the traceback where there is one.
    #[error("{0}")]
    Raised(String),
    /// A process was lost, or gave up.
    #[error("{0}")]
    Lost(String),
    /// Workers built different dataflows: the difference.
    #[error("{0}")]
    Disagreed(String),
}

impl Reason {
    /// The text of the reason.
    pub fn text(&self) -> &str {
        let (Reason::Raised(text) | Reason::Lost(text) | Reason::Disagreed(text)) = self;
        text
    }
}

/// Receives frames and events from other processes. Called by the threads that read connections: an
/// implementation must not wait for a worker.
pub trait Receive: Send + Sync {
    /// A frame from another process. Frames of one process come in the order in which they were sent. The body is
    /// aligned to 16 bytes.
    fn frame(&self, from: usize, route: Recipient, body: Bytes);

    /// Another process has left; nothing more comes from it.
    fn left(&self, from: usize, how: Farewell);

    /// The connection to another process ended without a farewell, or stalled: why, in a sentence that names the process and its address.
    fn lost(&self, from: usize, why: String);

    /// Bytes that were queued for other processes have been passed to the operating system, or dropped. Called from
    /// any thread, also before the [`Transport::send`] that queued them has returned: a count of them may fall below
    /// zero for a moment.
    fn written(&self, bytes: usize);

    /// Whether messages wait in this process until a time has passed, of a transport that [keeps](Transport::keeps_time) the
    /// time itself.
    fn waits(&self) -> bool {
        false
    }

    /// Says that the time has passed for which messages wait.
    fn time_passes(&self) {}
}

/// The connections of one process to all others.
pub trait Transport: Send + Sync {
    /// The number of processes.
    fn processes(&self) -> usize;

    /// The number of this process.
    fn process(&self) -> usize;

    /// The address of a process, for messages.
    fn address(&self, process: usize) -> String;

    /// Whether this transport says when a time has passed, by [`Receive::time_passes`], in place of the clock.
    fn keeps_time(&self) -> bool {
        false
    }

    /// Begins to pass arriving frames to `receiver`. To be called once.
    fn start(&self, receiver: Arc<dyn Receive>);

    /// Sends a frame to another process; never waits. Nothing happens when that process has left or was lost,
    /// or this one has said farewell. Returns how many bytes were queued, which is none when the frame could
    /// be written at once: each of them is reported to [`Receive::written`]. The body has at most
    /// [`MAX_BODY`] bytes; a longer one ends the connection.
    fn send(&self, process: usize, route: Recipient, body: Vec<Bytes>) -> usize;

    /// Says farewell to every process, once: after the queued frames when all is well, before them after a
    /// failure. Frames that are sent afterwards are dropped.
    fn farewell(&self, how: Farewell);

    /// Ends every connection and waits for the threads that serve them, for a bounded time. After it nothing is received.
    fn close(&self);
}

/// A transport for tests of senders.
#[cfg(all(test, not(shuttle)))]
pub(crate) mod nowhere {
    use super::*;

    /// A way from the first of two processes that ends before the other one.
    pub(crate) struct NoWhere;

    impl Transport for NoWhere {
        fn processes(&self) -> usize {
            2
        }

        fn process(&self) -> usize {
            0
        }

        fn address(&self, process: usize) -> String {
            format!("nowhere:{process}")
        }

        fn start(&self, _: Arc<dyn Receive>) {}

        fn send(&self, _: usize, _: Recipient, _: Vec<Bytes>) -> usize {
            0
        }

        fn farewell(&self, _: Farewell) {}

        fn close(&self) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_says_its_text() {
        for reason in [Reason::Raised, Reason::Lost, Reason::Disagreed] {
            let reason = reason("what happened".to_owned());
            assert_eq!(reason.text(), "what happened");
            assert_eq!(reason.to_string(), "what happened");
        }
    }

    #[test]
    fn a_joined_body_is_whole_and_aligned() {
        for sizes in [&[][..], &[0], &[1], &[3, 0, 5], &[16, 1], &[1000, 7, 4096]] {
            let segments: Vec<Bytes> = (0u8..)
                .zip(sizes)
                .map(|(fill, &size)| vec![fill; size].into())
                .collect();
            let body = joined(&segments);
            assert_eq!(body, segments.concat());
            assert_eq!(body.as_ptr().align_offset(ALIGNED), 0, "{sizes:?}");
        }
    }
}
