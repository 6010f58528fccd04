//! The kernel of collections beside differential dataflow's, in one run.
//!
//! Both sides are driven alike, without a dataflow around them: updates into a batcher, batches into a
//! spine, whose reader follows. Samples of both alternate; what is printed is the median of each and
//! the ratio ours / theirs, below 1 is faster. `arrange N` sets how many pairs are
//! loaded; graphs have a tenth as many nodes, and half as many edges.

mod arrange;
mod loops;
mod memory;
mod operators;
mod samples;
mod sharing;

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'));
    let which = arguments.next().unwrap_or_else(|| "all".into());
    let pairs = arguments.next().map_or(10_000_000, |pairs| {
        pairs.parse().expect("a number of pairs")
    });
    if matches!(which.as_str(), "all" | "arrange") {
        arrange::run(pairs);
    }
    if matches!(which.as_str(), "all" | "operators") {
        operators::run(pairs as u64 / 10, pairs / 2);
    }
    if matches!(which.as_str(), "all" | "loops") {
        loops::run(pairs as u64 / 10, pairs / 2);
    }
    if matches!(which.as_str(), "all" | "sharing") {
        sharing::run(pairs);
    }
    if matches!(which.as_str(), "all" | "memory") {
        memory::run(pairs);
    }
}
