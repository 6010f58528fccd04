//! Graphs compiled into flat arrays.
//!
//! Owns [`Hops`], the adjacency of locations as the graph numbers them, and [`Topology`], the same
//! renumbered in a topological order of the hops that may leave a timestamp as it is. Such an
//! order exists because every cycle advances; processing times in order, and locations in this
//! order within a time, meets every location after all that leads to it. Building is linear.

use std::collections::BTreeMap;

use pointstamp_order::{Antichain, PartialOrder, Timestamp};

use crate::paths::Paths;
use crate::{Connectivity, Graph, GraphError, Location, Port};

/// Marks a hop that leaves timestamps as they are.
pub(crate) const IDENTITY: u32 = u32::MAX;

/// A step from one location to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) to: u32,
    /// Index of the summary, or [`IDENTITY`].
    pub(crate) summary: u32,
}

/// Lists per location, one after the other in a single vector.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    offsets: Vec<u32>,
    hops: Vec<Hop>,
}

impl Lists {
    /// Groups `(from, hop)` by `from`, keeping the order within a group.
    fn new<I: Iterator<Item = (usize, Hop)>>(locations: usize, pairs: impl Fn() -> I) -> Self {
        let mut offsets = vec![0u32; locations + 1];
        for (from, _) in pairs() {
            offsets[from + 1] += 1;
        }
        for index in 0..locations {
            offsets[index + 1] += offsets[index];
        }
        let mut next = offsets.clone();
        let mut hops = vec![Hop { to: 0, summary: 0 }; offsets[locations] as usize];
        for (from, hop) in pairs() {
            hops[next[from] as usize] = hop;
            next[from] += 1;
        }
        Self { offsets, hops }
    }

    /// The number of locations.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    #[inline]
    pub(crate) fn of(&self, location: usize) -> &[Hop] {
        &self.hops[self.offsets[location] as usize..self.offsets[location + 1] as usize]
    }

    fn iter(&self) -> impl Iterator<Item = (usize, Hop)> {
        (0..self.len()).flat_map(|from| self.of(from).iter().map(move |hop| (from, *hop)))
    }

    /// The same hops, to be walked from their ends.
    pub(crate) fn reversed(&self) -> Self {
        Self::new(self.len(), || {
            self.iter().map(|(from, hop)| {
                let summary = hop.summary;
                (
                    hop.to as usize,
                    Hop {
                        to: narrow(from),
                        summary,
                    },
                )
            })
        })
    }
}

/// Indices fit because [`Topology::new`] has refused graphs that are too large.
#[allow(clippy::cast_possible_truncation)]
fn narrow(index: usize) -> u32 {
    index as u32
}

/// The steps from each location, and the distinct summaries on them.
#[derive(Clone, Debug)]
pub(crate) struct Hops<S> {
    pub(crate) lists: Lists,
    pub(crate) summaries: Vec<S>,
}

impl<S: PartialOrder + Ord + Clone> Hops<S> {
    /// The hops of a graph, by its dense indices. Paths beyond a node's ports are left out.
    pub(crate) fn new<T: Timestamp<Summary = S>>(graph: &Graph<T>) -> Self {
        let mut numbers: BTreeMap<&S, u32> = BTreeMap::new();
        let mut internal = Vec::new();
        for node in graph.node_list() {
            for (input, output, summaries) in node.connectivity.iter() {
                if input >= node.inputs || output >= node.outputs {
                    continue;
                }
                let (from, to) = (node.first + input, node.first + node.inputs + output);
                for summary in summaries {
                    let number = if summary == graph.identity() {
                        IDENTITY
                    } else {
                        let fresh = narrow(numbers.len());
                        *numbers.entry(summary).or_insert(fresh)
                    };
                    internal.push((
                        from,
                        Hop {
                            to: narrow(to),
                            summary: number,
                        },
                    ));
                }
            }
        }
        let mut summaries: Vec<(u32, S)> = numbers
            .into_iter()
            .map(|(summary, number)| (number, summary.clone()))
            .collect();
        summaries.sort_unstable_by_key(|(number, _)| *number);
        let edge = |&(from, to): &(usize, usize)| {
            (
                from,
                Hop {
                    to: narrow(to),
                    summary: IDENTITY,
                },
            )
        };
        let pairs = || {
            graph
                .edge_list()
                .iter()
                .map(edge)
                .chain(internal.iter().copied())
        };
        Self {
            lists: Lists::new(graph.locations(), pairs),
            summaries: summaries.into_iter().map(|(_, summary)| summary).collect(),
        }
    }
}

