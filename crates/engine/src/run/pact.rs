//! Parallelization contracts: how records reach the worker that should see them.
//!
//! Owns [`Pact`], which connects itself: each contract has a file, with the edge that it makes.

mod broadcast;
mod connection;
mod exchange;
mod pipeline;
mod route;

use crate::error::Error;
use crate::payload::Payload;

pub(crate) use connection::{Connected, Connection};
pub use route::Route;

/// The kind of a contract: the way in which records move between workers, without its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PactKind {
    /// The kind of [`Pact::Pipeline`].
    Pipeline,
    /// The kind of [`Pact::Exchange`].
    Exchange,
    /// The kind of [`Pact::Broadcast`].
    Broadcast,
}

/// The way in which an edge moves records between workers.
pub enum Pact<P> {
    /// Records stay on their worker.
    Pipeline,
    /// Each record goes to the worker that the router says.
    Exchange(Box<dyn Route<P>>),
    /// Each record goes to every worker.
    Broadcast,
}

impl<P> Pact<P> {
    /// An exchange by a router.
    pub fn exchange(router: impl Route<P> + 'static) -> Self {
        Pact::Exchange(Box::new(router))
    }

    /// The kind of contract.
    pub fn kind(&self) -> PactKind {
        match self {
            Pact::Pipeline => PactKind::Pipeline,
            Pact::Exchange(_) => PactKind::Exchange,
            Pact::Broadcast => PactKind::Broadcast,
        }
    }

    /// The contract's name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Pact::Pipeline => "pipeline",
            Pact::Exchange(_) => "exchange",
            Pact::Broadcast => "broadcast",
        }
    }

    /// The number of copies of each record that arrive, with so many workers.
    pub(crate) fn copies(&self, peers: usize) -> i64 {
        match self {
            Pact::Pipeline | Pact::Exchange(_) => 1,
            Pact::Broadcast => peers as i64,
        }
    }
}

impl<P: Payload> Pact<P> {
    /// Makes the edge to an input.
    ///
    /// # Errors
    ///
    /// [`Error::Channel`] where a channel cannot be opened.
    pub(crate) fn connect(self, connection: Connection<'_, P>) -> Result<Connected<P>, Error> {
        match self {
            Pact::Pipeline => Ok((pipeline::connect(connection), None)),
            Pact::Exchange(router) => exchange::connect(router, connection),
            Pact::Broadcast => broadcast::connect(connection),
        }
    }
}
