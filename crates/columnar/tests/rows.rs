//! Nothing is lost, invented or misplaced, whatever the sizes; and a key's hash is its value's alone.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Int64Array, LargeStringArray, RecordBatch, StringArray,
    StringViewArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pointstamp_columnar::Error;
use pointstamp_columnar::aggregate::{Plan, Table};
use pointstamp_columnar::column_hash::hash_rows;
use pointstamp_columnar::distinct::Distinct;
use pointstamp_columnar::hash::{hash_none, hash_tuple, hash_utf8};
use pointstamp_columnar::join::{Join, Plan as JoinPlan, Side};
use pointstamp_columnar::partition::partition;
use pointstamp_columnar::pieces::{MAX_ROWS, Merger, slices};
use pointstamp_columnar::schema::{Fit, conform, difference, key_columns};
use pointstamp_order::Point;
use pointstamp_testkit::cases;
use proptest::prelude::*;

type Pairs = Vec<(Option<i64>, i64)>;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("x", DataType::Int64, true),
    ]))
}

fn batch(rows: &[(Option<i64>, i64)]) -> RecordBatch {
    let keys: Int64Array = rows.iter().map(|row| row.0).collect();
    let values: Int64Array = rows.iter().map(|row| Some(row.1)).collect();
    RecordBatch::try_new(schema(), vec![Arc::new(keys), Arc::new(values)])
        .expect("the columns fit the schema")
}

fn rows_of(batch: &RecordBatch) -> Pairs {
    let (keys, values) = (
        batch.column(0).as_primitive::<Int64Type>(),
        batch.column(1).as_primitive::<Int64Type>(),
    );
    keys.iter()
        .zip(values)
        .map(|(key, value)| (key, value.unwrap_or(i64::MIN)))
        .collect()
}

