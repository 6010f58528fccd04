//! Rows against a model of values: their order, their parts, columns of them, and rows read from bytes.

use super::values::{Value, ints, value};
use crate::terms;
use crate::{Cells, Cutter, Layout, Row, RowBuf};
use pointstamp_arrange::Rows;
use pointstamp_testkit::cases;
use proptest::prelude::*;

fn term(row: Row<'_>) -> Vec<u8> {
    let mut term = Vec::new();
    row.put_term(&mut term);
    term
}

fn whole(row: Row<'_>) -> Vec<u8> {
    let mut whole = Vec::new();
    row.put(&mut whole);
    whole
}

fn column(values: &[Value]) -> Cells {
    let mut cells = Cells::default();
    for value in values {
        cells.push(value.row().get());
    }
    cells
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn rows_sort_as_their_values_do(a in value(), b in value()) {
        let (row, other) = (a.row(), b.row());
        prop_assert_eq!(row.get().cmp(&other.get()), a.compare(&b));
        prop_assert_eq!(term(row.get()).cmp(&term(other.get())), a.compare(&b));
    }

    #[test]
    fn rows_of_integers_sort_as_their_terms_do(a in ints(), b in ints()) {
        let (row, other) = (a.row(), b.row());
        prop_assert_eq!(row.get().cmp(&other.get()), a.compare(&b));
        prop_assert_eq!(whole(row.get()), a.term());
    }

    #[test]
    fn a_prefix_never_contradicts_the_order(a in value(), b in value()) {
        let column = column(&[a, b]);
        let (row, other) = (column.get(0), column.get(1));
        let prefixes = (Cells::prefix(row), Cells::prefix(other));
        if let (Row::Ints(layout, _), Row::Ints(than, _)) = (row, other) && layout != than {
            return Ok(()); // they are never in one column as integers
        }
        if prefixes.0 != prefixes.1 {
            prop_assert_eq!(row.cmp(&other), prefixes.0.cmp(&prefixes.1));
        } else if column.is_exact() {
            prop_assert!(row == other);
        }
    }

    #[test]
    fn parts_of_a_tuple_are_the_rows_of_its_elements(values in prop::collection::vec(value(), 0..5)) {
        let tuple = Value::Tuple(values.clone()).row();
        let parts: Vec<RowBuf> = values.iter().map(Value::row).collect();
        let mut made = RowBuf::default();
        made.tuple(&parts);
        prop_assert_eq!(whole(made.get()), whole(tuple.get()));
        let mut cut = RowBuf::default();
        for (index, part) in parts.iter().enumerate() {
            prop_assert!(cut.cut(tuple.get(), index));
            prop_assert_eq!(whole(cut.get()), whole(part.get()));
            prop_assert!(cut.get().is(part.get()), "a row has one form");
        }
        prop_assert!(!cut.cut(tuple.get(), parts.len()));
        let mut cutter = Cutter::default();
        match (cutter.cut(tuple.get()), &parts[..]) {
            (Some((key, value)), [first, second]) => {
                prop_assert!(key.is(first.get()) && value.is(second.get()));
                let mut pair = RowBuf::default();
                prop_assert_eq!(whole(pair.pair(key, value)), whole(tuple.get()));
            }
            (found, parts) => prop_assert!(found.is_none() && parts.len() != 2),
        }
    }

    #[test]
    fn what_is_no_tuple_has_no_parts(value in value()) {
        if let Value::Tuple(_) = value {
            return Ok(());
        }
        prop_assert!(!RowBuf::default().cut(value.row().get(), 0));
        prop_assert!(Cutter::default().cut(value.row().get()).is_none());
    }

    #[test]
    fn columns_are_lists_of_rows(
        values in prop::collection::vec(prop_oneof![value(), ints()], 0..20),
        more in prop::collection::vec(ints(), 0..10),
        cut in (0..20_usize, 0..20_usize),
    ) {
        let mut cells = column(&values);
        let other = column(&more);
        let start = cut.0.min(more.len());
        let end = cut.1.clamp(start, more.len());
        cells.extend(&other, start..end);
        let model: Vec<_> = values.iter().chain(&more[start..end]).map(Value::row).collect();
        prop_assert_eq!(cells.len(), model.len());
        for (index, row) in model.iter().enumerate() {
            prop_assert_eq!(whole(cells.get(index)), whole(row.get()));
        }
        let mut bytes = Vec::new();
        cells.write(&mut bytes);
        let mut rest = &bytes[..];
        let read = Cells::read(&mut rest).expect("it was written");
        prop_assert!(rest.is_empty());
        prop_assert_eq!(read.len(), model.len());
        for index in 0..read.len() {
            prop_assert!(read.get(index).is(cells.get(index)));
        }
        cells.clear();
        prop_assert!(cells.is_empty());
    }

    #[test]
    fn a_seek_finds_the_first_row_that_is_not_less(
        mut values in prop::collection::vec(prop_oneof![value(), ints()], 0..20),
        sought in value(),
    ) {
        values.sort_by(Value::compare);
        let cells = column(&values);
        let expected = values.iter().position(|value| value.compare(&sought).is_ge());
        let found = cells.seek(0..cells.len(), sought.row().get());
        prop_assert_eq!(found, expected.unwrap_or(values.len()));
    }

    #[test]
    fn bytes_from_elsewhere_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Some(cells) = Cells::read(&mut &bytes[..]) {
            for row in (0..cells.len().min(10)).map(|index| cells.get(index)) {
                let _ = (row.truth(), row.real(), row.number().is_some());
                let _ = (RowBuf::default().cut(row, 0), Cutter::default().cut(row).is_some());
            }
        }
        let _ = (terms::atom(&bytes).is_some(), terms::atoms(&bytes).map(Iterator::count));
    }

    #[test]
    fn a_layout_is_that_of_one_value(value in ints(), word in any::<u64>()) {
        if let Row::Ints(layout, words) = value.row().get() {
            prop_assert!(layout.is_value());
            prop_assert_eq!(layout.width(), words.len());
            prop_assert_eq!(Layout::from_word(layout.word()), Some(layout));
            if let Value::Tuple(values) = &value {
                let elements = layout.elements().map(Iterator::count);
                prop_assert_eq!(elements, Some(values.len()));
            }
        }
        if let Some(layout) = Layout::from_word(word) {
            prop_assert!(layout == Layout::EMPTY || layout.is_value());
        }
    }
}

#[test]
fn a_tuple_without_an_end_has_no_parts() {
    let [tuple, zero] = [terms::tag::TUPLE, terms::tag::ZERO];
    for term in [
        &[tuple, zero, zero, 0xff, 0][..],
        &[tuple, zero, zero, 0],
        &[tuple, 0],
        &[tuple],
    ] {
        assert!(Cutter::default().cut(Row::Term(term)).is_none(), "{term:?}");
        assert!(!RowBuf::default().cut(Row::Term(term), 0), "{term:?}");
    }
}
