//! Kernels that are fed with rows in the order of event time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
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
use pointstamp_engine::error::BoxError;
use pointstamp_operators::columns::{InTime, Keeper, Ran, SideInput, placed, shared};
use pointstamp_operators::{Error, Typed};
use pointstamp_testkit::cases;
use proptest::prelude::*;

use crate::program::{
    Found, HOWS, Row, Sent, Shape, all, batch, rows_of, run, schema, sent, shapes,
};

type Cells = Vec<Option<i64>>;

/// The number of rows of an input whose times are made different from each other.
const MANY: i64 = 256;

/// Gives each row a time of its own, so that their order is unique.
fn apart(mut input: Vec<Sent>) -> Vec<Sent> {
    let rows = input.iter_mut().flat_map(|sent| &mut sent.rows);
    for (number, row) in (0..).zip(rows) {
        row.2 = row.2 * MANY + number % MANY;
    }
    input
}

fn in_order(input: &[Sent]) -> Vec<Row> {
    let mut rows: Vec<Row> = all(input).map(|(_, row)| *row).collect();
    rows.sort_by_key(|row| row.2);
    rows
}

fn terms(how: How, joined: Option<&str>) -> Terms {
    let schema = schema();
    let joined = joined.map(str::to_owned);
    Terms::new(&schema, &schema, &["k"], ["at", "at"], how, "_r", joined)
        .expect("the columns are there")
}

/// Runs a kernel on its inputs, and returns the results of all workers.
fn fed<K: Kernel + 'static>(
    shape: Shape,
    inputs: &[Vec<Sent>],
    kernel: impl Fn() -> K + Copy + Send + Sync + 'static,
) -> Vec<Found> {
    let build = |streams: &[Typed<RecordBatch>]| -> Result<Vec<Typed<RecordBatch>>, Error> {
        let made = InTime::new("fed", sides(streams), shared(move || Ok(kernel()))?, false)?;
        Ok(vec![made.build(None)])
    };
    run(shape, 1, inputs, build).swap_remove(0)
}

fn sides(streams: &[Typed<RecordBatch>]) -> Vec<SideInput> {
    let side = |rows: &Typed<RecordBatch>| SideInput {
        rows: rows.clone(),
        pact: placed(&[0], false),
        times: 2,
    };
    streams.iter().map(side).collect()
}

/// Returns the first columns of a result's rows, in order.
fn cells(found: &[Found], columns: usize) -> Vec<Cells> {
    let mut rows: Vec<Cells> = found
        .iter()
        .map(|(_, _, row)| row[..columns].to_vec())
        .collect();
    rows.sort();
    rows
}

/// Returns whether no row is later than the time in one of its columns; rows of mixed times may be.
fn tell_later(found: &[Found], column: usize) -> bool {
    let tells = |(_, time, row): &Found| {
        row[column].is_none_or(|at| time.last().is_some_and(|time| time <= at.unsigned_abs()))
    };
    found.iter().all(tells)
}

fn sorted(mut rows: Vec<Cells>) -> Vec<Cells> {
    rows.sort();
    rows
}

fn pair(left: Option<&Row>, right: Option<&Row>) -> Cells {
    let key = left.or(right).and_then(|row| row.0);
    let (ours, theirs) = (left, right);
    let of = |row: Option<&Row>| [row.map(|row| row.1), row.map(|row| row.2)];
    [vec![key], of(ours).to_vec(), of(theirs).to_vec()].concat()
}

/// Returns the number of a result's columns that come from the sides.
fn width(how: How) -> usize {
    if matches!(how, How::Semi | How::Anti) {
        3
    } else {
        5
    }
}

/// Returns the rows of a join of rows with one key that match.
fn matched(
    [left, right]: [&[Row]; 2],
    how: How,
    is_match: impl Fn(&Row, &Row) -> bool,
) -> Vec<Cells> {
    let is_pair =
        |one: &Row, other: &Row| one.0.is_some() && one.0 == other.0 && is_match(one, other);
    let is_alone = |one: &Row| !right.iter().any(|other| is_pair(one, other));
    if matches!(how, How::Semi | How::Anti) {
        let found = left
            .iter()
            .filter(|one| is_alone(one) == (how == How::Anti));
        return sorted(
            found
                .map(|one| pair(Some(one), None)[..width(how)].to_vec())
                .collect(),
        );
    }
    let mut pairs = Vec::new();
    for one in left {
        let others = right.iter().filter(|other| is_pair(one, other));
        pairs.extend(others.map(|other| pair(Some(one), Some(other))));
    }
    if matches!(how, How::Left | How::Full) {
        let alone = left.iter().filter(|one| is_alone(one));
        pairs.extend(alone.map(|one| pair(Some(one), None)));
    }
    if matches!(how, How::Right | How::Full) {
        let alone = right
            .iter()
            .filter(|other| !left.iter().any(|one| is_pair(one, other)));
        pairs.extend(alone.map(|other| pair(None, Some(other))));
    }
    sorted(pairs)
}

