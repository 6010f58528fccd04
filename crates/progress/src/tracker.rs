//! Counts of pointstamps, and the frontiers that follow from them.
//!
//! Owns [`Tracker`]. Invariant, after [`Tracker::propagate`]: the frontier at a location consists
//! of the minimal times that some pointstamp with a positive count could result in there. Each
//! location holds the counts of its own pointstamps, and its *implications*: one for each element
//! of its own pointstamps' frontier, and one for each element of the frontier at a location one
//! hop before, as the hop changes it. Only changes to a frontier travel on, so that the cost of
//! propagation follows the frontiers that change, and neither the graph nor the history.
//!
//! Changes are propagated in the order of times, and within a time in the topological order of
//! the locations. All that leads to a time at a location has then been met before it: because
//! every cycle advances, no change chases its own echo, and propagation ends.

use std::sync::Arc;

use pointstamp_order::{ChangeBatch, MutableAntichain, PathSummary, Timestamp};

use crate::hops::IDENTITY;
use crate::topology::Topology;
use crate::worklist::Worklist;
use crate::{Connectivity, Graph, GraphError, Location};

/// Tracks which times may still appear at each location of a graph.
///
/// Counts may be negative for a while, as reports of changes overtake one another.
///
/// ```
/// use pointstamp_progress::{Connectivity, Graph, Location, Source, Target};
///
/// let mut graph = Graph::<u64>::new(0);
/// let first = graph.add_node("first", 0, 1, Connectivity::empty());
/// let second = graph.add_node("second", 1, 0, Connectivity::empty());
/// graph.add_edge(Source::new(first, 0), Target::new(second, 0))?;
/// let mut tracker = graph.build()?;
/// let (output, input) = (Location::source(first, 0), Location::target(second, 0));
///
/// tracker.update(output, 3, 1);
/// tracker.propagate();
/// assert_eq!(tracker.frontier(input), &[3]);
///
/// // A message is sent at time 4, and the capability is dropped.
/// tracker.update(input, 4, 1);
/// tracker.update(output, 3, -1);
/// tracker.propagate();
/// let changes: Vec<_> = tracker.drain_changes().collect();
/// assert_eq!(changes, vec![((input, 4), 1)]); // net: time 3 has come and gone
/// # Ok::<(), pointstamp_progress::GraphError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tracker<T: Timestamp> {
    /// Clones share it.
    topology: Arc<Topology<T>>,
    ports: Vec<Port<T>>,
    /// Changes to pointstamp counts that have not been propagated.
    updates: Vec<(u32, T, i64)>,
    worklist: Worklist<T>,
    /// Changes to frontiers since they were last drained.
    changes: ChangeBatch<(u32, T)>,
    outputs: Vec<MutableAntichain<T>>,
    output_changes: ChangeBatch<(usize, T)>,
    /// The number of elements of all pointstamps' frontiers.
    live: i64,
    scratch: Vec<(T, i64)>,
}

#[derive(Clone, Debug)]
struct Port<T> {
    pointstamps: MutableAntichain<T>,
    implications: MutableAntichain<T>,
}

impl<T: Timestamp> Tracker<T> {
    pub(crate) fn new(topology: Topology<T>) -> Self {
        let port = Port {
            pointstamps: MutableAntichain::new(),
            implications: MutableAntichain::new(),
        };
        Self {
            ports: vec![port; topology.len()],
            outputs: vec![MutableAntichain::new(); topology.scope_outputs()],
            updates: Vec::new(),
            worklist: Worklist::new(),
            changes: ChangeBatch::new(),
            output_changes: ChangeBatch::new(),
            live: 0,
            scratch: Vec::new(),
            topology: Arc::new(topology),
        }
    }

    /// Changes the count of a pointstamp. Takes effect with the next [`Tracker::propagate`].
    ///
    /// # Panics
    ///
    /// When the graph does not have the location; see [`Tracker::contains`].
    #[inline]
    pub fn update(&mut self, location: Location, time: T, diff: i64) {
        let number = self.number(location);
        #[allow(clippy::cast_possible_truncation)] // locations are numbered in u32
        self.updates.push((number as u32, time, diff));
    }

