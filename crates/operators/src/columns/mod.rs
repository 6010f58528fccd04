//! Streams of Arrow record batches.
//!
//! Hashing, partitioning, merging, slicing, aggregating and joining are kernels of the crate `pointstamp-columnar`; an
//! operator here feeds a kernel with the batches that arrive, and sends its results at the right times.
//!
//! | module | owns |
//! |---|---|
//! | `route` | exchanges by the hash of key columns |
//! | `outbox` | batches of one activation, merged and sliced on their way out |
//! | `aggregate` | aggregations per time and key |
//! | `keyed` | state by key: distinct rows and joins, per time and across times |
//! | `divided` | kernels whose state is in parts |
//! | `movement` | rows moved or split by key |
//! | `event_time` | rows that tell their event times |
//! | `windows` | aggregations per key and window of event time, updated as rows arrive |
//! | `parts` | state by key in parts, of which some are on disk |
//! | `by_time` | such state of the times that are open |
//! | `in_time` | kernels that take rows in the order of event time |

mod aggregate;
mod by_time;
mod divided;
mod event_time;
mod in_time;
mod keyed;
mod movement;
mod outbox;
mod parts;
mod route;
mod windows;

pub use aggregate::aggregate;
pub use divided::Divided;
pub use event_time::{delay, own_times_schema, with_own_times};
pub use in_time::{InTime, Keeper, Ran, Shared, SideInput, shared};
pub use keyed::{Later, distinct, distinct_so_far, join, join_so_far};
pub use movement::{exchange, partition};
pub use outbox::Outbox;
pub use route::{by_columns, by_groups_of_columns, placed};
pub use windows::{window, window_schema};
