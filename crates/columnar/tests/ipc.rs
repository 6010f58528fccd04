//! Batches as bytes: any batch comes back as it was, and no bytes do harm.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, StringDictionaryBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray,
    Float64Array, Int64Array, ListArray, NullArray, RecordBatch, RecordBatchOptions, StringArray,
    StringViewArray, StructArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Fields, Schema};
use bytes::{Bytes, BytesMut};
use pointstamp_columnar::Error;
use pointstamp_columnar::ipc::{ALIGNMENT, decode, encode, footprint};
use pointstamp_testkit::cases;
use proptest::prelude::*;

/// The bytes at an address as the connections give it.
fn joined(pieces: &[Bytes]) -> Bytes {
    let len: usize = pieces.iter().map(Bytes::len).sum();
    let mut block = BytesMut::with_capacity(len + ALIGNMENT);
    let skip = block.as_ptr().align_offset(ALIGNMENT);
    block.resize(skip, 0);
    for piece in pieces {
        block.extend_from_slice(piece);
    }
    block.freeze().slice(skip..)
}

fn there_and_back(batch: &RecordBatch) -> RecordBatch {
    decode(joined(&encode(batch).expect("the types have a form"))).expect("it was just written")
}

type Values = Vec<Option<i64>>;

fn decimals(values: &Values) -> ArrayRef {
    let array: Decimal128Array = values
        .iter()
        .map(|value| value.map(|x| i128::from(x) << 40))
        .collect();
    Arc::new(
        array
            .with_precision_and_scale(38, 3)
            .expect("within 38 digits"),
    )
}

fn words(values: &Values) -> Vec<Option<String>> {
    let word = |x: i64| "wörter ".repeat(usize::try_from(x.rem_euclid(5)).expect("small"));
    values.iter().map(|value| value.map(word)).collect()
}

fn dictionary(values: &Values) -> ArrayRef {
    let words = words(values);
    let words = words.iter().map(Option::as_deref);
    Arc::new(words.collect::<DictionaryArray<Int32Type>>())
}

fn lists(values: &Values) -> ArrayRef {
    let items = |x: i64| (0..x.rem_euclid(4)).map(|i| (i != 2).then_some(7));
    let lists = values.iter().map(|value| value.map(items));
    Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))
}

fn structs(values: &Values) -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("word", DataType::Utf8, true),
        Field::new_dictionary("kind", DataType::Int32, DataType::Utf8, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(words(values))),
        dictionary(values),
    ];
    let nulls = values.iter().map(Option::is_some).collect::<Vec<_>>();
    Arc::new(StructArray::new(fields, columns, Some(nulls.into())))
}

fn lists_of_dictionaries(values: &Values) -> ArrayRef {
    let mut builder = ListBuilder::new(StringDictionaryBuilder::<Int32Type>::new());
    for value in values {
        for word in value.map(|x| words(&vec![Some(x), None])).iter().flatten() {
            builder.values().append_option(word.as_deref());
        }
        builder.append(value.is_some());
    }
    Arc::new(builder.finish())
}

fn fixed(values: &Values) -> ArrayRef {
    let bytes = values.iter().map(|value| value.map(i64::to_be_bytes));
    Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 8).expect("8 bytes each"))
}

const KINDS: usize = 12;

fn column(kind: usize, values: &Values) -> ArrayRef {
    let values_of = values.iter().copied();
    match kind {
        0 => Arc::new(values_of.collect::<Int64Array>()),
        #[allow(clippy::cast_precision_loss, reason = "any float will do")]
        1 => Arc::new(
            values_of
                .map(|x| x.map(|x| x as f64 / 3.0))
                .collect::<Float64Array>(),
        ),
        2 => Arc::new(
            values_of
                .map(|x| x.map(|x| x % 2 == 0))
                .collect::<BooleanArray>(),
        ),
        3 => Arc::new(StringArray::from(words(values))),
        4 => Arc::new(StringViewArray::from_iter(words(values))),
        5 => decimals(values),
        6 => dictionary(values),
        7 => lists(values),
        8 => structs(values),
        9 => lists_of_dictionaries(values),
        10 => fixed(values),
        11 => {
            let array: TimestampMicrosecondArray = values_of.collect();
            Arc::new(array.with_timezone("Europe/Zurich"))
        }
        _ => Arc::new(NullArray::new(values.len())),
    }
}

