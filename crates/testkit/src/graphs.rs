//! Random dataflow graphs.
//!
//! Owns [`GraphSpec`], a plain description that the oracle reads and that a
//! [`Graph`] is built from. Edges that go back, or stay at their node, pass through a feedback node
//! of their own that strictly advances, so that every graph is sound; graphs that may not be are
//! made by [`GraphSpec::without_feedback`].

use pointstamp_order::{Antichain, Timestamp};
use pointstamp_progress::{Connectivity, Graph, Location, Source, Target};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::Domain;

/// A summary in a domain.
type SummaryOf<D> = <<D as Domain>::Time as Timestamp>::Summary;

/// A node: its ports, and the summaries of its paths in no particular form.
#[derive(Clone, Debug)]
pub struct NodeSpec<S> {
    /// The number of inputs.
    pub inputs: usize,
    /// The number of outputs.
    pub outputs: usize,
    /// Input, output, and the summary of one path between them. Pairs may repeat, or be missing.
    pub paths: Vec<(usize, usize, S)>,
}

/// A graph.
#[derive(Clone, Debug)]
pub struct GraphSpec<D: Domain> {
    /// The nodes, by index.
    pub nodes: Vec<NodeSpec<SummaryOf<D>>>,
    /// The edges; none of them changes a timestamp.
    pub edges: Vec<(Source, Target)>,
    /// Whether node 0 is the boundary of a scope.
    pub boundary: bool,
}

impl<D: Domain> GraphSpec<D> {
    /// The same as a graph of the crate under test.
    ///
    /// # Panics
    ///
    /// When an edge is refused, which would be a mistake of the generator.
    pub fn graph(&self) -> Graph<D::Time> {
        let (mut graph, rest) = match self.nodes.split_first() {
            Some((first, rest)) if self.boundary => (
                Graph::with_boundary(D::identity(), first.outputs, first.inputs),
                rest,
            ),
            _ => (Graph::new(D::identity()), &self.nodes[..]),
        };
        for node in rest {
            let mut connectivity = Connectivity::empty();
            for (input, output, _) in &node.paths {
                let same = node
                    .paths
                    .iter()
                    .filter(|(i, o, _)| (i, o) == (input, output));
                let summaries: Antichain<_> = same.map(|(_, _, summary)| summary.clone()).collect();
                connectivity.set(*input, *output, summaries);
            }
            let name = format!("node {}", graph.nodes());
            graph.add_node(name, node.inputs, node.outputs, connectivity);
        }
        for (source, target) in &self.edges {
            graph
                .add_edge(*source, *target)
                .expect("the generator makes edges between ports");
        }
        graph
    }

    /// Every port, in order.
    pub fn locations(&self) -> Vec<Location> {
        let ports = |(index, node): (usize, &NodeSpec<_>)| {
            let inputs = (0..node.inputs).map(move |port| Location::target(index, port));
            inputs.chain((0..node.outputs).map(move |port| Location::source(index, port)))
        };
        self.nodes.iter().enumerate().flat_map(ports).collect()
    }

    /// The locations one hop from a location, with the summary of the hop; none for edges.
    pub fn hops(&self, from: Location) -> Vec<(Location, Option<SummaryOf<D>>)> {
        let edges = self
            .edges
            .iter()
            .filter(|(source, _)| Location::from(*source) == from);
        let mut hops: Vec<_> = edges
            .map(|(_, target)| (Location::from(*target), None))
            .collect();
        for (input, output, summary) in &self.nodes[from.node].paths {
            if Location::target(from.node, *input) == from {
                hops.push((Location::source(from.node, *output), Some(summary.clone())));
            }
        }
        hops
    }

