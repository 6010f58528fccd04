//! Arrow batches as the content of streams: hashing, partitioning, merging and slicing, and the keyed
//! operators' state.
//!
//! Everything here works on whole columns and knows neither Python nor threads: an operator of the engine owns
//! a value of this crate per input or time, and feeds it batches. Built on the kernels of `arrow-rs`.
//!
//! | module | owns |
//! |---|---|
//! | [`hash`] | the scheme that routes keys, over plain values |
//! | [`column_hash`] | the same scheme, over columns |
//! | [`partition`] | the rows of a batch by worker |
//! | [`pieces`] | batches worth moving: large ones sliced, tiny ones merged |
//! | [`schema`] | finding and checking columns; making a batch fit a stream |
//! | [`groups`] | numbering the distinct keys of columns |
//! | [`aggregate`] | sums, counts, extremes, means and what is collected per key |
//! | [`partial`] | aggregating rows before they travel, where that pays |
//! | [`distinct`] | a row of each key, per time or for all times so far |
//! | [`selection`] | some of the rows of a batch, and rows in order |
//! | [`physical`] | columns as a few kinds of plain values |
//! | [`event_time`] | columns that tell times, and the rows of a batch by time |
//! | [`windows`] | aggregations per key and window of event time |
//! | [`open_windows`] | the same, with early results, and what is open is written |
//! | [`runs`] | the same, where windows follow the rows of a key: sessions and counted windows |
//! | [`running`] | counts, sums, extremes and means so far, and first rows, by key in the order of time |
//! | [`ipc`] | batches as bytes, for other processes |
//! | [`join`] | pairs of rows with equal keys, as they become known |
//! | [`join_per_time`] | pairs of rows of one time with equal keys, and the rows without a match |
//! | [`kernel`] | what the kernels that take rows in the order of event time have in common |
//! | [`in_time`] | the two sides of a join in time: rows in the order of time, and the results made of them |
//! | [`window_join`] | pairs of rows with equal keys in the same window |
//! | [`interval`] | pairs of rows with equal keys whose times are close |
//! | [`as_of`] | rows with the latest row of another stream, or a table's, as of their time |

#![forbid(unsafe_code)]

pub mod aggregate;
pub mod as_of;
pub mod column_hash;
pub mod distinct;
#[cfg(any(test, feature = "fuzzing"))]
pub mod entry;
pub mod error;
pub mod event_time;
pub mod groups;
pub mod hash;
pub mod in_time;
pub mod interval;
pub mod ipc;
pub mod join;
pub mod join_per_time;
pub mod kernel;
pub mod open_windows;
pub mod partial;
pub mod partition;
pub mod physical;
pub mod pieces;
pub mod running;
pub mod runs;
pub mod schema;
pub mod selection;
pub mod window_join;
pub mod windows;

mod accumulate;
mod collected;
mod dictionary;
mod extent;
mod extremes;
mod floats;
mod gathered;
mod join_side;
mod joined_rows;
mod ordered;
mod running_states;
mod slots;
mod times;
mod waiting;

pub use error::Error;
