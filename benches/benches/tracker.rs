//! The tracker against timely's: the same graphs, the same updates, all changes drained.

use std::hint::black_box;

use pointstamp_bench::harness::Table;
use pointstamp_order::{Coords, Point, Product, Shift, Summary, Timestamp};
use pointstamp_progress::{Connectivity, Graph, Location, Source, Target, Tracker};
use timely::progress::frontier::Antichain;
use timely::progress::reachability;

type Theirs<T> = reachability::Tracker<T>;
type TheirProduct = timely::order::Product<u64, u64>;

/// A chain of nodes with one input and one output, closed to a ring where the last one advances.
#[derive(Clone, Copy)]
struct Shape {
    nodes: usize,
    ring: bool,
}

fn ours<T: Timestamp>(shape: Shape, identity: &T::Summary, step: &T::Summary) -> Tracker<T> {
    let mut graph = Graph::new(identity.clone());
    for node in 0..shape.nodes {
        let last = shape.ring && node == shape.nodes - 1;
        let summary = if last { step.clone() } else { identity.clone() };
        graph.add_node("node", 1, 1, Connectivity::identity(1, 1, summary));
    }
    for (from, to) in edges(shape) {
        graph
            .add_edge(Source::new(from, 0), Target::new(to, 0))
            .unwrap();
    }
    graph.build().unwrap()
}

fn theirs<T: timely::progress::Timestamp>(shape: Shape, step: &T::Summary) -> Theirs<T> {
    let mut builder = reachability::Builder::<T>::new();
    for node in 0..shape.nodes {
        let last = shape.ring && node == shape.nodes - 1;
        let summary = if last {
            step.clone()
        } else {
            T::Summary::default()
        };
        let ports = [(0, Antichain::from_elem(summary))].into_iter().collect();
        builder.add_node(node, 1, 1, vec![ports]);
    }
    for (from, to) in edges(shape) {
        let target = timely::progress::Target::new(to, 0);
        builder.add_edge(timely::progress::Source::new(from, 0), target);
    }
    builder.build(None).0
}

fn edges(shape: Shape) -> impl Iterator<Item = (usize, usize)> {
    let count = if shape.ring {
        shape.nodes
    } else {
        shape.nodes - 1
    };
    (0..count).map(move |node| (node, (node + 1) % shape.nodes))
}

/// A change at a port: the node, whether it is its output, the time, and the difference.
type Change = (usize, bool, u64, i64);

/// Applies rounds of changes, each round in one propagation. An endless, repeating program.
struct Program {
    name: &'static str,
    aim: Option<f64>,
    shape: Shape,
    start: Vec<Change>,
    rounds: Vec<Vec<Change>>,
    /// The increment of every time with each repetition.
    shift: u64,
}

impl Program {
    fn round(&self, index: usize) -> impl Iterator<Item = Change> {
        let shift = (index / self.rounds.len()) as u64 * self.shift;
        let round = self.rounds[index % self.rounds.len()].iter();
        round.map(move |(node, output, time, diff)| (*node, *output, time + shift, *diff))
    }

    fn compare<T: Timestamp, U: timely::progress::Timestamp>(
        &self,
        table: &Table,
        kind: &str,
        (identity, step, our_time): (T::Summary, T::Summary, impl Fn(u64) -> T),
        (their_step, their_time): (U::Summary, impl Fn(u64) -> U),
    ) {
        let mut ours: Tracker<T> = ours(self.shape, &identity, &step);
        let mut theirs: Theirs<U> = theirs(self.shape, &their_step);
        let mut our_rounds = 0;
        let mut their_rounds = 0;
        let run_ours = |tracker: &mut Tracker<T>, changes: &mut dyn Iterator<Item = Change>| {
            for (node, output, time, diff) in changes {
                let location = if output {
                    Location::source(node, 0)
                } else {
                    Location::target(node, 0)
                };
                tracker.update(location, our_time(time), diff);
            }
            tracker.propagate();
            black_box(tracker.drain_changes().count());
        };
        let run_theirs = |tracker: &mut Theirs<U>, changes: &mut dyn Iterator<Item = Change>| {
            for (node, output, time, diff) in changes {
                if output {
                    let source = timely::progress::Source::new(node, 0);
                    tracker.update_source(source, their_time(time), diff);
                } else {
                    let target = timely::progress::Target::new(node, 0);
                    tracker.update_target(target, their_time(time), diff);
                }
            }
            tracker.propagate_all();
            black_box(tracker.pushed().0.drain().count());
        };
        run_ours(&mut ours, &mut self.start.iter().copied());
        run_theirs(&mut theirs, &mut self.start.iter().copied());
        table.compare(
            &format!("{kind}: {}", self.name),
            self.aim,
            self.rounds.len().min(10_000),
            &mut |count| {
                for _ in 0..count {
                    run_ours(&mut ours, &mut self.round(our_rounds));
                    our_rounds += 1;
                }
            },
            &mut |count| {
                for _ in 0..count {
                    run_theirs(&mut theirs, &mut self.round(their_rounds));
                    their_rounds += 1;
                }
            },
        );
    }
}

/// A pointstamp at the first output goes to the next input, through the node, and so on.
fn walk(nodes: usize) -> Program {
    let mut rounds = Vec::new();
    for node in 1..nodes {
        rounds.push(vec![(node - 1, true, 0, -1), (node, false, 0, 1)]);
        rounds.push(vec![(node, false, 0, -1), (node, true, 0, 1)]);
    }
    rounds.push(vec![(nodes - 1, true, 0, -1), (0, true, 1, 1)]);
    let (shape, start) = (Shape { nodes, ring: false }, vec![(0, true, 0, 1)]);
    let name = "a pointstamp walks a chain of 1,000";
    Program {
        name,
        aim: Some(0.7),
        shape,
        start,
        rounds,
        shift: 1,
    }
}

