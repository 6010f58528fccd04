//! Sums are exact or an error, in whatever order rows are added up, and whether their type holds them is all that decides.
//! Rows that no single batch holds come in several, in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, Decimal128Array, Decimal256Array, Int64Array, RecordBatch, StringArray,
    UInt64Array,
};
use arrow_buffer::i256;
use pointstamp_columnar::Error;
use pointstamp_columnar::aggregate::{Plan, Table};
use pointstamp_columnar::running::Running;
use pointstamp_columnar::runs::{Ends, Runs};
use pointstamp_columnar::selection::rows_in_order_within;
use pointstamp_columnar::windows::{Layout, Windows};
use pointstamp_testkit::cases;
use proptest::prelude::*;

const DIGITS: i128 = 10_i128.pow(38) - 1;

fn keyed(keys: &[i64], values: ArrayRef) -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int64Array::from(keys.to_vec()));
    RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("v", values, true)]).unwrap()
}

/// The sums, and means, of parts of a batch that are added up apart and then together.
fn aggregated(batch: &RecordBatch, cuts: &[usize]) -> Result<Vec<RecordBatch>, Error> {
    let wanted = ["sum", "mean", "count"].map(|name| ("v".to_owned(), name.to_owned()));
    let plan = Plan::new(&batch.schema(), &["k"], &wanted)?;
    let mut whole = Table::new(&plan)?;
    let mut cuts: Vec<usize> = cuts
        .iter()
        .map(|cut| cut % (batch.num_rows() + 1))
        .collect();
    cuts.extend([0, batch.num_rows()]);
    cuts.sort_unstable();
    for (at, ends) in cuts.windows(2).enumerate() {
        let part = batch.slice(ends[0], ends[1] - ends[0]);
        if at % 2 == 0 {
            whole.update(&part)?;
            continue;
        }
        let mut table = Table::new(&plan)?;
        table.update(&part)?;
        table.states(|states| whole.merge(&states))?;
    }
    let mut results = Vec::new();
    whole.finish(|rows| {
        results.push(rows);
        Ok::<_, Error>(())
    })?;
    Ok(results)
}

/// Values near the limits of a type, and any.
fn near<T: Copy + std::fmt::Debug + 'static>(
    some: &'static [T],
    any: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = T> {
    prop_oneof![3 => prop::sample::select(some), 1 => any]
}

fn rows<T: std::fmt::Debug>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = Vec<(i64, T)>> {
    prop::collection::vec((0_i64..3, value), 0..24)
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(any::<usize>(), 0..4)
}

