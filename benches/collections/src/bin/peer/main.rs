//! The programs of `benches/python/bench_collections.py`, written with differential dataflow.
//!
//! `peer PROGRAM WORKERS ARGUMENTS...` runs one and prints a line `NAME SECONDS` for each of its parts, and a line
//! `check NUMBER...` with what it found, by which the two sides are compared. Nodes are `u32`, as differential's own
//! examples have them. Each program states what is timed: loading, and then rounds of changes.

mod asked;
mod clock;
mod edges;
mod galen;
mod graphs;
mod relation;
mod rounds;

fn main() {
    let asked = asked::Asked::from_args();
    match asked.program.as_str() {
        "galen" => {
            let (folder, share) = asked.relations();
            galen::run(asked.workers, folder, share);
        }
        program @ ("scc" | "bfs" | "components" | "degrees") => {
            graphs::run(program, asked.workers, asked.graph());
        }
        other => panic!("there is no program {other}"),
    }
}
