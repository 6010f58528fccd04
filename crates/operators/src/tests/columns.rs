//! Reductions of values of columns, in which nulls are skipped and NaN is the greatest number, and of parts of tuples.

use std::num::NonZeroU128;

use pointstamp_arrange::{Lists, Reducer as _, Rows};
use pointstamp_rows::{Cells, Row, RowBuf};
use pointstamp_testkit::cases;
use proptest::prelude::*;

use crate::collections::{Aggregate, Reduction, reducer};
use crate::entry::program::no_exotic;

/// A value of a column of floats. Quarters are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cell {
    Null,
    NaN,
    Quarters(i8),
}

impl Cell {
    fn row(self) -> RowBuf {
        let mut row = RowBuf::default();
        match self {
            Cell::Null => row.copy(Row::UNIT),
            Cell::NaN => {
                row.float(f64::NAN);
            }
            Cell::Quarters(value) if value % 4 == 0 => {
                row.int(i64::from(value / 4)); // as rows of columns hold floats that integers equal
            }
            Cell::Quarters(value) => {
                row.float(f64::from(value) / 4.0);
            }
        }
        row
    }
}

fn cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        2 => Just(Cell::Null),
        1 => Just(Cell::NaN),
        5 => (-9..9_i8).prop_map(Cell::Quarters),
    ]
}

/// The results of a reduction of one key's values, each with its count.
fn reduced(reduction: Reduction, values: &[RowBuf]) -> Vec<(RowBuf, i64)> {
    let mut sorted: Vec<&RowBuf> = values.iter().collect();
    sorted.sort_by(|a, b| a.get().cmp(&b.get()));
    let (mut inputs, mut outputs) = (Lists::default(), Lists::default());
    for same in sorted.chunk_by(|a, b| a.get() == b.get()) {
        inputs.push(same[0].get(), i64::try_from(same.len()).unwrap());
    }
    inputs.end();
    let mut keys = Cells::default();
    keys.push(Row::UNIT);
    let (mut reducer, _) = reducer(reduction, &no_exotic(), "reduce");
    reducer.reduce(&keys, &inputs, &mut outputs).unwrap();
    assert_eq!(outputs.len(), 1, "a list for each key");
    outputs
        .list(0)
        .map(|(row, count)| (RowBuf::of(row), count))
        .collect()
}

/// The one result of a reduction as a column holds it; nothing where there is none.
fn one(reduction: Reduction, values: &[Cell]) -> Option<Cell> {
    let rows: Vec<_> = values.iter().map(|cell| cell.row()).collect();
    let found = reduced(reduction, &rows);
    assert!(found.len() <= 1 && found.iter().all(|(_, count)| *count == 1));
    found.first().map(|(row, _)| read(row.get()))
}

fn read(row: Row<'_>) -> Cell {
    match row.number().map(|number| number.float()) {
        None => {
            assert!(row.is_none());
            Cell::Null
        }
        Some(number) if number.is_nan() => Cell::NaN,
        #[allow(clippy::cast_possible_truncation, reason = "it is small")]
        Some(number) => Cell::Quarters((number * 4.0) as i8),
    }
}

