//! Operators: degrees and their distribution, a join, and a reduction, of random graphs.
//!
//! Theirs run as dataflows on one worker, which is how they are meant to be driven; ours are driven by
//! hand, operator after operator. A dataflow around ours is what the Python package adds.

use std::time::Duration;

use differential_dataflow::input::Input;
use differential_dataflow::operators::count::CountTotal;
use pointstamp_arrange::{
    Batcher, Join, JoinStep, Reduce, Sealed, Source, Top, Totals, Trace, TraceWriter, Units,
    Updates, Words, word_of_i64,
};
use pointstamp_order::Antichain;

use crate::samples::{Numbers, report, timed};

/// An arrangement at the end of a batcher.
struct Arranged<V: pointstamp_arrange::Rows> {
    batcher: Batcher<Words, V, u64>,
    writer: TraceWriter<Words, V, u64>,
    trace: Trace<Words, V, u64>,
}

impl<V: pointstamp_arrange::Rows> Arranged<V> {
    fn new() -> Self {
        let least = Antichain::from_elem(0);
        let (writer, trace) = TraceWriter::new(least.clone());
        Self {
            batcher: Batcher::new(least),
            writer,
            trace,
        }
    }

    fn source(&self) -> Box<dyn Source<Words, V, u64>> {
        Box::new(self.trace.clone())
    }

    fn append(&mut self, updates: &mut Updates<Words, V, u64>) {
        self.batcher.append(updates).expect("small differences");
    }

