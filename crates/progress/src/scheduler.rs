//! Naiad's scheduler: a flat table of active pointstamps with two counts each.
//!
//! Owns [`Scheduler`]. Invariant: a pointstamp is active while its occurrence count is positive,
//! and its precursor count is the number of other active pointstamps that could result in it.
//! The idea, and the words, are the Naiad paper's. It is small and plain, and an oracle for the
//! [`Tracker`](crate::Tracker): a change of the active set costs its size.

use std::collections::BTreeMap;

use pointstamp_order::{Antichain, PathSummary, Timestamp};

use crate::hops::Hops;
use crate::paths::Paths;
use crate::topology::Topology;
use crate::{Graph, GraphError, Location};

/// The active pointstamps of a graph and, of each, its occurrence and precursor counts.
///
/// ```
/// use pointstamp_progress::{Connectivity, Graph, Location, Scheduler, Source, Target};
///
/// let mut graph = Graph::<u64>::new(0);
/// let first = graph.add_node("first", 0, 1, Connectivity::empty());
/// let second = graph.add_node("second", 1, 0, Connectivity::empty());
/// graph.add_edge(Source::new(first, 0), Target::new(second, 0))?;
///
/// let mut scheduler = Scheduler::new(&graph)?;
/// let (output, input) = (Location::source(first, 0), Location::target(second, 0));
/// scheduler.update(output, &3, 1)?;
/// scheduler.update(input, &3, 1)?;
/// assert_eq!(scheduler.precursor_count(input, &3), 1);
/// scheduler.update(output, &3, -1)?;
/// assert_eq!(scheduler.frontier().collect::<Vec<_>>(), vec![(input, &3)]);
/// # Ok::<(), pointstamp_progress::GraphError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scheduler<T: Timestamp> {
    graph: Graph<T>,
    hops: Hops<T::Summary>,
    /// Per starting location, the summaries to every location; filled at the first request.
    summaries: Vec<Option<Vec<Antichain<T::Summary>>>>,
    table: BTreeMap<(Location, T), Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    occurrences: i64,
    /// Maintained while active.
    precursors: usize,
}

impl<T: Timestamp> Scheduler<T> {
    /// A scheduler for `graph` without active pointstamps.
    ///
    /// # Errors
    ///
    /// When the graph is not sound, as [`Graph::build`] finds.
    pub fn new(graph: &Graph<T>) -> Result<Self, GraphError> {
        Topology::new(graph)?;
        Ok(Self {
            hops: graph.hops(),
            summaries: vec![None; graph.locations()],
            table: BTreeMap::new(),
            graph: graph.clone(),
        })
    }

    /// Changes the number of events with a pointstamp.
    ///
    /// # Errors
    ///
    /// When the graph does not have the location.
    pub fn update(&mut self, location: Location, time: &T, diff: i64) -> Result<(), GraphError> {
        let start = self.graph.index(location)?;
        let counts = self.table.entry((location, time.clone())).or_default();
        let was_active = counts.occurrences > 0;
        counts.occurrences += diff;
        let is_active = counts.occurrences > 0;
        if counts.occurrences == 0 {
            self.table.remove(&(location, time.clone()));
        }
        if is_active != was_active {
            if is_active {
                let precursors = self.count_precursors(location, time);
                self.table
                    .entry((location, time.clone()))
                    .or_default()
                    .precursors = precursors;
            }
            self.precede(start, location, time, is_active);
        }
        Ok(())
    }

    /// The number of events with a pointstamp.
    pub fn occurrence_count(&self, location: Location, time: &T) -> i64 {
        let counts = self.table.get(&(location, time.clone()));
        counts.map_or(0, |counts| counts.occurrences)
    }

    /// The number of other active pointstamps that could result in this one; it need not be active.
    pub fn precursor_count(&mut self, location: Location, time: &T) -> usize {
        match self.table.get(&(location, time.clone())) {
            Some(counts) if counts.occurrences > 0 => counts.precursors,
            _ => self.count_precursors(location, time),
        }
    }

    /// The active pointstamps without precursors, in order: events with such a pointstamp may be delivered.
    pub fn frontier(&self) -> impl Iterator<Item = (Location, &T)> {
        self.table
            .iter()
            .filter(|(_, counts)| counts.occurrences > 0 && counts.precursors == 0)
            .map(|((location, time), _)| (*location, time))
    }

