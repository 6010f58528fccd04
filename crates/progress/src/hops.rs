//! The steps between the locations of a graph.
//!
//! Owns [`Hops`]: for each location, in one flat vector, where an edge or a path through a node
//! leads and with which summary; summaries are stored once each. Building is linear.

use std::collections::BTreeMap;

use pointstamp_order::{PartialOrder, Timestamp};

use crate::Graph;

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
    pub(crate) fn new<I: Iterator<Item = (usize, Hop)>>(
        locations: usize,
        pairs: impl Fn() -> I,
    ) -> Self {
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

/// Indices fit because [`Topology::new`](crate::topology::Topology::new) has refused graphs that are too large.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn narrow(index: usize) -> u32 {
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

impl<T: Timestamp> Graph<T> {
    pub(crate) fn hops(&self) -> Hops<T::Summary> {
        Hops::new(self)
    }
}
