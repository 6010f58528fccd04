//! Rows that are moved or split by key.

use std::collections::BTreeMap;
use std::slice;

use pointstamp_operators::columns::{exchange, partition};
use pointstamp_testkit::cases;
use proptest::prelude::*;

use crate::program::{Found, all, run, sent, shapes, sorted};

/// Returns where the rows of each key are found: all in one place.
fn places(
    found: impl IntoIterator<Item = (usize, Option<i64>)>,
) -> Option<BTreeMap<Option<i64>, usize>> {
    let mut places = BTreeMap::new();
    for (place, key) in found {
        if *places.entry(key).or_insert(place) != place {
            return None;
        }
    }
    Some(places)
}

fn given(input: &[crate::program::Sent]) -> Vec<(Vec<u64>, Vec<Option<i64>>)> {
    let rows = all(input).map(|(time, row)| (time.clone(), vec![row.0, Some(row.1), Some(row.2)]));
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn all_rows_of_a_key_meet_on_one_worker(shape in shapes(), input in sent(1)) {
        let made = run(shape, 1, slice::from_ref(&input), |streams| Ok(vec![exchange(&streams[0], &[0])?]));
        prop_assert_eq!(sorted(&made[0]), given(&input));
        prop_assert!(places(made[0].iter().map(|(worker, _, row)| (*worker, row[0]))).is_some());
    }

    #[test]
    fn a_split_gives_each_row_to_the_part_of_its_key(
        shape in shapes(), input in sent(1), parts in 1_usize..4
    ) {
        let made = run(shape, 1, slice::from_ref(&input), |streams| partition(&streams[0], parts, vec![0]));
        let rows: Vec<Found> = made.iter().flatten().cloned().collect();
        prop_assert_eq!(sorted(&rows), given(&input));
        let found = made.iter().enumerate();
        let found = found.flat_map(|(part, rows)| rows.iter().map(move |(_, _, row)| (part, row[0])));
        prop_assert!(places(found).is_some());
    }
}
