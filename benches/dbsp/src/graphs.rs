//! Questions about graphs that change.

use dbsp::operator::{Generator, Min};
use dbsp::utils::Tup2;
use dbsp::{ChildCircuit, Circuit, NestedCircuit, OrdZSet, RootCircuit, Runtime, Stream};

use crate::edges::Graph;
use crate::rounds::{self, Pair, Pairs};

type Inner = Stream<NestedCircuit, OrdZSet<Pair>>;

/// Runs the named program.
pub fn run(program: &str, workers: usize, graph: Graph) {
    match program {
        "degrees" => rounds::run(workers, graph, degrees),
        "bfs" => rounds::run(workers, graph, hops),
        _ => rounds::run(workers, graph, components),
    }
}

/// Returns the number of nodes with each number of edges.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn degrees(edges: &Pairs) -> Pairs {
    let degrees = edges.map(|Tup2(source, _)| *source).weighted_count();
    let counts = degrees.map(|(_, degree)| *degree as u32).weighted_count();
    counts.map(|(degree, nodes)| Tup2(*degree, *nodes as u32))
}

/// The least value that reaches each node over edges: `next` is what an edge makes of its source's value.
fn least(start: &Pairs, edges: &Pairs, next: fn(u32) -> u32) -> Pairs {
    let by_source = edges.map_index(|Tup2(source, target)| (*source, *target));
    let circuit: &RootCircuit = edges.circuit();
    circuit
        .recursive(|inner: &ChildCircuit<_, _>, values: Inner| {
            let start = start.delta0(inner);
            let by_source = by_source.delta0(inner);
            let values = values
                .map_index(|Tup2(node, value)| (*node, *value))
                .join(&by_source, move |_, value, target| {
                    Tup2(*target, next(*value))
                })
                .plus(&start)
                .map_index(|Tup2(node, value)| (*node, *value))
                .aggregate(Min)
                .map(|(node, value)| Tup2(*node, *value));
            Ok(values)
        })
        .expect("a loop")
}

/// Returns the distance of each node from node 0.
fn hops(edges: &Pairs) -> Pairs {
    let mut first = Runtime::worker_index() == 0;
    let root = Generator::new(move || {
        let given = std::mem::take(&mut first);
        OrdZSet::from_keys(
            (),
            given.then_some(Tup2(Tup2(0, 0), 1)).into_iter().collect(),
        )
    });
    let start = edges.circuit().add_source(root);
    least(&start, edges, |hops| hops + 1)
}

/// The least node of each node's component.
fn components(edges: &Pairs) -> Pairs {
    let back = edges.map(|Tup2(source, target)| Tup2(*target, *source));
    let both = edges.plus(&back).distinct();
    let nodes = both
        .map(|Tup2(source, _)| Tup2(*source, *source))
        .distinct();
    least(&nodes, &both, |label| label)
}