fn batch(kinds: &[usize], values: &Values) -> RecordBatch {
    let columns: Vec<ArrayRef> = kinds.iter().map(|&kind| column(kind, values)).collect();
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(i, column)| {
            let field = Field::new(format!("c{i}"), column.data_type().clone(), true);
            field.with_metadata([("note".to_owned(), format!("column {i}"))])
        })
        .collect();
    let schema = Schema::new(fields).with_metadata([("of".to_owned(), "the table".to_owned())]);
    let options = RecordBatchOptions::new().with_row_count(Some(values.len()));
    RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
        .expect("columns that fit")
}

fn kinds() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..=KINDS, 0..6)
}

fn values() -> impl Strategy<Value = Values> {
    prop::collection::vec(prop::option::of(any::<i64>()), 0..40)
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn every_batch_comes_back(kinds in kinds(), values in values(), cut in any::<(prop::sample::Index, prop::sample::Index)>()) {
        let whole = batch(&kinds, &values);
        prop_assert_eq!(&there_and_back(&whole), &whole);
        let (a, b) = (cut.0.index(values.len() + 1), cut.1.index(values.len() + 1));
        let slice = whole.slice(a.min(b), a.abs_diff(b));
        prop_assert_eq!(&there_and_back(&slice), &slice);
    }

    #[test]
    fn damaged_bytes_are_an_error_or_a_batch(
        kinds in kinds(),
        values in values(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in any::<prop::sample::Index>(),
    ) {
        let whole = joined(&encode(&batch(&kinds, &values)).expect("the types have a form"));
        prop_assert!(decode(whole.slice(..end.index(whole.len()))).is_err() || end.index(whole.len()) + 8 >= whole.len());
        let mut damaged = whole.to_vec();
        for (at, with) in damage {
            let at = at.index(damaged.len());
            damaged[at] = with;
        }
        // Whatever the result, there is no panic; and a decoded batch can be read to the end.
        if let Ok(read) = decode(joined(&[Bytes::from(damaged)])) {
            let _readable = format!("{read:?}");
        }
    }
}

#[test]
fn what_is_large_is_shared_both_ways() {
    let values: Int64Array = (0..100_000).collect();
    let start = values.values().inner().as_ptr();
    let columns: Vec<(&str, ArrayRef)> = vec![("x", Arc::new(values))];
    let batch = RecordBatch::try_from_iter(columns).expect("one column");
    let pieces = encode(&batch).expect("integers have a form");
    assert!(
        pieces.iter().any(|piece| piece.as_ptr() == start),
        "the buffer was copied"
    );
    let bytes = joined(&pieces);
    let read = decode(bytes.clone()).expect("it was just written");
    let data = read.column(0).to_data();
    let address = data.buffers()[0].as_ptr();
    assert!(
        bytes.as_ptr_range().contains(&address),
        "the bytes were copied"
    );
    assert_eq!(read, batch);
}

#[test]
fn of_a_slice_only_its_rows_are_sent_and_counted() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("x", Arc::new((0..100_000).collect::<Int64Array>())),
        ("s", Arc::new(StringArray::from(vec!["four"; 100_000]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("two columns");
    let slice = batch.slice(5_000, 1_000);
    let size: usize = encode(&slice).expect("a form").iter().map(Bytes::len).sum();
    assert!(
        (16_000..18_500).contains(&size),
        "{size} bytes for 1,000 rows"
    );
    assert_eq!(footprint(&slice), 8_000 + 4_004 + 4_000);
    assert_eq!(footprint(&batch.slice(0, 0)), 4);
}

#[test]
fn other_bytes_are_refused_with_a_sentence() {
    let good = joined(&encode(&batch(&[0], &vec![Some(1)])).expect("a form"));
    let twice = joined(&[good.slice(..good.len() - 8), good.clone()]);
    for bytes in [
        Bytes::new(),
        Bytes::from_static(b"rubbish that is long enough"),
        twice,
    ] {
        let error = decode(bytes).expect_err("not a batch");
        assert!(matches!(error, Error::Unreadable { .. }));
        assert!(
            error
                .to_string()
                .starts_with("these bytes are not a record batch: ")
        );
    }
}

#[test]
fn a_type_without_a_form_is_refused_with_a_sentence() {
    let inner: DictionaryArray<Int32Type> = vec!["a"].into_iter().collect();
    let mut keys = Int32Builder::new();
    keys.append_value(0);
    let outer = DictionaryArray::new(keys.finish(), Arc::new(inner));
    let columns: Vec<(&str, ArrayRef)> = vec![("twice", Arc::new(outer))];
    let batch = RecordBatch::try_from_iter(columns).expect("one column");
    let error = encode(&batch).expect_err("a dictionary of dictionaries");
    assert!(
        error
            .to_string()
            .starts_with("this record batch cannot be sent to another process: ")
    );
    assert!(error.to_string().contains("twice"), "{error}");
}