/// Compares results with exact sums by key, of which some may be beyond the type.
fn check<S: Copy>(
    found: Result<Vec<RecordBatch>, Error>,
    sums: &BTreeMap<i64, S>,
    fits: impl Fn(S) -> bool,
    same: impl Fn(&ArrayRef, usize, S) -> bool,
) -> Result<(), TestCaseError> {
    let beyond: Vec<i64> = sums
        .iter()
        .filter(|(_, sum)| !fits(**sum))
        .map(|(key, _)| *key)
        .collect();
    let results = match found {
        Ok(results) => results,
        Err(error) => {
            let text = error.to_string();
            prop_assert!(
                text.starts_with("aggregate: the sum of column 'v' for the key k="),
                "{text}"
            );
            prop_assert!(
                beyond
                    .iter()
                    .any(|key| text.contains(&format!("k={key} is beyond"))),
                "{text}"
            );
            return Ok(());
        }
    };
    prop_assert!(beyond.is_empty(), "the sums of {beyond:?} do not fit");
    let mut seen = 0;
    for rows in &results {
        let keys = rows.column(0).as_primitive::<Int64Type>();
        for row in 0..rows.num_rows() {
            prop_assert!(same(rows.column(1), row, sums[&keys.value(row)]));
            seen += 1;
        }
    }
    prop_assert_eq!(seen, sums.len());
    Ok(())
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn signed_integers(
        rows in rows(near(&[i64::MAX, i64::MIN, i64::MAX - 1, -1, 1], any::<i64>())),
        cuts in cuts(),
    ) {
        let (keys, values): (Vec<i64>, Vec<i64>) = rows.iter().copied().unzip();
        let mut sums = BTreeMap::new();
        for (key, value) in rows {
            *sums.entry(key).or_insert(0_i128) += i128::from(value);
        }
        let found = aggregated(&keyed(&keys, Arc::new(Int64Array::from(values))), &cuts);
        check(
            found,
            &sums,
            |sum| i64::try_from(sum).is_ok(),
            |column, row, sum| i128::from(column.as_primitive::<Int64Type>().value(row)) == sum,
        )?;
    }

    #[test]
    fn unsigned_integers(
        rows in rows(near(&[u64::MAX, 0, u64::MAX / 2, 1], any::<u64>())),
        cuts in cuts(),
    ) {
        let (keys, values): (Vec<i64>, Vec<u64>) = rows.iter().copied().unzip();
        let mut sums = BTreeMap::new();
        for (key, value) in rows {
            *sums.entry(key).or_insert(0_i128) += i128::from(value);
        }
        let found = aggregated(&keyed(&keys, Arc::new(UInt64Array::from(values))), &cuts);
        check(
            found,
            &sums,
            |sum| u64::try_from(sum).is_ok(),
            |column, row, sum| i128::from(column.as_primitive::<UInt64Type>().value(row)) == sum,
        )?;
    }

    #[test]
    fn decimals_of_38_digits(
        rows in rows(near(&[DIGITS, -DIGITS, 1, -1], -DIGITS..=DIGITS)),
        cuts in cuts(),
    ) {
        let (keys, values): (Vec<i64>, Vec<i128>) = rows.iter().copied().unzip();
        let mut sums: BTreeMap<i64, (i256, i128)> = BTreeMap::new();
        for (key, value) in rows {
            let (sum, count) = sums.entry(key).or_default();
            *sum = sum.wrapping_add(i256::from_i128(value)); // 24 values of 38 digits fit
            *count += 1;
        }
        let values = Decimal128Array::from(values).with_precision_and_scale(38, 2).unwrap();
        let found = aggregated(&keyed(&keys, Arc::new(values)), &cuts);
        if let Ok(results) = &found {
            for rows in results {
                let keys = rows.column(0).as_primitive::<Int64Type>();
                for row in 0..rows.num_rows() {
                    let (sum, count) = sums[&keys.value(row)];
                    let mean = rows.column(2).as_primitive::<Decimal128Type>().value(row);
                    prop_assert_eq!(mean, rounded(sum, count).as_i128());
                }
            }
        }
        check(
            found,
            &sums,
            |(sum, _)| sum.to_i128().is_some_and(|sum| sum.abs() <= DIGITS),
            |column, row, (sum, _)| {
                i256::from_i128(column.as_primitive::<Decimal128Type>().value(row)) == sum
            },
        )?;
    }
}

/// A mean, rounded half away from zero.
fn rounded(sum: i256, count: i128) -> i256 {
    let two = i256::from_i128(2);
    let count = i256::from_i128(count);
    let half = if sum.is_negative() {
        count.wrapping_neg()
    } else {
        count
    };
    let doubled = sum.wrapping_mul(two).wrapping_add(half);
    doubled.wrapping_div(count.wrapping_mul(two))
}

