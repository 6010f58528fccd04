//! Descriptions of dataflow graphs, and the properties that follow from the description alone.
//!
//! Owns [`Graph`]. Edges leave timestamps as they are; nodes change them by their [`Connectivity`]. All locations of
//! one graph have timestamps of one kind, so that the identity is one summary. Adding costs constant time. The
//! derived structures are in their own modules: its hops (`hops`), the summaries of its paths (`paths`), its tracker
//! (`tracker`).

use pointstamp_order::Timestamp;

use crate::{Connectivity, GraphError, Location, Port, Source, Target};

/// A dataflow graph under construction.
#[derive(Clone, Debug)]
pub struct Graph<T: Timestamp> {
    identity: T::Summary,
    nodes: Vec<Node<T::Summary>>,
    /// Pairs of dense indices of a source and a target.
    edges: Vec<(usize, usize)>,
    boundary: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Node<S> {
    pub(crate) name: Box<str>,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// The dense index of the first input; the outputs follow the inputs.
    pub(crate) first: usize,
    pub(crate) connectivity: Connectivity<S>,
}

impl<T: Timestamp> Graph<T> {
    /// An empty graph on its own; `identity` is the summary that changes no timestamp.
    pub fn new(identity: T::Summary) -> Self {
        Self {
            identity,
            nodes: Vec::new(),
            edges: Vec::new(),
            boundary: false,
        }
    }

    /// Returns the graph of a scope. Node 0 stands for the scope's surroundings: the outputs of node 0 are
    /// the scope's inputs, and the inputs of node 0 are the scope's outputs.
    pub fn with_boundary(identity: T::Summary, scope_inputs: usize, scope_outputs: usize) -> Self {
        let mut graph = Self::new(identity);
        graph.boundary = true;
        graph.add_node(
            "the scope's boundary",
            scope_outputs,
            scope_inputs,
            Connectivity::empty(),
        );
        graph
    }

    /// Adds a node and returns its index; indices are consecutive.
    ///
    /// A summary for a port that the node does not have is reported by [`Graph::build`].
    pub fn add_node(
        &mut self,
        name: impl Into<Box<str>>,
        inputs: usize,
        outputs: usize,
        connectivity: Connectivity<T::Summary>,
    ) -> usize {
        self.nodes.push(Node {
            name: name.into(),
            inputs,
            outputs,
            first: self.locations(),
            connectivity,
        });
        self.nodes.len() - 1
    }

    /// Connects an output to an input. Any number of edges may share either end.
    ///
    /// # Errors
    ///
    /// When the graph does not have one of the ports; the graph is then as it was.
    pub fn add_edge(&mut self, source: Source, target: Target) -> Result<(), GraphError> {
        let source = self.index(source.into())?;
        let target = self.index(target.into())?;
        self.edges.push((source, target));
        Ok(())
    }