    /// Brings every frontier up to date with the counts.
    pub fn propagate(&mut self) {
        let Self {
            topology,
            ports,
            updates,
            worklist,
            changes,
            outputs,
            output_changes,
            live,
            scratch,
        } = self;
        let topology = &**topology;

        // The counts beyond a location are the frontier of its pointstamps.
        for (number, time, diff) in updates.drain(..) {
            let location = number as usize;
            ports[location].pointstamps.update_into(time, diff, scratch);
            for (time, diff) in scratch.drain(..) {
                *live += diff;
                if let Some(exits) = &topology.exits
                    && !topology.is_boundary(location)
                {
                    for exit in exits.of(location) {
                        let result = match exit.summary {
                            IDENTITY => Some(time.clone()),
                            index => topology.exit_summaries[index as usize].results_in(&time),
                        };
                        if let Some(result) = result {
                            let output = exit.to as usize;
                            for (time, diff) in outputs[output].update(result, diff) {
                                output_changes.update((output, time), diff);
                            }
                        }
                    }
                }
                worklist.push(time, number, diff);
            }
        }
        while let Some((time, number, diff)) = worklist.pop() {
            let location = number as usize;
            ports[location]
                .implications
                .update_into(time, diff, scratch);
            for (time, diff) in scratch.drain(..) {
                for hop in topology.hops.lists.of(location) {
                    if hop.summary == IDENTITY {
                        worklist.push(time.clone(), hop.to, diff);
                    } else {
                        let summary = &topology.hops.summaries[hop.summary as usize];
                        if let Some(result) = summary.results_in(&time) {
                            worklist.push(result, hop.to, diff);
                        }
                    }
                }
                changes.update((number, time), diff);
            }
        }
    }

    /// The net changes to the frontiers at all locations since the last call: `-1` for a time that
    /// left, `1` for one that joined. Call it after [`Tracker::propagate`].
    pub fn drain_changes(&mut self) -> impl Iterator<Item = ((Location, T), i64)> {
        let topology = &self.topology;
        self.changes
            .drain()
            .map(|((number, time), diff)| ((topology.location(number as usize), time), diff))
    }

