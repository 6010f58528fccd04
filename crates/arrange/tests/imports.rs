//! Late readers: they get the current batches at once, and then the later ones. Batches may be merged up to a
//! time that is not complete yet, and merges continue while batches are in flight. From the reader's `since` on
//! everything equals recomputation.

#[path = "support/stored.rs"]
mod stored;
use std::collections::BTreeMap;

use pointstamp_arrange::{
    Batcher, Distinct, Error, JoinStep, Lists, Page, Reduce, Reducer, Rows, Sealed, Time, Top,
    Totals, Trace, TraceWriter, Units, Words,
};
use pointstamp_order::Antichain;
use pointstamp_testkit::cases;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Action {
    /// Key, value, time, difference.
    Update(u64, u64, Vec<u64>, i64),
    Advance(Vec<u64>),
    /// The first reader gives up the times before this one.
    Allow(Vec<u64>),
    /// Merges with so much fuel.
    Exert(usize),
    /// A reader comes.
    Import,
    /// Hands batches to a reader that came.
    Deliver(usize),
    /// Has the operators of a reader that came work with so much fuel.
    Work(usize, usize),
}

const RANGE: u64 = 6;

fn actions(dims: usize, keys: u64, most: usize) -> impl Strategy<Value = Vec<Action>> {
    let time = || prop::collection::vec(0..RANGE, dims);
    let diff = prop_oneof![Just(1i64), Just(-1), Just(2)];
    let action = prop_oneof![
        8 => (0..keys, 0..3u64, time(), diff).prop_map(|(key, val, time, diff)| Action::Update(key, val, time, diff)),
        3 => time().prop_map(Action::Advance),
        1 => time().prop_map(Action::Allow),
        2 => (1..40usize).prop_map(Action::Exert),
        1 => Just(Action::Import),
        2 => (0..4usize).prop_map(Action::Deliver),
        2 => (0..4usize, 1..20usize).prop_map(|(which, fuel)| Action::Work(which, fuel)),
    ];
    prop::collection::vec(action, 0..most)
}

type History<W, T> = Vec<((u64, W), T, i64)>;
type Contents<W> = BTreeMap<(u64, W), i64>;

fn at<W: Ord + Clone, T: Time>(history: &History<W, T>, time: &T) -> Contents<W> {
    let mut contents = Contents::new();
    for (row, when, diff) in history {
        if when.less_equal(time) {
            *contents.entry(row.clone()).or_insert(0) += diff;
        }
    }
    contents.retain(|_, diff| *diff != 0);
    contents
}

/// The whole list, as one number.
fn code(list: impl Iterator<Item = (u64, i64)>) -> u64 {
    list.fold(0, |code: u64, (val, count)| {
        code.wrapping_mul(1_000_003)
            .wrapping_add(val * 10_000)
            .wrapping_add_signed(count)
    })
}

/// Gives that.
struct Whole;

impl Reducer<Words, Words, Words> for Whole {
    fn reduce(
        &mut self,
        keys: &Words,
        inputs: &Lists<Words>,
        outputs: &mut Lists<Words>,
    ) -> Result<(), Error> {
        for index in 0..keys.len() {
            outputs.push(code(inputs.list(index)), 1);
            outputs.end();
        }
        Ok(())
    }
}

