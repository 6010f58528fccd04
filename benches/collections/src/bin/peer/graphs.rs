//! Questions about graphs that change.

use differential_dataflow::VecCollection;
use differential_dataflow::algorithms::graphs::{
    bfs::bfs, propagate::propagate, scc::strongly_connected,
};
use differential_dataflow::input::Input;
use differential_dataflow::operators::count::CountTotal;

use crate::edges::Graph;
use crate::rounds;

type Pairs<'a> = VecCollection<'a, u64, (u32, u32), isize>;

/// Runs the named program.
pub fn run(program: &str, workers: usize, graph: Graph) {
    match program {
        "degrees" => rounds::run(workers, graph, degrees),
        "bfs" => rounds::run(workers, graph, hops),
        "components" => rounds::run(workers, graph, components),
        _ => rounds::run(workers, graph, strong),
    }
}

/// Returns the number of nodes with each number of edges.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn degrees(edges: Pairs<'_>) -> Pairs<'_> {
    let degrees = edges.map(|(source, _)| source).count_total();
    let counts = degrees.map(|(_, degree)| degree as u32).count_total();
    counts.map(|(degree, nodes)| (degree, nodes as u32))
}

/// Returns the distance of each node from node 0.
fn hops(edges: Pairs<'_>) -> Pairs<'_> {
    let roots = edges.scope().new_collection_from(Some(0)).1;
    bfs(edges, roots)
}

/// Every node of a graph's edges.
fn nodes(edges: Pairs<'_>) -> Pairs<'_> {
    edges
        .flat_map(|(source, target)| [(source, source), (target, target)])
        .distinct()
}

/// The least node of each node's component.
fn components(edges: Pairs<'_>) -> Pairs<'_> {
    let both = edges
        .clone()
        .concat(edges.clone().map(|(source, target)| (target, source)))
        .distinct();
    propagate(both, nodes(edges))
}

/// The least node of each node's strong component.
fn strong(edges: Pairs<'_>) -> Pairs<'_> {
    let edges = edges.distinct();
    let cycles = strongly_connected(edges.clone());
    let within = nodes(cycles.clone());
    let alone = nodes(edges).antijoin(within.clone().map(|(node, _)| node));
    propagate(cycles, within).concat(alone)
}
