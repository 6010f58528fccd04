//! Aggregation before rows travel comes to the same, and it is done where it pays.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use pointstamp_columnar::Error;
use pointstamp_columnar::aggregate::{Plan, Table};
use pointstamp_columnar::partial::{Experience, Fate, Limits, Partial};

const BATCH: i64 = 512;

/// The usual limits, a sixty-fourth of them.
fn limits() -> Limits {
    let usual = Limits::default();
    Limits {
        small: usual.small / 64,
        sample: 700,
        max_keys: usual.max_keys / 64,
        max_key_bytes: 100_000,
        rows_per_key: usual.rows_per_key,
        pause: 16 << 10,
        max_pause: usual.max_pause / 64,
    }
}

fn plan() -> Plan {
    let functions = ["sum", "count", "min", "max", "mean"];
    let wanted = functions.map(|function| ("x".to_owned(), function.to_owned()));
    Plan::new(&rows(0, |row| row).schema(), &["k"], &wanted).unwrap()
}

/// A batch of rows, from this one on; every third value is null.
fn rows(start: i64, key: impl Fn(i64) -> i64) -> RecordBatch {
    let keys: Int64Array = (start..start + BATCH).map(|row| Some(key(row))).collect();
    let values: Int64Array = (start..start + BATCH)
        .map(|row| (row % 3 != 0).then_some(row))
        .collect();
    let (keys, values): (ArrayRef, ArrayRef) = (Arc::new(keys), Arc::new(values));
    RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("x", values, true)]).unwrap()
}

type Results = BTreeMap<i64, (Option<i64>, i64, Option<i64>, Option<i64>, Option<u64>)>;

fn results(table: &Table) -> Results {
    let mut found = BTreeMap::new();
    table
        .finish(|batch| {
            let ints = |at: usize| batch.column(at).as_primitive::<Int64Type>();
            let means = batch.column(5).as_primitive::<Float64Type>();
            for row in 0..batch.num_rows() {
                let int = |at: usize| ints(at).is_valid(row).then(|| ints(at).value(row));
                let mean = means.is_valid(row).then(|| means.value(row).to_bits());
                let result = (int(1), int(2).unwrap(), int(3), int(4), mean);
                let before = found.insert(int(0).unwrap(), result);
                assert!(before.is_none(), "a key comes out once");
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    found
}

/// Sends rows by a `Partial` to another table, which must have the same states in the end as without; returns
/// the number of rows that passed, and the number of rows of states.
fn send(batches: i64, key: impl Fn(i64) -> i64 + Copy) -> (usize, usize) {
    send_and_keep(batches, key, false)
}

/// Sends as [`send`] does; where it is `kept`, the table is written and restored after every third batch, as
/// by a checkpoint.
fn send_and_keep(batches: i64, key: impl Fn(i64) -> i64 + Copy, kept: bool) -> (usize, usize) {
    let plan = plan();
    let (mut partial, mut experience) = (Partial::default(), Experience::new(limits()));
    let (mut total, mut direct) = (Table::new(&plan).unwrap(), Table::new(&plan).unwrap());
    let (mut passed, mut states) = (0, 0);
    let mut merge = |table: &Table, total: &mut Table| {
        table
            .states(|batch| {
                states += batch.num_rows();
                total.merge(&batch)
            })
            .unwrap();
    };
    for batch in 0..batches {
        if kept
            && batch % 3 == 2
            && let Some((table, rows)) = partial.table()
        {
            let mut states = Vec::new();
            let listed = table.states(|batch| {
                states.push(batch);
                Ok::<_, Error>(())
            });
            listed.unwrap();
            let mut after = Partial::default();
            after.put(&states, rows, &plan).unwrap();
            partial = after;
        }
        let batch = rows(batch * BATCH, key);
        direct.update(&batch).unwrap();
        match partial.take(batch, &plan, &mut experience).unwrap() {
            Fate::Passes(batch) => {
                passed += batch.num_rows();
                total.update(&batch).unwrap();
            }
            Fate::Held => assert!(partial.holds_rows()),
            Fate::Full(table, rest) => {
                assert!(!partial.holds_rows());
                merge(&table, &mut total);
                if let Some(rest) = rest {
                    passed += rest.num_rows();
                    total.update(&rest).unwrap();
                }
            }
        }
    }
    if let Some(table) = partial.close() {
        merge(&table, &mut total);
    }
    assert_eq!(results(&total), results(&direct));
    (passed, states)
}

#[test]
fn a_table_that_is_kept_comes_to_the_same() {
    for batches in [1, 20, 80] {
        send_and_keep(batches, |row| row % 100, true);
        send_and_keep(batches, |row| row / 5, true);
        send_and_keep(batches, |row| row, true);
    }
}

#[test]
fn a_small_time_passes() {
    assert_eq!(send(1, |row| row % 7), (512, 0));
}

#[test]
fn many_rows_of_few_keys_stay() {
    assert_eq!(send(20, |row| row % 100), (512, 100));
}

#[test]
fn mostly_distinct_keys_pass_after_a_table_in_vain() {
    let (passed, states) = send(20, |row| row);
    assert_eq!(states, 700, "one sample");
    assert_eq!(passed + states, 20 * 512);
}

#[test]
fn a_table_is_tried_again_after_a_pause() {
    let (passed, states) = send(64, |row| row);
    assert_eq!(states, 2 * 700, "two samples");
    assert_eq!(passed + states, 64 * 512);
    // The next pause is twice as long.
    let (_, states) = send(128, |row| row);
    assert_eq!(states, 3 * 700);
}

#[test]
fn a_full_table_is_sent_and_begun_again_where_it_pays() {
    // Keys of five rows each, and more of them than a table holds.
    let (passed, states) = send(80, |row| row / 5);
    assert_eq!(passed, 512);
    assert!(states >= 8_000, "{states}");
    // Of three rows each: it does not pay enough to go on.
    let (passed, _) = send(80, |row| row / 3);
    assert!(passed > 16 << 10, "{passed}");
}

#[test]
fn a_time_with_large_keys_has_a_small_table() {
    let (plan, limits) = (plan_of_strings(), limits());
    let (mut partial, mut experience) = (Partial::default(), Experience::new(limits.clone()));
    let mut full = 0;
    for batch in 0..20_i64 {
        let keys: StringArray = (0..BATCH)
            .map(|row| Some(format!("{batch:0>800}{}", row % 16)))
            .collect();
        let values: Int64Array = (0..BATCH).map(Some).collect();
        let columns: [(&str, ArrayRef); 2] = [("k", Arc::new(keys)), ("x", Arc::new(values))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        if let Fate::Full(table, _) = partial.take(batch, &plan, &mut experience).unwrap() {
            assert!(table.len() < 1024 && table.key_bytes() >= limits.max_key_bytes);
            full += 1;
        }
    }
    assert!(full > 0);
}

fn plan_of_strings() -> Plan {
    let schema = Schema::new(vec![
        Field::new("k", DataType::Utf8, true),
        Field::new("x", DataType::Int64, true),
    ]);
    Plan::new(&Arc::new(schema), &["k"], &[("x".into(), "sum".into())]).unwrap()
}
