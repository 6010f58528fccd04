//! Kernels that take rows in the order of event time free rows that no result can need any more.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pointstamp_columnar::aggregate::Plan;
use pointstamp_columnar::as_of::AsOf;
use pointstamp_columnar::in_time::Terms;
use pointstamp_columnar::interval::Interval;
use pointstamp_columnar::join::{How, Side};
use pointstamp_columnar::kernel::Kernel;
use pointstamp_columnar::open_windows::OpenWindows;
use pointstamp_columnar::running::Running;
use pointstamp_columnar::runs::{Ends, Runs};
use pointstamp_columnar::window_join::{Kind, WindowJoin};
use pointstamp_columnar::windows::Layout;

fn schema() -> SchemaRef {
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        field("at", DataType::Int64),
        field("key", DataType::Utf8),
        field("value", DataType::Int64),
    ]))
}

fn terms() -> Terms {
    let schema = schema();
    let times = ["at", "at"];
    Terms::new(&schema, &schema, &["key"], times, How::Left, "_r", None)
        .expect("the columns are there")
}

fn layout(length: i64, every: i64) -> Layout {
    Layout {
        length,
        every,
        offset: 0,
    }
}

/// Gives ever new keys, each with a row of each time on each side: the number of results, and the most rows or states and keys
/// that were held.
fn most(kernel: &mut dyn Kernel, sides: &[Side]) -> (usize, (usize, usize)) {
    let (mut results, mut most) = (0, (0, 0));
    let mut count = |made: Vec<pointstamp_columnar::kernel::Made>| {
        results += made.iter().map(|made| made.rows.num_rows()).sum::<usize>();
    };
    for first in (0..60_000_i64).step_by(300) {
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values(
            (first..first + 300).map(|n| n / 10),
        ));
        let names = (first..first + 300).map(|n| format!("k{n}"));
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(names));
        let rows = RecordBatch::try_new(schema(), vec![Arc::clone(&times), names, times]);
        let rows = rows.expect("it is of the schema");
        for &side in sides {
            kernel
                .add(side, rows.clone(), 0)
                .expect("the times are right");
        }
        count(kernel.advance(Some(first / 10)).expect("nothing overflows"));
        let (held, keys) = kernel.size();
        most = (most.0.max(held), most.1.max(keys));
    }
    count(kernel.advance(None).expect("nothing overflows"));
    (results, most)
}

fn freed(mut kernel: impl Kernel, sides: &[Side], results: usize, bounds: (usize, usize)) {
    let (made, (held, keys)) = most(&mut kernel, sides);
    assert_eq!(made, results);
    assert!(
        held < bounds.0 && keys < bounds.1,
        "{held} held of {keys} keys"
    );
}

const BOTH: [Side; 2] = [Side::Left, Side::Right];
const FEW: (usize, usize) = (6000, 4000);

#[test]
fn rows_that_can_match_nothing_any_more() {
    let interval = Interval::new(&schema(), &schema(), terms(), (-5, 5));
    freed(interval.expect("it fits"), &BOTH, 60_000, FEW);
    let as_of = AsOf::new(&schema(), &schema(), terms(), Some(20), None);
    freed(as_of.expect("it fits"), &BOTH, 60_000, FEW);
    for (kind, results) in [
        (Kind::Aligned(layout(10, 10)), 60_000),
        (Kind::Aligned(layout(10, 5)), 120_000),
        (Kind::Sessions(5), 60_000),
    ] {
        let windows = WindowJoin::new(&schema(), &schema(), terms(), kind);
        freed(windows.expect("it fits"), &BOTH, results, FEW);
    }
}

#[test]
fn keys_that_are_silent_and_windows_that_have_closed() {
    let sum = [("value".to_owned(), "sum".to_owned())];
    let most = [("value".to_owned(), "max".to_owned())];
    let running = Running::new(&schema(), &["key"], &most, "at", Some(20));
    freed(running.expect("it fits"), &BOTH[..1], 60_000, (600, 2500));
    let plan = Plan::new(&schema(), &["key"], &sum).expect("the columns are there");
    let windows = OpenWindows::new(&schema(), plan, "at", layout(10, 5), None);
    freed(windows.expect("it fits"), &BOTH[..1], 120_000, FEW);
    let sessions = Runs::new(&schema(), &["key"], &sum, "at", Ends::Silence(5));
    freed(sessions.expect("it fits"), &BOTH[..1], 60_000, FEW);
}

#[test]
fn rows_that_a_frontier_leaves_behind_are_not_needed() {
    let schema = schema();
    let mut inner = Terms::new(
        &schema,
        &schema,
        &["key"],
        ["at", "at"],
        How::Inner,
        "_r",
        None,
    )
    .expect("the columns are there");
    let mut interval = Interval::new(&schema, &schema, inner.clone(), (-3, 5)).expect("it fits");
    assert_eq!(Kernel::needed(&mut interval, 100), Some(95));
    inner.how = How::Left;
    let mut interval = Interval::new(&schema, &schema, inner.clone(), (-3, 5)).expect("it fits");
    assert_eq!(Kernel::needed(&mut interval, 100), Some(90));
    let as_of = |within| AsOf::new(&schema, &schema, inner.clone(), within, None).expect("it fits");
    assert_eq!(Kernel::needed(&mut as_of(Some(20)), 100), Some(80));
    assert_eq!(Kernel::needed(&mut as_of(None), 100), None);
}
