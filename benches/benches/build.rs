//! Building trackers of large graphs, which has to be linear in ports and edges.

use std::hint::black_box;
use std::time::Instant;

use pointstamp_progress::{Connectivity, Graph, Location, Source, Target};

fn timed<R>(name: &str, make: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = make();
    println!("{name:<58} {:>8.2} s", start.elapsed().as_secs_f64());
    result
}

/// A square grid: each node has two inputs and two outputs, towards the right and down. With a
/// boundary, the scope's input enters at one corner and its output leaves at the other.
fn grid(side: usize, boundary: bool) -> Graph<u64> {
    let mut graph = if boundary {
        Graph::with_boundary(0, 1, 1)
    } else {
        Graph::new(0)
    };
    let first = graph.nodes();
    for _ in 0..side * side {
        graph.add_node("node", 2, 2, Connectivity::identity(2, 2, 0));
    }
    for row in 0..side {
        for column in 0..side {
            let node = first + row * side + column;
            if column + 1 < side {
                graph
                    .add_edge(Source::new(node, 0), Target::new(node + 1, 0))
                    .unwrap();
            }
            if row + 1 < side {
                graph
                    .add_edge(Source::new(node, 1), Target::new(node + side, 1))
                    .unwrap();
            }
        }
    }
    if boundary {
        graph
            .add_edge(Source::new(0, 0), Target::new(first, 0))
            .unwrap();
        graph
            .add_edge(Source::new(first + side * side - 1, 0), Target::new(0, 0))
            .unwrap();
    }
    graph
}

/// One node with many ports on one side.
fn wide(ports: usize, inputs: bool) -> Graph<u64> {
    let mut graph = Graph::new(0);
    let (i, o) = if inputs { (ports, 1) } else { (1, ports) };
    let node = graph.add_node("wide", i, o, Connectivity::identity(i, o, 0));
    let many = graph.add_node("many", o, i, Connectivity::empty());
    for port in 0..i {
        graph
            .add_edge(Source::new(many, port), Target::new(node, port))
            .unwrap();
    }
    for port in 0..o {
        graph
            .add_edge(Source::new(node, port), Target::new(many, port))
            .unwrap();
    }
    graph
}

fn main() {
    let side = if std::env::args().any(|argument| argument == "--bench") {
        1_000
    } else {
        50
    };
    println!("\nBuilding, in seconds");
    for (inputs, name) in [(true, "inputs"), (false, "outputs")] {
        let graph = wide(100_000, inputs);
        black_box(timed(&format!("a node with 100,000 {name}"), || {
            graph.build().unwrap()
        }));
    }
    for (boundary, name) in [(false, "a root"), (true, "a nested scope")] {
        let name = format!("a grid of {side}x{side} nodes as {name}");
        let graph = timed(&format!("{name}: describe"), || grid(side, boundary));
        let mut tracker = timed(&format!("{name}: build"), || graph.build().unwrap());
        timed(&format!("{name}: one pointstamp reaches all"), || {
            tracker.update(Location::target(usize::from(boundary), 0), 0, 1);
            tracker.propagate();
            black_box(tracker.drain_changes().count())
        });
    }
}
