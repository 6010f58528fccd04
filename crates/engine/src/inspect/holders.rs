//! The holders of a time: the pointstamps that could result in it at some port, and the paths from them to
//! there.
//!
//! A dataflow is taken as one graph, with its scopes unfolded: times gain coordinates where they enter a scope and lose them where they
//! leave. The port is reached from some places; from each, the least pointstamps are followed forward until they arrive. A
//! way that comes back to a place at no earlier time is given up, so that the search ends in loops.
//!
//! Only the first in the order of could-result-in are returned. Their consequences need no remedy of their own, and
//! may not be outstanding any more: a worker does not report the end of a pointstamp while another one holds
//! everything that it held (`pointstamp_progress::Mode`).
//!
//! It costs, for each place that leads to the port and holds something, a search of the paths between them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use pointstamp_order::{Antichain, PartialOrder, PathSummary, Point, Summary};
use pointstamp_progress::{Location, Port};

use super::{ScopeState, Snapshot};
use crate::observe::OperatorId;

/// A pointstamp that holds a time back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The operator: its output has capabilities, or its input has records that it has not consumed.
    pub operator: OperatorId,
    /// The port.
    pub port: Port,
    /// The time, in the operator's scope.
    pub time: Point,
    /// The number of capabilities or records, on all workers.
    pub count: i64,
    /// The number on this worker, as far as it knows: capabilities that it holds, or records that it sent to
    /// itself.
    pub here: i64,
    /// The ports on a path from there to the port in question, both included.
    pub path: Vec<Step>,
}

/// A port on the way of a time. At a scope's boundary, the operator is the scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// The operator that has the port.
    pub operator: OperatorId,
    /// The port.
    pub port: Port,
}

impl Snapshot {
    /// The pointstamps that could result in a time at a port of an operator: in `time` or an earlier one
    /// ([`Bound::Included`]), in an earlier one ([`Bound::Excluded`]), or in any ([`Bound::Unbounded`]). Those that could result
    /// from another of them are left out. Nearest to the port first; empty also where the operator is not in the snapshot.
    pub fn holders(&self, operator: OperatorId, port: Port, time: Bound<&Point>) -> Vec<Holder> {
        let mut dataflows = self.dataflows.iter();
        let Some(root) = dataflows.find(|scope| scope.id.dataflow == operator.dataflow) else {
            return Vec::new();
        };
        Unfolded::new(root).holders(operator, port, time)
    }
}

/// A place of an unfolded dataflow: a scope, by number, and a port in it.
type Place = (usize, Location);

/// The number of pointstamps at a time.
type Count = (Point, i64);

/// The effect on a time between two places.
#[derive(Clone, Copy)]
enum Crossing<'a> {
    Same,
    Summary(&'a Summary),
    Enter { appended: usize },
    Leave { dims: usize },
}

impl Crossing<'_> {
    fn results_in(self, time: &Point) -> Option<Point> {
        match self {
            Crossing::Same => Some(time.clone()),
            Crossing::Summary(summary) => summary.results_in(time),
            Crossing::Enter { appended } => Some(time.extend(&vec![0; appended])),
            Crossing::Leave { dims } => Some(time.truncate(dims)),
        }
    }
}

/// A dataflow as one graph.
struct Unfolded<'a> {
    scopes: Vec<&'a ScopeState>,
    onward: BTreeMap<Place, Vec<(Place, Crossing<'a>)>>,
}

impl<'a> Unfolded<'a> {
    fn new(root: &'a ScopeState) -> Self {
        let mut all = Unfolded {
            scopes: vec![root],
            onward: BTreeMap::new(),
        };
        all.unfold(0);
        all
    }

    fn unfold(&mut self, at: usize) {
        let scope = self.scopes[at];
        let folded = |node: usize| {
            let child = node.checked_sub(1).map(|i| &scope.operators[i]);
            child.is_some_and(|child| child.scope.is_some())
        };
        for (from, to, summary) in &scope.hops {
            // The paths through a scope are those inside.
            if from.node == to.node && matches!(from.port, Port::Target(_)) && folded(from.node) {
                continue;
            }
            let crossing = summary.as_ref().map_or(Crossing::Same, Crossing::Summary);
            self.join((at, *from), (at, *to), crossing);
        }
        for (i, child) in scope.operators.iter().enumerate() {
            let Some(inner) = &child.scope else {
                continue;
            };
            let inside = self.scopes.len();
            self.scopes.push(inner);
            let appended = inner.dims - scope.dims;
            for port in 0..child.inputs.len() {
                let (outer, inner) = (Location::target(i + 1, port), Location::source(0, port));
                self.join((at, outer), (inside, inner), Crossing::Enter { appended });
            }
            for port in 0..child.outputs.len() {
                let (inner, outer) = (Location::target(0, port), Location::source(i + 1, port));
                let dims = scope.dims;
                self.join((inside, inner), (at, outer), Crossing::Leave { dims });
            }
            self.unfold(inside);
        }
    }

    fn join(&mut self, from: Place, to: Place, crossing: Crossing<'a>) {
        self.onward.entry(from).or_default().push((to, crossing));
    }

    /// A place by the operator and its port.
    fn place(&self, operator: OperatorId, port: Port) -> Option<Place> {
        self.scopes.iter().enumerate().find_map(|(at, scope)| {
            let mut operators = scope.operators.iter();
            let node = operators.position(|child| child.id == operator)? + 1;
            Some((at, Location { node, port }))
        })
    }

