//! Progress tracking: which timestamps may still appear, and where.
//!
//! A dataflow is a graph of nodes with ports. Messages and capabilities are outstanding at its
//! ports, each with a timestamp; the pair of a timestamp and a place is a pointstamp. From the
//! counts of pointstamps this crate derives, for every port, the frontier of timestamps that may
//! still arrive there.
//!
//! * [`Graph`] describes nodes, edges and [`Connectivity`], and answers could-result-in;
//! * [`Tracker`] counts pointstamps and maintains every port's frontier as they change;
//! * [`Protocol`] drives a tracker with the batches that workers exchange;
//! * [`drain`] finds, for a checkpoint, a moment at which nothing is in flight;
//! * [`Scheduler`] is Naiad's table of occurrence and precursor counts, small and plain.
//!
//! The crate is pure: no threads and no I/O. Its only dependency in the project is the order.
//!
//! ```
//! use pointstamp_progress::{Connectivity, Graph, Location, Source, Target};
//!
//! // An input, and a loop of one operator whose feedback adds one.
//! let mut graph = Graph::<u64>::new(0);
//! let input = graph.add_node("input", 0, 1, Connectivity::empty());
//! let body = graph.add_node("body", 2, 1, Connectivity::identity(2, 1, 0));
//! let feedback = graph.add_node("feedback", 1, 1, Connectivity::identity(1, 1, 1));
//! graph.add_edge(Source::new(input, 0), Target::new(body, 0))?;
//! graph.add_edge(Source::new(body, 0), Target::new(feedback, 0))?;
//! graph.add_edge(Source::new(feedback, 0), Target::new(body, 1))?;
//!
//! let mut tracker = graph.build()?;
//! tracker.update(Location::source(input, 0), 7, 1);
//! tracker.propagate();
//! assert_eq!(tracker.frontier(Location::target(body, 0)), &[7]);
//! assert_eq!(tracker.frontier(Location::target(body, 1)), &[8]);
//! # Ok::<(), pointstamp_progress::GraphError>(())
//! ```

#![forbid(unsafe_code)]

mod connectivity;
pub mod drain;
mod error;
mod graph;
mod hops;
mod location;
mod order;
mod paths;
mod protocol;
mod scheduler;
mod topology;
mod tracker;
mod worklist;

pub use connectivity::Connectivity;
pub use error::GraphError;
pub use graph::Graph;
pub use location::{Location, Port, Source, Target};
pub use protocol::{Mode, ProgressBatch, Protocol};
pub use scheduler::Scheduler;
pub use tracker::Tracker;
