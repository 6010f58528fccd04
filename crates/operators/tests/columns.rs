//! Dataflows of collections of columns, against the same on rows and against recomputation.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pointstamp_engine::error::{BoxError, Error as EngineError};
use pointstamp_engine::execute::execute;
use pointstamp_engine::operators::{Event, Input, capture};
use pointstamp_engine::scope::Scope;
use pointstamp_operators::collections::columns::{self, PlainColumns};
use pointstamp_operators::collections::{self, Builder, By, Updates};
use pointstamp_operators::{Batch, Content, Error, Typed};
use pointstamp_order::Point;
use pointstamp_progress::Mode;
use pointstamp_rows::RowBuf;
use pointstamp_rows::expressions::{Expr, Op, Relation};
use pointstamp_testkit::cases;
use proptest::collection::vec;
use proptest::prelude::*;

/// A row of a number and a word, its time, and its diff.
type Change = ((i64, Option<String>), u64, i64);

/// The contents of a collection: how often each row is there, by time.
type Contents = BTreeMap<(u64, Vec<Option<i64>>), i64>;

fn schema() -> SchemaRef {
    let number = Field::new("number", DataType::Int64, true);
    let word = Field::new("word", DataType::Utf8, true);
    Schema::new(vec![number, word]).into()
}

fn batch(changes: &[Change]) -> RecordBatch {
    let numbers: Int64Array = changes.iter().map(|((number, _), ..)| *number).collect();
    let words: StringArray = changes.iter().map(|((_, word), ..)| word.clone()).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(words)];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// The changes as updates of columns, in a message at time 0.
fn of_columns(changes: &[Change]) -> Updates {
    let columns = PlainColumns::of(&batch(changes)).unwrap();
    let diffs = changes.iter().map(|(_, _, diff)| *diff).collect();
    let times = changes.iter().map(|(_, time, _)| *time).collect();
    Updates::of_columns(columns, diffs, times, 1)
}

/// The same as updates of rows.
fn of_rows(changes: &[Change]) -> Updates {
    let (updates, mut builder) = (of_columns(changes), Builder::default());
    let message = Point::minimum(1);
    for update in updates.iter() {
        builder.push(update.row, &update.time(&message), update.diff);
    }
    builder.finish(&message)
}

fn column(name: &str) -> Expr {
    Expr::Column(name.into())
}

fn int(value: i64) -> Arc<Expr> {
    let mut row = RowBuf::default();
    row.int(value);
    Arc::new(Expr::Constant(Arc::new(row)))
}

fn binary(op: Op, a: Expr, b: Arc<Expr>) -> Expr {
    Expr::Binary(op, Arc::new(a), b)
}

/// Returns an error as the engine wraps a host's.
fn refused(cause: impl Into<BoxError>) -> EngineError {
    EngineError::Host {
        cause: cause.into(),
    }
}

/// Runs a program on each worker with the worker's share of the updates; returns the updates of the result.
/// The columns of its result are those that [`select_and_filter`] selects.
fn run(
    workers: usize,
    shares: &[Vec<Updates>],
    program: impl Fn(&Typed<Updates>) -> Result<Typed<Updates>, Error> + Sync,
) -> Result<Contents, BoxError> {
    let found = execute(workers, Mode::Demand, |worker| {
        let (input, out) = (Input::<Batch>::new(), Rc::new(RefCell::new(Vec::new())));
        worker.dataflow("columns", 1, |scope| {
            let stream = Typed::assume(input.attach(scope)?);
            let made = program(&stream).map_err(refused)?;
            let batches = columns::updates(&made, &selected()).map_err(refused)?;
            let out = Rc::clone(&out);
            capture(batches.stream(), move |event| {
                if let Event::Messages(_, batch) = event {
                    out.borrow_mut().push(RecordBatch::from_batch(batch)?);
                }
                Ok(())
            })
        })?;
        for updates in &shares[worker.index()] {
            let sent = input.send_now(Batch::Updates(updates.clone()));
            sent.map_err(|error| refused(error.into_cause()))?;
        }
        input.close();
        worker.run()?;
        Ok(out.take())
    });
    let found = found.map_err(|failure| BoxError::from(failure.error))?;
    let mut contents = Contents::new();
    for batch in found.iter().flatten() {
        let [rows @ .., times, diffs] = batch.columns() else {
            return Err("no columns".into());
        };
        for index in 0..batch.num_rows() {
            let row = rows.iter().map(|column| {
                let values = column.as_primitive_opt::<Int64Type>()?;
                (!values.is_null(index)).then(|| values.value(index))
            });
            let time = times.as_primitive::<UInt64Type>().value(index);
            let diff = diffs.as_primitive::<Int64Type>().value(index);
            *contents.entry((time, row.collect())).or_default() += diff;
        }
    }
    contents.retain(|_, diff| *diff != 0);
    Ok(contents)
}

