//! Programs of `benches/python/bench_collections.py`, written with DBSP.
//!
//! `pointstamp-bench-dbsp PROGRAM WORKERS ARGUMENTS...` takes the arguments of the peer in `benches/collections`, and
//! prints the same: a line `NAME SECONDS` for each part, and a line `check NUMBER...` with what it found. Where DBSP has
//! a program of its own for the question (`examples/degrees.rs`, `benches/galen.rs`, `benches/ldbc-graphalytics`), the
//! operators and the order of the joins are those.

// What does not depend on the peer is that of the other one.
#[path = "../../collections/src/bin/peer/asked.rs"]
mod asked;
#[path = "../../collections/src/bin/peer/clock.rs"]
mod clock;
#[path = "../../collections/src/bin/peer/edges.rs"]
mod edges;
mod galen;
mod graphs;
#[path = "../../collections/src/bin/peer/relation.rs"]
mod relation;
mod rounds;

/// The allocator with which DBSP's own benches run.
#[global_allocator]
static ALLOCATOR: dbsp::mimalloc::MiMalloc = dbsp::mimalloc::MiMalloc;

fn main() {
    let asked = asked::Asked::from_args();
    match asked.program.as_str() {
        "galen" => {
            let (folder, share) = asked.relations();
            galen::run(asked.workers, folder, share);
        }
        program @ ("bfs" | "components" | "degrees") => {
            graphs::run(program, asked.workers, asked.graph());
        }
        other => panic!("there is no program {other}"),
    }
}
