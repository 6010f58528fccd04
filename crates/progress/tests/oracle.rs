//! The graph, the tracker and the scheduler against brute force, on random graphs and updates.

use std::collections::{BTreeMap, BTreeSet};

use pointstamp_order::{PartialOrder, PathSummary, Summary, Timestamp};
use pointstamp_progress::{GraphError, Location, Scheduler, Tracker};
use pointstamp_testkit::{
    Domain, GraphSpec, Nested, Numbers, Odd, Points, Reach, cases, graph_spec,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Random changes: which location, which time, how many; and whether to look afterwards.
type Steps = Vec<(Index, Index, i64, bool)>;

fn steps() -> impl Strategy<Value = Steps> {
    // Often one up or down, so that counts go through zero and below.
    let diff = prop_oneof![4 => Just(1i64), 3 => Just(-1), 1 => -3..4i64];
    vec((any::<Index>(), any::<Index>(), diff, any::<bool>()), 1..25)
}

/// Counts and the locations and times the steps choose from.
struct Counts<D: Domain> {
    locations: Vec<Location>,
    universe: Vec<D::Time>,
    held: BTreeMap<(Location, D::Time), i64>,
}

impl<D: Domain> Counts<D> {
    fn new(spec: &GraphSpec<D>) -> Self {
        Self {
            locations: spec.locations(),
            universe: D::universe(),
            held: BTreeMap::new(),
        }
    }

    fn apply(&mut self, location: Index, time: Index, diff: i64) -> (Location, D::Time) {
        let pointstamp = (
            *location.get(&self.locations),
            time.get(&self.universe).clone(),
        );
        *self.held.entry(pointstamp.clone()).or_insert(0) += diff;
        pointstamp
    }

    fn positive(&self) -> Vec<(Location, D::Time)> {
        let positive = self.held.iter().filter(|(_, count)| **count > 0);
        positive.map(|(pointstamp, _)| pointstamp.clone()).collect()
    }
}

fn within<T: Timestamp>(universe: &[T], times: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    times
        .into_iter()
        .filter(|time| universe.contains(time))
        .collect()
}

/// Checks that the answers about a location follow from its frontier and from its counts.
fn questions_agree<D: Domain>(
    tracker: &Tracker<D::Time>,
    location: Location,
    frontier: &[D::Time],
    counts: &Counts<D>,
) -> Result<(), TestCaseError> {
    for time in &counts.universe {
        let before = frontier.iter().any(|element| element.less_than(time));
        prop_assert_eq!(tracker.less_than(location, time), before);
        let at_or_before = before || frontier.contains(time);
        prop_assert_eq!(tracker.less_equal(location, time), at_or_before);
    }
    prop_assert_eq!(tracker.is_empty(location), frontier.is_empty());
    let held = counts.positive().iter().any(|(l, _)| *l == location);
    prop_assert_eq!(tracker.has_pointstamps(location), held);
    Ok(())
}

/// Checks frontiers, changes to them, and the changes that reach the boundary.
fn tracker_agrees<D: Domain>(spec: &GraphSpec<D>, steps: &Steps) -> Result<(), TestCaseError> {
    let mut reach = Reach::new(spec);
    let mut counts = Counts::new(spec);
    if counts.locations.is_empty() {
        return Ok(());
    }
    let mut tracker = spec
        .graph()
        .build()
        .expect("the generator makes sound graphs");
    let mut reported: BTreeMap<(Location, D::Time), i64> = BTreeMap::new();
    let mut reported_outside: BTreeMap<(usize, D::Time), i64> = BTreeMap::new();
    let last = steps.len() - 1;
    for (index, (location, time, diff, look)) in steps.iter().enumerate() {
        let (location, time) = counts.apply(*location, *time, *diff);
        tracker.update(location, time, *diff);
        prop_assert!(tracker.has_updates() && tracker.tracking_anything());
        if !look && index != last {
            continue;
        }
        tracker.propagate();
        prop_assert!(!tracker.has_updates());
        for (change, diff) in tracker.drain_changes() {
            prop_assert!(diff != 0);
            *reported.entry(change).or_insert(0) += diff;
        }
        reported.retain(|_, count| *count != 0);
        prop_assert!(
            reported.values().all(|count| *count == 1),
            "a frontier is a set"
        );
        for (change, diff) in tracker.drain_boundary_changes() {
            *reported_outside.entry(change).or_insert(0) += diff;
        }
        reported_outside.retain(|_, count| *count != 0);

        let frontiers = reach.frontiers(counts.positive());
        let inner = counts
            .positive()
            .into_iter()
            .filter(|(location, _)| location.node != 0);
        let inner_frontiers = reach.frontiers(inner);
        for location in &counts.locations {
            let frontier = tracker.frontier(*location).to_vec();
            for (i, a) in frontier.iter().enumerate() {
                prop_assert!(
                    !frontier
                        .iter()
                        .skip(i + 1)
                        .any(|b| a.less_equal(b) || b.less_equal(a))
                );
            }
            let expected = frontiers.get(location).cloned().unwrap_or_default();
            prop_assert_eq!(
                within(&counts.universe, frontier.clone()),
                expected,
                "{}",
                location
            );
            questions_agree(&tracker, *location, &frontier, &counts)?;
            let times = reported
                .keys()
                .filter(|(l, _)| l == location)
                .map(|(_, time)| time.clone());
            prop_assert_eq!(
                times.collect::<BTreeSet<_>>(),
                frontier.into_iter().collect()
            );
            if spec.boundary
                && location.node == 0
                && let pointstamp_progress::Port::Target(output) = location.port
            {
                // Pointstamps at the outputs themselves have left, and those at the inputs are
                // known outside.
                let times = reported_outside.keys().filter(|(o, _)| *o == output);
                let times = within(&counts.universe, times.map(|(_, time)| time.clone()));
                let expected = inner_frontiers.get(location).cloned().unwrap_or_default();
                prop_assert_eq!(times, expected, "{}", location);
            }
        }
        prop_assert_eq!(tracker.tracking_anything(), !counts.positive().is_empty());
    }
    // A time is held by all pointstamps that could result in it.
    let (location, time) = counts.apply(steps[0].1, steps[0].0, 0);
    let held = tracker
        .holders(location, &time)
        .map(|(l, t, _)| (l, t))
        .collect::<Vec<_>>();
    let expected = counts
        .positive()
        .into_iter()
        .filter(|held| reach.could_result_in(held, &(location, time.clone())));
    prop_assert_eq!(held, expected.collect::<Vec<_>>());
    Ok(())
}

/// A tracker has the locations of its graph and no others, and the hops between them with the least summaries.
fn places_agree<D: Domain>(spec: &GraphSpec<D>) -> Result<(), TestCaseError> {
    let tracker = spec
        .graph()
        .build()
        .expect("the generator makes sound graphs");
    for location in spec.locations() {
        prop_assert!(tracker.contains(location));
    }
    for (index, node) in spec.nodes.iter().enumerate() {
        prop_assert!(!tracker.contains(Location::target(index, node.inputs)));
        prop_assert!(!tracker.contains(Location::source(index, node.outputs)));
    }
    prop_assert!(!tracker.contains(Location::source(spec.nodes.len(), 0)));

    let mut expected = BTreeSet::new();
    for from in spec.locations() {
        let hops = spec.hops(from);
        for (to, summary) in &hops {
            let shorter = hops.iter().any(|(other, least)| {
                other == to && matches!((least, summary), (Some(a), Some(b)) if a.less_than(b))
            });
            if !shorter {
                let summary = summary.clone().filter(|summary| *summary != D::identity());
                expected.insert((from, *to, summary));
            }
        }
    }
    let found = tracker
        .hops()
        .map(|(from, to, summary)| (from, to, summary.cloned()));
    prop_assert_eq!(found.collect::<BTreeSet<_>>(), expected);
    Ok(())
}

/// Checks that path summaries do to each time what the best paths do, and that they are minimal.
fn summaries_agree<D: Domain>(spec: &GraphSpec<D>) -> Result<(), TestCaseError> {
    let graph = spec.graph();
    let mut reach = Reach::new(spec);
    let universe = D::universe();
    for start in spec.locations().into_iter().take(4) {
        for end in spec.locations() {
            let summaries = graph.path_summaries(start, end);
            for time in &universe {
                let reached = reach.reached(&(start, time.clone())).iter();
                let all: BTreeSet<_> = reached
                    .filter(|(l, _)| *l == end)
                    .map(|(_, t)| t.clone())
                    .collect();
                let minimal: BTreeSet<_> = all
                    .iter()
                    .filter(|t| !all.iter().any(|o| o.less_than(t)))
                    .cloned()
                    .collect();
                let results: BTreeSet<_> = summaries
                    .iter()
                    .filter_map(|s| s.results_in(time))
                    .collect();
                let best = results
                    .iter()
                    .filter(|t| !results.iter().any(|o| o.less_than(t)));
                prop_assert_eq!(
                    within(&universe, best.cloned()),
                    minimal,
                    "{} to {}",
                    start,
                    end
                );
            }
        }
    }
    // From a scope's inputs to its outputs, the tracker reports the same.
    if spec.boundary {
        let scope = graph
            .build()
            .expect("the generator makes sound graphs")
            .scope_summary();
        for input in 0..spec.nodes[0].outputs {
            for output in 0..spec.nodes[0].inputs {
                let (start, end) = (Location::source(0, input), Location::target(0, output));
                let summaries = graph.path_summaries(start, end);
                prop_assert_eq!(
                    scope.get(input, output).cloned().unwrap_or_default(),
                    summaries
                );
            }
        }
    }
    Ok(())
}

/// Occurrence and precursor counts, and the frontier of pointstamps; and the tracker agrees.
fn scheduler_agrees<D: Domain>(spec: &GraphSpec<D>, steps: &Steps) -> Result<(), TestCaseError> {
    let mut reach = Reach::new(spec);
    let mut counts = Counts::new(spec);
    if counts.locations.is_empty() {
        return Ok(());
    }
    let graph = spec.graph();
    let mut scheduler = Scheduler::new(&graph).expect("the generator makes sound graphs");
    let mut tracker = graph.build().expect("the generator makes sound graphs");
    for (location, time, diff, look) in steps {
        let (location, time) = counts.apply(*location, *time, *diff);
        scheduler
            .update(location, &time, *diff)
            .expect("the location is the graph's");
        tracker.update(location, time.clone(), *diff);
        if !look {
            continue;
        }
        tracker.propagate();
        let active = counts.positive();
        let mut precursors = |of: &(Location, D::Time)| {
            active
                .iter()
                .filter(|p| *p != of && reach.could_result_in(p, of))
                .count()
        };
        let mut frontier = Vec::new();
        for pointstamp in &active {
            let count = precursors(pointstamp);
            prop_assert_eq!(
                scheduler.precursor_count(pointstamp.0, &pointstamp.1),
                count
            );
            prop_assert_eq!(tracker.is_global(pointstamp.0, &pointstamp.1), count == 0);
            if count == 0 {
                frontier.push(pointstamp.clone());
            }
        }
        let found: Vec<_> = scheduler.frontier().map(|(l, t)| (l, t.clone())).collect();
        prop_assert_eq!(found, frontier);
        prop_assert_eq!(scheduler.active().count(), active.len());
        for ((location, time), count) in &counts.held {
            prop_assert_eq!(scheduler.occurrence_count(*location, time), *count);
        }
        // Also of a pointstamp that need not be active.
        prop_assert_eq!(
            scheduler.precursor_count(location, &time),
            precursors(&(location, time.clone()))
        );
    }
    Ok(())
}

/// A graph is refused exactly when a time could come back to where it was.
fn cycles_are_found<D: Domain>(spec: &GraphSpec<D>) -> Result<(), TestCaseError> {
    let idle = Reach::new(spec).has_idle_cycle();
    match spec.graph().build() {
        Ok(_) => prop_assert!(!idle),
        Err(GraphError::Cycle { names, nodes }) => {
            prop_assert!(idle);
            prop_assert!(!names.is_empty() && nodes.len() == names.len());
        }
        Err(other) => prop_assert!(false, "{other}"),
    }
    Ok(())
}

/// Generates summaries that keep fewer coordinates than there are, and so lose the increments of the others.
fn dropping() -> impl Strategy<Value = GraphSpec<Points<2>>> {
    let spec = GraphSpec::<Points<2>>::without_feedback();
    (
        spec,
        vec(prop_oneof![4 => Just(2_usize), 1 => 0..2_usize], 40),
    )
        .prop_map(|(mut spec, keep)| {
            let paths = spec.nodes.iter_mut().flat_map(|node| &mut node.paths);
            for ((_, _, summary), keep) in paths.zip(keep.into_iter().cycle()) {
                *summary = Summary::new(keep, summary.increments());
            }
            spec
        })
}

/// Whether a time could come back to where it was, as it was or as an earlier one.
fn returns(spec: &GraphSpec<Points<2>>) -> bool {
    let universe = Points::<2>::universe();
    spec.locations().iter().any(|start| {
        universe.iter().any(|time| {
            let (mut seen, mut todo) = (BTreeSet::new(), vec![(*start, time.clone())]);
            while let Some((location, now)) = todo.pop() {
                for (next, summary) in spec.hops(location) {
                    let result = summary.map_or(Some(now.clone()), |s| s.results_in(&now));
                    let Some(result) = result.filter(|result| universe.contains(result)) else {
                        continue;
                    };
                    if next == *start && result.less_equal(time) {
                        return true;
                    }
                    if seen.insert((next, result.clone())) {
                        todo.push((next, result));
                    }
                }
            }
            false
        })
    })
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn what_goes_back_is_refused(spec in dropping()) {
        let universe = Points::<2>::universe();
        let back = spec.nodes.iter().flat_map(|node| &node.paths).any(|(_, _, summary)| {
            let goes_back = |time| summary.results_in(time).is_some_and(|result| !time.less_equal(&result));
            universe.iter().any(goes_back)
        });
        match spec.graph().build() {
            Ok(_) => prop_assert!(!returns(&spec)),
            Err(GraphError::GoesBack { .. }) => prop_assert!(back),
            Err(GraphError::Cycle { .. }) => prop_assert!(!back && returns(&spec)),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

macro_rules! suites {
    ($($name:ident: $domain:ty, $cases:expr;)*) => {$(
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(cases($cases))]

                #[test]
                fn tracker(spec in graph_spec::<$domain>(), steps in steps()) {
                    tracker_agrees(&spec, &steps)?;
                }

                #[test]
                fn places(spec in graph_spec::<$domain>()) {
                    places_agree(&spec)?;
                }

                #[test]
                fn summaries(spec in graph_spec::<$domain>()) {
                    summaries_agree(&spec)?;
                }

                #[test]
                fn scheduler(spec in graph_spec::<$domain>(), steps in steps()) {
                    scheduler_agrees(&spec, &steps)?;
                }

                #[test]
                fn cycles(spec in GraphSpec::<$domain>::without_feedback()) {
                    cycles_are_found(&spec)?;
                }
            }
        }
    )*};
}

suites! {
    numbers: Numbers, 1_000;
    points1: Points<1>, 700;
    points2: Points<2>, 1_000;
    points3: Points<3>, 500;
    nested: Nested, 500;
    odd: Odd, 700;
}
