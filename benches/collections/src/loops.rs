//! Loops: breadth-first search over a graph that changes.
//!
//! Ours is driven by hand, turn by turn, without a dataflow around it: proposals of distances are
//! reduced to the least, which propose to their neighbours in the next turn.

use std::time::Duration;

use differential_dataflow::VecCollection;
use differential_dataflow::algorithms::graphs::bfs;
use differential_dataflow::input::Input;
use pointstamp_arrange::{
    Batcher, Entered, Join, JoinStep, Reduce, Sealed, Time, Top, Trace, TraceWriter, Updates, Words,
};
use pointstamp_order::Antichain;

use crate::operators::{changing, edges};
use crate::samples::{report, timed};

type Turn = [u64; 2];

struct Arranged<T: Time> {
    batcher: Batcher<Words, Words, T>,
    writer: TraceWriter<Words, Words, T>,
    trace: Trace<Words, Words, T>,
}

impl<T: Time> Arranged<T> {
    fn new(least: T) -> Self {
        let least = Antichain::from_elem(least);
        let (writer, trace) = TraceWriter::new(least.clone());
        Self {
            batcher: Batcher::new(least),
            writer,
            trace,
        }
    }

    fn seal(&mut self, upper: &Antichain<T>) -> Vec<(T, Sealed<Words, Words, T>)> {
        let mut sealed = Vec::new();
        for (time, batch) in self.batcher.seal(upper).expect("small differences") {
            let inserted = self.writer.insert(batch).expect("small differences");
            sealed.extend(inserted.map(|batch| (time, batch)));
        }
        self.writer.seal(upper.clone());
        self.trace.allow_compaction(upper);
        sealed
    }
}

/// Distances from a root, of nodes that are reached.
struct Search {
    edges: Arranged<u64>,
    distances: Arranged<Turn>,
    join: Join<Words, Words, Words, Turn, Turn>,
    proposals: Arranged<Turn>,
    reduce: Reduce<Words, Words, Words, Turn, Top>,
    result: Trace<Words, Words, Turn>,
    turns: usize,
}

impl Search {
    fn new() -> Self {
        let edges = Arranged::new(0);
        let (distances, proposals) = (Arranged::new([0, 0]), Arranged::<Turn>::new([0, 0]));
        let entered = Entered::new(
            Box::new(edges.trace.clone()),
            |time: &u64| [*time, 0],
            |[time, _]: &Turn| *time,
        );
        let join = Join::new(Box::new(distances.trace.clone()), Box::new(entered));
        let least = Antichain::from_elem([0, 0]);
        let reduce = Reduce::new(Box::new(proposals.trace.clone()), least, Top::MIN);
        Self {
            edges,
            distances,
            join,
            proposals,
            result: reduce.trace(),
            reduce,
            turns: 0,
        }
    }

    fn round(&mut self, time: u64, changes: &[(u64, u64, i64)]) {
        for (source, target, diff) in changes {
            self.edges
                .batcher
                .push(*source, *target, &time, *diff)
                .expect("small differences");
        }
        if time == 0 {
            self.proposals
                .batcher
                .push(0, 0, &[0, 0], 1)
                .expect("small differences");
        }
        let later = [time + 1, 0];
        for (_, sealed) in self.edges.seal(&Antichain::from_elem(time + 1)) {
            let batch = sealed.batch.map_times(|time| [*time, 0]);
            let number = sealed.number;
            self.join.push_right(&Sealed { batch, number }, [time, 0]);
        }
        while let Some(turn) = self.next_turn(time) {
            self.turn(&[[time, turn + 1], later].into_iter().collect());
        }
        self.turn(&Antichain::from_elem(later));
        self.result.allow_compaction(&Antichain::from_elem(later));
    }

    /// The next turn at `time` at which something is to be done.
    fn next_turn(&self, time: u64) -> Option<u64> {
        if !self.join.is_idle() {
            return Some(0);
        }
        let held = [
            self.distances.batcher.frontier(),
            self.proposals.batcher.frontier(),
            &self.reduce.frontier(),
        ];
        let turns = held
            .into_iter()
            .flatten()
            .filter(|[outer, _]| *outer == time);
        turns.map(|[_, turn]| *turn).min()
    }

    fn turn(&mut self, upper: &Antichain<Turn>) {
        self.turns += 1;
        for (time, sealed) in self.distances.seal(upper) {
            self.join.push_left(&sealed, time);
        }
        let right = upper.iter().map(|[time, _]| [*time, 0]).collect();
        self.join.advance(upper, &right);
        let mut updates = Updates::<Words, Words, Turn>::default();
        loop {
            let emit = |_, distance, target, time: &Turn, diff| {
                updates.push(target, distance + 1, time, diff)
            };
            let step = self
                .join
                .work(&mut 100_000, emit)
                .expect("small differences");
            if matches!(step, JoinStep::Idle) {
                break;
            }
            self.proposals
                .batcher
                .append(&mut updates)
                .expect("small differences");
        }
        for (_, sealed) in self.proposals.seal(upper) {
            self.reduce.push(sealed);
        }
        self.reduce.advance(upper);
        while !self.reduce.is_idle() {
            let output = self.reduce.work(&mut 100_000).expect("small differences");
            for (_, sealed) in output.into_iter().flatten() {
                for page in 0..sealed.batch.pages() {
                    let page = sealed.batch.page(page).expect("it is in memory");
                    for (node, distance, [time, turn], diff) in page.iter() {
                        updates.push(node, distance, &[*time, *turn + 1], diff);
                    }
                }
            }
        }
        self.distances
            .batcher
            .append(&mut updates)
            .expect("small differences");
    }