/// Returns the sessions of each key: the rows of each, in order; a gap of this length begins another session.
fn sessions(rows: &[Row], gap: i64) -> Vec<Vec<Row>> {
    let mut sessions: Vec<Vec<Row>> = Vec::new();
    let mut latest: BTreeMap<Option<i64>, usize> = BTreeMap::new();
    for row in rows {
        let open = latest.get(&row.0).copied();
        let open = open.filter(|&at| row.2 - sessions[at].last().map_or(0, |last| last.2) < gap);
        let at = open.unwrap_or_else(|| {
            sessions.push(Vec::new());
            sessions.len() - 1
        });
        sessions[at].push(*row);
        latest.insert(row.0, at);
    }
    sessions
}

fn functions(names: &[&str]) -> Vec<(String, String)> {
    let pairs = names
        .iter()
        .map(|name| ("v".to_owned(), (*name).to_owned()));
    pairs.collect()
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn rows_whose_times_are_close_are_paired(
        shape in shapes(),
        left in sent(1),
        right in sent(1),
        (lower, span) in (-9_i64..9, 0_i64..12),
        how in prop::sample::select(&HOWS[..]),
    ) {
        let upper = lower + span;
        let inputs = [left, right];
        let found = fed(shape, &inputs, move || {
            let terms = terms(how, Some("joined"));
            Interval::new(&schema(), &schema(), terms, (lower, upper)).expect("it has its columns")
        });
        let sides = [in_order(&inputs[0]), in_order(&inputs[1])];
        let near = |one: &Row, other: &Row| (lower..=upper).contains(&(other.2 - one.2));
        let expected = matched([&sides[0], &sides[1]], how, near);
        prop_assert_eq!(cells(&found, width(how)), expected);
        prop_assert!(tell_later(&found, width(how)));
    }

    #[test]
    fn rows_get_the_latest_of_the_other_side(
        shape in shapes(),
        left in sent(1),
        right in sent(1),
        within in prop::option::of(0_i64..5000),
        outer in any::<bool>(),
    ) {
        let inputs = [apart(left), apart(right)];
        let found = fed(shape, &inputs, move || {
            AsOf::new(&schema(), &schema(), terms(if outer { How::Left } else { How::Inner }, None), within, None)
                .expect("it has its columns")
        });
        let sides = [in_order(&inputs[0]), in_order(&inputs[1])];
        let latest = |one: &Row| {
            let mut before = sides[1].iter().rev();
            let latest = before.find(|other| other.0.is_some() && other.0 == one.0 && other.2 <= one.2);
            latest.filter(|other| within.is_none_or(|within| one.2 - other.2 <= within))
        };
        let rows = sides[0].iter().map(|one| (one, latest(one)));
        let rows = rows.filter(|(_, latest)| outer || latest.is_some());
        let expected = sorted(rows.map(|(one, latest)| pair(Some(one), latest)).collect());
        prop_assert_eq!(cells(&found, 5), expected);
        prop_assert!(tell_later(&found, 2));
    }

    #[test]
    fn rows_of_one_window_are_paired(
        shape in shapes(),
        left in sent(1),
        right in sent(1),
        length in 1_i64..15,
        how in prop::sample::select(&HOWS[..]),
    ) {
        let inputs = [left, right];
        let layout = Layout { length, every: length, offset: 0 };
        let found = fed(shape, &inputs, move || {
            let terms = terms(how, None);
            WindowJoin::new(&schema(), &schema(), terms, Kind::Aligned(layout)).expect("it has its columns")
        });
        let sides = [in_order(&inputs[0]), in_order(&inputs[1])];
        let together = |one: &Row, other: &Row| one.2 / length == other.2 / length;
        let expected = matched([&sides[0], &sides[1]], how, together);
        prop_assert_eq!(cells(&found, width(how)), expected);
        for (_, time, row) in &found {
            prop_assert_eq!(row[width(how) + 1], time.last().map(|last| last.cast_signed() + 1));
        }
    }

    #[test]
    fn rows_of_one_session_are_paired(
        shape in shapes(),
        left in sent(1),
        right in sent(1),
        gap in 1_i64..8,
        how in prop::sample::select(&HOWS[..]),
    ) {
        let inputs = [left, right];
        let found = fed(shape, &inputs, move || {
            let terms = terms(how, None);
            WindowJoin::new(&schema(), &schema(), terms, Kind::Sessions(gap)).expect("it has its columns")
        });
        let sides = [in_order(&inputs[0]), in_order(&inputs[1])];
        let mut rows = sides.concat();
        rows.retain(|row| row.0.is_some());
        rows.sort_by_key(|row| row.2);
        let mut expected = Vec::new();
        let mut expect = |rows: [&[Row]; 2], ends: [i64; 2]| {
            for cells in matched(rows, how, |_, _| true) {
                expected.push([cells, vec![Some(ends[0]), Some(ends[1] + gap)]].concat());
            }
        };
        // A row without a key is a session of its own.
        for row in sides[0].iter().filter(|row| row.0.is_none()) {
            expect([&[*row], &[]], [row.2, row.2]);
        }
        for row in sides[1].iter().filter(|row| row.0.is_none()) {
            expect([&[], &[*row]], [row.2, row.2]);
        }
        for session in sessions(&rows, gap) {
            let ends = [session[0].2, session[session.len() - 1].2];
            let of = |side: &[Row]| -> Vec<Row> {
                let own = side.iter().filter(|row| row.0 == session[0].0);
                own.filter(|row| (ends[0]..=ends[1]).contains(&row.2)).copied().collect()
            };
            expect([&of(&sides[0]), &of(&sides[1])], ends);
        }
        prop_assert_eq!(cells(&found, width(how) + 2), sorted(expected));
    }

    #[test]
    fn functions_by_key_follow_the_order_of_times(
        shape in shapes(), input in sent(1), ttl in prop::option::of(1_i64..4000)
    ) {
        let inputs = [apart(input)];
        let made = |names: &'static [&'static str]| fed(shape, &inputs, move || {
            Running::new(&schema(), &["k"], &functions(names), "at", ttl).expect("it has its columns")
        });
        // A key begins anew after a time to live as a session does.
        let runs = sessions(&in_order(&inputs[0]), ttl.unwrap_or(i64::MAX));
        let (mut all, mut firsts) = (Vec::new(), Vec::new());
        for run in runs {
            let (mut sum, mut most) = (0, i64::MIN);
            for &(key, value, at) in &run {
                (sum, most) = (sum + value, most.max(value));
                all.push(vec![key, Some(value), Some(at), Some(sum), Some(most)]);
            }
            firsts.push(vec![run[0].0, Some(run[0].1), Some(run[0].2)]);
        }
        let found = made(&["sum", "max"]);
        prop_assert_eq!(cells(&found, 5), sorted(all));
        prop_assert!(tell_later(&found, 2));
        let found = made(&[]);
        prop_assert_eq!(cells(&found, 3), sorted(firsts));
        prop_assert!(tell_later(&found, 2));
    }

    #[test]
    fn windows_that_follow_the_rows_of_a_key_end_after_silence(
        shape in shapes(), input in sent(1), gap in 1_i64..12
    ) {
        let inputs = [input];
        let found = fed(shape, &inputs, move || {
            let ends = Ends::Silence(gap);
            Runs::new(&schema(), &["k"], &functions(&["sum", "count"]), "at", ends)
                .expect("it has its columns")
        });
        let sessions = sessions(&in_order(&inputs[0]), gap).into_iter();
        let expected = sessions.map(|rows| {
            let sum = rows.iter().map(|row| row.1).sum();
            let ends = [rows[0].2, rows[rows.len() - 1].2 + gap];
            vec![rows[0].0, Some(ends[0]), Some(ends[1]), Some(sum), i64::try_from(rows.len()).ok()]
        });
        prop_assert_eq!(cells(&found, 5), sorted(expected.collect()));
        for (_, time, row) in &found {
            prop_assert_eq!(row[2], time.last().map(|last| last.cast_signed() + 1));
        }
    }

    #[test]
    fn windows_of_a_number_of_rows_follow_the_order_of_times(
        shape in shapes(), input in sent(1), rows in 1_u64..4
    ) {
        let inputs = [apart(input)];
        let found = fed(shape, &inputs, move || {
            let ends = Ends::Rows(rows);
            Runs::new(&schema(), &["k"], &functions(&["sum", "count"]), "at", ends)
                .expect("it has its columns")
        });
        let mut keys: BTreeMap<Option<i64>, Vec<i64>> = BTreeMap::new();
        for (key, value, _) in in_order(&inputs[0]) {
            keys.entry(key).or_default().push(value);
        }
        let mut expected = Vec::new();
        for (key, values) in keys {
            for window in values.chunks(usize::try_from(rows).expect("it is small")) {
                expected.push(vec![key, Some(window.iter().sum()), i64::try_from(window.len()).ok()]);
            }
        }
        let sums = found.iter().map(|(_, _, row)| vec![row[0], row[3], row[4]]);
        prop_assert_eq!(sorted(sums.collect()), sorted(expected));
        // On a worker all that is left at the end is sent at one time, wherever its keys are.
        let is_left = |row: &Cells| row[4].is_some_and(|count| count.unsigned_abs() < rows);
        let left = found.iter().filter(|(_, _, row)| is_left(row));
        let times: BTreeSet<_> = left.map(|(worker, time, _)| (worker, time)).collect();
        let workers: BTreeSet<_> = times.iter().map(|(worker, _)| worker).collect();
        prop_assert_eq!(times.len(), workers.len());
    }

    #[test]
    fn windows_tell_early_results_of_the_keys_that_have_changed(
        shape in shapes(), input in sent(1), length in 2_i64..20, early in 1_i64..6
    ) {
        let inputs = [input];
        let layout = Layout { length, every: length, offset: 0 };
        let found = fed(shape, &inputs, move || {
            let plan = Plan::new(&schema(), &["k"], &functions(&["sum"])).expect("the columns are there");
            OpenWindows::new(&schema(), plan, "at", layout, Some(early)).expect("it has its columns")
        });
        let rows = in_order(&inputs[0]);
        let sum = |key: Option<i64>, from: i64, until: i64| {
            let own = rows.iter().filter(|row| row.0 == key && (from..until).contains(&row.2));
            own.map(|row| row.1).sum::<i64>()
        };
        let mut expected = Vec::new();
        for &(key, _, at) in &rows {
            let start = at / length * length;
            let end = start + length;
            // The tick after the row, unless the window is final by then.
            let tick = (at / early + 1) * early;
            if tick < end {
                expected.push((tick - 1, vec![key, Some(start), Some(end), Some(sum(key, start, tick))]));
            }
            expected.push((end - 1, vec![key, Some(start), Some(end), Some(sum(key, start, end))]));
        }
        expected.sort();
        expected.dedup();
        let found = found.iter().map(|(_, time, row)| {
            (time.last().expect("one coordinate").cast_signed(), row.clone())
        });
        let mut found: Vec<_> = found.collect();
        found.sort();
        prop_assert_eq!(found, expected);
    }
}