/// The means of decimals are exact where their sum exceeds the word.
#[test]
fn means_of_decimals_are_exact() {
    let mean = |values: ArrayRef| {
        let batch = keyed(&vec![0; values.len()], values);
        let wanted = [("v".to_owned(), "mean".to_owned())];
        let plan = Plan::new(&batch.schema(), &["k"], &wanted).unwrap();
        let (mut table, mut whole) = (Table::new(&plan).unwrap(), Table::new(&plan).unwrap());
        table.update(&batch).unwrap();
        for _ in 0..2 {
            table.states(|states| whole.merge(&states)).unwrap();
        }
        let mut found = None;
        whole
            .finish(|rows| {
                found = Some(Arc::clone(rows.column(1)));
                Ok::<_, Error>(())
            })
            .unwrap();
        found.unwrap()
    };
    let narrow = |values: Vec<i128>| {
        let values = Decimal128Array::from(values)
            .with_precision_and_scale(38, 0)
            .unwrap();
        mean(Arc::new(values))
            .as_primitive::<Decimal128Type>()
            .value(0)
    };
    assert_eq!(narrow(vec![DIGITS, DIGITS, DIGITS]), DIGITS);
    assert_eq!(narrow(vec![-DIGITS, -DIGITS, -DIGITS + 1]), -DIGITS);
    assert_eq!(narrow(vec![-DIGITS, -DIGITS + 1]), -DIGITS); // half away from zero
    assert_eq!(narrow(vec![DIGITS, DIGITS - 1]), DIGITS);
    assert_eq!(
        narrow(vec![DIGITS, DIGITS, DIGITS, -DIGITS]),
        DIGITS / 2 + 1
    );
    let most = i256::from_string(&"9".repeat(76)).unwrap();
    let wide = |values: Vec<i256>| {
        let values = Decimal256Array::from(values)
            .with_precision_and_scale(76, 0)
            .unwrap();
        mean(Arc::new(values))
            .as_primitive::<Decimal256Type>()
            .value(0)
    };
    let least = most.wrapping_neg();
    assert_eq!(wide(vec![most; 40]), most);
    assert_eq!(wide(vec![least; 40]), least);
    let nearly = least.wrapping_add(i256::ONE);
    assert_eq!(wide([vec![least; 20], vec![nearly; 20]].concat()), least);
    assert_eq!(wide([vec![least; 19], vec![nearly; 21]].concat()), nearly);
}

fn timed(times: &[i64], values: &[i64]) -> RecordBatch {
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["ann"; times.len()]));
    let times: ArrayRef = Arc::new(Int64Array::from(times.to_vec()));
    let values: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
    RecordBatch::try_from_iter([("who", keys), ("at", times), ("v", values)]).unwrap()
}

#[test]
fn errors_name_the_operator_the_column_and_the_key() {
    let batch = timed(&[1, 2, 3], &[i64::MAX, 2, 5]);
    let sum = [("v".to_owned(), "sum".to_owned())];
    let layout = Layout {
        length: 10,
        every: 10,
        offset: 0,
    };
    let plan = Plan::new(&batch.schema(), &["who"], &sum).unwrap();
    let mut windows = Windows::new(&batch.schema(), plan, "at", layout).unwrap();
    windows.update(&batch, 0).unwrap();
    let aligned = windows.close(None, |_, _| Ok::<_, Error>(())).unwrap_err();
    let mut runs = Runs::new(&batch.schema(), &["who"], &sum, "at", Ends::Silence(5)).unwrap();
    runs.update(batch.clone(), 0).unwrap();
    let session = runs.advance(None, |_, _| Ok::<_, Error>(())).unwrap_err();
    let mut running = Running::new(&batch.schema(), &["who"], &sum, "at", None).unwrap();
    running.add(batch, 0).unwrap();
    let running = running.advance(None).unwrap_err();
    for (error, operator) in [
        (aligned, "window"),
        (session, "window"),
        (running, "running"),
    ] {
        let text = error.to_string();
        let start =
            format!("{operator}: the sum of column 'v' for the key who=ann is beyond Int64: cast");
        assert!(text.starts_with(&start), "{text}");
    }
}

#[test]
fn running_sums_that_come_back_are_refused_on_the_way() {
    for (values, fits) in [([i64::MAX, -1, 1], true), ([i64::MAX, 1, -1], false)] {
        let batch = timed(&[1, 2, 3], &values);
        let sum = [("v".to_owned(), "sum".to_owned())];
        let mut running = Running::new(&batch.schema(), &["who"], &sum, "at", None).unwrap();
        running.add(batch, 0).unwrap();
        assert_eq!(running.advance(None).is_ok(), fits);
    }
}

