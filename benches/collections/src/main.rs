//! Collections beside differential dataflow's, without Python, in one run.
//!
//! First the kernels, which are driven alike on both sides, without a dataflow around them: updates into a batcher, batches
//! into a spine, whose reader follows. Then whole dataflows of `pointstamp-operators` beside differential's, on one worker
//! each (`dataflows N`). Samples of both alternate; what is printed is the median of each and
//! the ratio ours / theirs, below 1 is faster. `arrange N` sets how many pairs are
//! loaded; graphs have a tenth as many nodes, and half as many edges.

mod arrange;
mod dataflows;
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
    if matches!(which.as_str(), "all" | "dataflows") {
        dataflows::run(pairs as u64 / 10, pairs / 2);
    }
    if matches!(which.as_str(), "all" | "sharing") {
        sharing::run(pairs);
    }
    if matches!(which.as_str(), "all" | "memory") {
        memory::run(pairs);
    }
}