/// A capability at the first output is downgraded, which every location hears.
fn advance(nodes: usize) -> Program {
    let rounds = vec![vec![(0, true, 0, -1), (0, true, 1, 1)]];
    let (shape, start) = (Shape { nodes, ring: false }, vec![(0, true, 0, 1)]);
    let name = "an input advances before a chain of 1,000";
    Program {
        name,
        aim: Some(0.7),
        shape,
        start,
        rounds,
        shift: 1,
    }
}

/// Times come and go at the inputs of a chain: the earliest, so that frontiers move, or, in no
/// order, others behind a frontier that stays.
fn churn(earliest: bool) -> Program {
    let (nodes, outstanding) = (10, 1_000u64);
    let cycle = if earliest {
        outstanding
    } else {
        4 * outstanding
    };
    let place = |time: u64| {
        if earliest {
            time
        } else {
            1 + time % cycle * 387 % cycle
        }
    };
    let mut start = Vec::new();
    if !earliest {
        start.extend((0..nodes).map(|node| (node, false, 0, 1)));
    }
    for time in 0..outstanding {
        start.extend((0..nodes).map(|node| (node, false, place(time), 1)));
    }
    let round = |time, node| {
        vec![
            (node, false, place(time), -1),
            (node, false, place(time + outstanding), 1),
        ]
    };
    let rounds = (0..cycle).flat_map(|time| (0..nodes).map(move |node| round(time, node)));
    let name = if earliest {
        "1,000 times at each of 10 locations, the earliest goes"
    } else {
        "1,000 times at each of 10 locations, one behind goes"
    };
    let shape = Shape { nodes, ring: false };
    let shift = if earliest { outstanding } else { 0 };
    Program {
        name,
        aim: Some(0.7),
        shape,
        start,
        rounds: rounds.collect(),
        shift,
    }
}

/// 1,000 times in all, at 10 locations.
fn spread() -> Program {
    let (nodes, outstanding) = (10u64, 1_000u64);
    let place = |time: u64| usize::try_from(time % nodes).unwrap();
    let start = (0..outstanding)
        .map(|time| (place(time), false, time, 1))
        .collect();
    let step = |time| {
        let next = time + outstanding;
        vec![
            (place(time), false, time, -1),
            (place(next), false, next, 1),
        ]
    };
    let rounds = (0..outstanding).map(step).collect();
    let name = "1,000 times spread over 10 locations";
    let shape = Shape {
        nodes: 10,
        ring: false,
    };
    Program {
        name,
        aim: Some(0.7),
        shape,
        start,
        rounds,
        shift: outstanding,
    }
}

/// A pointstamp goes around a ring, whose last node adds one, 100 times.
fn turns(nodes: usize) -> Program {
    let mut rounds = Vec::new();
    for turn in 0..100 {
        for node in 0..nodes {
            let after = if node == nodes - 1 { turn + 1 } else { turn };
            rounds.push(vec![(node, false, turn, -1), (node, true, after, 1)]);
            let next = (node + 1) % nodes;
            rounds.push(vec![(node, true, after, -1), (next, false, after, 1)]);
        }
    }
    let (shape, start) = (Shape { nodes, ring: true }, vec![(0, false, 0, 1)]);
    let name = "100 turns in a loop of 10";
    Program {
        name,
        aim: Some(0.7),
        shape,
        start,
        rounds,
        shift: 100,
    }
}

fn main() {
    let table = Table::new("Tracker, one operation is one propagation").on_one_thread();
    let programs = [
        walk(1_000),
        advance(1_000),
        churn(true),
        churn(false),
        spread(),
        turns(10),
    ];
    for program in &programs {
        program.compare::<u64, u64>(&table, "u64", (0, 1, |time| time), (1, |time| time));
    }
    for program in &programs {
        let ours = (Product::new(0, 0), Product::new(0, 1), |time| {
            Product::new(7, time)
        });
        let theirs = (TheirProduct::new(0, 1), |time| TheirProduct::new(7, time));
        program.compare::<Product<u64, u64>, TheirProduct>(&table, "product", ours, theirs);
    }
    let step = |summary| Shift::from_summary(&summary).expect("a summary of as many coordinates");
    for program in &programs {
        let ours = (Shift::IDENTITY, step(Summary::step(1, 1)), |time| {
            Coords::new([time])
        });
        let theirs = (1, |time| time);
        program.compare::<Coords<1>, u64>(&table, "1 coordinate", ours, theirs);
    }
    let step = |summary| Shift::from_summary(&summary).expect("a summary of as many coordinates");
    for program in &programs {
        let ours = (Shift::IDENTITY, step(Summary::step(2, 1)), |time| {
            Coords::new([7, time])
        });
        let theirs = (TheirProduct::new(0, 1), |time| TheirProduct::new(7, time));
        program.compare::<Coords<2>, TheirProduct>(&table, "2 coordinates", ours, theirs);
    }
    for program in &programs {
        let ours = (Summary::identity(2), Summary::step(2, 1), |time| {
            Point::new(&[7, time])
        });
        let theirs = (TheirProduct::new(0, 1), |time| TheirProduct::new(7, time));
        program.compare::<Point, TheirProduct>(&table, "point", ours, theirs);
    }
}
