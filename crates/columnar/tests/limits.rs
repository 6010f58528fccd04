//! Rows that would not fit into one column are kept and come out in pieces, and nothing is lost between them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pointstamp_columnar::Error;
use pointstamp_columnar::aggregate::{Plan as AggregatePlan, Table};
use pointstamp_columnar::join::{Join, Limits, Plan, Side};
use pointstamp_order::Point;
use pointstamp_testkit::cases;
use proptest::prelude::*;

/// A key and a text of this length.
type Row = (i64, usize);

fn item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Utf8, true))
}

/// A key, a text, and the letters of the text as a list.
fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("text", DataType::Utf8, true),
        Field::new("letters", DataType::List(item()), true),
    ]))
}

fn text(length: usize) -> String {
    "0123456789".chars().cycle().take(length).collect()
}

fn batch(rows: &[Row]) -> RecordBatch {
    let keys: Int64Array = rows.iter().map(|row| Some(row.0)).collect();
    let texts: StringArray = rows.iter().map(|row| Some(text(row.1))).collect();
    let letters = rows.iter().flat_map(|row| text(row.1).into_bytes());
    let letters: StringArray = letters
        .map(|letter| Some((letter as char).to_string()))
        .collect();
    let offsets = arrow_buffer::OffsetBuffer::from_lengths(rows.iter().map(|row| row.1));
    let letters = ListArray::new(item(), offsets, Arc::new(letters), None);
    let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(texts), Arc::new(letters)];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// The bytes of text in a column of the result.
fn text_of(column: &ArrayRef) -> usize {
    let texts = column.as_string::<i32>();
    texts.iter().flatten().map(str::len).sum()
}

fn rows() -> impl Strategy<Value = Vec<Vec<Row>>> {
    let row = (0_i64..4, prop_oneof![8 => 0_usize..8, 1 => 60_usize..90]);
    prop::collection::vec(prop::collection::vec(row, 0..12), 0..12)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_join_is_cut_and_kept_in_pieces(left in rows(), right in rows(), merged in 0_usize..200, result in 0_usize..200) {
        let plan = Plan::new(&schema(), &schema(), &["k"], "_r").unwrap();
        let mut join = Join::with_limits(plan, Limits { merged, result }).unwrap();
        let time = Point::from([0]);
        let mut found = Vec::new();
        let mut feed = |side, rows: &[Row]| {
            join.update(side, &time, &batch(rows), |_, pairs: RecordBatch| {
                pairs.column(2).to_data().validate_full().unwrap();
                let bytes = text_of(pairs.column(1)) + text_of(pairs.column(3));
                assert!(pairs.num_rows() == 1 || bytes <= result, "{bytes} bytes of {result}");
                let length = |column: usize, row| pairs.column(column).as_string::<i32>().value(row).len();
                for row in 0..pairs.num_rows() {
                    let letters = pairs.column(4).as_list::<i32>().value(row);
                    assert_eq!(letters.len(), length(3, row));
                    found.push((pairs.column(0).as_primitive::<Int64Type>().value(row), length(1, row), length(3, row)));
                }
                Ok::<_, Error>(())
            }).unwrap();
        };
        for turn in 0..left.len().max(right.len()) {
            for (side, batches) in [(Side::Left, &left), (Side::Right, &right)] {
                if let Some(rows) = batches.get(turn) {
                    feed(side, rows);
                }
            }
        }
        let mut expected = Vec::new();
        for (key, length) in left.iter().flatten() {
            expected.extend(right.iter().flatten().filter(|row| row.0 == *key).map(|row| (*key, *length, row.1)));
        }
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn an_aggregate_is_cut(batches in rows(), most in 0_usize..200) {
        let wanted = [("text".to_owned(), "max".to_owned()), ("k".to_owned(), "count".to_owned())];
        let plan = AggregatePlan::new(&schema(), &["text"], &wanted).unwrap().with_max_bytes(most);
        let mut table = Table::new(&plan).unwrap();
        let mut expected = BTreeMap::new();
        for rows in &batches {
            table.update(&batch(rows)).unwrap();
            for row in rows {
                *expected.entry(text(row.1)).or_insert(0) += 1;
            }
        }
        let mut found = BTreeMap::new();
        table.finish(|piece| {
            let bytes = text_of(piece.column(0)) + text_of(piece.column(1));
            assert!(piece.num_rows() == 1 || bytes <= most, "{bytes} bytes of {most}");
            let counts = piece.column(2).as_primitive::<Int64Type>();
            for (row, key) in piece.column(0).as_string::<i32>().iter().flatten().enumerate() {
                assert_eq!(piece.column(1).as_string::<i32>().value(row), key);
                assert!(found.insert(key.to_owned(), counts.value(row)).is_none());
            }
            Ok::<_, Error>(())
        }).unwrap();
        prop_assert_eq!(found, expected);
    }
}
