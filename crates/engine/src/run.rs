//! The running parts of a worker: operators and scopes, their state, and the messages between them.
//!
//! This module knows neither the construction of a dataflow nor its scheduler.

pub mod activation;
pub(crate) mod arrival;
pub(crate) mod boundary;
pub(crate) mod brake;
pub mod capability;
pub(crate) mod changes;
pub(crate) mod closure;
pub(crate) mod edge;
pub(crate) mod failing;
pub(crate) mod holding;
pub(crate) mod notify;
pub mod pact;
pub mod port;
pub(crate) mod probe;
pub mod progress;
pub(crate) mod queue;
pub(crate) mod schedule;
pub(crate) mod site;
pub(crate) mod subgraph;
pub(crate) mod taking;
pub(crate) mod tee;
mod view;
pub mod wakeups;
