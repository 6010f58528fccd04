//! Could-result-in, read off its definition.
//!
//! Owns [`Reach`]. It walks from a pointstamp along one hop after another, applying the effect of each hop to the
//! time: no path is ever summarized, nothing is minimal, and nothing is shared with the code under test. It stays
//! within a domain's universe, which is finite, and convex: a time that leaves it cannot come back.

use std::collections::{BTreeMap, BTreeSet};

use pointstamp_order::{PartialOrder, PathSummary};
use pointstamp_progress::Location;

use crate::{Domain, GraphSpec};

/// A set of pointstamps.
type Pointstamps<T> = BTreeSet<(Location, T)>;

/// The times that a message can have at each location, by brute force.
pub struct Reach<D: Domain> {
    spec: GraphSpec<D>,
    universe: BTreeSet<D::Time>,
    known: BTreeMap<(Location, D::Time), Pointstamps<D::Time>>,
}

impl<D: Domain> Reach<D> {
    /// The oracle of a graph.
    pub fn new(spec: &GraphSpec<D>) -> Self {
        Self {
            spec: spec.clone(),
            universe: D::universe().into_iter().collect(),
            known: BTreeMap::new(),
        }
    }

    /// Every pointstamp that a message at `start` can become, itself included.
    pub fn reached(&mut self, start: &(Location, D::Time)) -> &Pointstamps<D::Time> {
        let Self {
            spec,
            universe,
            known,
        } = self;
        known.entry(start.clone()).or_insert_with(|| {
            let mut reached = BTreeSet::new();
            let mut todo = vec![start.clone()];
            while let Some((location, time)) = todo.pop() {
                for (next, summary) in spec.hops(location) {
                    let result = match summary {
                        Some(summary) => summary.results_in(&time),
                        None => Some(time.clone()),
                    };
                    if let Some(result) = result
                        && universe.contains(&result)
                        && !reached.contains(&(next, result.clone()))
                    {
                        todo.push((next, result));
                    }
                }
                reached.insert((location, time));
            }
            reached
        })
    }

    /// True when a message at `first` could lead to one at `second`, or at an earlier time there.
    pub fn could_result_in(
        &mut self,
        first: &(Location, D::Time),
        second: &(Location, D::Time),
    ) -> bool {
        let mut reached = self.reached(first).iter();
        reached.any(|(location, time)| *location == second.0 && time.less_equal(&second.1))
    }

    /// True when a message could travel from a location back to it, along one hop or more, without
    /// its time having changed.
    pub fn has_idle_cycle(&self) -> bool {
        let locations = self.spec.locations();
        locations.iter().any(|start| {
            self.universe.iter().any(|time| {
                let mut seen = BTreeSet::new();
                let mut todo = vec![*start];
                while let Some(location) = todo.pop() {
                    for (next, summary) in self.spec.hops(location) {
                        let result = summary.map_or(Some(time.clone()), |s| s.results_in(time));
                        if result.as_ref() == Some(time) {
                            if next == *start {
                                return true;
                            }
                            if seen.insert(next) {
                                todo.push(next);
                            }
                        }
                    }
                }
                false
            })
        })
    }

    /// The minimal times of the universe that may appear at each location, given the outstanding pointstamps.
    pub fn frontiers(
        &mut self,
        outstanding: impl IntoIterator<Item = (Location, D::Time)>,
    ) -> BTreeMap<Location, BTreeSet<D::Time>> {
        let mut times: BTreeMap<Location, BTreeSet<D::Time>> = BTreeMap::new();
        for pointstamp in outstanding {
            for (location, time) in self.reached(&pointstamp) {
                times.entry(*location).or_default().insert(time.clone());
            }
        }
        for times in times.values_mut() {
            let all = times.clone();
            times.retain(|time| !all.iter().any(|other| other.less_than(time)));
        }
        times
    }
}