    /// The net changes since the last call to the frontiers at the scope's outputs, as far as they follow
    /// from pointstamps within the scope and not from pointstamps at its inputs: the times that the scope
    /// itself may still send.
    pub fn drain_boundary_changes(&mut self) -> std::vec::Drain<'_, ((usize, T), i64)> {
        self.output_changes.drain()
    }

    /// The minimal times that may still appear at a location, in no particular order.
    ///
    /// # Panics
    ///
    /// When the graph does not have the location.
    #[inline]
    pub fn frontier(&self, location: Location) -> &[T] {
        self.port(location).implications.frontier()
    }

    /// True when `time` may still appear at a location.
    ///
    /// # Panics
    ///
    /// When the graph does not have the location.
    #[inline]
    pub fn less_equal(&self, location: Location, time: &T) -> bool {
        self.port(location).implications.less_equal(time)
    }

    /// True when a time strictly before `time` may still appear at a location.
    ///
    /// # Panics
    ///
    /// When the graph does not have the location.
    #[inline]
    pub fn less_than(&self, location: Location, time: &T) -> bool {
        self.port(location).implications.less_than(time)
    }

    /// True when no time may appear at a location any more.
    ///
    /// # Panics
    ///
    /// When the graph does not have the location.
    #[inline]
    pub fn is_empty(&self, location: Location) -> bool {
        self.port(location).implications.is_empty()
    }

    /// The pointstamps counted at a location itself, in the order of their times.
    ///
    /// # Panics
    ///
    /// When the graph does not have the location.
    pub fn pointstamps(&self, location: Location) -> Vec<(T, i64)> {
        self.port(location).pointstamps.counts()
    }

    /// True when a pointstamp with a positive count is at the location itself.
    ///
    /// # Panics
    ///
    /// When the graph does not have the location.
    #[inline]
    pub fn has_pointstamps(&self, location: Location) -> bool {
        !self.port(location).pointstamps.is_empty()
    }

    /// True when taking back everything at this pointstamp would change a frontier: nothing
    /// strictly before it may appear there, and nothing else accounts for its time.
    ///
    /// # Panics
    ///
    /// When the graph does not have the location.
    #[inline]
    pub fn is_global(&self, location: Location, time: &T) -> bool {
        let implications = &self.port(location).implications;
        match implications
            .frontier()
            .iter()
            .find(|element| element.less_equal(time))
        {
            Some(element) => element == time && implications.count_for(time) <= 1,
            None => true,
        }
    }

    /// True when some pointstamp is outstanding, or changes wait to be propagated.
    pub fn tracking_anything(&self) -> bool {
        self.live > 0 || self.has_updates()
    }

    /// True when changes wait to be propagated.
    #[inline]
    pub fn has_updates(&self) -> bool {
        !self.updates.is_empty()
    }

    /// True when the graph has this location.
    pub fn contains(&self, location: Location) -> bool {
        self.topology.number(location).is_some()
    }

    /// True when node 0 stands for the surroundings of the graph's scope.
    #[inline]
    pub fn has_boundary(&self) -> bool {
        self.topology.has_boundary()
    }

    /// The minimal summaries of the paths from the scope's inputs to its outputs.
    pub fn scope_summary(&self) -> Connectivity<T::Summary> {
        self.topology.scope_summary()
    }

    /// All ways from one location to the next, along an edge or through a node, and how a time changes there; `None` is not at
    /// all. Meant for people, too.
    pub fn hops(&self) -> impl Iterator<Item = (Location, Location, Option<&T::Summary>)> {
        let topology = &*self.topology;
        (0..topology.len()).flat_map(move |from| {
            let hops = topology.hops.lists.of(from).iter();
            hops.map(move |hop| {
                let summary = (hop.summary != IDENTITY)
                    .then(|| &topology.hops.summaries[hop.summary as usize]);
                let (from, to) = (topology.location(from), topology.location(hop.to as usize));
                (from, to, summary)
            })
        })
    }

    /// The pointstamps with a positive count that could result in `time`, or an earlier time, at `location`:
    /// the reasons why the frontier there does not advance.
    ///
    /// Costs a search of the whole graph; it is meant for people.
    ///
    /// # Panics
    ///
    /// When the graph does not have the location.
    pub fn holders(
        &self,
        location: Location,
        time: &T,
    ) -> impl Iterator<Item = (Location, T, i64)> {
        let mut holders = Vec::new();
        for (number, summaries) in self.topology.paths_to(self.number(location)) {
            for (held, count) in self.ports[number].pointstamps.counts() {
                let reaches = summaries
                    .iter()
                    .filter_map(|summary| summary.results_in(&held))
                    .any(|result| result.less_equal(time));
                if count > 0 && reaches {
                    holders.push((self.topology.location(number), held, count));
                }
            }
        }
        holders.sort();
        holders.into_iter()
    }

    #[inline]
    fn port(&self, location: Location) -> &Port<T> {
        &self.ports[self.number(location)]
    }

    #[inline]
    fn number(&self, location: Location) -> usize {
        self.topology
            .number(location)
            .unwrap_or_else(|| panic!("the graph has no {location}"))
    }
}

