//! Collections: multisets of rows that change over time.
//!
//! A stream of a collection carries batches of [`Updates`]: rows, each with a time and a diff. Whatever keeps state
//! keeps it in arrangements of the crate `pointstamp-arrange`.
//!
//! * [`Updates`] and their [`Builder`]; [`project()`], [`filter`], [`negate`], [`check_pairs`], which keep no state;
//! * [`hashed`] and [`by_magnitude`]: labels of nodes, and the turns at which they begin;
//! * [`arrange()`]: an [`Arrangement`], by record or by key, which a [`Trace`] reads and imports into other dataflows;
//! * of an arrangement: [`join`](Arrangement::join), [`reduce`](Arrangement::reduce), [`totals`](Arrangement::totals), and
//!   [`enter`](Arrangement::enter) into a loop, which a [`Variable`] makes;
//! * [`accumulate()`]: sums and counts of the values of keys, as diffs;
//! * [`consolidate()`]: the updates of each time added up.

mod accumulate;
mod arrange;
mod checkpoint;
pub mod columns;
mod consolidate;
mod entered;
mod exotic;
mod follow;
mod fuel;
mod import;
mod join;
mod labels;
mod memory;
mod project;
mod reduce;
mod reducers;
mod route;
mod sealed;
mod staged;
mod staging;
mod time;
mod totals;
mod trace;
mod updates;
mod variable;

use pointstamp_engine::error::BoxError;
use pointstamp_engine::port::Authority;
use pointstamp_order::Point;
use pointstamp_rows::Row;

use crate::Error;
use crate::typed::Output;

pub use accumulate::accumulate;
pub use arrange::{Arranged, Arrangement, Form, Keeps, Size, arrange};
pub use consolidate::consolidate;
pub use exotic::Exotic;
pub use fuel::set_fuel;
pub use join::{Combine, JoinResult};
pub use labels::{by_magnitude, hashed};
pub use project::{check_pairs, filter, negate, project};
pub use reduce::Reducer;
pub use reducers::{
    Accumulation, Aggregate, Collection, Frame, Place, Ranking, Reduction, WindowFunction,
    Windowing, reducer,
};
pub use route::By;
pub use sealed::Sealed;
pub use time::{ScopeTime, frontier_of};
pub use totals::Total;
pub use trace::{Counted, Trace};
pub use updates::{Builder, MAX_UPDATES, Update, Updates};
pub use variable::Variable;

/// Sends the updates of a builder, if it holds any.
///
/// # Errors
///
/// [`Error::TooDeep`] for a row that is nested too deep; errors of [`Output::send`].
pub fn send(
    builder: &mut Builder,
    authority: &impl Authority,
    output: &Output<Updates>,
) -> Result<(), BoxError> {
    if builder.is_empty() {
        return Ok(());
    }
    if builder.is_too_deep() {
        return Err(Error::TooDeep.into());
    }
    let updates = builder.finish(authority.time());
    output.send(authority, updates)
}

/// Adds an update, and sends the batch when it is full.
#[inline]
fn give(
    builder: &mut Builder,
    row: Row<'_>,
    time: &Point,
    diff: i64,
    authority: &impl Authority,
    output: &Output<Updates>,
) -> Result<(), BoxError> {
    builder.push(row, time, diff);
    if builder.is_full() {
        send(builder, authority, output)?;
    }
    Ok(())
}
