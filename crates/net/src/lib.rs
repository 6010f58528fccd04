//! A cluster: processes that find each other, prove themselves, and exchange frames over one connection for each pair.
//!
//! [`form()`] connects this process to all others and gives the [`Transport`](pointstamp_channels::Transport) of the formed cluster.
//!
//! * `proof`, `introduction` and `handshake`: nothing is parsed before both ends have proved by a challenge that they
//!   know the secret, and nobody is let in whose configuration differs.
//! * `gate`: the listener, where strangers may come as they like and disturb nothing; `form`: the whole of it.
//! * `wire` and [`tls`]: a socket, with or without TLS. `frame`: messages in a stream of bytes; `pool`: memory for large ones.
//! * `outbox`, `link` and `mesh`: the connections of a formed cluster, two threads for each, however many workers there are.
//!
//! Every length that is read is limited. Nothing waits for ever: a process that says nothing, not even by a heartbeat, or takes
//! nothing for the stall timeout is lost, and so is one whose connection ends without a farewell.

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
mod outbox;
mod pool;
mod proof;
pub mod tls;
mod wire;

pub use error::FormError;
pub use form::{Log, Member, form};
pub use tls::Tls;

#[cfg(test)]
mod tests;
