//! Graphs compiled into flat arrays.
//!
//! Owns [`Topology`]: the hops between locations, renumbered in the topological order that
//! [`order`](crate::order) finds, and the summaries from each location to each scope output.
//! Building is linear, apart from the latter.

use std::collections::BTreeMap;

use pointstamp_order::{Antichain, PartialOrder, Timestamp};

use crate::hops::{Hop, Hops, IDENTITY, Lists, narrow};
use crate::order::order;
use crate::paths::Paths;
use crate::{Connectivity, Graph, GraphError, Location, Port};

/// A graph, compiled: its locations numbered so that hops that may not advance go upwards.
#[derive(Debug)]
pub(crate) struct Topology<T: Timestamp> {
    pub(crate) hops: Hops<T::Summary>,
    /// Per location, the scope outputs it reaches (as `to`) and by which summaries.
    pub(crate) exits: Option<Lists>,
    /// The summaries of the exits.
    pub(crate) exit_summaries: Vec<T::Summary>,
    identity: T::Summary,
    /// The offsets in `numbers` at which each node's locations start.
    nodes: Vec<(usize, usize, usize)>,
    /// From dense indices to our numbers.
    numbers: Vec<u32>,
    /// From our numbers to locations.
    places: Vec<Place>,
    boundary: bool,
}

/// A location in eight bytes: `port` counts a node's inputs, then its outputs.
#[derive(Clone, Copy, Debug)]
struct Place {
    node: u32,
    port: u32,
}

impl<T: Timestamp> Topology<T> {
    pub(crate) fn new(graph: &Graph<T>) -> Result<Self, GraphError> {
        check(graph)?;
        let dense = graph.hops();
        let order = order(graph, &dense)?;
        let mut numbers = vec![0; order.len()];
        for (number, index) in order.iter().enumerate() {
            numbers[*index as usize] = narrow(number);
        }
        let renumbered = |number: usize, hop: &Hop| {
            (
                number,
                Hop {
                    to: numbers[hop.to as usize],
                    summary: hop.summary,
                },
            )
        };
        let lists = Lists::new(order.len(), || {
            order.iter().enumerate().flat_map(|(number, index)| {
                dense
                    .lists
                    .of(*index as usize)
                    .iter()
                    .map(move |hop| renumbered(number, hop))
            })
        });
        let mut places = vec![Place { node: 0, port: 0 }; order.len()];
        for (index, node) in graph.node_list().iter().enumerate() {
            for port in 0..node.inputs + node.outputs {
                places[numbers[node.first + port] as usize] = Place {
                    node: narrow(index),
                    port: narrow(port),
                };
            }
        }
        let nodes = graph.node_list();
        let mut result = Self {
            hops: Hops {
                lists,
                summaries: dense.summaries,
            },
            exits: None,
            exit_summaries: Vec::new(),
            identity: graph.identity().clone(),
            nodes: nodes
                .iter()
                .map(|node| (node.first, node.inputs, node.outputs))
                .collect(),
            numbers,
            places,
            boundary: graph.has_boundary(),
        };
        result.summarize_exits();
        Ok(result)
    }

    /// Compiles the summaries from each location to each scope output.
    fn summarize_exits(&mut self) {
        let outputs = self.scope_outputs();
        if outputs == 0 {
            return;
        }
        let backward = Hops {
            lists: self.hops.lists.reversed(),
            summaries: self.hops.summaries.clone(),
        };
        let mut numbers: BTreeMap<T::Summary, u32> = BTreeMap::new();
        let mut found = Vec::new();
        let mut paths = Paths::<T>::new(&backward, &self.identity);
        for output in 0..outputs {
            let end = self.numbers[output];
            paths.to(
                end as usize,
                |location, summaries: &Antichain<T::Summary>| {
                    if location != end as usize {
                        for summary in summaries {
                            let number = if *summary == self.identity {
                                IDENTITY
                            } else {
                                let fresh = narrow(numbers.len());
                                *numbers.entry(summary.clone()).or_insert(fresh)
                            };
                            found.push((
                                location,
                                Hop {
                                    to: narrow(output),
                                    summary: number,
                                },
                            ));
                        }
                    }
                },
            );
        }
        self.exits = Some(Lists::new(self.places.len(), || found.iter().copied()));
        let mut summaries: Vec<(u32, T::Summary)> =
            numbers.into_iter().map(|(s, n)| (n, s)).collect();
        summaries.sort_unstable_by_key(|(number, _)| *number);
        self.exit_summaries = summaries.into_iter().map(|(_, summary)| summary).collect();
    }

