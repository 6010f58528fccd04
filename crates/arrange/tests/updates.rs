//! Updates of rows of any length, in any order, become batches that adjoin; the kept updates are their sums.

#[path = "support/stored.rs"]
mod stored;
use std::collections::{BTreeMap, BTreeSet};

use pointstamp_arrange::{
    Batcher, Bytes, Cursor, Page, Rows, Trace, TraceWriter, Updates, Words, advance,
};
use pointstamp_order::{Antichain, PartialOrder};
use pointstamp_testkit::cases;
use proptest::prelude::*;

type Row = (Vec<u8>, Vec<u8>);
type When = [u64; 2];
type Update = (Row, When, i64);
/// The sums of updates.
type Sums = BTreeMap<(Row, When), i64>;

#[derive(Clone, Debug)]
enum Action {
    Push(Update),
    /// A list, of which so many are pushed, and the others appended to it as a list.
    Append(Vec<Update>, usize),
    /// Rows at one time.
    Columns(Vec<(Row, i64)>, When),
    /// Seals up to here, in as many steps as it takes with so much fuel.
    Seal(When, usize),
    /// Has the reader read from here on, and merges.
    Compact(When, usize),
}

/// Rows that differ in few places, before or behind the eighth.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let end = prop::collection::vec(b'a'..b'd', 0..3);
    (prop_oneof![Just(0usize), 5..9usize], end)
        .prop_map(|(same, end)| [vec![b'a'; same], end].concat())
}

fn time() -> impl Strategy<Value = When> {
    [0..4u64, 0..4u64]
}

fn update() -> impl Strategy<Value = Update> {
    ((bytes(), bytes()), time(), diff())
}

fn diff() -> impl Strategy<Value = i64> {
    prop_oneof![4 => Just(1i64), 2 => Just(-1), 1 => -2..3i64]
}

fn action() -> impl Strategy<Value = Action> {
    let updates = || prop::collection::vec(update(), 0..40);
    let rows = prop::collection::vec(((bytes(), bytes()), diff()), 0..10);
    prop_oneof![
        12 => update().prop_map(Action::Push),
        2 => (updates(), 0..40usize).prop_map(|(updates, pushed)| Action::Append(updates, pushed)),
        1 => (rows, time()).prop_map(|(rows, time)| Action::Columns(rows, time)),
        2 => (time(), 1..30usize).prop_map(|(upper, fuel)| Action::Seal(upper, fuel)),
        1 => (time(), 1..60usize).prop_map(|(since, fuel)| Action::Compact(since, fuel)),
    ]
}

fn add(sums: &mut Sums, row: &Row, time: When, diff: i64) {
    let sum = sums.entry((row.clone(), time)).or_insert(0);
    *sum += diff;
    if *sum == 0 {
        sums.remove(&(row.clone(), time));
    }
}

/// The collection at a time.
fn at(sums: &Sums, time: When) -> BTreeMap<Row, i64> {
    let mut rows = BTreeMap::new();
    for ((row, when), diff) in sums {
        if when.less_equal(&time) {
            *rows.entry(row.clone()).or_insert(0) += diff;
        }
    }
    rows.retain(|_, count| *count != 0);
    rows
}

struct Test {
    batcher: Batcher<Bytes, Bytes, When>,
    writer: TraceWriter<Bytes, Bytes, When>,
    trace: Trace<Bytes, Bytes, When>,
    /// Updates that were added and are not sealed, and their number.
    waiting: Sums,
    came: Vec<When>,
    sealed: Sums,
    lower: Antichain<When>,
}

impl Test {
    fn new() -> Self {
        let lower = Antichain::from_elem([0, 0]);
        let (mut writer, trace) = TraceWriter::new(lower.clone());
        writer.store_in(stored::storage());
        Self {
            batcher: stored::batcher(lower.clone()),
            writer,
            trace,
            waiting: Sums::new(),
            came: Vec::new(),
            sealed: Sums::new(),
            lower,
        }
    }

    /// True of an update that may still come, which is counted then.
    fn comes(&mut self, (row, time, diff): &Update) -> bool {
        if !self.lower.less_equal(time) {
            return false;
        }
        if *diff != 0 {
            self.came.push(*time);
        }
        add(&mut self.waiting, row, *time, *diff);
        true
    }

    fn push(&mut self, update: &Update) {
        if self.comes(update) {
            let ((key, val), time, diff) = update;
            self.batcher.push(key, val, time, *diff).unwrap();
        }
    }

