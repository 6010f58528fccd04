//! A pipeline of all operators, driven by a random script, and the same by recomputation.

mod batch;
mod stored;

use std::collections::BTreeMap;

use pointstamp_arrange::{
    Batcher, Error, Join, JoinStep, Lists, Page, Reduce, Reducer, Rows, Sealed, Time, Trace,
    TraceWriter, Updates, Words,
};
use pointstamp_order::Antichain;
use proptest::prelude::*;

use batch::check_batch;

/// An input update, or a step of the driver.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Input, key, value, time, difference.
    Update(bool, u64, u64, Vec<u64>, i64),
    /// Moves an element of an input's frontier. An element is replaced by its part at or after the time, or by its
    /// part that is not at or before it.
    Advance(bool, Vec<u64>, usize, bool),
    /// Lets the join and the reduction work with so much fuel.
    Work(usize),
    /// Hands an arrangement's batches on; they wait until then.
    Deliver(bool),
    /// Hands all batches on, and lets the join and the reduction work until nothing is left.
    CatchUp,
    /// Merges an arrangement.
    Exert(bool, usize),
    /// Lets an arrangement be compacted: its reader outside of the operators reads later times only.
    Compact(bool, Vec<u64>),
}

#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) dims: usize,
    pub(crate) actions: Vec<Action>,
}

const RANGE: u64 = 5;

fn time(dims: usize) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0..RANGE, dims)
}

/// Actions on so many keys.
pub(crate) fn script(dims: usize, keys: u64, actions: usize) -> impl Strategy<Value = Script> {
    let action = prop_oneof![
        12 => (any::<bool>(), 0..keys, 0..3u64, time(dims), prop_oneof![Just(1i64), Just(-1), Just(2)])
            .prop_map(|(side, key, val, time, diff)| Action::Update(side, key, val, time, diff)),
        4 => (any::<bool>(), time(dims), 0..4usize, any::<bool>())
            .prop_map(|(side, time, element, splits)| Action::Advance(side, time, element, splits)),
        2 => (1..9usize).prop_map(Action::Work),
        3 => any::<bool>().prop_map(Action::Deliver),
        2 => Just(Action::CatchUp),
        2 => (any::<bool>(), 1..50usize).prop_map(|(side, fuel)| Action::Exert(side, fuel)),
        2 => (any::<bool>(), time(dims)).prop_map(|(side, time)| Action::Compact(side, time)),
    ];
    prop::collection::vec(action, 0..actions).prop_map(move |actions| Script { dims, actions })
}

/// All the updates of a collection of pairs.
pub(crate) type History<T> = Vec<((u64, u64), T, i64)>;
/// The contents of a collection at a time.
pub(crate) type Contents = BTreeMap<(u64, u64), i64>;

pub(crate) fn at<T: Time>(history: &History<T>, time: &T) -> Contents {
    let mut contents = Contents::new();
    for (row, when, diff) in history {
        if when.less_equal(time) {
            *contents.entry(*row).or_insert(0) += diff;
        }
    }
    contents.retain(|_, diff| *diff != 0);
    contents
}

/// An input, its arrangement, and the batches on their way from it.
struct Arranged<T: Time> {
    history: History<T>,
    batcher: Batcher<Words, Words, T>,
    frontier: Antichain<T>,
    writer: TraceWriter<Words, Words, T>,
    trace: Trace<Words, Words, T>,
    on_the_way: Vec<(T, Sealed<Words, Words, T>)>,
    /// The frontier at the consumers, which is behind while batches are on their way.
    seen: Antichain<T>,
}

impl<T: Time> Arranged<T> {
    fn new(minimum: &T) -> Self {
        let lower = Antichain::from_elem(minimum.clone());
        let (mut writer, trace) = TraceWriter::new(lower.clone());
        writer.store_in(stored::storage());
        Self {
            history: Vec::new(),
            batcher: stored::batcher(lower.clone()),
            frontier: lower.clone(),
            writer,
            trace,
            on_the_way: Vec::new(),
            seen: lower,
        }
    }

