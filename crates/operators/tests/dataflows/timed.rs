//! Rows with event times, and windows that are updated as rows arrive.

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use pointstamp_columnar::aggregate::Plan;
use pointstamp_columnar::windows::Layout;
use pointstamp_operators::columns::{delay, exchange, window, with_own_times};
use pointstamp_testkit::cases;
use proptest::prelude::*;

use crate::program::{Sent, all, run, schema, sent, shapes, sorted};

type Rows = Vec<(Vec<u64>, Vec<Option<i64>>)>;

fn in_order(rows: impl IntoIterator<Item = (u64, Vec<Option<i64>>)>) -> Rows {
    let rows = rows.into_iter().map(|(time, row)| (vec![time], row));
    let mut rows: Rows = rows.collect();
    rows.sort();
    rows
}

/// Returns the sums and counts of the rows of each key in each window.
fn windows(input: &[Sent], layout: Layout) -> Rows {
    let mut sums: BTreeMap<(i64, Option<i64>), (i64, i64)> = BTreeMap::new();
    for (_, &(key, value, at)) in all(input) {
        let mut start =
            (at - layout.offset).div_euclid(layout.every) * layout.every + layout.offset;
        while start + layout.length > at {
            let (sum, count) = sums.entry((start, key)).or_default();
            (*sum, *count) = (*sum + value, *count + 1);
            start -= layout.every;
        }
    }
    in_order(sums.into_iter().map(|((start, key), (sum, count))| {
        let end = start + layout.length;
        let row = vec![key, Some(start), Some(end), Some(sum), Some(count)];
        (u64::try_from(end - 1).expect("no time is before 0"), row)
    }))
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn rows_go_to_the_times_that_they_tell(shape in shapes(), input in sent(1)) {
        let made = run(shape, 1, slice::from_ref(&input), |streams| Ok(vec![delay(&streams[0], 2)?]));
        let expected = all(&input).map(|(_, &(key, value, at))| {
            (at.unsigned_abs(), vec![key, Some(value), Some(at)])
        });
        prop_assert_eq!(sorted(&made[0]), in_order(expected));
    }

    #[test]
    fn rows_tell_the_times_that_they_are_at(shape in shapes(), input in sent(1)) {
        let times = Arc::new(Schema::new(vec![Field::new("time", DataType::Int64, false)]));
        let made = run(shape, 1, slice::from_ref(&input), |streams| {
            Ok(vec![with_own_times(&streams[0], &schema(), &times)?])
        });
        let expected = all(&input).map(|(time, &(key, value, at))| {
            (time[0], vec![key, Some(value), Some(at), i64::try_from(time[0]).ok()])
        });
        prop_assert_eq!(sorted(&made[0]), in_order(expected));
    }

    #[test]
    fn windows_are_sent_at_their_last_instants(
        shape in shapes(),
        input in sent(1),
        (every, times, offset) in (1_i64..9, 1_i64..4, 0_i64..5),
        in_place in any::<bool>(),
    ) {
        let layout = Layout { length: every * times, every, offset };
        let made = run(shape, 1, slice::from_ref(&input), |streams| {
            let rows = if in_place { exchange(&streams[0], &[0])? } else { streams[0].clone() };
            let functions = ["sum", "count"].map(|name| ("v".to_owned(), name.to_owned()));
            let plan = Plan::new(&schema(), &["k"], &functions)?;
            Ok(vec![window(&rows, &schema(), plan, "at", layout, in_place)?])
        });
        prop_assert_eq!(sorted(&made[0]), windows(&input, layout));
    }
}
