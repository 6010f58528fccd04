//! Typed queues between the workers of one process, and the doorbells that wake them.
//!
//! The crate owns three things, one per module:
//!
//! * [`mailbox`]: what a worker sleeps on. Anyone with a [`Doorbell`] may wake it.
//! * [`queue`]: a typed queue into one worker. A burst of messages rings the doorbell once.
//! * [`fabric`]: how workers that build the same dataflow find each other's queues, by [`ChannelId`].
//!
//! It knows nothing of timestamps, progress or operators. Pushing costs one lock-free enqueue and
//! one atomic swap; a doorbell rung while the worker is awake makes no system call.
//!
//! ```
//! use pointstamp_channels::{ChannelId, Event, Fabric};
//!
//! let (fabric, mut mailboxes) = Fabric::in_process(2);
//! let id = ChannelId { dataflow: 0, channel: 0 };
//! let (to_each, _from_all) = fabric.open::<String>(0, id).unwrap();
//! let (_, inbox) = fabric.open::<String>(1, id).unwrap();
//!
//! to_each[1].push("one".to_owned());
//! to_each[1].push("two".to_owned());
//! assert_eq!(mailboxes[1].next(), Some(Event::Channel(id)));   // one ring for the burst
//! assert_eq!(mailboxes[1].next(), None);
//! inbox.acknowledge();
//! assert_eq!(inbox.pop().as_deref(), Some("one"));
//! assert_eq!(inbox.pop().as_deref(), Some("two"));
//! ```

#![forbid(unsafe_code)]

pub mod encode;
pub mod error;
pub mod fabric;
pub mod mailbox;
pub mod net;
pub mod queue;
pub mod transport;

pub use encode::{Encode, Encoder};
pub use error::ChannelError;
pub use fabric::{ChannelId, Fabric};
pub use mailbox::{Doorbell, Event, Mailbox};
pub use queue::{Receiver, Sender};
pub use transport::{Farewell, MAX_BODY, Receive, Route, Transport};
