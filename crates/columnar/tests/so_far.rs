//! At every time, the keys given at or before it are the keys that came at or before it, and none is given
//! unnecessarily.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pointstamp_columnar::distinct::SoFar;
use pointstamp_order::{PartialOrder, Point};
use pointstamp_testkit::cases;
use proptest::prelude::*;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, true)]))
}

fn batch(keys: &[i64]) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from(keys.to_vec()));
    RecordBatch::try_new(schema(), vec![column]).unwrap()
}

/// Returns an operator that is restored from another one's state.
fn gone_on(before: &SoFar) -> SoFar {
    let mut after = SoFar::new(&schema(), vec![0]).unwrap();
    for (time, keys) in before.kept().unwrap() {
        after.put(&time, &keys).unwrap();
    }
    assert_eq!(after.size().0, before.size().0);
    assert_eq!(after.size().2, before.size().2);
    after
}

fn give(seen: &mut SoFar, time: &Point, keys: &[i64], given: &mut Vec<(Point, i64)>) {
    if let Some(first) = seen.first_rows(time, &batch(keys)).unwrap() {
        let keys = first.column(0).as_primitive::<Int64Type>().values();
        given.extend(keys.iter().map(|&key| (time.clone(), key)));
    }
}

/// `(time, keys)`, in the order of a frontier that is one point and another: `(a, b)` comes when both are reached.
fn feed(dims: usize) -> impl Strategy<Value = Vec<(Vec<u64>, Vec<i64>)>> {
    let time = prop::collection::vec(0_u64..9, dims);
    prop::collection::vec((time, prop::collection::vec(0_i64..12, 0..5)), 0..200)
}

fn check(mut feed: Vec<(Vec<u64>, Vec<i64>)>) -> Result<(), TestCaseError> {
    feed.sort(); // a time comes after all that are before it
    let mut seen = SoFar::new(&schema(), vec![0]).unwrap();
    let mut given = Vec::new();
    for (at, (time, keys)) in feed.iter().enumerate() {
        give(&mut seen, &Point::new(time), keys, &mut given);
        // The remaining times: the least points of the rest.
        let rest: Vec<Point> = feed[at + 1..]
            .iter()
            .map(|(time, _)| Point::new(time))
            .collect();
        let mut frontier: Vec<Point> = Vec::new();
        for time in rest {
            if !frontier.iter().any(|least| least.less_equal(&time)) {
                frontier.retain(|least| !time.less_equal(least));
                frontier.push(time);
            }
        }
        seen.advance(&frontier);
        if at % 17 == 16 {
            seen = gone_on(&seen);
        }
    }
    for (time, _) in &feed {
        let time = Point::new(time);
        let came: BTreeSet<i64> = feed
            .iter()
            .filter(|(other, _)| Point::new(other).less_equal(&time))
            .flat_map(|(_, keys)| keys.clone())
            .collect();
        let out: BTreeSet<i64> = given
            .iter()
            .filter(|(other, _)| other.less_equal(&time))
            .map(|&(_, key)| key)
            .collect();
        prop_assert_eq!(out, came, "at {:?}", time);
    }
    for (at, (time, key)) in given.iter().enumerate() {
        let again = given
            .iter()
            .enumerate()
            .any(|(other, (earlier, same))| other != at && same == key && earlier.less_equal(time));
        prop_assert!(!again, "{} at {:?} in vain", key, time);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn keys_are_given_at_their_least_times(feed in prop_oneof![feed(1), feed(2), feed(3)]) {
        check(feed)?;
    }
}

#[test]
fn as_many_times_are_kept_as_are_open() {
    let mut seen = SoFar::new(&schema(), vec![0]).unwrap();
    let mut given = Vec::new();
    for epoch in 0..2_000_u64 {
        // Each epoch finds the same key one round earlier than some epoch before did.
        for round in [3, 2] {
            let key = i64::try_from(epoch % 7).unwrap();
            give(
                &mut seen,
                &Point::from([epoch, (epoch + round) % 5]),
                &[key],
                &mut given,
            );
        }
        seen.advance(&[Point::from([epoch + 1, 0])]);
    }
    let (keys, times, further) = seen.size();
    assert_eq!(keys, 7);
    assert!(
        times <= 64 + 2 && further <= 7 * 5,
        "{times} times, {further} further ones"
    );
}
