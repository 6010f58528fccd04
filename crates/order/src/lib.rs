//! Partial orders, timestamps and the collections that reason about them.
//!
//! Everything in a timely dataflow that speaks about *when* is built from the pieces here:
//!
//! * [`PartialOrder`], [`Timestamp`] and [`PathSummary`]: timestamps, and their changes along a path of the dataflow;
//! * [`Antichain`]: a set of mutually incomparable elements, such as a frontier;
//! * [`ChangeBatch`]: changes to counts, accumulated cheaply and consolidated on demand;
//! * [`MutableAntichain`]: counted elements and, maintained under changes, their frontier;
//! * [`Product`], tuples, unsigned integers and `()`: timestamps for tests and benchmarks;
//! * [`Point`] and [`Summary`]: the timestamp and the path summary the engine runs on;
//! * [`Coords`] and [`Shift`]: the same for a fixed number of coordinates, which trackers run on;
//! * [`group_of`], [`worker_of`] and [`groups_of`]: key groups, the units in which keyed state is divided among workers.
//!
//! The crate is pure: no threads, no I/O, no dependencies.
//!
//! ```
//! use pointstamp_order::{MutableAntichain, PathSummary, Point, Summary};
//!
//! // Two outstanding times, neither before the other: both are in the frontier.
//! let mut outstanding = MutableAntichain::new();
//! outstanding.update(Point::new(&[0, 3]), 1);
//! outstanding.update(Point::new(&[1, 2]), 1);
//! assert_eq!(outstanding.frontier().len(), 2);
//!
//! // A loop's feedback advances the last coordinate.
//! let feedback = Summary::step(2, 1);
//! assert_eq!(feedback.results_in(&Point::new(&[1, 2])), Some(Point::new(&[1, 3])));
//! ```

#![forbid(unsafe_code)]

mod antichain;
mod change_batch;
mod coords;
mod groups;
mod mutable_antichain;
mod partial_order;
mod point;
mod product;
mod summary;
mod timestamp;

pub use antichain::Antichain;
pub use change_batch::ChangeBatch;
pub use coords::{Coords, Shift};
pub use groups::{GROUPS, group_of, groups_of, worker_of, worker_of_hash};
pub use mutable_antichain::MutableAntichain;
pub use partial_order::PartialOrder;
pub use point::Point;
pub use product::Product;
pub use summary::Summary;
pub use timestamp::{PathSummary, Timestamp};
