//! Expressions over columns against the same over rows, and columns as bytes.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int64Array, NullArray, RecordBatch, TimestampMicrosecondArray, UInt64Array,
};
use arrow_schema::{Field, Schema, SchemaRef};
use pointstamp_arrange::Rows;
use pointstamp_channels::Encoder;
use pointstamp_engine::payload::Payload;
use pointstamp_rows::expressions::{Condition, Expr, Nulls, Op, Projection, Relation, Source};
use pointstamp_rows::{Cells, RowBuf};
use pointstamp_testkit::cases;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select as one_of;

use super::plain::PlainColumns;
use super::types::{condition, typed};
use super::write::{columns_of, columns_of_rows};
use super::{check_columns, eval};
use crate::batch::{Batch, Content};
use crate::collections::updates::Updates;

/// A value of each column; nothing for null.
#[derive(Clone, Debug)]
struct Record {
    int: Option<i64>,
    other: Option<i64>,
    byte: Option<i8>,
    word: Option<u64>,
    digits: Option<i64>,
    float: Option<f64>,
    short: Option<f32>,
    truth: Option<bool>,
    text: Option<String>,
    bytes: Option<Vec<u8>>,
    day: Option<i32>,
    moment: Option<i64>,
}

fn int() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => -4..5_i64,
        1 => one_of(vec![i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1, 1 << 53, (1 << 53) + 1]),
    ]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-8..9_i8).prop_map(|value| f64::from(value) / 2.0),
        1 => one_of(vec![
            f64::NAN, -f64::NAN, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 9_007_199_254_740_992.0,
            9.3e18, -9.3e18, 1e300,
        ]),
    ]
}

fn record() -> impl Strategy<Value = Record> {
    let maybe = prop::option::weighted::<BoxedStrategy<i64>>;
    let first = (
        maybe(0.9, int().boxed()),
        maybe(0.9, int().boxed()),
        prop::option::of(any::<i8>()),
        prop::option::of(prop_oneof![0..5_u64, Just(u64::MAX), Just(1 << 63)]),
        prop::option::of(-200..200_i64),
        prop::option::weighted(0.9, float()),
        prop::option::of(one_of(vec![0.5_f32, -0.0, f32::NAN, 3.0])),
    );
    let second = (
        prop::option::of(any::<bool>()),
        prop::option::of(one_of(vec!["", "a", "ab", "a\0", "\u{1F600}"])),
        prop::option::of(vec(0..3_u8, 0..3)),
        prop::option::of(-2..3_i32),
        prop::option::of(-2..3_i64),
    );
    (first, second).prop_map(|(first, second)| {
        let (int, other, byte, word, digits, float, short) = first;
        let (truth, text, bytes, day, moment) = second;
        let text = text.map(str::to_owned);
        Record {
            int,
            other,
            byte,
            word,
            digits,
            float,
            short,
            truth,
            text,
            bytes,
            day,
            moment,
        }
    })
}

/// The columns of records, and one of nulls.
fn batch_of(records: &[Record]) -> RecordBatch {
    macro_rules! column {
        ($array:ty, $field:ident) => {
            Arc::new(
                records
                    .iter()
                    .map(|record| record.$field)
                    .collect::<$array>(),
            ) as ArrayRef
        };
    }
    let (mut texts, mut bytes) = (StringBuilder::new(), BinaryBuilder::new());
    for record in records {
        texts.append_option(record.text.as_deref());
        bytes.append_option(record.bytes.as_deref());
    }
    let digits = records.iter().map(|record| record.digits.map(i128::from));
    let digits: Decimal128Array = digits.collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("int", column!(Int64Array, int)),
        ("other", column!(Int64Array, other)),
        ("byte", column!(Int8Array, byte)),
        ("word", column!(UInt64Array, word)),
        (
            "digits",
            Arc::new(digits.with_precision_and_scale(12, 2).unwrap()),
        ),
        ("float", column!(Float64Array, float)),
        ("short", column!(Float32Array, short)),
        ("truth", column!(BooleanArray, truth)),
        ("text", Arc::new(texts.finish())),
        ("bytes", Arc::new(bytes.finish())),
        ("day", column!(Date32Array, day)),
        ("moment", column!(TimestampMicrosecondArray, moment)),
        ("nothing", Arc::new(NullArray::new(records.len()))),
    ];
    let fields = columns.iter();
    let fields: Vec<_> = fields
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

const NUMBERS: [&str; 7] = ["int", "other", "byte", "word", "float", "short", "truth"];
const OTHERS: [&str; 6] = ["digits", "text", "bytes", "day", "moment", "nothing"];

fn column(name: &str) -> Expr {
    Expr::Column(name.into())
}

fn constant(write: impl FnOnce(&mut RowBuf)) -> Expr {
    let mut row = RowBuf::default();
    write(&mut row);
    Expr::Constant(Arc::new(row))
}

fn binary(op: Op, a: Expr, b: Expr) -> Expr {
    Expr::Binary(op, Arc::new(a), Arc::new(b))
}