fn of(aggregate: Aggregate) -> Reduction {
    Reduction::OfColumns(aggregate, 1)
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn aggregates_of_a_column(values in prop::collection::vec(cell(), 1..8)) {
        let known: Vec<i8> = values.iter().filter_map(|cell| match cell {
            Cell::Quarters(value) => Some(*value),
            _ => None,
        }).collect();
        let nan = values.contains(&Cell::NaN);
        let nulls = !values.iter().any(|cell| *cell != Cell::Null);
        let extreme = |found: Option<&i8>| match found {
            Some(value) => Cell::Quarters(*value),
            None if nan => Cell::NaN,
            None => Cell::Null,
        };
        let greatest = if nan { Cell::NaN } else { extreme(known.iter().max()) };
        prop_assert_eq!(one(of(Aggregate::Min), &values), Some(extreme(known.iter().min())));
        prop_assert_eq!(one(of(Aggregate::Max), &values), Some(greatest));
        let sum = if nan { Cell::NaN } else if nulls { Cell::Null } else {
            Cell::Quarters(known.iter().sum())
        };
        let sums = || Aggregate::Sum { floats: true };
        prop_assert_eq!(one(of(sums()), &values), Some(sum));
    }

    #[test]
    fn the_greatest_of_a_column_have_nan_first_and_nulls_last(
        values in prop::collection::vec(cell(), 1..8),
        count in 1..5_u128,
    ) {
        let rows: Vec<_> = values.iter().map(|cell| cell.row()).collect();
        let top = Reduction::TopK(NonZeroU128::new(count).unwrap());
        let mut found = Vec::new();
        for (row, times) in reduced(top, &rows) {
            found.extend(std::iter::repeat_n(read(row.get()), usize::try_from(times).unwrap()));
        }
        let mut expected = values.clone();
        let rank = |cell: &Cell| match cell {
            Cell::Null => (0, 0),
            Cell::Quarters(value) => (1, *value),
            Cell::NaN => (2, 0),
        };
        expected.sort_by_key(rank);
        expected.reverse();
        expected.truncate(usize::try_from(count).unwrap());
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn several_aggregates_of_parts_of_tuples(
        values in prop::collection::vec((cell(), cell()), 1..8),
    ) {
        let known = |part: fn(&(Cell, Cell)) -> Cell| values.iter().map(part).filter(|cell| *cell != Cell::Null);
        let second = known(|pair| pair.1).count();
        let rows: Vec<_> = values.iter().map(|(a, b)| {
            let mut row = RowBuf::default();
            row.tuple(&[a.row(), b.row()]);
            row
        }).collect();
        let several = vec![(Aggregate::Count, 1), (Aggregate::Count, 0), (Aggregate::Sum { floats: true }, 0)];
        let found = reduced(Reduction::Several(several), &rows);
        prop_assert_eq!(found.len(), 1);
        let (mut parts, mut part) = (Vec::new(), RowBuf::default());
        while part.cut(found[0].0.get(), parts.len()) {
            parts.push(read(part.get()));
        }
        let count = |count: usize| Cell::Quarters(i8::try_from(4 * count).unwrap());
        let first: Vec<_> = known(|pair| pair.0).collect();
        let sum = match first.iter().try_fold(0, |sum, cell| match cell {
            Cell::Quarters(value) => Some(sum + value),
            _ => None,
        }) {
            _ if first.is_empty() => Cell::Null,
            Some(sum) => Cell::Quarters(sum),
            None => Cell::NaN,
        };
        prop_assert_eq!(parts, [count(second), count(first.len()), sum]);
    }
}

#[test]
fn means_of_floats_stay_among_the_values() {
    let most = |value: f64| RowBuf::of(RowBuf::default().float(value));
    let mean = Reduction::Mean { floats: true };
    let found = reduced(
        mean,
        &[most(f64::MAX), most(f64::MAX / 2.0), most(f64::MAX)],
    );
    let found = found[0].0.get().number().unwrap().float();
    assert!(
        found.is_finite() && f64::MAX / 2.0 < found && found < f64::MAX,
        "{found}"
    );
}

#[test]
fn integers_that_add_up_beyond_64_bits_are_the_hosts() {
    let row = |value| RowBuf::of(RowBuf::default().int(value));
    let values = [row(i64::MAX), row(1)];
    let (mut inputs, mut outputs) = (Lists::default(), Lists::default());
    for value in [&values[1], &values[0]] {
        inputs.push(value.get(), 1);
    }
    inputs.end();
    let mut keys = Cells::default();
    keys.push(Row::UNIT);
    let (mut sum, _) = reducer(Reduction::Sum { floats: false }, &no_exotic(), "sum");
    assert!(
        sum.reduce(&keys, &inputs, &mut outputs).is_err(),
        "the host is asked"
    );
    let found = reduced(Reduction::Sum { floats: false }, &[row(i64::MAX), row(-1)]);
    assert_eq!(
        found[0].0.get().number().map(|number| number.float()),
        Some(9.223_372_036_854_776e18)
    );
}

/// A value whose count is negative is not there.
#[test]
fn values_that_are_taken_away_are_not_there() {
    let (one, nan) = (Cell::Quarters(4).row(), Cell::NaN.row());
    for (aggregate, count, expected) in [
        (Aggregate::Min, 1, Cell::Quarters(4)),
        (Aggregate::Max, 1, Cell::NaN),
        (Aggregate::Min, -1, Cell::NaN),
        (Aggregate::Max, -1, Cell::NaN),
    ] {
        let (mut inputs, mut outputs) = (Lists::default(), Lists::default());
        inputs.push(one.get(), count);
        inputs.push(nan.get(), 1);
        inputs.end();
        let mut keys = Cells::default();
        keys.push(Row::UNIT);
        let (mut reducer, _) = reducer(of(aggregate), &no_exotic(), "reduce");
        reducer.reduce(&keys, &inputs, &mut outputs).unwrap();
        let found: Vec<_> = outputs.list(0).map(|(row, _)| read(row)).collect();
        assert_eq!(found, [expected], "{aggregate:?} beside {count} times 1");
    }
}