    fn advance(&mut self, frontier: Antichain<T>) {
        let held = self.batcher.frontier().clone();
        for (time, batch) in self.batcher.seal(&frontier).unwrap() {
            assert!(
                held.elements().contains(&time),
                "sealed at a time that is held"
            );
            check_batch(&batch);
            assert!(
                batch
                    .times()
                    .iter()
                    .all(|t| time.less_equal(t) && !frontier.less_equal(t))
            );
            if let Some(sealed) = self.writer.insert(batch).unwrap() {
                self.on_the_way.push((time, sealed));
            }
        }
        self.writer.seal(frontier.clone());
        self.frontier = frontier;
    }
}

/// The function of the pipeline's reduction.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Reduction {
    /// The least value and how many there are, doubled; it is no sum over the values, and for some inputs there is nothing.
    Several,
    /// One value, if there are any: the kernel computes it without a call.
    Once,
}

fn reduction(kind: Reduction, list: &[(u64, i64)]) -> Vec<(u64, i64)> {
    let total: i64 = list.iter().map(|(_, diff)| diff).sum();
    if kind == Reduction::Once {
        return if total > 0 { vec![(5, 1)] } else { Vec::new() };
    }
    let mut output = Vec::new();
    if total > 1
        && let Some((least, _)) = list.first()
    {
        output.push((least * 100 + total.cast_unsigned(), 1));
    }
    if list.len() == 2 {
        output.push((7, 2));
    }
    output
}

/// Reduces by [`reduction`].
pub(crate) struct ByReduction(Reduction);

impl Reducer<Words, Words, Words> for ByReduction {
    fn reduce(
        &mut self,
        keys: &Words,
        inputs: &Lists<Words>,
        outputs: &mut Lists<Words>,
    ) -> Result<(), Error> {
        assert_eq!(keys.len(), inputs.len());
        for index in 0..keys.len() {
            let list: Vec<_> = inputs.list(index).collect();
            assert!(!list.is_empty() && list.is_sorted_by(|a, b| a.0 < b.0));
            for (val, diff) in reduction(self.0, &list) {
                outputs.push(val, diff);
            }
            outputs.end();
        }
        Ok(())
    }

    fn once(&self) -> Option<Words> {
        (self.0 == Reduction::Once).then(|| Words::from(vec![5]))
    }
}

/// Two arrangements, their join, and the reduction of the first.
pub(crate) struct Pipeline<'a, T: Time> {
    script: &'a Script,
    kind: Reduction,
    inputs: [Arranged<T>; 2],
    join: Join<Words, Words, Words, T, T>,
    joined: History<T>,
    reduce: Reduce<Words, Words, Words, T, ByReduction>,
    reduced: History<T>,
    reduced_trace: Trace<Words, Words, T>,
    /// The capabilities held for the reduction.
    held: Antichain<T>,
}

impl<'a, T: Time> Pipeline<'a, T> {
    pub(crate) fn new(script: &'a Script, kind: Reduction) -> Self {
        let minimum = T::read(&vec![0; script.dims]).unwrap();
        let inputs = [Arranged::new(&minimum), Arranged::new(&minimum)];
        let source = |index: usize| Box::new(inputs[index].trace.clone());
        let join = Join::new(source(0), source(1));
        let lower = Antichain::from_elem(minimum);
        let reduce = Reduce::new(source(0), lower, ByReduction(kind));
        Self {
            script,
            kind,
            join,
            joined: Vec::new(),
            reduced_trace: reduce.trace(),
            reduce,
            reduced: Vec::new(),
            held: Antichain::new(),
            inputs,
        }
    }

