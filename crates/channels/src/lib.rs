//! Typed queues between workers, of one process or of several, and the doorbells that wake them.
//!
//! * [`mailbox`]: the events for which a worker sleeps. The holder of a [`Doorbell`] may wake it.
//! * [`queue`]: a typed queue into one worker. A burst of messages rings the doorbell once.
//! * [`sender`]: the other end, also of the way to another process.
//! * [`fabric`]: how workers that build the same dataflow find each other's queues, by [`ChannelId`].
//! * [`combiner`]: broadcasts that are added up before they leave the process.
//! * [`relay`]: broadcasts that are added up on their way, where processes are many.
//! * [`transport`] and [`encode`]: the interfaces of connections and messages. `pointstamp-net` has the connections
//!   between processes, `pointstamp-testkit` some between parts of one program.
//!
//! It knows nothing of timestamps, progress or operators. Pushing costs one lock-free enqueue and
//! one atomic swap; a doorbell rung while the worker is awake makes no system call.
//!
//! ```
//! use pointstamp_channels::{ChannelId, Fabric, Ring};
//!
//! let (fabric, mut mailboxes) = Fabric::in_process(2, 1 << 20);
//! let id = ChannelId { dataflow: 0, channel: 0 };
//! let (to_each, _from_all) = fabric.open::<String>(0, id).unwrap();
//! let (_, inbox) = fabric.open::<String>(1, id).unwrap();
//!
//! to_each[1].push("one".to_owned())?;
//! to_each[1].push("two".to_owned())?;
//! assert_eq!(mailboxes[1].next(), Some(Ring::Channel(id)));   // one ring for the burst
//! assert_eq!(mailboxes[1].next(), None);
//! inbox.acknowledge();
//! assert_eq!(inbox.pop()?.as_deref(), Some("one"));
//! assert_eq!(inbox.pop()?.as_deref(), Some("two"));
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```

#![forbid(unsafe_code)]

mod activity;
pub mod combine;
pub mod combiner;
pub mod encode;
pub mod error;
pub mod fabric;
mod gauge;
pub mod id;
mod lock;
pub mod mailbox;
mod pressure;
pub mod queue;
pub mod relay;
mod routes;
pub mod sender;
mod sync;
mod tombstones;
pub mod transport;

pub use combine::{Combine, Sum};
pub use combiner::{Combined, LINGER};
pub use encode::{Encode, Encoder};
pub use error::ChannelError;
pub use fabric::{Fabric, Overseer};
pub use gauge::Tally;
pub use id::ChannelId;
pub use mailbox::{Doorbell, Mailbox, Ring};
pub use pressure::{ASK, STALLED};
pub use queue::Receiver;
pub use relay::group_of;
pub use sender::{Sender, Traffic};
pub use transport::{Farewell, MAX_BODY, Reason, Receive, Recipient, Transport, joined};
