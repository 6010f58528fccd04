//! Aggregations per time and key.

use std::collections::BTreeMap;
use std::slice;

use pointstamp_columnar::aggregate::Plan;
use pointstamp_operators::columns::{aggregate, exchange};
use pointstamp_testkit::cases;
use proptest::prelude::*;

use crate::program::{SHAPES, Sent, Shape, all, run, schema, sent, shapes, sorted};

type Rows = Vec<(Vec<u64>, Vec<Option<i64>>)>;

fn plan(functions: &[&str]) -> Plan {
    let functions = functions
        .iter()
        .map(|name| ("v".to_owned(), (*name).to_owned()));
    Plan::new(&schema(), &["k"], &functions.collect::<Vec<_>>()).expect("the columns are there")
}

const FUNCTIONS: [&str; 4] = ["sum", "count", "min", "max"];

fn aggregated(shape: Shape, dims: usize, input: &[Sent], in_place: bool) -> Rows {
    let divisible = input.len().is_multiple_of(2); // one worker has the operators of several, or its own
    let made = run(shape, dims, &[input.to_vec()], |streams| {
        let rows = if in_place {
            exchange(&streams[0], &[0])?
        } else {
            streams[0].clone()
        };
        Ok(vec![aggregate(
            &rows,
            plan(&FUNCTIONS),
            in_place,
            divisible,
        )?])
    });
    sorted(&made[0])
}

fn recomputed(input: &[Sent]) -> Rows {
    let mut groups: BTreeMap<(Vec<u64>, Option<i64>), Vec<i64>> = BTreeMap::new();
    for (time, &(key, value, _)) in all(input) {
        groups.entry((time.clone(), key)).or_default().push(value);
    }
    let count = |values: &[i64]| i64::try_from(values.len()).ok();
    let rows = groups.into_iter().map(|((time, key), values)| {
        let sum = values.iter().sum();
        let (least, most) = (values.iter().min(), values.iter().max());
        let row = vec![
            key,
            Some(sum),
            count(&values),
            least.copied(),
            most.copied(),
        ];
        (time, row)
    });
    let mut rows: Rows = rows.collect();
    rows.sort();
    rows
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn each_key_of_each_time_is_aggregated(
        shape in shapes(), input in sent(1), in_place in any::<bool>()
    ) {
        prop_assert_eq!(aggregated(shape, 1, &input, in_place), recomputed(&input));
    }

    #[test]
    fn times_that_are_partially_ordered_close_each_by_itself(shape in shapes(), input in sent(2)) {
        prop_assert_eq!(aggregated(shape, 2, &input, false), recomputed(&input));
    }
}

#[test]
fn many_rows_of_few_keys_are_aggregated_before_they_move() {
    let rows = |from: i64| (from..from + 20_000).map(|n| (Some(n % 7), n, 0)).collect();
    let input: Vec<Sent> = (0..12_u64)
        .map(|n| Sent {
            worker: usize::try_from(n).expect("it is small"),
            time: vec![n % 3],
            rows: rows(1000 * i64::try_from(n).expect("it is small")),
            steps: 1,
        })
        .collect();
    let expected = recomputed(&input);
    for shape in SHAPES {
        assert_eq!(aggregated(shape, 1, &input, false), expected, "{shape:?}");
    }
}

#[test]
fn values_that_are_collected_are_aggregated_on_the_workers_of_their_keys() {
    let input: Vec<Sent> = (0..8_u64)
        .map(|n| Sent {
            worker: usize::try_from(n).expect("it is small"),
            time: vec![n % 2],
            rows: (0..30)
                .map(|value| (Some(value % 4), value % 3, 0))
                .collect(),
            steps: 1,
        })
        .collect();
    // 30 rows of 4 keys, four times at each of two times: each key has all three values.
    let expected: Vec<_> = (0..2_u64)
        .flat_map(|time| (0..4).map(move |key| (vec![time], vec![Some(key), Some(3)])))
        .collect();
    for shape in SHAPES {
        let made = run(shape, 1, slice::from_ref(&input), |streams| {
            Ok(vec![aggregate(
                &streams[0],
                plan(&["distinct_count"]),
                false,
                false,
            )?])
        });
        assert_eq!(sorted(&made[0]), expected, "{shape:?}");
    }
}