/// The window that holds the greatest time ends there, however it is laid out.
#[test]
fn windows_end_with_the_times() {
    for (length, every, offset) in [
        (10, 10, 0),
        (1 << 62, 1 << 61, -7),
        (7, 3, i64::MAX),
        (1 << 62, 1 << 62, 1 << 62),
    ] {
        let batch = timed(&[0, i64::MAX - 1, i64::MAX], &[1, 2, 4]);
        let layout = Layout {
            length,
            every,
            offset,
        };
        let sum = [("v".to_owned(), "sum".to_owned())];
        let plan = Plan::new(&batch.schema(), &["who"], &sum).unwrap();
        let mut windows = Windows::new(&batch.schema(), plan, "at", layout).unwrap();
        windows.update(&batch, 0).unwrap();
        let mut found = Vec::new();
        windows
            .close(None, |last, rows| {
                let int = |at: usize| rows.column(at).as_primitive::<Int64Type>().value(0);
                found.push((last, int(1), int(2), int(3)));
                Ok::<_, Error>(())
            })
            .unwrap();
        let mut expected = Vec::new();
        let wide = |number: i64| i128::from(number);
        let first = -(wide(length) + wide(every));
        let first = first + (wide(offset) - first).rem_euclid(wide(every));
        let mut starts: Vec<i128> = Vec::new();
        // Windows that hold 0, and windows that hold the last times.
        for around in [0, wide(i64::MAX) - 1, wide(i64::MAX)] {
            let mut start = around - (around - first).rem_euclid(wide(every));
            while start + wide(length) > around {
                starts.push(start);
                start -= wide(every);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        for start in starts {
            let last = (start + wide(length) - 1).min(wide(i64::MAX));
            let inside = |time: i64| wide(time) >= start && wide(time) <= last;
            let values = [(0, 1), (i64::MAX - 1, 2), (i64::MAX, 4)];
            let sum: i64 = values
                .iter()
                .filter(|(time, _)| inside(*time))
                .map(|(_, value)| value)
                .sum();
            let narrow = |number: i128| i64::try_from(number).unwrap_or(i64::MAX);
            if sum > 0 {
                expected.push((narrow(last), narrow(start), narrow(last + 1), sum));
            }
        }
        assert_eq!(found, expected, "{layout:?}");
    }
}

/// Ordering with a limit on the rows that are brought together gives the same order as without.
#[test]
fn rows_in_order_come_in_several_batches() {
    let batch = |start: i64| {
        let numbers: Vec<i64> = (start..start + 50).map(|row| row * 7 % 101).collect();
        let texts: Vec<Option<String>> = numbers
            .iter()
            .map(|number| (number % 5 != 0).then(|| "x".repeat(usize::try_from(*number).unwrap())))
            .collect();
        keyed(&numbers, Arc::new(StringArray::from(texts)))
    };
    let batches: Vec<RecordBatch> = (0..6).map(|at| batch(at * 50)).collect();
    let rows = |parts: &[RecordBatch]| -> Vec<(i64, Option<String>)> {
        let mut all = Vec::new();
        for part in parts {
            let texts = part.column(1).as_string::<i32>();
            let keys = part.column(0).as_primitive::<Int64Type>();
            for row in 0..part.num_rows() {
                let text = texts.is_valid(row).then(|| texts.value(row).to_owned());
                all.push((keys.value(row), text));
            }
        }
        all
    };
    for descending in [false, true] {
        let at_once = rows_in_order_within(&batches, &[1, 0], descending, 1 << 30).unwrap();
        assert_eq!(at_once.len(), 1);
        for limit in [1, 500, 4000] {
            let parts = rows_in_order_within(&batches, &[1, 0], descending, limit).unwrap();
            assert!(parts.len() > 1);
            for part in &parts {
                assert!(
                    part.num_rows() == 1
                        || part.column(1).as_string::<i32>().values().len() <= limit
                );
            }
            assert_eq!(rows(&parts), rows(&at_once));
        }
    }
}
