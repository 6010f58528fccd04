//! One worker's view of the progress of a scope, at the scope's number of coordinates.
//!
//! Owns [`View`], and the choice of its implementation. The engine's points have any number of coordinates, at a cost
//! in every comparison; the times of one scope all have the same number. The tracker and the protocol of a scope of
//! one, two or three coordinates therefore run on [`Coords`], and those of any other number on points. Points are
//! translated where they enter and leave, which costs a copy.

use pointstamp_order::{Coords, Point, Shift, Summary, Timestamp};
use pointstamp_progress::{
    Connectivity, Graph, GraphError, Location, Mode, ProgressBatch, Protocol,
};

use crate::observe::Change;

/// [`Protocol`] and its tracker, whatever they run on. The methods are theirs. Times have the scope's number of
/// coordinates.
pub(crate) trait View {
    fn begin(&mut self, location: Location, time: &Point, count: i64);
    fn accept_frontier(&mut self, scope_input: usize, time: &Point, diff: i64);
    fn local(&mut self, location: Location, time: &Point, diff: i64);
    fn shared(&mut self, location: Location, time: &Point, diff: i64);
    fn receive(&mut self, batch: ProgressBatch<Point>);
    fn take_outgoing(&mut self) -> Option<ProgressBatch<Point>>;
    fn flush_outgoing(&mut self) -> Option<ProgressBatch<Point>>;
    fn propagate(&mut self, on_boundary: &mut dyn FnMut(Location, Point, i64));
    fn has_pending(&self) -> bool;
    /// Appends the changes that [`Tracker::drain_changes`](pointstamp_progress::Tracker::drain_changes)
    /// yields.
    fn drain_changes(&mut self, changes: &mut Vec<Change>);
    fn drain_boundary_changes(&mut self, report: &mut dyn FnMut(usize, Point, i64));
    fn contains(&self, location: Location) -> bool;
    fn tracking_anything(&self) -> bool;

    // For people: each of these copies its result.
    fn frontier(&self, location: Location) -> Vec<Point>;
    fn pointstamps(&self, location: Location) -> Vec<(Point, i64)>;
    fn hops(&self) -> Vec<(Location, Location, Option<Summary>)>;
    fn unsent(&mut self) -> Vec<Change>;
    /// The changes that this worker knows, and has not propagated or not sent.
    fn pending(&mut self) -> Vec<Change>;
}

/// Creates the view of a scope whose times have `dims` coordinates, and returns it with the summary of the
/// scope.
///
/// # Errors
///
/// The errors of [`Graph::build`].
pub(crate) fn view(
    dims: usize,
    graph: &Graph<Point>,
    mode: Mode,
    peers: usize,
) -> Result<(Box<dyn View>, Connectivity<Summary>), GraphError> {
    let fixed = match dims {
        1 => fixed::<1>(graph, mode, peers),
        2 => fixed::<2>(graph, mode, peers),
        3 => fixed::<3>(graph, mode, peers),
        _ => None,
    };
    fixed.unwrap_or_else(|| made(graph, mode, peers))
}

type Made = Result<(Box<dyn View>, Connectivity<Summary>), GraphError>;

/// None where a summary leads to times of another number of coordinates, which [`Graph::build`] refuses.
fn fixed<const N: usize>(graph: &Graph<Point>, mode: Mode, peers: usize) -> Option<Made> {
    let graph = graph.translate::<Coords<N>>(Shift::from_summary)?;
    Some(made(&graph, mode, peers))
}

fn made<T: Time>(graph: &Graph<T>, mode: Mode, peers: usize) -> Made {
    let tracker = graph.build()?;
    let summary = tracker.scope_summary().map(T::summary);
    Ok((Box::new(Protocol::new(tracker, mode, peers)), summary))
}

/// The times that a view can run on.
trait Time: Timestamp {
    fn of(point: &Point) -> Self;
    fn point(self) -> Point;
    fn summary(summary: &Self::Summary) -> Summary;
}

impl Time for Point {
    fn of(point: &Point) -> Self {
        point.clone()
    }

    fn point(self) -> Point {
        self
    }

    fn summary(summary: &Summary) -> Summary {
        summary.clone()
    }
}

impl<const N: usize> Time for Coords<N> {
    #[inline]
    fn of(point: &Point) -> Self {
        Coords::from_point(point).expect("the times of a scope have its number of coordinates")
    }

    #[inline]
    fn point(self) -> Point {
        self.to_point()
    }

    fn summary(summary: &Self::Summary) -> Summary {
        summary.to_summary()
    }
}

impl<T: Time> View for Protocol<T> {
    fn begin(&mut self, location: Location, time: &Point, count: i64) {
        Protocol::begin(self, location, T::of(time), count);
    }

    fn accept_frontier(&mut self, scope_input: usize, time: &Point, diff: i64) {
        Protocol::accept_frontier(self, scope_input, T::of(time), diff);
    }

    fn local(&mut self, location: Location, time: &Point, diff: i64) {
        Protocol::local(self).update((location, T::of(time)), diff);
    }

    fn shared(&mut self, location: Location, time: &Point, diff: i64) {
        Protocol::shared(self).update((location, T::of(time)), diff);
    }

    fn receive(&mut self, batch: ProgressBatch<Point>) {
        let batch = batch.into_iter();
        Protocol::receive(
            self,
            batch.map(|((at, time), diff)| ((at, T::of(&time)), diff)),
        );
    }

    fn take_outgoing(&mut self) -> Option<ProgressBatch<Point>> {
        Protocol::take_outgoing(self).map(points)
    }

    fn flush_outgoing(&mut self) -> Option<ProgressBatch<Point>> {
        Protocol::flush_outgoing(self).map(points)
    }