    /// An input followed by `length` nodes, each of which passes its input on.
    pub fn pipeline(length: usize) -> Self {
        let mut nodes = vec![NodeSpec {
            inputs: 0,
            outputs: 1,
            paths: Vec::new(),
        }];
        let pass = NodeSpec {
            inputs: 1,
            outputs: 1,
            paths: vec![(0, 0, D::identity())],
        };
        nodes.extend(std::iter::repeat_n(pass, length));
        let edges = (0..length).map(|node| (Source::new(node, 0), Target::new(node + 1, 0)));
        Self {
            nodes,
            edges: edges.collect(),
            boundary: false,
        }
    }

    /// Graphs with edges in every direction and no feedback, which may have cycles that do not
    /// advance.
    pub fn without_feedback() -> BoxedStrategy<Self> {
        shape::<D>(false)
            .prop_map(|(nodes, edges, _)| assemble(nodes, &edges, None))
            .boxed()
    }
}

type Shape<D> = (
    Vec<NodeSpec<SummaryOf<D>>>,
    Vec<[prop::sample::Index; 2]>,
    Vec<SummaryOf<D>>,
);

fn shape<D: Domain>(boundary: bool) -> impl Strategy<Value = Shape<D>> {
    let path = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        D::summary(),
    );
    let ports = || prop_oneof![1 => Just(0usize), 3 => Just(1), 2 => Just(2)];
    let node = (ports(), ports(), vec(path, 0..5)).prop_map(|(inputs, outputs, paths)| {
        let paths = if inputs == 0 || outputs == 0 {
            Vec::new()
        } else {
            paths
        };
        let paths = paths
            .into_iter()
            .map(|(i, o, s)| (i.index(inputs), o.index(outputs), s));
        NodeSpec {
            inputs,
            outputs,
            paths: paths.collect(),
        }
    });
    let edges = vec(any::<[prop::sample::Index; 2]>(), 2..10);
    (vec(node, 2..6), edges, vec(D::advancing(), 10)).prop_map(move |(mut nodes, edges, steps)| {
        if boundary {
            nodes[0].paths.clear();
        }
        (nodes, edges, steps)
    })
}

fn assemble<D: Domain>(
    mut nodes: Vec<NodeSpec<SummaryOf<D>>>,
    edges: &[[prop::sample::Index; 2]],
    steps: Option<&[SummaryOf<D>]>,
) -> GraphSpec<D> {
    let ports = |count: &dyn Fn(&NodeSpec<SummaryOf<D>>) -> usize| -> Vec<(usize, usize)> {
        let pairs = nodes.iter().enumerate();
        pairs
            .flat_map(|(index, node)| (0..count(node)).map(move |port| (index, port)))
            .collect()
    };
    let (sources, targets) = (ports(&|node| node.outputs), ports(&|node| node.inputs));
    let mut spec = GraphSpec {
        nodes: Vec::new(),
        edges: Vec::new(),
        boundary: false,
    };
    if !sources.is_empty() && !targets.is_empty() {
        for (number, [from, to]) in edges.iter().enumerate() {
            let (source, target) = (from.get(&sources), to.get(&targets));
            let (mut source, target) = (
                Source::new(source.0, source.1),
                Target::new(target.0, target.1),
            );
            if let Some(steps) = steps
                && target.node <= source.node
            {
                let paths = vec![(0, 0, steps[number].clone())];
                nodes.push(NodeSpec {
                    inputs: 1,
                    outputs: 1,
                    paths,
                });
                spec.edges.push((source, Target::new(nodes.len() - 1, 0)));
                source = Source::new(nodes.len() - 1, 0);
            }
            spec.edges.push((source, target));
        }
    }
    spec.nodes = nodes;
    spec
}

/// Sound graphs of a few nodes, with loops, missing paths, several edges per port, and every
/// other one with a boundary.
pub fn graph_spec<D: Domain>() -> BoxedStrategy<GraphSpec<D>> {
    any::<bool>()
        .prop_flat_map(|boundary| (Just(boundary), shape::<D>(boundary)))
        .prop_map(|(boundary, (nodes, edges, steps))| {
            let spec = assemble(nodes, &edges, Some(&steps));
            GraphSpec { boundary, ..spec }
        })
        .boxed()
}
