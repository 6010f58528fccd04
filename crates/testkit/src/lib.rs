//! Oracles, generators and models for tests.
//!
//! Nothing here is shared with the code under test beyond the traits and the types of the interfaces:
//!
//! * [`Domain`]: kinds of timestamps to test with, each with a finite universe of times;
//! * [`Layered`]: a partial order with neither joins nor meets;
//! * [`GraphSpec`]: random graphs, as a plain description;
//! * [`Reach`]: could-result-in by walking a graph one hop at a time;
//! * [`SimulatedCluster`]: workers that act at random and exchange progress over random interleavings;
//! * [`explore`]: every interleaving of a small cluster;
//! * [`CountModel`]: counts in a map, with everything recomputed when asked;
//! * [`cases`]: the number of cases that a property test tries;
//! * [`memory`]: connections between parts of one program, as if they were processes.

#![forbid(unsafe_code)]

mod cluster;
mod domain;
mod effort;
pub mod explore;
mod graphs;
mod layered;
pub mod memory;
mod model;
mod reach;
mod rng;

pub use cluster::{Fault, SimulatedCluster, Violation};
pub use domain::{Domain, Nested, Numbers, Odd, Points};
pub use effort::cases;
pub use graphs::{GraphSpec, NodeSpec, graph_spec};
pub use layered::{Layered, Rise};
pub use model::CountModel;
pub use reach::Reach;
pub use rng::Rng;
