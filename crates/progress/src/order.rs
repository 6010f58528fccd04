//! An order of locations in which no hop that may leave a timestamp as it is goes back.
//!
//! Owns [`order`], and the search for a cycle that prevents it. Such an order exists when every cycle advances; no
//! hop goes back ([`GraphError::GoesBack`]), so a cycle advances where one of its hops does. Processing times in
//! order, and locations in this order within a time, meets every location after all that leads to it. Costs linear
//! time.

use pointstamp_order::{PartialOrder, Timestamp};

use crate::hops::{Hop, Hops, IDENTITY, narrow};
use crate::{Graph, GraphError};

/// Dense indices in an order in which every hop that may not advance goes forward.
pub(crate) fn order<T: Timestamp>(
    graph: &Graph<T>,
    hops: &Hops<T::Summary>,
) -> Result<Vec<u32>, GraphError> {
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
    let nodes = visited(graph, &cycle);
    Err(GraphError::Cycle {
        names: nodes
            .iter()
            .map(|node| graph.node_list()[*node].name.to_string())
            .collect(),
        nodes,
    })
}

/// The numbers of the nodes that a sequence of dense indices visits.
fn visited<T: Timestamp>(graph: &Graph<T>, cycle: &[usize]) -> Vec<usize> {
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
}