/// A graph, compiled: its locations numbered so that hops that may not advance go upwards.
#[derive(Debug)]
pub(crate) struct Topology<T: Timestamp> {
    pub(crate) hops: Hops<T::Summary>,
    /// Per location, the scope outputs it reaches (as `to`) and by which summaries.
    pub(crate) exits: Option<Lists>,
    /// The summaries of the exits.
    pub(crate) exit_summaries: Vec<T::Summary>,
    identity: T::Summary,
    /// Where each node's locations start in `numbers`.
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

    /// True when the location numbered `number` is a port of node 0, which stands for the outside.
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
    if size >= u32::MAX as usize {
        return Err(GraphError::TooLarge { size });
    }
    Ok(())
}

/// Dense indices in an order in which every hop that may not advance goes forward.
fn order<T: Timestamp>(graph: &Graph<T>, hops: &Hops<T::Summary>) -> Result<Vec<u32>, GraphError> {
    let advances: Vec<bool> = hops
        .summaries
        .iter()
        .map(|summary| graph.identity().less_than(summary))
        .collect();
    let stays = |hop: &&Hop| hop.summary == IDENTITY || !advances[hop.summary as usize];

    let locations = graph.locations();
    let mut incoming = vec![0u32; locations];
    for location in 0..locations {
        for hop in hops.lists.of(location).iter().filter(stays) {
            incoming[hop.to as usize] += 1;
        }
    }
    // Last in, first out: the locations of a chain end up side by side.
    let mut ready: Vec<u32> = (0..locations)
        .rev()
        .filter(|location| incoming[*location] == 0)
        .map(narrow)
        .collect();
    let mut order = Vec::with_capacity(locations);
    while let Some(location) = ready.pop() {
        order.push(location);
        for hop in hops.lists.of(location as usize).iter().rev().filter(stays) {
            incoming[hop.to as usize] -= 1;
            if incoming[hop.to as usize] == 0 {
                ready.push(hop.to);
            }
        }
    }
    if order.len() == locations {
        return Ok(order);
    }

    // Each location that is left follows another one: walking back from any meets a cycle.
    let mut previous = vec![u32::MAX; locations];
    for location in (0..locations).filter(|location| incoming[*location] > 0) {
        for hop in hops.lists.of(location).iter().filter(stays) {
            previous[hop.to as usize] = narrow(location);
        }
    }
    let mut at = incoming.iter().position(|count| *count > 0).unwrap_or(0);
    for _ in 0..locations {
        at = previous[at] as usize;
    }
    let (start, mut cycle) = (at, Vec::new());
    loop {
        cycle.push(at);
        at = previous[at] as usize;
        if at == start {
            break;
        }
    }
    cycle.reverse();
    let least = (0..cycle.len())
        .min_by_key(|index| cycle[*index])
        .unwrap_or(0);
    cycle.rotate_left(least);
    Err(GraphError::Cycle {
        names: names(graph, &cycle),
    })
}

/// The names of the nodes that a sequence of dense indices visits.
fn names<T: Timestamp>(graph: &Graph<T>, cycle: &[usize]) -> Vec<String> {
    let nodes = graph.node_list();
    let mut visited: Vec<usize> = cycle
        .iter()
        .map(|index| nodes.partition_point(|node| node.first <= *index) - 1)
        .collect();
    visited.dedup();
    if visited.len() > 1 && visited.first() == visited.last() {
        visited.pop();
    }
    visited
        .into_iter()
        .map(|node| nodes[node].name.to_string())
        .collect()
}