    /// The summaries from scope inputs to scope outputs.
    pub(crate) fn scope_summary(&self) -> Connectivity<T::Summary> {
        let mut result = Connectivity::empty();
        let Some(exits) = &self.exits else {
            return result;
        };
        let (_, inputs, outputs) = self.nodes[0];
        for port in 0..outputs {
            let mut antichains: BTreeMap<u32, Antichain<T::Summary>> = BTreeMap::new();
            for exit in exits.of(self.numbers[inputs + port] as usize) {
                let summary = if exit.summary == IDENTITY {
                    &self.identity
                } else {
                    &self.exit_summaries[exit.summary as usize]
                };
                antichains
                    .entry(exit.to)
                    .or_default()
                    .insert(summary.clone());
            }
            for (output, summaries) in antichains {
                result.set(port, output as usize, summaries);
            }
        }
        result
    }

    /// Per location, the minimal summaries of its paths to the location numbered `end`.
    pub(crate) fn paths_to(&self, end: usize) -> Vec<(usize, Antichain<T::Summary>)> {
        let backward = Hops {
            lists: self.hops.lists.reversed(),
            summaries: self.hops.summaries.clone(),
        };
        let mut result = Vec::new();
        Paths::<T>::new(&backward, &self.identity).to(end, |location, summaries| {
            result.push((location, summaries.clone()));
        });
        result
    }
}

impl<T: Timestamp> Topology<T> {
    /// The number of locations.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn scope_outputs(&self) -> usize {
        if self.boundary { self.nodes[0].1 } else { 0 }
    }

    /// True when the location numbered `number` is a port of node 0, which stands for the surroundings of the
    /// scope.
    #[inline]
    pub(crate) fn is_boundary(&self, number: usize) -> bool {
        self.boundary && self.places[number].node == 0
    }

    pub(crate) fn has_boundary(&self) -> bool {
        self.boundary
    }

    /// The number of a location, if the graph has it.
    #[inline]
    pub(crate) fn number(&self, location: Location) -> Option<usize> {
        let (first, inputs, outputs) = *self.nodes.get(location.node)?;
        let index = match location.port {
            Port::Target(port) if port < inputs => first + port,
            Port::Source(port) if port < outputs => first + inputs + port,
            _ => return None,
        };
        Some(self.numbers[index] as usize)
    }

    /// The location with a number.
    #[inline]
    pub(crate) fn location(&self, number: usize) -> Location {
        let Place { node, port } = self.places[number];
        let (node, port) = (node as usize, port as usize);
        let inputs = self.nodes[node].1;
        if port < inputs {
            Location::target(node, port)
        } else {
            Location::source(node, port - inputs)
        }
    }
}

fn check<T: Timestamp>(graph: &Graph<T>) -> Result<(), GraphError> {
    let mut size = graph.locations() + graph.edge_list().len();
    for node in graph.node_list() {
        if let Some((input, output)) = node.connectivity.beyond(node.inputs, node.outputs) {
            let name = node.name.to_string();
            let (inputs, outputs) = (node.inputs, node.outputs);
            return Err(GraphError::NoSuchPath {
                name,
                inputs,
                outputs,
                input,
                output,
            });
        }
        size = size.saturating_add(node.connectivity.size());
    }
    // Before anything walks the paths: so many would take hours.
    if size >= u32::MAX as usize {
        return Err(GraphError::TooLarge { size });
    }
    // Hops that advance, or leave a time as it is, are the ones that the order of locations helps with: of a cycle of
    // them that one advances, every other keeps the increment.
    for node in graph.node_list() {
        for (input, output, summaries) in node.connectivity.iter() {
            let identity = graph.identity();
            if !summaries.iter().all(|summary| identity.less_equal(summary)) {
                let name = node.name.to_string();
                return Err(GraphError::GoesBack {
                    name,
                    input,
                    output,
                });
            }
        }
    }
    Ok(())
}