    fn append(&mut self, updates: &[Update], pushed: usize) {
        let mut parts = [(); 2].map(|()| Updates::<Bytes, Bytes, When>::default());
        let mut expected = Vec::new();
        for (index, update) in updates.iter().enumerate() {
            if self.comes(update) {
                let ((key, val), time, diff) = update;
                parts[usize::from(index >= pushed)].push(key, val, time, *diff);
                expected.extend((*diff != 0).then_some((&key[..], &val[..], time, *diff)));
            }
        }
        let [mut all, mut others] = parts;
        all.append(&mut others);
        assert!(others.is_empty() && others.iter().next().is_none());
        assert!(
            all.iter().eq(expected.iter().copied()),
            "in the order in which they came"
        );
        assert_eq!(
            (all.len(), all.is_empty()),
            (expected.len(), expected.is_empty())
        );
        self.batcher.append(&mut all).unwrap();
        assert!(all.is_empty() && all.times().is_empty());
    }

    fn columns(&mut self, rows: &[(Row, i64)], time: When) {
        if !self.lower.less_equal(&time) {
            return;
        }
        let (mut keys, mut vals) = (Bytes::default(), Bytes::default());
        let mut diffs = Vec::new();
        for (row, diff) in rows {
            self.comes(&(row.clone(), time, *diff));
            keys.push(&row.0);
            vals.push(&row.1);
            diffs.push(*diff);
        }
        let mut updates = Updates::<Bytes, Bytes, When>::default();
        updates.extend_at(&keys, &vals, &time, &diffs);
        let there = diffs.iter().filter(|diff| **diff != 0).count();
        assert_eq!(updates.len(), there, "those of zero are dropped");
        if rows.len() % 2 == 1 {
            self.batcher.append(&mut updates).unwrap();
        } else {
            self.batcher.extend_at(&keys, &vals, &time, &diffs).unwrap();
        }
    }

    fn seal(&mut self, upper: &Antichain<When>, fuel: usize) {
        let held = self.batcher.frontier().clone();
        let mut lower = std::mem::replace(&mut self.lower, upper.clone());
        assert_eq!(self.batcher.lower(), &lower);
        assert!(!self.batcher.is_sealing());
        self.batcher.begin_seal(upper).unwrap();
        let batches = loop {
            assert!(self.batcher.is_sealing());
            self.check_len();
            if let Some(batches) = self.batcher.work(&mut fuel.clone()).unwrap() {
                break batches;
            }
        };
        assert!(!self.batcher.is_sealing());
        assert_eq!(self.batcher.lower(), upper);
        let mut found = Sums::new();
        for (time, batch) in batches {
            assert!(held.elements().contains(&time), "a capability that is held");
            assert!(!batch.is_empty());
            assert_eq!(
                (batch.lower(), batch.since()),
                (&lower, &lower),
                "they adjoin"
            );
            lower = batch.upper().clone();
            let mut count = 0;
            for (key, val, at, diff) in stored::pages(&batch).iter().flat_map(Page::iter) {
                assert!(
                    time.less_equal(at) && batch.lower().less_equal(at) && !lower.less_equal(at)
                );
                let row = (key.to_vec(), val.to_vec());
                assert!(found.insert((row, *at), diff).is_none(), "each once");
                count += 1;
            }
            assert_eq!(batch.len(), count);
            let pages = stored::pages(&batch);
            let rows = pages.iter().flat_map(Page::iter);
            let keys: BTreeSet<_> = rows.map(|(key, ..)| key).collect();
            let listed = pages.iter().map(Page::keys);
            let listed = listed.flat_map(|keys| (0..keys.len()).map(|key| keys.get(key)));
            assert!(listed.eq(keys));
            assert!(self.writer.insert(batch).unwrap().is_some());
        }
        self.writer.seal(upper.clone());
        assert_eq!(&self.trace.upper(), upper);
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (later, expected): (Sums, Sums) =
            waiting.partition(|((_, time), _)| upper.less_equal(time));
        self.waiting = later;
        assert_eq!(found, expected);
        self.came.retain(|time| upper.less_equal(time));
        self.sealed.extend(expected);
        self.check_len();
    }

    /// The frontier is before all that waits, and each of its times is one at which something came.
    fn check_frontier(&self) {
        let frontier = self.batcher.frontier();
        assert!(
            self.waiting
                .keys()
                .all(|(_, time)| frontier.less_equal(time))
        );
        assert!(frontier.iter().all(|time| self.came.contains(time)));
    }

    fn check_len(&self) {
        let len = self.batcher.len();
        assert!(
            self.waiting.len() <= len && len <= self.came.len(),
            "{len} held"
        );
        assert_eq!(self.batcher.is_empty(), len == 0);
    }

    fn compact(&mut self, since: When, fuel: usize) {
        let held = self.trace.since();
        let since = held
            .iter()
            .map(|old| pointstamp_arrange::Time::join(old, &since));
        self.trace.allow_compaction(&since.collect());
        self.writer.exert(&mut fuel.clone()).unwrap();
        self.check();
    }