    /// The active pointstamps, in order, with their occurrence and precursor counts.
    pub fn active(&self) -> impl Iterator<Item = (Location, &T, i64, usize)> {
        self.table
            .iter()
            .filter(|(_, counts)| counts.occurrences > 0)
            .map(|((location, time), c)| (*location, time, c.occurrences, c.precursors))
    }

    fn count_precursors(&mut self, location: Location, time: &T) -> usize {
        let Ok(end) = self.graph.index(location) else {
            return 0;
        };
        let active: Vec<(Location, T)> = self
            .active()
            .filter(|(other, t, ..)| (*other, *t) != (location, time))
            .map(|(other, t, ..)| (other, t.clone()))
            .collect();
        let mut precursors = 0;
        for (other, t) in active {
            if let Ok(start) = self.graph.index(other) {
                let summaries = &self.summaries_from(start)[end];
                precursors += usize::from(reaches(summaries, &t, time));
            }
        }
        precursors
    }

    /// Adds or removes the pointstamp as a precursor of the pointstamps that it could result in.
    fn precede(&mut self, start: usize, location: Location, time: &T, active: bool) {
        self.summaries_from(start);
        let Self {
            graph,
            summaries,
            table,
            ..
        } = self;
        let Some(summaries) = &summaries[start] else {
            return;
        };
        for ((other, t), counts) in table.iter_mut() {
            if counts.occurrences <= 0 || (*other, t) == (location, time) {
                continue;
            }
            let reached = graph
                .index(*other)
                .is_ok_and(|end| reaches(&summaries[end], time, t));
            if reached && active {
                counts.precursors += 1;
            } else if reached {
                counts.precursors -= 1;
            }
        }
    }

    fn summaries_from(&mut self, start: usize) -> &[Antichain<T::Summary>] {
        let Self {
            graph,
            hops,
            summaries,
            ..
        } = self;
        summaries[start].get_or_insert_with(|| Paths::<T>::new(hops, graph.identity()).from(start))
    }
}

fn reaches<T: Timestamp>(summaries: &Antichain<T::Summary>, from: &T, to: &T) -> bool {
    summaries
        .iter()
        .any(|summary| summary.results_in(from).is_some_and(|r| r.less_equal(to)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Connectivity, Source, Target};

    #[test]
    fn counts_follow_the_active_set() {
        let mut graph = Graph::<u64>::new(0);
        let node = graph.add_node("loop", 1, 1, Connectivity::identity(1, 1, 1));
        graph
            .add_edge(Source::new(node, 0), Target::new(node, 0))
            .unwrap();
        let mut scheduler = Scheduler::new(&graph).unwrap();
        let (input, output) = (Location::target(node, 0), Location::source(node, 0));

        scheduler.update(input, &3, 2).unwrap();
        scheduler.update(output, &4, 1).unwrap();
        assert_eq!(scheduler.occurrence_count(input, &3), 2);
        assert_eq!(scheduler.precursor_count(output, &4), 1);
        assert_eq!(scheduler.precursor_count(input, &4), 2); // not active
        assert_eq!(scheduler.frontier().collect::<Vec<_>>(), vec![(input, &3)]);

        scheduler.update(input, &3, -1).unwrap();
        assert_eq!(scheduler.precursor_count(output, &4), 1);
        scheduler.update(input, &3, -1).unwrap();
        assert_eq!(scheduler.frontier().collect::<Vec<_>>(), vec![(output, &4)]);
        assert!(scheduler.update(Location::target(9, 0), &0, 1).is_err());
    }

    #[test]
    fn owed_events_are_not_active() {
        let mut graph = Graph::<u64>::new(0);
        graph.add_node("node", 0, 1, Connectivity::empty());
        let mut scheduler = Scheduler::new(&graph).unwrap();
        let output = Location::source(0, 0);
        scheduler.update(output, &3, -1).unwrap();
        scheduler.update(output, &4, 1).unwrap();
        assert_eq!(scheduler.precursor_count(output, &4), 0);
        scheduler.update(output, &3, 2).unwrap();
        assert_eq!(scheduler.precursor_count(output, &4), 1);
    }
}
