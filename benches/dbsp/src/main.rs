//! Programs of `benches/python/bench_collections.py`, written with DBSP.
//!
//! `pointstamp-bench-dbsp PROGRAM WORKERS ARGUMENTS...` takes the arguments of the peer in `benches/collections`, and
//! prints the same: a line `NAME SECONDS` for each part, and a line `check NUMBER...` with what it found. Where DBSP has
//! a program of its own for the question (`examples/degrees.rs`, `benches/galen.rs`, `benches/ldbc-graphalytics`), the
//! operators and the order of the joins are those.

// What does not depend on the peer is that of the other one.
#[path = "../../collections/src/bin/peer/clock.rs"]
mod clock;
mod galen;
mod graphs;
#[path = "../../collections/src/bin/peer/relation.rs"]
mod relation;
mod rounds;

/// The allocator with which DBSP's own benches run.
#[global_allocator]
static ALLOCATOR: dbsp::mimalloc::MiMalloc = dbsp::mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, workers, rest @ ..] = &arguments[..] else {
        panic!("pointstamp-bench-dbsp PROGRAM WORKERS ARGUMENTS...");
    };
    let workers = workers.parse().expect("a number of workers");
    let number = |index: usize| -> usize {
        let argument = rest.get(index).expect("another argument");
        argument.parse().expect("a number")
    };
    match program.as_str() {
        "galen" => galen::run(workers, &rest[0], rest[1].parse().expect("a share")),
        "bfs" | "components" | "degrees" => {
            let graph = rounds::Graph {
                nodes: number(0),
                edges: number(1),
                changes: number(2),
                rounds: number(3),
            };
            graphs::run(program, workers, graph);
        }
        other => panic!("there is no program {other}"),
    }
}
