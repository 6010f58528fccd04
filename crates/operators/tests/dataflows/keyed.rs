//! Distinct rows and joins.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use pointstamp_columnar::join::{How, Plan};
use pointstamp_columnar::join_per_time::Settings;
use pointstamp_operators::columns::{distinct, distinct_so_far, exchange, join, join_so_far};
use pointstamp_order::{PartialOrder, Point};
use pointstamp_testkit::cases;
use proptest::prelude::*;

use crate::program::{Found, HOWS, Row, Sent, all, run, schema, sent, shapes, sorted};

/// A key at a time.
type Keyed = (Vec<u64>, Option<i64>);

/// Returns the keys of a result at each time; none if some is there more often than once, or with a row that was not given.
fn keys_of(found: &[Found], input: &[Sent]) -> Option<BTreeSet<Keyed>> {
    let mut given: BTreeMap<Keyed, BTreeSet<Vec<Option<i64>>>> = BTreeMap::new();
    for (time, &(key, value, at)) in all(input) {
        let rows = given.entry((time.clone(), key)).or_default();
        rows.insert(vec![key, Some(value), Some(at)]);
    }
    let mut keys = BTreeSet::new();
    for (_, time, row) in found {
        let key = (time.coords().to_vec(), row[0]);
        if !given.get(&key)?.contains(row) || !keys.insert(key) {
            return None;
        }
    }
    Some(keys)
}

/// Returns the keys at the least of their times.
fn least_times(input: &[Sent]) -> BTreeSet<Keyed> {
    let keys: BTreeSet<_> = all(input)
        .map(|(time, row)| (time.clone(), row.0))
        .collect();
    let earlier = |time: &[u64], other: &[u64]| Point::new(other).less_than(&Point::new(time));
    let least = keys.iter().filter(|(time, key)| {
        let mut others = keys.iter().filter(|(_, other)| other == key);
        !others.any(|(other, _)| earlier(time, other))
    });
    least.cloned().collect()
}

type Pairs = Vec<(Vec<u64>, Vec<Option<i64>>)>;

/// Returns the pairs of rows with equal keys, which are no nulls, at the least upper bounds of their times.
fn pairs(left: &[Sent], right: &[Sent]) -> Pairs {
    let mut pairs = Vec::new();
    for (ours, &(key, value, at)) in all(left) {
        for (theirs, other) in all(right) {
            if key.is_some() && other.0 == key {
                let time = ours.iter().zip(theirs).map(|(one, other)| *one.max(other));
                let row = vec![key, Some(value), Some(at), Some(other.1), Some(other.2)];
                pairs.push((time.collect(), row));
            }
        }
    }
    pairs.sort();
    pairs
}

/// Returns the rows of a join of the rows of each time.
fn joined(left: &[Sent], right: &[Sent], how: How) -> Pairs {
    let matches = |time: &Vec<u64>, key: Option<i64>, others: &[Sent]| -> Vec<Row> {
        let others = all(others).filter(|(at, row)| *at == time && key.is_some() && row.0 == key);
        others.map(|(_, &row)| row).collect()
    };
    let mut rows = Vec::new();
    for (time, &(key, value, at)) in all(left) {
        let own = vec![key, Some(value), Some(at)];
        let found = matches(time, key, right);
        let (alone, outer) = (found.is_empty(), matches!(how, How::Left | How::Full));
        match how {
            How::Semi if !alone => rows.push((time.clone(), own)),
            How::Anti if alone => rows.push((time.clone(), own)),
            How::Semi | How::Anti => {}
            _ if alone && outer => rows.push((time.clone(), [own, vec![None, None]].concat())),
            _ => rows.extend(found.into_iter().map(|(_, value, at)| {
                let pair = [own.clone(), vec![Some(value), Some(at)]].concat();
                (time.clone(), pair)
            })),
        }
    }
    if matches!(how, How::Right | How::Full) {
        for (time, &(key, value, at)) in all(right) {
            if matches(time, key, left).is_empty() {
                rows.push((time.clone(), vec![key, None, None, Some(value), Some(at)]));
            }
        }
    }
    rows.sort();
    rows
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn each_key_of_each_time_comes_once(
        shape in shapes(), input in sent(1), in_place in any::<bool>()
    ) {
        let made = run(shape, 1, slice::from_ref(&input), |streams| {
            let rows = if in_place { exchange(&streams[0], &[0])? } else { streams[0].clone() };
            Ok(vec![distinct(&rows, &schema(), &[0], in_place)?])
        });
        let expected: BTreeSet<_> = all(&input).map(|(time, row)| (time.clone(), row.0)).collect();
        prop_assert_eq!(keys_of(&made[0], &input), Some(expected));
    }

    #[test]
    fn a_key_comes_at_its_least_times(shape in shapes(), input in sent(2)) {
        let made = run(shape, 2, slice::from_ref(&input), |streams| {
            Ok(vec![distinct_so_far(&streams[0], &schema(), &[0], false)?])
        });
        prop_assert_eq!(keys_of(&made[0], &input), Some(least_times(&input)));
    }

    #[test]
    fn a_join_has_the_rows_of_a_time_with_and_without_a_match(
        shape in shapes(), left in sent(2), right in sent(2), in_place in any::<bool>(), how in 0..6_usize
    ) {
        let inputs = [left, right];
        let made = run(shape, 2, &inputs, |streams| {
            let settings = Settings::new(&schema(), &schema(), &["k"], "_r", HOWS[how])?;
            let left = if in_place { exchange(&streams[0], &[0])? } else { streams[0].clone() };
            Ok(vec![join(&left, &streams[1], settings, [in_place, false], None)?])
        });
        prop_assert_eq!(sorted(&made[0]), joined(&inputs[0], &inputs[1], HOWS[how]));
    }

    #[test]
    fn a_join_so_far_gives_each_pair_at_the_least_upper_bound(
        shape in shapes(), left in sent(2), right in sent(2), in_place in any::<bool>()
    ) {
        let inputs = [left, right];
        let made = run(shape, 2, &inputs, |streams| {
            let plan = Plan::new(&schema(), &schema(), &["k"], "_r")?;
            let left = if in_place { exchange(&streams[0], &[0])? } else { streams[0].clone() };
            Ok(vec![join_so_far(&left, &streams[1], plan, [in_place, false])?])
        });
        prop_assert_eq!(sorted(&made[0]), pairs(&inputs[0], &inputs[1]));
    }
}

#[test]
fn a_key_that_comes_first_at_a_later_time_waits_for_the_earlier_one() {
    let row = |value: i64| -> Vec<Row> { vec![(Some(1), value, 9)] };
    let sent = |time: u64, value: i64| Sent {
        worker: 0,
        time: vec![time],
        rows: row(value),
        steps: 3,
    };
    // The row at 2 is sent first, while the time 1 is open.
    let input = vec![sent(2, 20), sent(1, 10), sent(3, 30)];
    let made = run((1, 1), 1, &[input], |streams| {
        Ok(vec![distinct_so_far(&streams[0], &schema(), &[0], false)?])
    });
    assert_eq!(
        sorted(&made[0]),
        [(vec![1], vec![Some(1), Some(10), Some(9)])]
    );
}