    pub(crate) fn run(&mut self) {
        for action in &self.script.actions {
            match action {
                Action::Update(side, key, val, time, diff) => {
                    let input = &mut self.inputs[usize::from(*side)];
                    let time = T::read(time).unwrap();
                    if input.frontier.less_equal(&time) {
                        input.batcher.push(*key, *val, &time, *diff).unwrap();
                        input.history.push(((*key, *val), time, *diff));
                    }
                }
                Action::Advance(side, time, element, splits) => {
                    let input = &mut self.inputs[usize::from(*side)];
                    let old = input.frontier.elements().to_vec();
                    let element = element % old.len().max(1);
                    let mut moved: Antichain<T> = Antichain::new();
                    for (index, held) in old.iter().enumerate() {
                        if index != element {
                            moved.insert(held.clone());
                        } else if *splits {
                            moved.extend(not_before(held, time));
                        } else {
                            moved.insert(held.join(&T::read(time).unwrap()));
                        }
                    }
                    input.advance(moved);
                }
                Action::Work(fuel) => self.work(*fuel),
                Action::Deliver(side) => self.deliver(usize::from(*side)),
                Action::CatchUp => {
                    self.deliver(0);
                    self.deliver(1);
                    self.finish(50);
                }
                Action::Exert(side, fuel) => {
                    let input = &mut self.inputs[usize::from(*side)];
                    if fuel % 2 == 0 {
                        input.writer.compact(&mut fuel.clone()).unwrap();
                    } else {
                        input.writer.exert(&mut fuel.clone()).unwrap();
                    }
                }
                Action::Compact(side, time) => {
                    let time = T::read(time).unwrap();
                    let trace = &mut self.inputs[usize::from(*side)].trace;
                    let since = trace.since().iter().map(|held| held.join(&time)).collect();
                    trace.allow_compaction(&since);
                    self.check_traces();
                }
            }
        }
        for side in [0, 1] {
            self.inputs[side].advance(Antichain::new());
            self.deliver(side);
            self.work(3);
        }
        self.finish(5);
        assert!(
            self.reduce.frontier().is_empty(),
            "nothing is owed at the end"
        );
        for (_, sealed) in &self.inputs[0].on_the_way {
            assert!(sealed.batch.is_empty());
        }
    }

    fn deliver(&mut self, side: usize) {
        let input = &mut self.inputs[side];
        for (time, sealed) in input.on_the_way.drain(..) {
            if side == 0 {
                self.join.push_left(&sealed, time.clone());
                self.held.insert(time);
                self.reduce.push(sealed);
            } else {
                self.join.push_right(&sealed, time);
            }
        }
        input.seen = input.frontier.clone();
        self.join
            .advance(&self.inputs[0].seen, &self.inputs[1].seen);
        if side == 0 {
            self.reduce.advance(&self.inputs[0].seen);
        }
    }

    /// Works until nothing is left to do.
    fn finish(&mut self, fuel: usize) {
        while !self.join.is_idle() || !self.reduce.is_idle() {
            self.work(fuel);
        }
    }

    fn work(&mut self, fuel: usize) {
        let mut left = fuel;
        loop {
            let mut emitted = Updates::<Words, Words, T>::default();
            let emit = |key, a, b, time: &T, diff| {
                emitted.push(key, a * 1000 + b, time, diff);
            };
            let step = self.join.work(&mut left, emit).unwrap();
            assert!(emitted.len() <= fuel, "bounded work");
            let Some(capability) = step.capability() else {
                assert!(matches!(step, JoinStep::Idle));
                break;
            };
            for (key, val, time, diff) in emitted.iter() {
                assert!(capability.less_equal(time), "at or after the capability");
                self.joined.push(((key, val), time.clone(), diff));
            }
            if matches!(step, JoinStep::Paused(_)) {
                break;
            }
        }
        let mut fuel = fuel;
        while fuel > 0 && !self.reduce.is_idle() {
            let before = self.reduce.frontier();
            if let Some(output) = self.reduce.work(&mut fuel).unwrap() {
                for (time, sealed) in output {
                    assert!(before.less_equal(&time), "at or after the frontier");
                    assert!(self.held.less_equal(&time), "a capability that is held");
                    check_batch(&sealed.batch);
                    for (key, val, at, diff) in
                        stored::pages(&sealed.batch).iter().flat_map(Page::iter)
                    {
                        assert!(time.less_equal(at), "at or after the capability");
                        self.reduced.push(((key, val), at.clone(), diff));
                    }
                }
                let frontier = self.reduce.frontier();
                assert!(frontier.iter().all(|time| self.held.less_equal(time)));
                self.held = frontier;
                self.check_traces();
            }
        }
    }