/// Records its calls, as a state in a host does.
struct Notes {
    begins: u64,
    ran: Arc<Mutex<Vec<Ran>>>,
}

impl Keeper for Notes {
    fn begins(&self) -> u64 {
        self.begins
    }

    fn ran(&mut self, ran: Ran) -> Result<u64, BoxError> {
        self.ran.lock().expect("no test panics with it").push(ran);
        Ok(ran.needed)
    }
}

#[test]
fn an_operator_with_a_restored_state_leaves_out_the_rows_that_are_in_it() {
    let running = || {
        Running::new(&schema(), &["k"], &functions(&["sum"]), "at", None)
            .expect("it has its columns")
    };
    let rows: Vec<Row> = (0..40).map(|n| (Some(n % 3), n, n)).collect();
    let mut before = running();
    Kernel::add(&mut before, Side::Left, batch(&rows), 0).expect("the times are right");
    let made = Kernel::advance(&mut before, Some(25)).expect("nothing overflows");
    let mut expected: Vec<Cells> = made.iter().flat_map(|made| rows_of(&made.rows)).collect();
    assert_eq!(expected.len(), 25);
    let kept = Kernel::kept(&before).expect("the rows are there");
    let sent = Sent {
        worker: 0,
        time: vec![0],
        rows: rows.clone(),
        steps: 2,
    };
    let ran: Arc<Mutex<Vec<Ran>>> = Arc::default();
    let made = run((1, 1), 1, &[vec![sent]], |streams| {
        let kernel = shared(move || Ok(running()))?;
        for (kind, rows) in kept.iter().enumerate() {
            kernel.lock().put(kind, rows.clone())?;
        }
        let made = InTime::new("restored", sides(streams), kernel, true)?;
        let ran = Arc::clone(&ran);
        Ok(vec![made.build(Some(Box::new(Notes { begins: 25, ran })))])
    });
    expected.extend(cells(&made[0], 4));
    let whole = {
        let mut whole = running();
        Kernel::add(&mut whole, Side::Left, batch(&rows), 0).expect("the times are right");
        let made = Kernel::advance(&mut whole, None).expect("nothing overflows");
        made.iter().flat_map(|made| rows_of(&made.rows)).collect()
    };
    assert_eq!(sorted(expected), sorted(whole));
    let ran = ran.lock().expect("no test panics with it");
    assert_eq!(ran.iter().map(|ran| ran.left_out).sum::<usize>(), 25);
    assert_eq!(ran.iter().map(|ran| ran.batches).sum::<usize>(), 1);
    let stands = ran.iter().rev().find(|ran| ran.moved);
    assert!(stands.is_some_and(|ran| ran.until.is_none()));
}