fn change() -> impl Strategy<Value = Change> {
    let word = prop::option::of(prop::sample::select(vec!["", "a", "b\0"]));
    let row = (-3..4_i64, word.prop_map(|word| word.map(str::to_owned)));
    (row, 0..3_u64, prop::sample::select(vec![-1_i64, 1, 2]))
}

/// The rows with a number above -2 and a word, as the number and its square.
fn select_and_filter(stream: &Typed<Updates>) -> Result<Typed<Updates>, Error> {
    let above = binary(Op::Compare(Relation::Gt), column("number"), int(-2));
    let word = Expr::Not(Arc::new(Expr::IsNull(Arc::new(column("word")))));
    let kept = columns::keep(stream, &schema(), &binary(Op::And, above, Arc::new(word)))?;
    columns::select(&kept, &schema(), wanted())
}

fn wanted() -> [(String, Expr); 2] {
    let square = binary(Op::Mul, column("number"), Arc::new(column("number")));
    [
        ("number".to_owned(), column("number")),
        ("square".to_owned(), square),
    ]
}

fn selected() -> SchemaRef {
    columns::select_schema(&schema(), wanted()).unwrap()
}

fn recomputed(changes: &[Change]) -> Contents {
    let mut contents = Contents::new();
    for ((number, word), time, diff) in changes {
        if *number > -2 && word.is_some() {
            let row = vec![Some(*number), Some(number * number)];
            *contents.entry((*time, row)).or_default() += diff;
        }
    }
    contents.retain(|_, diff| *diff != 0);
    contents
}

/// A program that makes columns of a collection.
type Program = fn(&Typed<Updates>) -> Result<Typed<Updates>, Error>;

const PROGRAMS: [Program; 3] = [
    select_and_filter,
    |stream| {
        // Through an arrangement, which keeps rows.
        let made = select_and_filter(stream)?;
        collections::arrange(&made, By::Record, "arrange")?.updates()
    },
    |stream| {
        // Into a scope and out of it, negated twice, and added up.
        let made = select_and_filter(stream)?;
        let inner: Scope<Batch> = stream.scope().nested("inner", 1)?;
        let entered = Typed::assume(inner.enter(made.stream())?);
        let negated = collections::negate(&collections::negate(&entered)?)?;
        let left = Typed::assume(inner.leave(negated.stream())?);
        inner.close();
        collections::consolidate(&left)
    },
];

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn columns_give_what_rows_give(
        shares in vec(vec(vec(change(), 250..300), 0..3), 4), workers in 1..5_usize, program in 0..PROGRAMS.len(),
    ) {
        let program = PROGRAMS[program];
        let all: Vec<Change> = shares[..workers].concat().concat();
        let expected = recomputed(&all);
        for form in [of_columns, of_rows] {
            let given: Vec<Vec<Updates>> = shares.iter()
                .map(|share| share.iter().map(|changes| form(changes)).collect())
                .collect();
            prop_assert_eq!(run(workers, &given, program).unwrap(), expected.clone());
        }
    }
}

fn squares(number: i64, rows: usize) -> Result<Contents, BoxError> {
    let change = ((number, Some("a".to_owned())), 0, 1);
    let updates = of_columns(&vec![change; rows]);
    run(1, &[vec![updates]], select_and_filter)
}

#[test]
fn an_expression_without_a_result_fails_as_on_rows() {
    assert!(squares(3, 300).is_ok());
    for rows in [1, 300] {
        let failed = squares(i64::MAX, rows).unwrap_err().to_string();
        assert!(failed.contains("no result"), "{failed}");
    }
}

#[test]
fn updates_are_collected_again() {
    let changes: Vec<Change> = (0..600_i64)
        .map(|index| {
            let row = (index % 7, Some("a".to_owned()));
            (row, index.unsigned_abs() % 3, index % 3 - 1)
        })
        .collect();
    let again = run(2, &[vec![of_columns(&changes)], vec![]], |stream| {
        let batches = columns::updates(&select_and_filter(stream)?, &selected())?;
        let schema = columns::with_changes(&selected(), Some(1));
        columns::collect(&batches, &schema, true)
    });
    assert_eq!(again.unwrap(), recomputed(&changes));
}