    fn propagate(&mut self, on_boundary: &mut dyn FnMut(Location, Point, i64)) {
        Protocol::propagate(self, |at, time, diff| on_boundary(at, time.point(), diff));
    }

    fn has_pending(&self) -> bool {
        Protocol::has_pending(self)
    }

    fn drain_changes(&mut self, changes: &mut Vec<Change>) {
        let drained = self.tracker_mut().drain_changes();
        changes.extend(drained.map(|((at, time), diff)| ((at, time.point()), diff)));
    }

    fn drain_boundary_changes(&mut self, report: &mut dyn FnMut(usize, Point, i64)) {
        for ((output, time), diff) in self.tracker_mut().drain_boundary_changes() {
            report(output, time.point(), diff);
        }
    }

    fn contains(&self, location: Location) -> bool {
        self.tracker().contains(location)
    }

    fn tracking_anything(&self) -> bool {
        self.tracker().tracking_anything()
    }

    fn frontier(&self, location: Location) -> Vec<Point> {
        let frontier = self.tracker().frontier(location).iter();
        frontier.map(|time| time.clone().point()).collect()
    }

    fn pointstamps(&self, location: Location) -> Vec<(Point, i64)> {
        let counts = self.tracker().pointstamps(location).into_iter();
        counts.map(|(time, count)| (time.point(), count)).collect()
    }

    fn hops(&self) -> Vec<(Location, Location, Option<Summary>)> {
        let hops = self.tracker().hops();
        hops.map(|(from, to, summary)| (from, to, summary.map(T::summary)))
            .collect()
    }

    fn unsent(&mut self) -> Vec<Change> {
        points(Protocol::local(self).iter().cloned().collect())
    }

    fn pending(&mut self) -> Vec<Change> {
        let mut pending = Protocol::local(self).clone();
        pending.extend(Protocol::shared(self).iter().cloned());
        points(pending.into_inner())
    }
}

fn points<T: Time>(batch: ProgressBatch<T>) -> ProgressBatch<Point> {
    let batch = batch.into_iter();
    batch
        .map(|((at, time), diff)| ((at, time.point()), diff))
        .collect()
}

#[cfg(test)]
mod tests {
    use pointstamp_progress::{Source, Target};

    use super::*;

    /// A scope of two inputs and an output: a node in a loop, whose feedback takes `step`.
    fn graph(dims: usize, step: Summary) -> Graph<Point> {
        let identity = Summary::identity(dims);
        let mut graph = Graph::with_boundary(identity.clone(), 2, 1);
        let node = graph.add_node("node", 2, 1, Connectivity::identity(2, 1, identity));
        let back = graph.add_node("feedback", 1, 1, Connectivity::identity(1, 1, step));
        for (from, from_port, to, to_port) in [
            (0, 0, node, 0),
            (0, 1, node, 0),
            (node, 0, back, 0),
            (back, 0, node, 1),
            (node, 0, 0, 0),
        ] {
            let (source, target) = (Source::new(from, from_port), Target::new(to, to_port));
            graph.add_edge(source, target).unwrap();
        }
        graph
    }

    /// Everything that a view says of one history, in which frontiers move, counts go and come and batches arrive.
    fn story(mut view: Box<dyn View>, dims: usize) -> Vec<String> {
        let time = |last: u64| Point::minimum(dims).with_last(last);
        let (input, output) = (Location::target(1, 0), Location::source(1, 0));
        let mut said = Vec::new();
        view.begin(output, &time(1), 2);
        view.accept_frontier(0, &time(2), 1);
        view.accept_frontier(1, &time(0), 1);
        for round in 0..6 {
            view.local(input, &time(round), 2);
            view.local(output, &time(1), i64::from(round == 2) * -2);
            view.local(Location::source(0, 0), &time(round), -1);
            view.shared(Location::target(0, 0), &time(round), 1);
            if round == 4 {
                view.accept_frontier(1, &time(0), -1);
                view.receive(vec![((input, time(1)), -3), ((output, time(7)), 1)]);
            }
            said.push(format!("sends {:?}", view.take_outgoing()));
            view.propagate(&mut |at, time, diff| said.push(format!("receives {at} {time} {diff}")));
            let mut changes = Vec::new();
            view.drain_changes(&mut changes);
            said.push(format!("{changes:?} {:?}", view.frontier(input)));
            view.drain_boundary_changes(&mut |output, time, diff| {
                said.push(format!("tells {output} {time} {diff}"));
            });
            said.push(format!(
                "{} {}",
                view.has_pending(),
                view.tracking_anything()
            ));
        }
        said.push(format!("sends {:?}", view.flush_outgoing()));
        said
    }

    #[test]
    fn every_number_of_coordinates_says_the_same() {
        for dims in 1..=4 {
            let step = Summary::step(dims, 1);
            let graph = graph(dims, step);
            let (ours, summary) = view(dims, &graph, Mode::Demand, 2).unwrap();
            let (points, same) = made(&graph, Mode::Demand, 2).unwrap();
            assert_eq!(summary, same);
            let said = story(ours, dims);
            assert!(said.iter().any(|line| line.starts_with("tells")));
            assert!(said.iter().any(|line| line.starts_with("receives")));
            assert_eq!(said, story(points, dims));
        }
    }

    #[test]
    fn a_summary_of_other_coordinates_is_refused_as_on_points() {
        let mut graph = Graph::<Point>::new(Summary::identity(1));
        let wide = Connectivity::identity(1, 1, Summary::new(1, &[0, 0]));
        graph.add_node("wide", 1, 1, wide);
        assert!(fixed::<1>(&graph, Mode::Eager, 1).is_none());
        let refused = view(1, &graph, Mode::Eager, 1).err();
        assert!(refused.is_some());
        assert_eq!(refused, graph.build().err());
    }
}
