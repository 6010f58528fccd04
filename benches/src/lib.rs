//! The common part of the benchmarks: the harness, and the streams of updates that they feed to both sides.
//!
//! `cargo bench -p pointstamp-bench` runs every benchmark and prints, per line, the cost of one
//! operation on either side and the ratio ours / theirs, below 1 where ours is faster. A new
//! subject is a file in `benches/` and an entry in `Cargo.toml`.

#![forbid(unsafe_code)]

pub mod figures;
pub mod harness;
pub mod streams;
