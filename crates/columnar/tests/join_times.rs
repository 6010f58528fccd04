//! A join merges times that cannot be distinguished any more, and nothing else: every pair comes out once, at
//! the least upper bound of its rows' times, however the frontiers move.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pointstamp_columnar::Error;
use pointstamp_columnar::join::{Join, Plan, Side};
use pointstamp_order::Point;
use pointstamp_testkit::cases;
use proptest::prelude::*;

const SIDES: [Side; 2] = [Side::Left, Side::Right];

fn schema() -> SchemaRef {
    let fields = ["k", "x"].map(|name| Field::new(name, DataType::Int64, true));
    Arc::new(Schema::new(fields.to_vec()))
}

fn join() -> Join {
    Join::new(Plan::new(&schema(), &schema(), &["k"], "_r").unwrap()).unwrap()
}

fn row(key: i64, value: i64) -> RecordBatch {
    let column = |value: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
    RecordBatch::try_new(schema(), vec![column(key), column(value)]).unwrap()
}

/// `(time, left value, right value)`.
type Found = Vec<(Vec<u64>, i64, i64)>;

/// Returns a join that is restored from another one's state.
fn gone_on(before: &Join) -> Join {
    let mut after = join();
    for side in SIDES {
        for (time, rows) in before.kept(side).unwrap() {
            after.put(side, &time, &rows).unwrap();
        }
    }
    after
}

fn give(join: &mut Join, side: usize, time: &Point, key: i64, value: i64, found: &mut Found) {
    join.update(SIDES[side], time, &row(key, value), |time, pairs| {
        let (left, right) = (
            pairs.column(1).as_primitive::<Int64Type>(),
            pairs.column(2).as_primitive::<Int64Type>(),
        );
        for (left, right) in left.values().iter().zip(right.values()) {
            found.push((time.coords().to_vec(), *left, *right));
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[derive(Debug, Clone)]
enum Step {
    /// A row on a side, so much after an element of its frontier.
    Row(usize, bool, [u64; 2], i64),
    /// A side's frontier moves past one of its elements or both, and is so wide after.
    Advance(usize, bool, bool, [u64; 2]),
    /// Another join is restored from the state.
    GoOn,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let small = || prop::array::uniform2(0_u64..6);
    let row = (0..2_usize, any::<bool>(), small(), 0_i64..3)
        .prop_map(|(side, which, after, key)| Step::Row(side, which, after, key));
    let advance = (0..2_usize, any::<bool>(), any::<bool>(), small())
        .prop_map(|(side, first, second, width)| Step::Advance(side, first, second, width));
    let go_on = Just(Step::GoOn);
    prop::collection::vec(prop_oneof![48 => row, 4 => advance, 1 => go_on], 150..350)
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn every_pair_is_at_the_least_upper_bound(steps in steps()) {
        let mut join = join();
        let mut found = Found::new();
        let mut rows: [Vec<([u64; 2], i64, i64)>; 2] = Default::default();
        let mut frontiers = [vec![[0_u64, 0]], vec![[0, 0]]];
        for (value, step) in (0_i64..).zip(steps) {
            match step {
                Step::Row(side, which, after, key) => {
                    let frontier = &frontiers[side];
                    let least = frontier[usize::from(which) % frontier.len()];
                    let time = [least[0] + after[0], least[1] + after[1]];
                    rows[side].push((time, key, value));
                    give(&mut join, side, &Point::from(time), key, value, &mut found);
                }
                Step::GoOn => join = gone_on(&join),
                Step::Advance(side, first, second, [a, b]) => {
                    let least = frontiers[side].iter().copied().reduce(|x, y| [x[0].min(y[0]), x[1].min(y[1])]).unwrap();
                    let most = frontiers[side].iter().copied().reduce(|x, y| [x[0].max(y[0]), x[1].max(y[1])]).unwrap();
                    // At or after an element of the antichain that there was.
                    let base = if first { most } else { frontiers[side][usize::from(second) % frontiers[side].len()] };
                    frontiers[side] = if a > 0 && b > 0 {
                        vec![[base[0] + a, base[1]], [base[0], base[1] + b]]
                    } else {
                        vec![base]
                    };
                    prop_assert!(base[0] >= least[0] && base[1] >= least[1]);
                    let frontier: Vec<Point> = frontiers[side].iter().map(|&time| Point::from(time)).collect();
                    join.advance(SIDES[side], &frontier);
                }
            }
        }
        let mut expected = Found::new();
        for (a, key, left) in &rows[0] {
            for (b, _, right) in rows[1].iter().filter(|row| row.1 == *key) {
                expected.push((vec![a[0].max(b[0]), a[1].max(b[1])], *left, *right));
            }
        }
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn as_many_times_are_kept_as_are_open() {
    let mut join = join();
    let mut found = Found::new();
    for time in 0..5_000_u64 {
        let now = Point::from([time]);
        let value = i64::try_from(time).unwrap();
        give(&mut join, 0, &now, value, value, &mut found);
        for side in SIDES {
            join.advance(side, &[Point::from([time + 1])]);
        }
        let (rows, times, _) = join.size();
        assert!(times <= 64 + rows / 32 + 2, "{times} times of {rows} rows");
    }
    assert_eq!(join.size().0, 5_000);
    // Rows of long ago still meet new ones.
    give(&mut join, 1, &Point::from([5_000]), 7, -1, &mut found);
    assert_eq!(found, [(vec![5_000], 7, -1)]);
}

#[test]
fn nothing_is_kept_for_a_side_that_has_ended() {
    let mut join = join();
    let mut found = Found::new();
    let now = Point::from([0]);
    give(&mut join, 1, &now, 7, -1, &mut found);
    give(&mut join, 0, &now, 8, 1, &mut found);
    assert_eq!(join.size(), (2, 2, 2));
    join.advance(Side::Right, &[]);
    assert_eq!(join.size(), (1, 1, 2));
    for value in 0..100 {
        give(&mut join, 0, &now, 7, value, &mut found);
        give(&mut join, 0, &now, 100 + value, value, &mut found);
    }
    assert_eq!(join.size(), (1, 1, 2));
    let expected: Found = (0..100).map(|value| (vec![0], value, -1)).collect();
    assert_eq!(found, expected);
    join.advance(Side::Left, &[]);
    assert_eq!(join.size(), (0, 0, 2));
}