    /// Checks that the graph has this port.
    ///
    /// # Errors
    ///
    /// When it does not; the error names the missing part.
    pub fn check(&self, location: impl Into<Location>) -> Result<(), GraphError> {
        self.index(location.into()).map(|_| ())
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The name of a node.
    pub fn name(&self, node: usize) -> Option<&str> {
        self.nodes.get(node).map(|node| &*node.name)
    }

    /// The numbers of inputs and outputs of a node.
    pub fn shape(&self, node: usize) -> Option<(usize, usize)> {
        self.nodes.get(node).map(|node| (node.inputs, node.outputs))
    }

    /// The same graph over another kind of timestamps; none if a summary has no translation.
    pub fn translate<U: Timestamp>(
        &self,
        translate: impl Fn(&T::Summary) -> Option<U::Summary>,
    ) -> Option<Graph<U>> {
        let node = |node: &Node<T::Summary>| {
            Some(Node {
                name: node.name.clone(),
                inputs: node.inputs,
                outputs: node.outputs,
                first: node.first,
                connectivity: node.connectivity.try_map(&translate)?,
            })
        };
        Some(Graph {
            identity: translate(&self.identity)?,
            nodes: self.nodes.iter().map(node).collect::<Option<_>>()?,
            edges: self.edges.clone(),
            boundary: self.boundary,
        })
    }

    /// The number of ports.
    pub(crate) fn locations(&self) -> usize {
        self.nodes
            .last()
            .map_or(0, |node| node.first + node.inputs + node.outputs)
    }

    pub(crate) fn identity(&self) -> &T::Summary {
        &self.identity
    }

    pub(crate) fn node_list(&self) -> &[Node<T::Summary>] {
        &self.nodes
    }

    pub(crate) fn edge_list(&self) -> &[(usize, usize)] {
        &self.edges
    }

    pub(crate) fn has_boundary(&self) -> bool {
        self.boundary
    }

    /// The dense index of a location.
    pub(crate) fn index(&self, location: Location) -> Result<usize, GraphError> {
        let node = self
            .nodes
            .get(location.node)
            .ok_or(GraphError::NoSuchNode {
                node: location.node,
                nodes: self.nodes.len(),
            })?;
        let (port, ports, offset) = match location.port {
            Port::Target(port) => (port, node.inputs, 0),
            Port::Source(port) => (port, node.outputs, node.inputs),
        };
        if port < ports {
            Ok(node.first + offset + port)
        } else {
            Err(GraphError::NoSuchPort {
                location,
                name: node.name.to_string(),
                ports,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use pointstamp_order::{Antichain, Point, Summary};

    use super::*;

    fn ring(steps: &[u64]) -> Graph<u64> {
        let mut graph = Graph::new(0);
        for (index, step) in steps.iter().enumerate() {
            graph.add_node(
                format!("n{index}"),
                1,
                1,
                Connectivity::identity(1, 1, *step),
            );
        }
        for index in 0..steps.len() {
            let next = (index + 1) % steps.len();
            graph
                .add_edge(Source::new(index, 0), Target::new(next, 0))
                .unwrap();
        }
        graph
    }

    #[test]
    fn paths_around_a_ring_take_the_least_steps() {
        let graph = ring(&[0, 2, 0]);
        let (start, end) = (Location::target(0, 0), Location::source(2, 0));
        assert_eq!(graph.path_summaries(start, end).elements(), &[2]);
        assert_eq!(graph.path_summaries(end, start).elements(), &[0]);
        assert_eq!(graph.path_summaries(start, start).elements(), &[0]);
        assert!(graph.could_result_in(&3, start, &5, end));
        assert!(!graph.could_result_in(&3, start, &4, end));
    }

    #[test]
    fn a_cycle_that_does_not_advance_is_refused_by_name() {
        let error = ring(&[0, 0, 0]).build().unwrap_err();
        let names = ["n0", "n1", "n2"].map(String::from).to_vec();
        let nodes = vec![0, 1, 2];
        assert_eq!(error, GraphError::Cycle { names, nodes });
        assert!(
            error
                .to_string()
                .contains("through \"n0\", \"n1\", \"n2\" does not advance")
        );
        assert!(ring(&[0, 1, 0]).build().is_ok());
    }

    #[test]
    fn a_cycle_names_the_node_once_that_it_ends_where_it_began() {
        let mut graph = Graph::<u64>::new(0);
        let mut straight = Connectivity::empty();
        straight.set(0, 0, Antichain::from_elem(0));
        straight.set(1, 1, Antichain::from_elem(0));
        let twice = graph.add_node("twice", 2, 2, straight);
        let once = graph.add_node("once", 1, 1, Connectivity::identity(1, 1, 0));
        for (source, target) in [
            (Source::new(twice, 0), Target::new(once, 0)),
            (Source::new(once, 0), Target::new(twice, 1)),
            (Source::new(twice, 1), Target::new(twice, 0)),
        ] {
            graph.add_edge(source, target).unwrap();
        }
        let names = ["twice", "once"].map(String::from).to_vec();
        let nodes = vec![0, 1];
        assert_eq!(
            graph.build().unwrap_err(),
            GraphError::Cycle { names, nodes }
        );
    }

    #[test]
    fn a_graph_of_more_paths_than_can_be_numbered_is_refused_at_once() {
        let ports = 1 << 20;
        let mut graph = Graph::<u64>::new(0);
        let wide = graph.add_node(
            "wide",
            ports,
            ports,
            Connectivity::identity(ports, ports, 0),
        );
        for port in 0..3 {
            graph
                .add_edge(Source::new(wide, port), Target::new(wide, port))
                .unwrap();
        }
        let size = (ports << 20) + 2 * ports + 3;
        assert_eq!(graph.build().unwrap_err(), GraphError::TooLarge { size });
    }

    #[test]
    fn changing_a_timestamp_is_not_advancing_it() {
        // Leaves an inner scope and enters it again: (3, 5) would come back as (3, 0).
        let mut graph = Graph::<Point>::new(Summary::identity(2));
        let again = Connectivity::identity(1, 1, Summary::new(1, &[0, 0]));
        let node = graph.add_node("again", 1, 1, again);
        graph
            .add_edge(Source::new(node, 0), Target::new(node, 0))
            .unwrap();
        assert!(matches!(graph.build(), Err(GraphError::GoesBack { name, .. }) if name == "again"));
    }

    #[test]
    fn incomparable_paths_are_all_kept() {
        let mut graph = Graph::<Point>::new(Summary::identity(2));
        let mut both = Connectivity::empty();
        let steps = [
            Summary::from_increments(&[1, 0]),
            Summary::from_increments(&[0, 1]),
        ];
        both.set(0, 0, steps.into_iter().collect());
        let node = graph.add_node("either", 1, 1, both);
        graph
            .add_edge(Source::new(node, 0), Target::new(node, 0))
            .unwrap();
        let paths = graph.path_summaries(Location::target(0, 0), Location::source(0, 0));
        assert_eq!(paths.len(), 2);
        assert!(graph.build().is_ok());
    }

    #[test]
    fn a_graph_is_translated_as_a_whole_or_not_at_all() {
        let graph = ring(&[0, 2, 1]);
        let small = |summary: &u64| u8::try_from(*summary).ok();
        let translated: Graph<u8> = graph.translate(small).unwrap();
        let (start, end) = (Location::target(0, 0), Location::source(2, 0));
        assert_eq!(translated.path_summaries(start, end).elements(), &[3]);
        assert_eq!(translated.name(1), Some("n1"));
        assert!(translated.build().is_ok());
        assert!(ring(&[0, 300]).translate::<u8>(small).is_none());
    }

    #[test]
    fn what_is_missing_is_named() {
        let mut graph = ring(&[1]);
        let error = graph
            .add_edge(Source::new(3, 0), Target::new(0, 0))
            .unwrap_err();
        assert_eq!(error, GraphError::NoSuchNode { node: 3, nodes: 1 });
        assert_eq!(graph.check(Target::new(3, 0)), Err(error));
        assert_eq!(graph.check(Target::new(0, 0)), Ok(()));
        let error = graph
            .add_edge(Source::new(0, 0), Target::new(0, 1))
            .unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("there is no input 1 of node 0: \"n0\" has 1")
        );
        graph.add_node("wide", 1, 1, Connectivity::identity(2, 1, 0));
        assert!(matches!(
            graph.build(),
            Err(GraphError::NoSuchPath { input: 1, .. })
        ));
    }
}