    fn step(&self, (at, location): Place) -> Step {
        let scope = self.scopes[at];
        let child = location.node.checked_sub(1);
        Step {
            operator: child.map_or(scope.id, |i| scope.operators[i].id),
            port: location.port,
        }
    }

    /// The places from which there is a way to `end`, the nearest first.
    fn before(&self, end: Place) -> Vec<Place> {
        let mut backward: BTreeMap<Place, Vec<Place>> = BTreeMap::new();
        for (from, onward) in &self.onward {
            for (to, _) in onward {
                backward.entry(*to).or_default().push(*from);
            }
        }
        let (mut seen, mut found) = (BTreeSet::from([end]), vec![end]);
        let mut next = 0;
        while let Some(place) = found.get(next).copied() {
            next += 1;
            for from in backward.get(&place).into_iter().flatten() {
                if seen.insert(*from) {
                    found.push(*from);
                }
            }
        }
        found
    }

    /// The counts at a place itself, on all workers and here; empty where the counts follow from other
    /// places.
    fn counted(&self, (at, location): Place) -> (&'a [Count], Vec<Count>) {
        let child = location.node.checked_sub(1);
        let Some(child) = child.map(|i| &self.scopes[at].operators[i]) else {
            return (&[], Vec::new());
        };
        match location.port {
            Port::Target(port) => {
                let input = &child.inputs[port];
                let waiting = input.waiting.iter();
                let here = waiting.map(|(time, records)| (time.clone(), *records as i64));
                (&input.pointstamps, here.collect())
            }
            Port::Source(_) if child.scope.is_some() => (&[], Vec::new()),
            Port::Source(port) => {
                let output = &child.outputs[port];
                (&output.pointstamps, output.here.clone())
            }
        }
    }

    fn holders(&self, operator: OperatorId, port: Port, time: Bound<&Point>) -> Vec<Holder> {
        let Some(end) = self.place(operator, port) else {
            return Vec::new();
        };
        let within = |result: &Point| match time {
            Bound::Included(bound) => result.less_equal(bound),
            Bound::Excluded(bound) => result.less_than(bound),
            Bound::Unbounded => true,
        };
        let before = self.before(end);
        let among = before.iter().copied().collect();
        let (mut holders, mut followed) = (Vec::new(), Vec::new());
        for place in before {
            let (counts, here) = self.counted(place);
            let positive = counts.iter().filter(|(_, count)| *count > 0);
            let least: Antichain<Point> = positive.map(|(time, _)| time.clone()).collect();
            for (held, count) in counts {
                if *count <= 0 || !least.iter().any(|least| least == held) {
                    continue;
                }
                let reached = self.follow(place, held, &among);
                let Some(path) = reached.path(end, within) else {
                    continue;
                };
                let path: Vec<_> = path.into_iter().map(|place| self.step(place)).collect();
                let mine = here.iter().filter(|(time, _)| time == held);
                let Step { operator, port } = path[0];
                holders.push(Holder {
                    operator,
                    port,
                    time: held.clone(),
                    count: *count,
                    here: mine.map(|(_, count)| count).sum(),
                    path,
                });
                followed.push((place, reached));
            }
        }
        let first = |at: usize| {
            let mut others = followed.iter().enumerate();
            let (place, time) = (followed[at].0, &holders[at].time);
            others.all(|(other, (_, reached))| other == at || !reached.reaches(place, time))
        };
        let first: Vec<_> = (0..holders.len()).map(first).collect();
        let mut first = first.into_iter();
        holders.retain(|_| first.next() == Some(true));
        holders
    }

    /// Follows a pointstamp to all places among some that it could result in.
    fn follow(&self, start: Place, time: &Point, among: &BTreeSet<Place>) -> Reached {
        let mut reached = Reached::default();
        reached.meet(start, time.clone(), None);
        let mut next = 0;
        while let Some((place, time, _)) = reached.met.get(next).cloned() {
            for (to, crossing) in self.onward.get(&place).into_iter().flatten() {
                if let Some(result) = crossing.results_in(&time)
                    && among.contains(to)
                {
                    reached.meet(*to, result, Some(next));
                }
            }
            next += 1;
        }
        reached
    }
}

/// The places that a pointstamp could result in.
#[derive(Default)]
struct Reached {
    /// The places in the order of the search, with the time, and the entry of this list from which each was
    /// reached.
    met: Vec<(Place, Point, Option<usize>)>,
    least: BTreeMap<Place, Antichain<Point>>,
}

impl Reached {
    fn meet(&mut self, place: Place, time: Point, from: Option<usize>) {
        if self.least.entry(place).or_default().insert(time.clone()) {
            self.met.push((place, time, from));
        }
    }

    /// Whether the pointstamp could result in this one.
    fn reaches(&self, place: Place, time: &Point) -> bool {
        let least = self.least.get(&place);
        least.is_some_and(|least| least.less_equal(time))
    }

    /// A shortest way to `end` that results in a time which is accepted there.
    fn path(&self, end: Place, accepts: impl Fn(&Point) -> bool) -> Option<Vec<Place>> {
        let arrives = |(place, time, _): &&(Place, Point, _)| *place == end && accepts(time);
        let mut at = self.met.iter().find(arrives);
        at?;
        let mut path = Vec::new();
        while let Some((place, _, from)) = at {
            path.push(*place);
            at = from.map(|from| &self.met[from]);
        }
        path.reverse();
        Some(path)
    }
}