    /// Checks the contents of traces, at times at which they are exact, against the batches that were passed
    /// on.
    fn check_traces(&self) {
        for time in self.times() {
            for input in &self.inputs {
                if readable(&input.trace, &time) {
                    assert_eq!(contents(&input.trace, &time), at(&input.history, &time));
                }
            }
            if readable(&self.reduced_trace, &time) {
                assert_eq!(
                    contents(&self.reduced_trace, &time),
                    at(&self.reduced, &time)
                );
            }
        }
    }

    fn times(&self) -> impl Iterator<Item = T> {
        let dims = u32::try_from(self.script.dims).unwrap();
        (0..RANGE.pow(dims)).map(move |code| {
            let coords: Vec<u64> = (0..dims).map(|dim| code / RANGE.pow(dim) % RANGE).collect();
            T::read(&coords).unwrap()
        })
    }

    /// Checks that the outputs equal recomputation at every time.
    pub(crate) fn check(&self) {
        for time in self.times() {
            let inputs = [0, 1].map(|side| at(&self.inputs[side].history, &time));
            let mut joined = Contents::new();
            for ((key, a), diff) in &inputs[0] {
                for ((_, b), other) in inputs[1].range((*key, 0)..=(*key, u64::MAX)) {
                    *joined.entry((*key, a * 1000 + b)).or_insert(0) += diff * other;
                }
            }
            joined.retain(|_, diff| *diff != 0);
            assert_eq!(at(&self.joined, &time), joined, "the join at {time:?}");
            let mut reduced = Contents::new();
            for key in 0..4 {
                let list = inputs[0].range((key, 0)..=(key, u64::MAX));
                let list: Vec<_> = list.map(|((_, val), diff)| (*val, *diff)).collect();
                for (val, diff) in reduction(self.kind, &list) {
                    *reduced.entry((key, val)).or_insert(0) += diff;
                }
            }
            assert_eq!(
                at(&self.reduced, &time),
                reduced,
                "the reduction at {time:?}"
            );
        }
    }
}

/// The least times at or after `held` that are not at or before `time`.
fn not_before<T: Time>(held: &T, time: &[u64]) -> Vec<T> {
    let mut coords = Vec::new();
    held.write(&mut coords);
    let mut raised = Vec::new();
    for (dim, past) in time.iter().enumerate() {
        let mut coords = coords.clone();
        coords[dim] = coords[dim].max(past + 1);
        raised.push(T::read(&coords).unwrap());
    }
    raised
}

/// True where reads are exact and complete.
fn readable<T: Time>(trace: &Trace<Words, Words, T>, time: &T) -> bool {
    trace.since().less_equal(time) && !trace.upper().less_equal(time)
}

fn contents<T: Time>(trace: &Trace<Words, Words, T>, time: &T) -> Contents {
    let mut cursor = pointstamp_arrange::Cursor::new(trace.batches()).unwrap();
    let mut contents = Contents::new();
    while let Some(key) = cursor.key() {
        cursor
            .vals_at(time, |val, count| {
                assert!(contents.insert((key, val), count).is_none());
            })
            .unwrap();
        let vals = || contents.range((key, 0)..=(key, u64::MAX));
        let sum: i64 = vals().map(|(_, count)| count).sum();
        assert_eq!(cursor.count_at(time).unwrap(), sum);
        for ((_, val), count) in vals() {
            let read: BTreeMap<u64, i64> = trace.get(key, time).unwrap().iter().collect();
            assert_eq!(read.get(val), Some(count));
        }
        cursor.pass().unwrap();
    }
    contents
}
