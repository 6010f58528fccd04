//! A cluster: processes that find each other, prove themselves, and exchange frames over one connection for each pair.
//!
//! [`form()`] connects this process to all others and gives the [`Transport`](pointstamp_channels::Transport) of the formed cluster.
//!
//! * `secret`, `introduction`, `noise` and `handshake`: nothing is parsed before the other end has proved that it
//!   knows the secret, nothing is done before it has proved that it is present now, and no process is accepted whose
//!   configuration differs.
//! * `gate`: the listener, where strangers may come as they like and disturb nothing; `form`: the whole of it.
//! * `records`, `wire` and [`tls`]: a socket, and the encryption of its bytes. `frame`: messages in a stream of
//!   bytes; `pool`: memory for large ones.
//! * [`message_link`]: messages between two programs that are no cluster, with the same handshake and cover, or over an inherited socket.
//! * `outbox`, `link` and `mesh`: the connections of a formed cluster, two threads for each, however many workers there are.
//!
//! Every length that is read is limited. Nothing waits for ever: a process that sends nothing, not even a heartbeat,
//! or takes nothing for the stall timeout is lost, and so is one whose connection ends without a farewell.

#![forbid(unsafe_code)]

mod dial;
#[cfg(any(test, feature = "fuzzing"))]
pub mod entry;
pub mod error;
mod form;
mod frame;
mod gate;
mod handshake;
mod introduction;
mod link;
mod mesh;
pub mod message_link;
mod noise;
mod outbox;
mod pool;
mod records;
mod report;
mod secret;
pub mod tls;
mod wire;

pub use error::{FormError, Invalid};
pub use form::{Member, form};
pub use message_link::MessageLink;
pub use report::Log;
pub use secret::Secret;
pub use tls::Tls;

#[cfg(test)]
mod tests;
