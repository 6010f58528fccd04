//! The programs of `benches/python/bench_collections.py`, written with differential dataflow.
//!
//! `peer PROGRAM WORKERS ARGUMENTS...` runs one and prints a line `NAME SECONDS` for each of its parts, and a line
//! `check NUMBER...` with what it found, by which the two sides are compared. Nodes are `u32`, as differential's own
//! examples have them. Each program states what is timed: loading, and then rounds of changes.

mod clock;
mod galen;
mod graphs;
mod relation;
mod rounds;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, workers, rest @ ..] = &arguments[..] else {
        panic!("peer PROGRAM WORKERS ARGUMENTS...");
    };
    let workers = workers.parse().expect("a number of workers");
    let number = |index: usize| -> usize {
        let argument = rest.get(index).expect("another argument");
        argument.parse().expect("a number")
    };
    match program.as_str() {
        "galen" => galen::run(workers, &rest[0], rest[1].parse().expect("a share")),
        "scc" | "bfs" | "components" | "degrees" => {
            graphs::run(program, workers, number(0), number(1), number(2), number(3));
        }
        other => panic!("there is no program {other}"),
    }
}