fn number() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        6 => one_of(NUMBERS.to_vec()).prop_map(column),
        1 => int().prop_map(|value| constant(|row| { row.int(value); })),
        1 => float().prop_map(|value| constant(|row| { row.float(value); })),
        1 => any::<bool>().prop_map(|value| constant(|row| row.bool(value))),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let op = one_of(vec![Op::Add, Op::Sub, Op::Mul, Op::Div]);
        (op, inner.clone(), inner).prop_map(|(op, a, b)| binary(op, a, b))
    })
}

fn relation() -> impl Strategy<Value = Op> {
    use Relation as R;
    one_of(vec![R::Eq, R::Ne, R::Lt, R::Le, R::Gt, R::Ge]).prop_map(Op::Compare)
}

fn truth() -> impl Strategy<Value = Expr> {
    let other = || one_of(OTHERS.to_vec()).prop_map(column);
    let leaf = prop_oneof![
        6 => (relation(), number(), number()).prop_map(|(op, a, b)| binary(op, a, b)),
        2 => (relation(), other()).prop_map(|(op, a)| binary(op, a.clone(), a)),
        1 => (relation(), one_of(vec!["", "a", "b"])).prop_map(|(op, text)| {
            let text = constant(|row| {
                let put = row.term(|term| -> Result<(), std::convert::Infallible> {
                    let mut writer = pointstamp_rows::terms::Writer::new(term);
                    writer.text(text);
                    writer.end();
                    Ok(())
                });
                assert!(put.is_ok());
            });
            binary(op, column("text"), text)
        }),
        2 => prop_oneof![number(), other()].prop_map(|of| Expr::IsNull(Arc::new(of))),
        1 => Just(column("truth")),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (one_of(vec![Op::And, Op::Or]), inner.clone(), inner.clone())
                .prop_map(|(op, a, b)| binary(op, a, b)),
            inner.clone().prop_map(|of| Expr::Not(Arc::new(of))),
            inner.prop_map(|of| Expr::IsNull(Arc::new(of))),
        ]
    })
}

fn any_column() -> impl Strategy<Value = Expr> {
    prop_oneof![
        4 => number(),
        2 => truth(),
        1 => one_of(OTHERS.to_vec()).prop_map(column),
    ]
}

/// The expressions that have a meaning, with their schema.
fn meant(exprs: &[Expr], schema: &SchemaRef) -> (Vec<Expr>, SchemaRef) {
    let (mut found, mut fields) = (Vec::new(), Vec::new());
    for (index, expr) in exprs.iter().enumerate() {
        if let Ok((expr, data_type)) = typed(expr, schema) {
            found.push(expr);
            fields.push(Field::new(format!("{index}"), data_type, true));
        }
    }
    (found, Schema::new(fields).into())
}

fn same(a: &Cells, b: &Cells) -> bool {
    a.len() == b.len() && (0..a.len()).all(|index| a.get(index) == b.get(index))
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn columns_are_selected_as_rows_are(records in vec(record(), 1..6), exprs in vec(any_column(), 1..4)) {
        let batch = batch_of(&records);
        check_columns(&batch.schema()).unwrap();
        let columns = PlainColumns::of(&batch).unwrap();
        let (exprs, schema) = meant(&exprs, &batch.schema());
        let mut projection = Projection::new(Expr::Tuple(exprs.clone().into()), Nulls::Unknown);
        let rows = projection.apply_all(columns.rows());
        if let Some(made) = eval::select(&columns, &exprs) {
            let rows = rows.unwrap();
            prop_assert!(same(made.rows(), &rows), "{made:?} and not {rows:?}");
            if let Ok(written) = columns_of_rows(&rows, &schema) {
                prop_assert_eq!(columns_of(&made, &schema), Some(written));
            } else {
                prop_assert_eq!(columns_of(&made, &schema), None);
            }
        }
    }

    #[test]
    fn conditions_hold_of_columns_as_they_do_of_rows(records in vec(record(), 1..6), expr in truth()) {
        let batch = batch_of(&records);
        let columns = PlainColumns::of(&batch).unwrap();
        let Ok(expr) = condition(&expr, &batch.schema()) else { return Ok(()) };
        for nulls in [Nulls::Unknown, Nulls::Value] {
            if let Some(mask) = eval::holds(&columns, &expr, nulls) {
                let mut condition = Condition::new(expr.clone(), nulls);
                for (index, record) in records.iter().enumerate() {
                    let row = columns.rows().get(index);
                    prop_assert_eq!(mask.value(index), condition.holds(&[row]).unwrap(), "{} of {:?}", &expr, record);
                    prop_assert!(mask.is_valid(index));
                }
            }
        }
    }

    #[test]
    fn rows_are_put_together_of_columns_as_of_rows(records in vec(record(), 1..6), picked in vec(0..13_usize, 0..4), key in 0..13_usize) {
        let columns = PlainColumns::of(&batch_of(&records)).unwrap();
        let item = |index| Expr::Item(Arc::new(Expr::Source(Source::Record)), index);
        let nothing = constant(|row| row.copy(pointstamp_rows::Row::UNIT));
        let picked: Vec<_> = picked.into_iter().map(item).chain([nothing]).collect();
        for expr in [
            Expr::Tuple([item(key), Expr::Tuple(picked.clone().into())].into()),
            Expr::Tuple(picked.into()),
            item(key),
            Expr::Source(Source::Record),
        ] {
            let made = eval::shape(&columns, &expr).unwrap().rows(columns.len());
            let rows = Projection::new(expr, Nulls::Value).apply_all(columns.rows()).unwrap();
            prop_assert!(same(&made, &rows));
            prop_assert_eq!(made.is_exact(), rows.is_exact(), "integers stay integers");
        }
    }

}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn updates_of_columns_are_read_as_they_were_written(
        record in record(), len in 256..400_usize, dims in 1..4_usize, timed: bool, cut in any::<(prop::sample::Index, u8)>(),
    ) {
        let columns = PlainColumns::of(&batch_of(&vec![record; len])).unwrap();
        let diffs = (0..len).map(|index| index as i64 - 7).collect();
        let coords = if timed { (0..(len * dims) as u64).collect() } else { Vec::new() };
        let written = Updates::of_columns(columns, diffs, coords, dims);
        prop_assert!(written.columns().is_some());
        let mut out = Encoder::new();
        Batch::Updates(written.clone()).encode(&mut out).unwrap();
        let mut bytes = out.finish().concat();
        let read = Updates::from_batch(Batch::decode(bytes.clone().into()).unwrap()).unwrap();
        prop_assert!(read.columns().is_some());
        prop_assert!(same(read.rows(), written.rows()));
        let message = pointstamp_order::Point::minimum(dims);
        for (read, written) in read.iter().zip(written.iter()) {
            prop_assert_eq!(read.diff, written.diff);
            prop_assert_eq!(read.time(&message), written.time(&message));
        }
        // A message of another process may be anything.
        let (at, byte) = cut;
        let at = at.index(bytes.len());
        bytes[at] ^= byte;
        for bytes in [bytes.clone(), bytes[..at].to_vec()] {
            if let Ok(Batch::Updates(read)) = Batch::decode(bytes.into()) {
                prop_assert_eq!(read.rows().len(), read.len());
                read.iter().for_each(|update| drop(update.time(&message)));
            }
        }
    }
}