/// An operator that is handed batches.
struct Reducing<W: Rows, T: Time, R> {
    reduce: Reduce<Words, Words, W, T, R>,
    made: History<u64, T>,
    word: fn(W::Item<'_>) -> u64,
}

impl<W: Rows, T: Time, R: Reducer<Words, Words, W>> Reducing<W, T, R> {
    fn new(
        source: &Trace<Words, Words, T>,
        dims: usize,
        reducer: R,
        word: fn(W::Item<'_>) -> u64,
    ) -> Self {
        let least = Antichain::from_elem(T::read(&vec![0; dims]).unwrap());
        Self {
            reduce: Reduce::new(Box::new(source.clone()), least, reducer),
            made: Vec::new(),
            word,
        }
    }

    fn work(&mut self, mut fuel: usize) {
        while fuel > 0 && !self.reduce.is_idle() {
            for (held, sealed) in self.reduce.work(&mut fuel).unwrap().into_iter().flatten() {
                for (key, val, time, diff) in
                    stored::pages(&sealed.batch).iter().flat_map(Page::iter)
                {
                    assert!(held.less_equal(time), "at or after the capability");
                    let made = ((key, (self.word)(val)), time.clone(), diff);
                    self.made.push(made);
                }
            }
        }
    }
}

/// A late reader, and the operators that read it.
struct Import<T: Time> {
    since: Antichain<T>,
    on_the_way: Vec<Sealed<Words, Words, T>>,
    whole: Reducing<Words, T, Whole>,
    least: Reducing<Words, T, Top>,
    distinct: Reducing<Units, T, Distinct>,
    /// Counts, where times are totally ordered.
    totals: Option<Totals<Words, Words, T, ()>>,
    counts: History<u64, T>,
}

impl<T: Time> Import<T> {
    fn new(first: &Trace<Words, Words, T>, dims: usize) -> Self {
        let mut trace = first.clone();
        let on_the_way = trace.follow();
        Self {
            since: trace.since(),
            on_the_way,
            whole: Reducing::new(&trace, dims, Whole, |word| word),
            least: Reducing::new(&trace, dims, Top::MIN, |word| word),
            distinct: Reducing::new(&trace, dims, Distinct, |()| 0),
            totals: T::TOTAL.then(|| Totals::new(Box::new(trace))),
            counts: Vec::new(),
        }
    }

    fn deliver(&mut self, frontier: &Antichain<T>) {
        for sealed in self.on_the_way.drain(..) {
            if let Some(totals) = &mut self.totals {
                totals.push(&sealed, ());
            }
            self.whole.reduce.push(sealed.clone());
            self.least.reduce.push(sealed.clone());
            self.distinct.reduce.push(sealed);
        }
        if let Some(totals) = &mut self.totals {
            totals.advance(frontier);
        }
        self.whole.reduce.advance(frontier);
        self.least.reduce.advance(frontier);
        self.distinct.reduce.advance(frontier);
    }

    fn work(&mut self, fuel: usize) {
        self.whole.work(fuel);
        self.least.work(fuel);
        self.distinct.work(fuel);
        let Some(totals) = &mut self.totals else {
            return;
        };
        let counts = &mut self.counts;
        let mut left = fuel;
        while left > 0 {
            let step = totals.work(&mut left, |key, time, before, after| {
                for (count, diff) in [(before, -1), (after, 1)] {
                    if count != 0 {
                        counts.push(((key, count.cast_unsigned()), time.clone(), diff));
                    }
                }
            });
            if matches!(step.unwrap(), JoinStep::Idle) {
                break;
            }
        }
    }

    fn is_idle(&self) -> bool {
        let reduced = [
            self.whole.reduce.is_idle(),
            self.least.reduce.is_idle(),
            self.distinct.reduce.is_idle(),
        ];
        reduced == [true; 3] && self.totals.as_ref().is_none_or(Totals::is_idle)
    }

    /// Checks that the outputs equal recomputation at each time from `since` on.
    fn check(&self, history: &History<u64, T>, times: &[T]) {
        for time in times.iter().filter(|time| self.since.less_equal(time)) {
            let there = at(history, time);
            let mut expected = [const { Contents::new() }; 4];
            let mut lists: BTreeMap<u64, Vec<(u64, i64)>> = BTreeMap::new();
            for ((key, val), count) in there {
                lists.entry(key).or_default().push((val, count));
            }
            for (key, list) in lists {
                expected[0].insert((key, code(list.iter().copied())), 1);
                if let Some((least, _)) = list.iter().find(|(_, count)| *count > 0) {
                    expected[1].insert((key, *least), 1);
                }
                let count: i64 = list.iter().map(|(_, count)| count).sum();
                if count > 0 {
                    expected[2].insert((key, 0), 1);
                }
                if count != 0 {
                    expected[3].insert((key, count.cast_unsigned()), 1);
                }
            }
            let since = &self.since;
            assert_eq!(
                at(&self.whole.made, time),
                expected[0],
                "at {time:?}, since {since:?}"
            );
            assert_eq!(
                at(&self.least.made, time),
                expected[1],
                "at {time:?}, since {since:?}"
            );
            assert_eq!(
                at(&self.distinct.made, time),
                expected[2],
                "at {time:?}, since {since:?}"
            );
            if T::TOTAL {
                assert_eq!(
                    at(&self.counts, time),
                    expected[3],
                    "at {time:?}, since {since:?}"
                );
            }
        }
    }
}

struct Program<T: Time> {
    dims: usize,
    history: History<u64, T>,
    batcher: Batcher<Words, Words, T>,
    frontier: Antichain<T>,
    writer: TraceWriter<Words, Words, T>,
    trace: Trace<Words, Words, T>,
    imports: Vec<Import<T>>,
}

impl<T: Time> Program<T> {
    fn new(dims: usize) -> Self {
        let least = Antichain::from_elem(T::read(&vec![0; dims]).unwrap());
        let (mut writer, trace) = TraceWriter::new(least.clone());
        writer.store_in(stored::storage());
        Self {
            dims,
            history: Vec::new(),
            batcher: stored::batcher(least.clone()),
            frontier: least,
            writer,
            trace,
            imports: Vec::new(),
        }
    }

