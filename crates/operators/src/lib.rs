//! Dataflow operators of collections and columns.
//!
//! All streams of a program carry one payload type, [`Batch`], which is one of the five [`Kind`]s. [`Typed`] is a
//! stream whose batches are of one kind; operators take and return typed streams, and receive and send through typed
//! ports ([`Input`], [`Output`]), so that a stream of the wrong kind is an error when the graph is built. Parts that
//! only the host language implements are behind traits: its records ([`HostBatch`]), its functions and its values.
//!
//! This crate knows no host language. It builds on the engine (ports, capabilities, scheduling), on `pointstamp-arrange`
//! (batches, traces, the kernels of joins and reductions), on `pointstamp-columnar` (kernels over Arrow batches), on
//! `pointstamp-rows` (values and expressions) and on `pointstamp-events` (the format of captures).

#![forbid(unsafe_code)]

pub mod activity;
pub mod batch;
pub mod captures;
pub mod checkpoint;
pub mod collections;
pub mod columns;
#[cfg(any(test, feature = "fuzzing"))]
pub mod entry;
mod error;
mod event_time;
mod host;
mod kind;
mod per_time;
#[cfg(test)]
mod tests;
mod timed;
mod typed;
mod unary;

pub use batch::{Batch, Content};
pub use error::Error;
pub use event_time::at_own_times;
pub use host::{
    ColumnsDecoder, HostBatch, HostColumn, HostDecoder, MAX_BATCH, register_columns_decoder,
    register_host_decoder,
};
pub use kind::Kind;
pub use per_time::PerTime;
pub use timed::{Timed, Times};
pub use typed::{Input, Output, Typed};
pub use unary::{Logic, Unary};