/// Rows decide where a kernel fails or means something else, and nowhere else.
#[test]
fn kernels_are_used_where_they_can_be() {
    let record = |int: i64, word: u64| Record {
        int: Some(int),
        other: Some(0),
        byte: Some(1),
        word: Some(word),
        digits: Some(5),
        float: Some(0.5),
        short: Some(0.5),
        truth: Some(true),
        text: Some("a".to_owned()),
        bytes: None,
        day: Some(1),
        moment: Some(1),
    };
    let used = |records: &[Record], expr: &Expr| {
        let batch = batch_of(records);
        let (expr, _) = typed(expr, &batch.schema()).unwrap();
        eval::select(&PlainColumns::of(&batch).unwrap(), &[expr]).is_some()
    };
    let int = |value| {
        constant(|row| {
            row.int(value);
        })
    };
    let usual = [
        binary(Op::Add, column("int"), column("other")),
        binary(Op::Mul, column("int"), column("float")),
        binary(Op::Div, column("other"), column("int")),
        binary(Op::Sub, int(1), column("byte")),
        binary(Op::Compare(Relation::Lt), column("int"), column("float")),
        binary(Op::Compare(Relation::Le), column("word"), column("int")),
        binary(Op::Compare(Relation::Eq), column("text"), column("text")),
        Expr::Not(Arc::new(column("truth"))),
        Expr::IsNull(Arc::new(column("bytes"))),
        column("nothing"),
        int(7),
    ];
    for expr in &usual {
        assert!(used(&[record(2, 3), record(-2, 3)], expr), "{expr}");
    }
    let decided_by_rows = [
        (
            record(i64::MAX, 0),
            binary(Op::Add, column("int"), column("byte")),
        ),
        (
            record(1, 0),
            binary(Op::Div, column("int"), column("other")),
        ),
        (
            record(1, u64::MAX),
            binary(Op::Sub, column("word"), column("word")),
        ),
        (
            record((1 << 53) + 1, 0),
            binary(Op::Compare(Relation::Eq), column("int"), column("float")),
        ),
    ];
    for (record, expr) in decided_by_rows {
        assert!(!used(&[record], &expr), "{expr}");
    }
}

#[test]
fn columns_that_take_no_bytes_travel_as_rows() {
    let nulls: ArrayRef = Arc::new(NullArray::new(300));
    let columns =
        |count| PlainColumns::new(std::iter::repeat_n(nulls.clone(), count).collect(), 300);
    for (count, travel) in [(16, true), (17, false)] {
        let updates = Updates::of_columns(columns(count), vec![1; 300], Vec::new(), 1);
        let mut out = Encoder::new();
        Batch::Updates(updates.clone()).encode(&mut out).unwrap();
        let read = Batch::decode(out.finish().concat().into()).unwrap();
        let read = Updates::from_batch(read).unwrap();
        assert_eq!(read.columns().is_some(), travel);
        assert!(same(read.rows(), updates.rows()));
    }
}