    fn seal(&mut self, upper: &Antichain<u64>) -> Vec<(u64, Sealed<Words, V, u64>)> {
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

/// Records whose counts are followed.
struct Counted {
    arranged: Arranged<Units>,
    totals: Totals<Words, Units, u64, u64>,
}

impl Counted {
    fn new() -> Self {
        let arranged = Arranged::new();
        let totals = Totals::new(arranged.source());
        Self { arranged, totals }
    }

    /// The changes of counts up to `upper`, as updates whose keys are the counts.
    fn advance(&mut self, upper: &Antichain<u64>, counts: &mut Updates<Words, Units, u64>) {
        for (time, sealed) in self.arranged.seal(upper) {
            self.totals.push(&sealed, time);
        }
        self.totals.advance(upper);
        while !self.totals.is_idle() {
            let emit = |_, time: &u64, before, after| {
                if before != 0 {
                    counts.push(word_of_i64(before), (), time, -1);
                }
                if after != 0 {
                    counts.push(word_of_i64(after), (), time, 1);
                }
            };
            self.totals
                .work(&mut 100_000, emit)
                .expect("small differences");
        }
    }
}

/// The number of nodes of each degree.
struct Degrees {
    nodes: Counted,
    degrees: Counted,
    changes: u64,
}

impl Degrees {
    fn round(&mut self, time: u64, edges: &[(u64, u64, i64)]) {
        let mut updates = Updates::default();
        for (source, _, diff) in edges {
            updates.push(*source, (), &time, *diff);
            if updates.len() == 1 << 14 {
                self.nodes.arranged.append(&mut updates);
            }
        }
        self.nodes.arranged.append(&mut updates);
        let upper = Antichain::from_elem(time + 1);
        self.nodes.advance(&upper, &mut updates);
        self.degrees.arranged.append(&mut updates);
        self.degrees.advance(&upper, &mut updates);
        self.changes += updates.len() as u64;
    }
}

pub fn edges(nodes: u64, count: usize, seed: u64) -> Vec<(u64, u64, i64)> {
    let mut numbers = Numbers(seed);
    (0..count)
        .map(|_| (numbers.next() % nodes, numbers.next() % nodes, 1))
        .collect()
}

/// One edge goes and one comes, so many times in each round.
pub fn changing(
    nodes: u64,
    current: &mut [(u64, u64, i64)],
    rounds: usize,
    size: usize,
) -> Vec<Vec<(u64, u64, i64)>> {
    let mut numbers = Numbers(3);
    let count = current.len() as u64;
    let round = |numbers: &mut Numbers, current: &mut [(u64, u64, i64)]| {
        (0..size)
            .flat_map(|_| {
                let place = usize::try_from(numbers.next() % count).expect("an index");
                let (source, target, _) = current[place];
                current[place] = (numbers.next() % nodes, numbers.next() % nodes, 1);
                [(source, target, -1), current[place]]
            })
            .collect()
    };
    (0..rounds).map(|_| round(&mut numbers, current)).collect()
}

/// Feeds rounds to a dataflow of differential's on this thread; the time of each.
pub fn run_theirs<F>(rounds: Vec<Vec<(u64, u64, i64)>>, build: F) -> Vec<Duration>
where
    F: for<'a> Fn(
            differential_dataflow::VecCollection<'a, u64, (u64, u64), isize>,
        ) -> timely::dataflow::ProbeHandle<u64>
        + Send
        + Sync
        + 'static,
{
    timely::execute_directly(move |worker| {
        let (mut input, probe) = worker.dataflow::<u64, _, _>(|scope| {
            let (input, edges) = scope.new_collection::<(u64, u64), isize>();
            (input, build(edges))
        });
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

pub fn summary(what: &str, name: &str, aims: [f64; 3], ours: &[Duration], theirs: &[Duration]) {
    for (part, range, aim) in [
        ("load", 0..1, aims[0]),
        ("a change", 1..1001.min(ours.len()), aims[1]),
        ("1,000 changes", 1001.min(ours.len())..ours.len(), aims[2]),
    ] {
        let (mut ours, mut theirs) = (ours[range.clone()].to_vec(), theirs[range].to_vec());
        if !ours.is_empty() {
            report(
                what,
                &format!("{name}: {part}"),
                aim,
                &mut ours,
                &mut theirs,
            );
        }
    }
}

pub fn run(nodes: u64, count: usize) {
    let what = format!("{nodes} nodes, {count} edges");
    println!("\n{what}: medians");
    println!("{:<44} {:>12} {:>12} {:>6}", "", "ours", "theirs", "ratio");
    let initial = edges(nodes, count, 1);
    let mut current = initial.clone();
    let mut rounds = vec![initial];
    rounds.extend(changing(nodes, &mut current, 1_000, 1));
    rounds.extend(changing(nodes, &mut current, 100, 1_000));

    let mut degrees = Degrees {
        nodes: Counted::new(),
        degrees: Counted::new(),
        changes: 0,
    };
    let ours: Vec<Duration> = (0..)
        .zip(&rounds)
        .map(|(time, round)| timed(|| degrees.round(time, round)).0)
        .collect();
    assert!(degrees.changes > 0);
    drop(degrees);
    let theirs = run_theirs(rounds.clone(), |edges| {
        let degrees = edges.map(|(source, _)| source).count_total();
        degrees
            .map(|(_, degree)| degree as usize)
            .count_total()
            .probe()
            .0
    });
    summary(&what, "degrees", [1.2; 3], &ours, &theirs);

    let mut least = Least::new();
    let ours: Vec<Duration> = (0..)
        .zip(&rounds)
        .map(|(time, round)| timed(|| least.round(time, round)).0)
        .collect();
    assert!(least.changes > 0);
    drop(least);
    let theirs = run_theirs(rounds.clone(), |edges| {
        edges
            .reduce(|_, targets, output| output.push((*targets[0].0, 1)))
            .probe()
            .0
    });
    summary(&what, "least target by reduce", [1.2; 3], &ours, &theirs);

    let mut paths = Paths::new();
    let ours: Vec<Duration> = (0..)
        .zip(&rounds)
        .map(|(time, round)| timed(|| paths.round(time, round)).0)
        .collect();
    assert!(paths.changes > 0);
    drop(paths);
    let theirs = run_theirs(rounds, |edges| {
        let arranged = edges.clone().arrange_by_key();
        let back = edges
            .map(|(source, target)| (target, source))
            .arrange_by_key();
        back.join_core(arranged, |_, source, target| Some((*source, *target)))
            .probe()
            .0
    });
    summary(
        &what,
        "paths of two edges by join",
        [1.2; 3],
        &ours,
        &theirs,
    );
}

/// The least target of each source.
struct Least {
    arranged: Arranged<Words>,
    reduce: Reduce<Words, Words, Words, u64, Top>,
    changes: usize,
}

impl Least {
    fn new() -> Self {
        let arranged = Arranged::new();
        let reduce = Reduce::new(arranged.source(), Antichain::from_elem(0), Top::MIN);
        Self {
            arranged,
            reduce,
            changes: 0,
        }
    }

    fn round(&mut self, time: u64, edges: &[(u64, u64, i64)]) {
        for (source, target, diff) in edges {
            self.arranged
                .batcher
                .push(*source, *target, &time, *diff)
                .expect("small differences");
        }
        let upper = Antichain::from_elem(time + 1);
        for (_, sealed) in self.arranged.seal(&upper) {
            self.reduce.push(sealed);
        }
        self.reduce.advance(&upper);
        while !self.reduce.is_idle() {
            let output = self.reduce.work(&mut 100_000).expect("small differences");
            self.changes += output
                .into_iter()
                .flatten()
                .map(|(_, sealed)| sealed.batch.len())
                .sum::<usize>();
        }
    }
}

/// Paths of two edges.
struct Paths {
    forward: Arranged<Words>,
    back: Arranged<Words>,
    join: Join<Words, Words, Words, u64, u64>,
    changes: usize,
}

impl Paths {
    fn new() -> Self {
        let (forward, back) = (Arranged::new(), Arranged::new());
        let join = Join::new(back.source(), forward.source());
        Self {
            forward,
            back,
            join,
            changes: 0,
        }
    }

    fn round(&mut self, time: u64, edges: &[(u64, u64, i64)]) {
        for (source, target, diff) in edges {
            self.forward
                .batcher
                .push(*source, *target, &time, *diff)
                .expect("small differences");
            self.back
                .batcher
                .push(*target, *source, &time, *diff)
                .expect("small differences");
        }
        let upper = Antichain::from_elem(time + 1);
        for (time, sealed) in self.back.seal(&upper) {
            self.join.push_left(&sealed, time);
        }
        for (time, sealed) in self.forward.seal(&upper) {
            self.join.push_right(&sealed, time);
        }
        self.join.advance(&upper, &upper);
        let mut updates = Updates::<Words, Words, u64>::default();
        loop {
            updates.clear();
            let emit =
                |_, source, target, time: &u64, diff| updates.push(source, target, time, diff);
            let step = self
                .join
                .work(&mut 10_000, emit)
                .expect("small differences");
            if matches!(step, JoinStep::Idle) {
                break;
            }
            self.changes += updates.len();
        }
    }
}