    /// Returns the number of reached nodes, and the sum of their distances.
    fn check(&self, time: u64) -> (u64, u64) {
        let batches = self.result.batches();
        let mut cursor = pointstamp_arrange::Cursor::new(batches).expect("it is in memory");
        let mut sums = (0, 0);
        while cursor.key().is_some() {
            let add = |distance, count: i64| {
                assert_eq!(count, 1);
                sums = (sums.0 + 1, sums.1 + distance);
            };
            cursor
                .vals_at(&[time, u64::MAX], add)
                .expect("small differences");
            cursor.pass().expect("it is in memory");
        }
        sums
    }
}

/// The same, from scratch.
fn search(nodes: u64, edges: &[(u64, u64, i64)]) -> (u64, u64) {
    let mut sorted: Vec<(u64, u64)> = edges
        .iter()
        .map(|(source, target, _)| (*source, *target))
        .collect();
    sorted.sort_unstable();
    let mut reached = vec![false; usize::try_from(nodes).expect("an index")];
    reached[0] = true;
    let (mut front, mut distance, mut sums) = (vec![0], 0, (0, 0));
    while !front.is_empty() {
        sums = (
            sums.0 + front.len() as u64,
            sums.1 + distance * front.len() as u64,
        );
        let mut next = Vec::new();
        for source in front {
            let start = sorted.partition_point(|(other, _)| *other < source);
            for (_, target) in sorted[start..]
                .iter()
                .take_while(|(other, _)| *other == source)
            {
                let reached = &mut reached[usize::try_from(*target).expect("an index")];
                if !std::mem::replace(reached, true) {
                    next.push(*target);
                }
            }
        }
        front = next;
        distance += 1;
    }
    sums
}

fn theirs(rounds: Vec<Vec<(u64, u64, i64)>>) -> Vec<Duration> {
    timely::execute_directly(move |worker| {
        let (mut roots, mut input, probe) = worker.dataflow::<u64, _, _>(|scope| {
            let (roots, from): (_, VecCollection<u64, u64, isize>) = scope.new_collection();
            let (input, edges): (_, VecCollection<u64, (u64, u64), isize>) = scope.new_collection();
            (roots, input, bfs::bfs(edges, from).probe().0)
        });
        roots.insert(0);
        roots.close();
        let mut times = Vec::new();
        for (time, updates) in rounds.into_iter().enumerate() {
            let (took, ()) = timed(|| {
                for (source, target, diff) in updates {
                    input.update((source, target), diff as isize);
                }
                input.advance_to(time as u64 + 1);
                input.flush();
                worker.step_while(|| probe.less_than(&(time as u64 + 1)));
            });
            times.push(took);
        }
        times
    })
}

pub fn run(nodes: u64, count: usize) {
    let what = format!("breadth-first search, {nodes} nodes, {count} edges");
    println!("\n{what}: medians");
    println!("{:<44} {:>12} {:>12} {:>6}", "", "ours", "theirs", "ratio");
    let initial = edges(nodes, count, 1);
    let mut current = initial.clone();
    let mut rounds = vec![initial];
    rounds.extend(changing(nodes, &mut current, 1_000, 1));
    let mut ours = Search::new();
    let mut our_times: Vec<Duration> = Vec::new();
    for (time, round) in (0..).zip(&rounds) {
        our_times.push(timed(|| ours.round(time, round)).0);
    }
    assert_eq!(ours.check(rounds.len() as u64 - 1), search(nodes, &current));
    let bytes = [&ours.distances.trace, &ours.proposals.trace, &ours.result].map(Trace::bytes);
    println!(
        "{} turns; bytes of distances, proposals and result: {bytes:?}",
        ours.turns
    );
    drop(ours);
    let mut their_times = theirs(rounds);
    let (mut our_load, mut their_load) = (our_times[..1].to_vec(), their_times[..1].to_vec());
    report(&what, "load", 1.5, &mut our_load, &mut their_load);
    let sums = [&our_times, &their_times].map(|times| times[1..].iter().sum::<Duration>());
    report(
        &what,
        "a change",
        1.5,
        &mut our_times[1..],
        &mut their_times[1..],
    );
    report(
        &what,
        "1,000 changes in all",
        1.5,
        &mut [sums[0]],
        &mut [sums[1]],
    );
}