    fn advance(&mut self, frontier: Antichain<T>) {
        for (_, batch) in self.batcher.seal(&frontier).unwrap() {
            if let Some(sealed) = self.writer.insert(batch).unwrap() {
                for import in &mut self.imports {
                    import.on_the_way.push(sealed.clone());
                }
            }
        }
        self.writer.seal(frontier.clone());
        self.frontier = frontier;
    }

    fn act(&mut self, action: &Action) {
        let later = |frontier: &Antichain<T>, time: &[u64]| {
            let time = T::read(time).unwrap();
            frontier.iter().map(|held| held.join(&time)).collect()
        };
        match action {
            Action::Update(key, val, time, diff) => {
                let time = T::read(time).unwrap();
                if self.frontier.less_equal(&time) {
                    self.batcher.push(*key, *val, &time, *diff).unwrap();
                    self.history.push(((*key, *val), time, *diff));
                }
            }
            Action::Advance(time) => self.advance(later(&self.frontier, time)),
            Action::Allow(time) => {
                let since = later(&self.trace.since(), time);
                self.trace.allow_compaction(&since);
            }
            Action::Exert(fuel) => {
                self.writer.exert(&mut fuel.clone()).unwrap();
            }
            Action::Import => {
                if self.imports.len() < 4 {
                    self.imports.push(Import::new(&self.trace, self.dims));
                }
            }
            Action::Deliver(which) => {
                let frontier = self.frontier.clone();
                if let Some(import) = self.imports.get_mut(*which) {
                    import.deliver(&frontier);
                }
            }
            Action::Work(which, fuel) => {
                if let Some(import) = self.imports.get_mut(*which) {
                    import.work(*fuel);
                }
            }
        }
    }
}

fn check<T: Time>(dims: usize, actions: &[Action]) {
    let mut program = Program::<T>::new(dims);
    for action in actions {
        program.act(action);
    }
    program.advance(Antichain::new());
    let range = u32::try_from(dims).unwrap();
    let times: Vec<T> = (0..RANGE.pow(range))
        .map(|code| {
            let coords: Vec<u64> = (0..range)
                .map(|dim| code / RANGE.pow(dim) % RANGE)
                .collect();
            T::read(&coords).unwrap()
        })
        .collect();
    for import in &mut program.imports {
        import.deliver(&Antichain::new());
        while !import.is_idle() {
            import.work(5);
        }
        import.check(&program.history, &times);
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn one_coordinate(actions in actions(1, 2, 60)) {
        check::<u64>(1, &actions);
    }

    #[test]
    fn two_coordinates(actions in actions(2, 2, 60)) {
        check::<[u64; 2]>(2, &actions);
    }
}

// A key with so many updates that it is loaded in parts.
proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn one_key_in_one_coordinate(actions in actions(1, 1, 400)) {
        check::<u64>(1, &actions);
    }

    #[test]
    fn one_key_in_two_coordinates(actions in actions(2, 1, 400)) {
        check::<[u64; 2]>(2, &actions);
    }
}
