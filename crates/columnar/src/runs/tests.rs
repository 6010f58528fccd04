//! Tests of the state that closed windows leave.

use arrow_array::StringArray;

use super::*;

fn rows(first: i64) -> RecordBatch {
    let times = Int64Array::from_iter_values((0..100).map(|n| first + n / 10));
    let keys = Int64Array::from_iter_values((0..100).map(|n| first * 10 + n));
    RecordBatch::try_from_iter([
        ("at", Arc::new(times) as ArrayRef),
        ("key", Arc::new(keys) as ArrayRef),
    ])
    .unwrap()
}

#[test]
fn what_has_closed_makes_room() {
    for (ends, most) in [(Ends::Silence(20), 3000), (Ends::Rows(1), 1200)] {
        let schema = rows(0).schema();
        let count = [("key".to_owned(), "count".to_owned())];
        let mut runs = Runs::new(&schema, &["key"], &count, "at", ends).unwrap();
        let (mut results, mut kept) = (0, 0);
        for first in (0..20_000).step_by(10) {
            runs.update(rows(first), 0).unwrap();
            runs.advance::<Error>(Some(first), |_, rows| {
                results += rows.num_rows();
                Ok(())
            })
            .unwrap();
            kept = kept.max(runs.held());
        }
        runs.advance::<Error>(None, |_, rows| {
            results += rows.num_rows();
            Ok(())
        })
        .unwrap();
        assert_eq!(results, 200_000);
        assert!(kept < most, "{kept} windows are kept at once");
        assert_eq!(runs.next_instant(), None);
    }
}

#[test]
fn values_of_few_windows_that_have_closed_make_room() {
    let batch = |key: i64, at: i64, rows: usize| {
        let column = |value| Arc::new(Int64Array::from(vec![value; rows])) as ArrayRef;
        RecordBatch::try_from_iter([("at", column(at)), ("key", column(key))]).unwrap()
    };
    let schema = batch(0, 0, 1).schema();
    for (ends, open) in [(Ends::Silence(5), 3), (Ends::Rows(200), 0)] {
        for (function, keeps) in [("collect", true), ("count", false)] {
            let named = [("at".to_owned(), function.to_owned())];
            let mut runs = Runs::new(&schema, &["key"], &named, "at", ends).unwrap();
            let (mut sizes, mut most) = (Vec::new(), 0);
            let mut advance = |runs: &mut Runs, frontier| {
                runs.advance::<Error>(frontier, |_, rows| {
                    let values = rows.column(3);
                    let of_row = |row| match values.as_list_opt::<i32>() {
                        Some(lists) => {
                            let list = lists.value(row);
                            let values = list.as_primitive::<Int64Type>().values();
                            assert!(values.is_sorted(), "a list in another order than its rows");
                            values.len()
                        }
                        None => {
                            usize::try_from(values.as_primitive::<Int64Type>().value(row)).unwrap()
                        }
                    };
                    sizes.extend((0..rows.num_rows()).map(of_row));
                    Ok(())
                })
                .unwrap();
            };
            // One session of many rows stays open for long, while others come and end.
            for round in 0..500 {
                let at = round * 10;
                runs.update(batch(1, at, 200), 0).unwrap();
                if open > 0 && round < 50 {
                    for near in [at, at + 4, at + 8] {
                        runs.update(batch(0, near, 100), 0).unwrap();
                    }
                }
                advance(&mut runs, Some(at + 9));
                assert!(runs.windows.len() <= FEW);
                let bound = 2 * runs.open_rows + 1024;
                most = most.max(runs.rows.saturating_sub(bound));
            }
            advance(&mut runs, None);
            let all: usize = sizes.iter().sum();
            let long = if open > 0 { 50 * 300 } else { 0 };
            assert_eq!(all, 500 * 200 + long);
            assert_eq!(sizes.contains(&long), open > 0, "{sizes:?}");
            assert_eq!(most == 0, keeps, "{most} rows too many");
        }
    }
}

#[test]
fn values_of_few_wide_rows_that_have_closed_make_room() {
    let batch = |at: i64| {
        let texts = StringArray::from(vec!["x".repeat(1 << 18)]);
        let number = || Arc::new(Int64Array::from(vec![at])) as ArrayRef;
        let columns = [
            ("at", number()),
            ("key", number()),
            ("text", Arc::new(texts) as ArrayRef),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let schema = batch(0).schema();
    let list = [("text".to_owned(), "collect".to_owned())];
    for ends in [Ends::Silence(5), Ends::Rows(1)] {
        let mut runs = Runs::new(&schema, &["key"], &list, "at", ends).unwrap();
        let (mut results, mut most) = (0, 0);
        for round in 0..200 {
            runs.update(batch(round * 10), 0).unwrap();
            runs.advance::<Error>(Some(round * 10 + 9), |_, rows| {
                results += rows.num_rows();
                Ok(())
            })
            .unwrap();
            most = most.max(runs.rows);
        }
        assert_eq!(results, 200);
        assert!(most < 10, "{most} rows of 256 KiB are kept at once");
    }
}

#[test]
fn the_last_time_of_all_is_one_that_windows_take() {
    const LAST: i64 = i64::MAX;
    let times = Int64Array::from(vec![LAST - 3, LAST]);
    let keys = Int64Array::from(vec![1, 1]);
    let rows = RecordBatch::try_from_iter([
        ("at", Arc::new(times) as ArrayRef),
        ("key", Arc::new(keys) as ArrayRef),
    ])
    .unwrap();
    let count = [("key".to_owned(), "count".to_owned())];
    let ends = Ends::Silence(10);
    let mut runs = Runs::new(&rows.schema(), &["key"], &count, "at", ends).unwrap();
    runs.update(rows, 0).unwrap();
    let mut sent = Vec::new();
    for frontier in [Some(LAST), None] {
        runs.advance::<Error>(frontier, |instant, rows| {
            let counts = rows.column(3).as_primitive::<Int64Type>();
            sent.push((frontier, instant, counts.value(0)));
            Ok(())
        })
        .unwrap();
        // Results that are sent next are not before a row that is still possible.
        assert!(runs.next_instant().is_none_or(|next| next == LAST));
    }
    assert_eq!(sent, [(None, LAST, 2)]);
}