impl<T: Timestamp> Graph<T> {
    /// Compiles the graph into a tracker that counts no pointstamps yet.
    ///
    /// Linear in ports, edges and paths through nodes, apart from the summaries to a scope's outputs.
    ///
    /// # Errors
    ///
    /// * [`GraphError::Cycle`] when there is a cycle on which no node is sure to advance
    ///   timestamps, that is, has a summary strictly greater than the identity;
    /// * [`GraphError::GoesBack`] when a node has a summary that is not at or after the identity;
    /// * [`GraphError::NoSuchPath`] when a node summarizes a path between ports it does not have;
    /// * [`GraphError::TooLarge`] when the graph has too many ports and paths.
    pub fn build(&self) -> Result<Tracker<T>, GraphError> {
        Ok(Tracker::new(Topology::new(self)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, Target};

    fn changes(tracker: &mut Tracker<u64>) -> Vec<((Location, u64), i64)> {
        tracker.propagate();
        let mut changes: Vec<_> = tracker.drain_changes().collect();
        changes.sort();
        changes
    }

    /// Three nodes in a ring, of which the last adds one.
    fn ring() -> Tracker<u64> {
        let mut graph = Graph::new(0);
        for step in [0, 0, 1] {
            graph.add_node("node", 1, 1, Connectivity::identity(1, 1, step));
        }
        for (from, to) in [(0, 1), (1, 2), (2, 0)] {
            graph
                .add_edge(Source::new(from, 0), Target::new(to, 0))
                .unwrap();
        }
        graph.build().unwrap()
    }

    #[test]
    fn times_travel_around_a_ring_and_leave_it() {
        let mut tracker = ring();
        let target = |node| Location::target(node, 0);
        tracker.update(Location::source(0, 0), 17, 1);
        let found: Vec<_> = changes(&mut tracker)
            .into_iter()
            .filter(|((location, _), _)| matches!(location.port, crate::Port::Target(_)))
            .collect();
        let expected = [(target(0), 18), (target(1), 17), (target(2), 17)];
        assert_eq!(found, expected.map(|change| (change, 1)));

        tracker.update(Location::source(0, 0), 17, -1);
        assert!(tracker.tracking_anything());
        assert_eq!(changes(&mut tracker).len(), 6);
        assert!(!tracker.tracking_anything());
        assert!((0..3).all(|node| tracker.is_empty(target(node))));
    }

    #[test]
    fn a_retraction_does_not_chase_its_echo() {
        // The echo of 0 is 1, which must not be taken for a reason to stay.
        let mut tracker = ring();
        for time in 0..100 {
            tracker.update(Location::target(0, 0), time, 1);
            tracker.propagate();
            tracker.update(Location::target(0, 0), time, -1);
            tracker.propagate();
        }
        assert!(changes(&mut tracker).is_empty());
    }

    #[test]
    fn boundary_changes_leave_out_the_scope_inputs() {
        let mut graph = Graph::<u64>::with_boundary(0, 1, 1);
        let node = graph.add_node("node", 1, 1, Connectivity::identity(1, 1, 2));
        graph
            .add_edge(Source::new(0, 0), Target::new(node, 0))
            .unwrap();
        graph
            .add_edge(Source::new(node, 0), Target::new(0, 0))
            .unwrap();
        let mut tracker = graph.build().unwrap();
        assert_eq!(tracker.scope_summary(), Connectivity::identity(1, 1, 2));

        tracker.update(Location::source(0, 0), 3, 1);
        tracker.propagate();
        assert_eq!(tracker.frontier(Location::target(0, 0)), &[5]);
        assert_eq!(tracker.drain_boundary_changes().count(), 0);

        tracker.update(Location::target(node, 0), 4, 1);
        tracker.update(Location::source(node, 0), 9, 1);
        tracker.propagate();
        assert_eq!(
            tracker.drain_boundary_changes().collect::<Vec<_>>(),
            vec![((0, 6), 1)]
        );
        tracker.update(Location::target(node, 0), 4, -1);
        tracker.propagate();
        let changes: Vec<_> = tracker.drain_boundary_changes().collect();
        assert_eq!(changes, vec![((0, 6), -1), ((0, 9), 1)]);
    }

    #[test]
    fn negative_counts_do_not_hold_anything() {
        let mut tracker = ring();
        tracker.update(Location::target(1, 0), 5, -1);
        assert_eq!(changes(&mut tracker), vec![]);
        assert!(!tracker.tracking_anything());
        assert_eq!(tracker.pointstamps(Location::target(1, 0)), vec![(5, -1)]);
        tracker.update(Location::target(1, 0), 5, 1);
        assert_eq!(changes(&mut tracker), vec![]);
        assert_eq!(tracker.pointstamps(Location::target(1, 0)), vec![]);
    }

    #[test]
    fn a_pointstamp_is_global_when_it_alone_holds_its_time() {
        let mut tracker = ring();
        tracker.update(Location::source(0, 0), 3, 1);
        tracker.update(Location::target(1, 0), 3, 1);
        tracker.update(Location::target(1, 0), 4, 1);
        tracker.propagate();
        assert!(tracker.is_global(Location::source(0, 0), &3));
        assert!(!tracker.is_global(Location::target(1, 0), &3)); // also held by the source
        assert!(!tracker.is_global(Location::target(1, 0), &4)); // 3 comes before
        tracker.update(Location::source(0, 0), 3, -1);
        tracker.propagate();
        assert!(tracker.is_global(Location::target(1, 0), &3));
    }

    #[test]
    fn holders_are_what_a_place_waits_for() {
        let mut tracker = ring();
        tracker.update(Location::source(0, 0), 3, 2);
        tracker.update(Location::source(2, 0), 4, 1);
        tracker.propagate();
        let holders = |time| {
            tracker
                .holders(Location::target(0, 0), time)
                .collect::<Vec<_>>()
        };
        assert_eq!(holders(&3), vec![]);
        let both = vec![
            (Location::source(0, 0), 3, 2),
            (Location::source(2, 0), 4, 1),
        ];
        assert_eq!(holders(&4), both);
    }
}