    /// The batches of the trace come one after the other.
    fn check_batches(&self) {
        let mut lower = Antichain::from_elem([0, 0]);
        for batch in self.trace.batches() {
            let (from, to) = (batch.lower(), batch.upper());
            assert!(from.iter().all(|time| lower.less_equal(time)));
            assert!(to.iter().all(|time| from.less_equal(time)));
            lower = batch.upper().clone();
        }
    }

    /// Checks the contents of the trace at each time at which it is exact, in two ways.
    fn check(&self) {
        self.check_batches();
        let all = (0..5).flat_map(|x| (0..5).map(move |y| [x, y]));
        for time in all.filter(|time| self.trace.since().less_equal(time)) {
            let expected = at(&self.sealed, time);
            let mut cursor = Cursor::new(self.trace.batches()).unwrap();
            let mut found = BTreeMap::new();
            while let Some(key) = cursor.key() {
                let key = key.to_vec();
                let put = |val: &[u8], count| {
                    assert!(found.insert((key.clone(), val.to_vec()), count).is_none());
                };
                cursor.vals_at(&time, put).unwrap();
                cursor.pass().unwrap();
            }
            assert_eq!(found, expected, "at {time:?}");
            for ((key, val), count) in &expected {
                let vals = self.trace.get(key, &time).unwrap();
                assert!(vals.iter().any(|found| found == (&val[..], *count)));
            }
        }
    }

    fn finish(mut self) {
        self.seal(&Antichain::new(), 7);
        assert!(self.batcher.is_empty() && self.batcher.frontier().is_empty());
        self.check();
        // No more updates are kept than readers distinguish.
        while !self.writer.exert(&mut 50).unwrap() {}
        self.check();
        let since = self.trace.since();
        let mut kept = Sums::new();
        for ((row, time), diff) in &self.sealed {
            add(&mut kept, row, advance(time, &since), *diff);
        }
        let batches = self.trace.batches();
        assert!(batches.len() <= 1);
        let pages: Vec<_> = batches.iter().flat_map(stored::pages).collect();
        let found = pages.iter().flat_map(Page::iter);
        let found: Sums = found
            .map(|(key, val, time, diff)| {
                (((key.to_vec(), val.to_vec()), advance(time, &since)), diff)
            })
            .collect();
        assert_eq!(found, kept);
        assert_eq!(
            (self.trace.len(), self.trace.is_empty()),
            (kept.len(), kept.is_empty())
        );
    }
}

/// A frontier that is past the last one's times up to `time`: a step of a loop, or of the scope around it.
fn past(lower: &Antichain<When>, time: When) -> Antichain<When> {
    let to: Antichain<When> = [[time[0], time[1]], [time[0] + 1, 0]].into_iter().collect();
    pointstamp_arrange::join_frontiers(lower, &to)
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn what_comes_is_sealed_once_and_kept(actions in prop::collection::vec(action(), 0..60)) {
        let mut test = Test::new();
        for action in &actions {
            match action {
                Action::Push(update) => test.push(update),
                Action::Append(updates, pushed) => test.append(updates, *pushed),
                Action::Columns(rows, time) => test.columns(rows, *time),
                Action::Seal(upper, fuel) => {
                    let upper = past(&test.lower, *upper);
                    test.seal(&upper, *fuel);
                }
                Action::Compact(since, fuel) => test.compact(*since, *fuel),
            }
            test.check_frontier();
        }
        test.finish();
    }
}

/// Rows with equal first eight bytes, beside a column of words.
#[test]
fn rows_that_differ_late_are_in_order_and_apart() {
    let late = [&b"a long row 2"[..], b"a long row 1", b"a long row 2"];
    let mut as_vals = Batcher::<Words, Bytes, u64>::new(Antichain::from_elem(0));
    let mut as_keys = Batcher::<Bytes, Words, u64>::new(Antichain::from_elem(0));
    for row in late {
        as_vals.push(7, row, &0, 1).unwrap();
        as_keys.push(row, 7, &0, 1).unwrap();
    }
    let (_, vals) = as_vals.seal(&Antichain::new()).unwrap().remove(0);
    let (_, keys) = as_keys.seal(&Antichain::new()).unwrap().remove(0);
    let (vals, keys) = (vals.page(0).unwrap(), keys.page(0).unwrap());
    let expected = [(late[1], 1), (late[0], 2)];
    assert!(
        vals.iter()
            .map(|(_, row, _, diff)| (row, diff))
            .eq(expected)
    );
    assert!(
        keys.iter()
            .map(|(row, _, _, diff)| (row, diff))
            .eq(expected)
    );
    assert_eq!((vals.keys().len(), keys.keys().len()), (1, 2));
}
