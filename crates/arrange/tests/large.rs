//! A key with more updates than are loaded at once, among small ones, at incomparable times: its reduction
//! equals recomputation, wherever batches end and however little is done in a step.

#[path = "support/arranged.rs"]
mod arranged;
#[path = "support/batch.rs"]
mod batch;
#[path = "support/frontiers.rs"]
mod frontiers;
#[path = "support/stored.rs"]
mod stored;

use std::collections::BTreeMap;

use pointstamp_arrange::{Distinct, Error, Lists, Page, Reduce, Reducer, Rows, Words};
use pointstamp_order::{Antichain, PartialOrder};
use pointstamp_testkit::cases;
use proptest::prelude::*;

use arranged::Arranged;
use batch::check_batch;
use frontiers::frontiers;

type When = [u64; 2];
/// Key, value, time, difference.
type Update = (u64, u64, When, i64);
/// Keys and values with their counts.
type Contents = BTreeMap<(u64, u64), i64>;

/// Times of updates are before this in each coordinate.
const RANGE: u64 = 5;

fn time() -> impl Strategy<Value = When> {
    [0..RANGE, 0..RANGE]
}

/// Generates more than a hundred updates of one key, and a few of the keys beside it, at few times: most
/// joins of these are times at which no update comes.
fn updates() -> impl Strategy<Value = Vec<Update>> {
    let diff = || prop_oneof![3 => Just(1i64), 1 => Just(-1), 1 => Just(2)];
    let large = prop::collection::vec((Just(5), 0..60u64, 0..6usize, diff()), 130..250);
    let small = prop::collection::vec((0..9u64, 0..3u64, 0..6usize, diff()), 0..20);
    let times = prop::collection::vec(time(), 2..6);
    (large, small, times).prop_map(|(large, small, times)| {
        let all = [large, small].concat().into_iter();
        all.map(|(key, val, at, diff)| (key, val, times[at % times.len()], diff))
            .collect()
    })
}

fn at(updates: &[Update], time: When) -> Contents {
    let mut contents = Contents::new();
    for (key, val, when, diff) in updates {
        if when.less_equal(&time) {
            *contents.entry((*key, *val)).or_insert(0) += diff;
        }
    }
    contents.retain(|_, count| *count != 0);
    contents
}

/// The values that are there most often, which are many.
fn most(list: &[(u64, i64)]) -> impl Iterator<Item = u64> {
    let most = list.iter().map(|(_, count)| *count).max();
    let vals = list.iter().filter(move |(_, count)| Some(*count) == most);
    vals.map(|(val, _)| *val)
}

/// Gives these.
#[allow(clippy::unnecessary_wraps, reason = "a reducer may fail")]
fn reduce_to_most(
    _: &Words,
    inputs: &Lists<Words>,
    outputs: &mut Lists<Words>,
) -> Result<(), Error> {
    for index in 0..inputs.len() {
        let list: Vec<_> = inputs.list(index).collect();
        for val in most(&list) {
            outputs.push(val, 1);
        }
        outputs.end();
    }
    Ok(())
}

/// Returns the output of a reduction whose input is sealed by a schedule.
fn reduce<W: Rows>(
    updates: &[Update],
    schedule: &[When],
    fuel: usize,
    reducer: impl Reducer<Words, Words, W>,
    word: impl Fn(W::Item<'_>) -> u64,
) -> Vec<Update> {
    let mut arranged = Arranged::new([0, 0]);
    for (key, val, time, diff) in updates {
        arranged.push(*key, *val, time, *diff);
    }
    let source = Box::new(arranged.trace.clone());
    let mut reduce = Reduce::new(source, Antichain::from_elem([0, 0]), reducer);
    let mut made = Vec::new();
    for upper in frontiers(schedule, 2) {
        for (_, sealed) in arranged.seal(&upper) {
            reduce.push(sealed);
        }
        arranged.trace.allow_compaction(&upper);
        arranged.settle();
        reduce.advance(&upper);
        while !reduce.is_idle() {
            for (held, sealed) in reduce
                .work(&mut fuel.clone())
                .unwrap()
                .into_iter()
                .flatten()
            {
                check_batch(&sealed.batch);
                for (key, val, time, diff) in
                    stored::pages(&sealed.batch).iter().flat_map(Page::iter)
                {
                    assert!(held.less_equal(time), "at or after the capability");
                    made.push((key, word(val), *time, diff));
                }
            }
        }
    }
    made
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn a_large_key_is_reduced_as_others_are(
        updates in updates(),
        schedule in prop::collection::vec(time(), 0..4),
        fuel in 1..200usize,
    ) {
        let most_often = reduce(&updates, &schedule, fuel, reduce_to_most, |val| val);
        let there = reduce(&updates, &schedule, fuel, Distinct, |()| 0);
        let times = (0..RANGE).flat_map(|x| (0..RANGE).map(move |y| [x, y]));
        for time in times {
            let mut lists: BTreeMap<u64, Vec<(u64, i64)>> = BTreeMap::new();
            for ((key, val), count) in at(&updates, time) {
                lists.entry(key).or_default().push((val, count));
            }
            let mut expected = [const { Contents::new() }; 2];
            for (key, list) in &lists {
                expected[0].extend(most(list).map(|val| ((*key, val), 1)));
                if list.iter().map(|(_, count)| count).sum::<i64>() > 0 {
                    expected[1].insert((*key, 0), 1);
                }
            }
            prop_assert_eq!([at(&most_often, time), at(&there, time)], expected, "at {:?}", time);
        }
    }
}
