//! Collections: what `pointstamp.Collection` calls.
//!
//! A stream of a collection carries batches of updates ([`updates`]): rows (`pointstamp_rows`), each with a time and a
//! diff. Functions over records run as chains ([`chain`]), which make objects of rows and rows of objects, once for a
//! batch. Everything that keeps state keeps it in arrangements of the crate `pointstamp-arrange`, and runs without the
//! interpreter.

pub(crate) mod arrange;
pub(crate) mod chain;
pub(crate) mod columns;
pub(crate) mod consolidate;
pub(crate) mod entered;
pub(crate) mod failure;
pub(crate) mod field;
mod follow;
pub(crate) mod fuel;
pub(crate) mod given;
mod import;
pub(crate) mod input;
pub(crate) mod join;
pub(crate) mod play;
pub(crate) mod project;
pub(crate) mod records;
pub(crate) mod reduce;
mod reducers;
pub(crate) mod route;
pub(crate) mod sealed;
pub(crate) mod shape;
mod staged;
mod staging;
mod sums;
mod time;
pub(crate) mod totals;
pub(crate) mod trace;
pub(crate) mod updates;
pub(crate) mod values;

use pointstamp_engine::error::BoxError;
use pointstamp_engine::port::{Authority, OutputPort, SendError};
use pointstamp_order::Point;

use crate::batch::Batch;
use crate::raised::Raised;
use pointstamp_rows::Row;
use updates::{Builder, Updates};

/// The updates of a batch on a stream that carries nothing else.
pub(crate) fn updates_of(batch: Batch) -> Updates {
    match batch {
        Batch::Updates(updates) => updates,
        Batch::Records(_) | Batch::Arrow(_) | Batch::Sealed(_) => {
            unreachable!("a collection's stream carries updates only")
        }
    }
}

/// Sends what a builder holds, if it holds anything.
pub(crate) fn send(
    builder: &mut Builder,
    authority: &impl Authority,
    output: &OutputPort<Batch>,
) -> Result<(), BoxError> {
    if builder.is_empty() {
        return Ok(());
    }
    if builder.is_too_deep() {
        return Err(Raised::here(updates::too_deep()));
    }
    let updates = builder.finish(authority.time());
    output
        .send(authority, Batch::Updates(updates))
        .map_err(SendError::into_cause)
}

/// Adds an update, and sends the batch when it is full.
#[inline]
pub(crate) fn give(
    builder: &mut Builder,
    row: Row<'_>,
    time: &Point,
    diff: i64,
    authority: &impl Authority,
    output: &OutputPort<Batch>,
) -> Result<(), BoxError> {
    builder.push(row, time, diff);
    if builder.is_full() {
        send(builder, authority, output)?;
    }
    Ok(())
}