fn pairs() -> impl Strategy<Value = Pairs> {
    prop::collection::vec((prop::option::of(-4_i64..4), 0_i64..100), 0..60)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn parts_hold_the_rows_where_their_hashes_say(rows in pairs(), parts in 1_usize..6) {
        let mut found = vec![Vec::new(); parts];
        partition(&batch(&rows), &[0], parts, |part, piece| found[part].extend(rows_of(&piece))).unwrap();
        let hash = |key: Option<i64>| key.map_or_else(hash_none, i64::cast_unsigned);
        for (part, found) in found.into_iter().enumerate() {
            let expected: Pairs =
                rows.iter().copied().filter(|row| hash(row.0) % parts as u64 == part as u64).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn merging_keeps_rows_and_their_order(sizes in prop::collection::vec(0_usize..40_000, 0..12)) {
        let (mut merger, mut sent, mut expected) = (Merger::new(), Vec::new(), Vec::new());
        let mut next = 0_i64;
        for size in &sizes {
            let rows: Pairs = (next..).take(*size).map(|n| (Some(n), n)).collect();
            next += i64::try_from(*size).unwrap();
            expected.extend(rows.clone());
            merger.push(batch(&rows), |piece| { sent.push(piece); Ok::<_, Infallible>(()) }).unwrap();
        }
        merger.flush(|piece| { sent.push(piece); Ok::<_, Infallible>(()) }).unwrap();
        prop_assert!(merger.is_empty());
        prop_assert!(sent.iter().all(|piece| (1..=MAX_ROWS).contains(&piece.num_rows())));
        prop_assert_eq!(sent.iter().flat_map(rows_of).collect::<Pairs>(), expected);
    }

    #[test]
    fn sums_are_the_sums(rows in pairs(), cut in 0_usize..60) {
        let plan = Plan::new(&schema(), &["k"], &[("x".into(), "sum".into()), ("x".into(), "max".into())]).unwrap();
        let mut table = Table::new(&plan).unwrap();
        let cut = cut.min(rows.len());
        table.update(&batch(&rows[..cut])).unwrap();
        table.update(&batch(&rows[cut..])).unwrap();
        let mut expected: BTreeMap<Option<i64>, (i64, i64)> = BTreeMap::new();
        for (key, value) in &rows {
            let entry = expected.entry(*key).or_insert((0, i64::MIN));
            *entry = (entry.0 + value, entry.1.max(*value));
        }
        let mut found = BTreeMap::new();
        table.finish(|piece| {
            let greatest = piece.column(2).as_primitive::<Int64Type>().clone();
            for ((key, sum), greatest) in rows_of(&piece).into_iter().zip(greatest.values()) {
                assert!(found.insert(key, (sum, *greatest)).is_none(), "a key comes out once");
            }
            Ok::<_, Error>(())
        }).unwrap();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn the_first_row_of_each_key_is_kept(rows in pairs(), cut in 0_usize..60) {
        let mut seen = Distinct::new(&schema(), vec![0]).unwrap();
        let cut = cut.min(rows.len());
        let mut found = Pairs::new();
        for part in [&rows[..cut], &rows[cut..]] {
            found.extend(seen.first_rows(&batch(part)).unwrap().iter().flat_map(rows_of));
        }
        let mut expected = Pairs::new();
        for row in &rows {
            if expected.iter().all(|other| other.0 != row.0) {
                expected.push(*row);
            }
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn every_pair_comes_out_once_in_any_order_of_arrival(
        left in pairs(), right in pairs(), order in prop::collection::vec(any::<bool>(), 0..20),
    ) {
        let plan = JoinPlan::new(&schema(), &schema(), &["k"], "_r").unwrap();
        let mut join = Join::new(plan).unwrap();
        let mut found = Vec::new();
        let mut feeds = [left.chunks(7).collect::<Vec<_>>(), right.chunks(5).collect::<Vec<_>>()];
        for feed in &mut feeds {
            feed.reverse();
        }
        let mut turns = order.into_iter();
        while feeds.iter().any(|feed| !feed.is_empty()) {
            let wanted = usize::from(turns.next().unwrap_or(true));
            let from = if feeds[wanted].is_empty() { 1 - wanted } else { wanted };
            let rows = feeds[from].pop().expect("one of them is not empty");
            take(&mut join, [Side::Left, Side::Right][from], rows, &mut found);
        }
        let mut expected = Vec::new();
        for (key, x) in left.iter().filter(|row| row.0.is_some()) {
            expected.extend(right.iter().filter(|row| row.0 == *key).map(|row| (key.unwrap(), *x, row.1)));
        }
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }
}

fn take(
    join: &mut Join,
    side: Side,
    rows: &[(Option<i64>, i64)],
    found: &mut Vec<(i64, i64, i64)>,
) {
    let time = Point::from(&[0_u64][..]);
    join.update(side, &time, &batch(rows), |_, piece| {
        let column = |at: usize| {
            piece
                .column(at)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec()
        };
        let (keys, left, right) = (column(0), column(1), column(2));
        found.extend(
            keys.into_iter()
                .zip(left)
                .zip(right)
                .map(|((key, left), right)| (key, left, right)),
        );
        Ok::<_, Error>(())
    })
    .expect("the join takes its own rows");
}

#[test]
fn a_batch_of_one_part_is_handed_on_as_it_is() {
    for parts in 2_i64..6 {
        let mut rows: Pairs = (0..1000).map(|row| (Some(row * parts + 1), row)).collect();
        let split = |rows: &Pairs| {
            let (whole, mut found) = (batch(rows), Vec::new());
            let count = usize::try_from(parts).unwrap();
            partition(&whole, &[0], count, |part, piece| found.push((part, piece))).unwrap();
            (whole, found)
        };
        let (whole, found) = split(&rows);
        assert_eq!(found.len(), 1);
        let start = |batch: &RecordBatch| batch.column(1).to_data().buffers()[0].as_ptr();
        assert_eq!((found[0].0, start(&found[0].1)), (1, start(&whole)));
        rows[999].0 = Some(0);
        let lengths = split(&rows).1.into_iter();
        let lengths: Vec<_> = lengths
            .map(|(part, piece)| (part, piece.num_rows()))
            .collect();
        assert_eq!(lengths, [(0, 1), (1, 999)]);
    }
}

#[test]
fn slices_are_small_and_share_the_rows() {
    let rows: Pairs = (0..300_000).map(|n| (Some(n), n)).collect();
    let whole = batch(&rows);
    let pieces: Vec<RecordBatch> = slices(&whole).collect();
    assert_eq!(pieces.len(), 3);
    assert_eq!(pieces.iter().flat_map(rows_of).collect::<Pairs>(), rows);
    assert_eq!(slices(&whole.slice(0, 0)).count(), 0);
}

#[test]
fn strings_hash_the_same_in_every_layout() {
    let words = [Some("timely"), None, Some(""), Some("timely")];
    let dictionary: DictionaryArray<Int8Type> = words.into_iter().collect();
    let layouts: [ArrayRef; 4] = [
        Arc::new(StringArray::from_iter(words)),
        Arc::new(LargeStringArray::from_iter(words)),
        Arc::new(StringViewArray::from_iter(words)),
        Arc::new(dictionary),
    ];
    let expected: Vec<u64> = words
        .iter()
        .map(|word| word.map_or_else(hash_none, |word| hash_utf8(word.as_bytes())))
        .collect();
    for column in &layouts {
        assert_eq!(
            hash_rows(std::slice::from_ref(column)).unwrap(),
            expected,
            "{}",
            column.data_type()
        );
        let sliced = column.slice(1, 2);
        assert_eq!(hash_rows(&[sliced]).unwrap(), expected[1..3]);
    }
    let pair = hash_rows(&[Arc::clone(&layouts[0]), Arc::clone(&layouts[3])]).unwrap();
    let tuple = |hash: u64| hash_tuple([Ok::<_, Infallible>(hash), Ok(hash)].into_iter()).unwrap();
    assert_eq!(
        pair,
        expected.iter().map(|&hash| tuple(hash)).collect::<Vec<_>>()
    );
}

#[test]
fn what_does_not_fit_is_named() {
    let missing = key_columns(&schema(), &["k", "y"]).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "there is no column 'y': the columns are 'k', 'x'"
    );
    assert!(matches!(
        key_columns::<&str>(&schema(), &[]),
        Err(Error::NoKey)
    ));
    let other = Schema::new(vec![Field::new("k", DataType::Utf8, true)]);
    let said = difference(&other, &schema(), Fit::Values).unwrap();
    assert!(
        said.contains("field 'k' is Utf8 and should be Int64; field 1 'x' (Int64) is missing"),
        "{said}"
    );
    assert!(difference(&schema(), &schema(), Fit::Exact).is_none());
}

#[test]
fn layouts_are_converted_and_values_are_not() {
    let strings = Arc::new(Schema::new(vec![Field::new("s", DataType::Utf8, false)]));
    let large: ArrayRef = Arc::new(LargeStringArray::from(vec!["a", "b"]));
    let given = RecordBatch::try_from_iter([("s", large)]).unwrap();
    let fitted = conform(given, &strings).unwrap();
    assert_eq!(
        fitted.column(0).as_string::<i32>(),
        &StringArray::from(vec!["a", "b"])
    );
    let nulls: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let given = RecordBatch::try_from_iter([("s", nulls)]).unwrap();
    assert!(
        conform(given, &strings)
            .unwrap_err()
            .to_string()
            .contains("holds 1 nulls")
    );
}
