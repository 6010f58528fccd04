//! Records and updates that operators refuse: with the error, the record, and the operator that it is of.

use std::rc::Rc;

use pointstamp_arrange::{Error as KernelError, Lists, Overflow};
use pointstamp_engine::error::{BoxError, Error as EngineError, UserResult};
use pointstamp_engine::execute::execute;
use pointstamp_engine::operators::Input;
use pointstamp_engine::pact::Pact;
use pointstamp_order::{Point, Summary};
use pointstamp_progress::Mode;
use pointstamp_rows::expressions::{Expr, Failure, Nulls, Op, Projection, Source};
use pointstamp_rows::terms::{self, tag};
use pointstamp_rows::{Cells, RowBuf};
use std::sync::Arc;

use super::support::Place;
use crate::batch::{Batch, Content};
use crate::collections::{
    Arrangement, Builder, By, Combine, Exotic, Form, JoinResult, Reducer, Reduction, Total,
    Updates, Variable, arrange, check_pairs, consolidate, filter, negate, project, reducer,
};
use crate::entry::program::{ascending, no_exotic, part, swap, tuple};
use crate::entry::running::{collect, ended};
use crate::entry::value::Value;
use crate::{Error, Kind, Typed, Unary};

/// The dataflow that is built of an input.
type Build = dyn Fn(&Typed<Updates>) -> Result<Typed<Updates>, Error> + Sync;

/// Runs a dataflow of one input, to which each worker sends a batch; the operator's name and the error with which it fails.
fn failure(workers: usize, rows: &[(RowBuf, i64)], build: &Build) -> (String, BoxError) {
    let ran = execute::<Batch, ()>(workers, Mode::Demand, |worker| {
        let input = Input::new();
        worker.dataflow("refused", 1, |scope| {
            let updates = Typed::assume(input.attach(scope)?);
            collect(&build(&updates).map_err(ended)?, |_| ())
        })?;
        let (mut builder, at) = (Builder::default(), Point::from([0]));
        for (row, diff) in rows {
            builder.push(row.get(), &at, *diff);
        }
        input
            .send(Batch::Updates(builder.finish(&at)))
            .map_err(|error| match error.into_cause().downcast() {
                Ok(error) => *error,
                Err(error) => worker.fail(error),
            })?;
        input.close();
        worker.run()
    });
    found(ran.expect_err("it is refused").error)
}

/// The operator and the cause of an error.
fn found(error: EngineError) -> (String, BoxError) {
    match error {
        EngineError::Operator { operator, cause } | EngineError::Route { operator, cause } => {
            (operator, cause)
        }
        EngineError::Fatal(shared) => found(Arc::into_inner(shared).expect("it is not shared")),
        other => (String::new(), other.into()),
    }
}

fn number(value: i32) -> RowBuf {
    Value::Number(value.into()).row()
}

fn pair(key: i32, value: i32) -> RowBuf {
    Value::pair(Value::Number(key.into()), Value::Number(value.into())).row()
}

fn of_count(of: &Typed<Updates>) -> Result<Typed<Updates>, Error> {
    reduced(of, By::Key, Reduction::Count, &no_exotic())
}

fn reduced(
    of: &Typed<Updates>,
    by: By,
    reduction: Reduction,
    exotic: &Rc<dyn Exotic>,
) -> Result<Typed<Updates>, Error> {
    let (reducer, form) = reducer(reduction, exotic, "reduce");
    arrange(of, by, "arrange")?
        .reduce(reducer, form, "reduce")?
        .updates()
}

#[test]
fn a_record_that_is_no_pair() {
    // On two workers it is found where the record is routed, on one where it is arranged.
    for workers in 1..=2 {
        let rows = [(pair(1, 2), 1), (number(7), 1)];
        let (_, cause) = failure(workers, &rows, &|of| {
            arrange(of, By::Key, "readers")?.updates()
        });
        let error = cause.downcast::<Error>().unwrap();
        assert_eq!(error.operator(), Some("readers"));
        assert!(error.to_string().contains("(key, value)"));
        let Error::NotAPair { record, .. } = *error else {
            panic!("{error}");
        };
        assert_eq!(Value::of(record.get()), Value::Number(7.0));
    }
    let (operator, cause) = failure(1, &[(number(7), 1)], &|of| {
        check_pairs(of, "that".into(), "check")
    });
    let error = cause.downcast::<Error>().unwrap();
    assert_eq!((operator.as_str(), error.operator()), ("check", None));
    let Error::Expression(Failure::NotPair(expected, record)) = *error else {
        panic!("{error}");
    };
    assert_eq!(
        (expected.as_str(), Value::of(record.get())),
        ("that", Value::Number(7.0))
    );
}

#[test]
fn expressions_without_a_result() {
    let none = [(number(7), 1)];
    let (operator, cause) = failure(1, &none, &|of| {
        project(of, swap(Source::Record, [1, 0]), "swap")
    });
    assert_eq!(operator, "swap");
    let error = cause.downcast::<Error>().unwrap();
    assert!(
        matches!(*error, Error::Expression(Failure::NoPart(..))),
        "{error:?}"
    );
    let (_, cause) = failure(1, &none, &|of| filter(of, ascending(), "filter"));
    let error = cause.downcast::<Error>().unwrap();
    assert!(
        matches!(*error, Error::Expression(Failure::NoPart(..))),
        "{error:?}"
    );
    // In a join: the sum of both values leaves 64 bits.
    let (mut whole, mut most) = (RowBuf::default(), RowBuf::default());
    whole.pair(number(1).get(), most.int(i64::MAX));
    let (operator, cause) = failure(1, &[(whole, 1)], &|of| {
        let [left, right] = [Source::Left, Source::Right].map(|of| Arc::new(Expr::Source(of)));
        let sum = Projection::new(Expr::Binary(Op::Add, left, right), Nulls::Value);
        let arranged = arrange(of, By::Key, "arrange")?;
        arranged.join(&arranged, JoinResult::Expression(Box::new(sum)), "add")
    });
    let error = cause.downcast::<Error>().unwrap();
    assert_eq!(operator, "add");
    assert!(
        matches!(*error, Error::Expression(Failure::Overflow("+", Some(_)))),
        "{error:?}"
    );
}

#[test]
fn diffs_and_counts_that_leave_their_range() {
    let least = [(pair(1, 2), i64::MIN)];
    let (operator, cause) = failure(1, &least, &negate);
    assert!(cause.is::<Overflow>(), "{operator}: {cause}");
    let twice = [(pair(1, 2), i64::MAX), (pair(1, 2), 1)];
    let (operator, cause) = failure(1, &twice, &|of| arrange(of, By::Key, "arrange")?.updates());
    assert!(cause.is::<Overflow>(), "{operator}: {cause}");
    let many = [(pair(1, 2), 1 << 40)];
    let (operator, cause) = failure(1, &many, &|of| {
        let arranged = arrange(of, By::Key, "arrange")?;
        arranged.join(&arranged, JoinResult::Pairs, "join")
    });
    assert!(cause.is::<Overflow>(), "{operator}: {cause}");
    assert_eq!(operator, "join");
    let several = [(pair(1, 2), i64::MAX), (pair(1, 3), 1)];
    let (operator, cause) = failure(1, &several, &of_count);
    let error = cause.downcast::<Error>().unwrap();
    assert_eq!(operator, "reduce");
    let Error::CountTooLarge { key, total } = *error else {
        panic!("{error}");
    };
    assert_eq!((Value::of(key.get()), total), (Value::Number(1.0), 1 << 63));
    let (operator, cause) = failure(1, &several, &|of| {
        arrange(of, By::Key, "arrange")?.totals(Total::Count, "totals")
    });
    assert!(cause.is::<Overflow>(), "{operator}: {cause}");
    assert_eq!(operator, "totals");
}

#[test]
fn rows_that_nest_too_deep() {
    // As deep as values may be: a pair of it is too deep.
    let deep = (1..terms::MAX_DEPTH).fold(Value::Text("a".into()), |inner, _| {
        Value::Tuple(vec![inner])
    });
    let row = [(Value::pair(Value::Number(1.0), deep).row(), 1)];
    let (operator, cause) = failure(1, &row, &|of| {
        let arranged = arrange(of, By::Key, "arrange")?;
        arranged.join(&arranged, JoinResult::Pairs, "join")
    });
    let error = cause.downcast::<Error>().unwrap();
    assert!(matches!(*error, Error::TooDeep), "{operator}: {error}");
}

/// Returns a row whose order is not the order of its bytes, as for the host's pickles.
fn pickled(byte: u8) -> RowBuf {
    let mut row = RowBuf::default();
    let written = row.other_term(|out| {
        out.extend([tag::PICKLED, tag::BYTES, byte, tag::END]);
        terms::finish(&[], out);
        Ok::<_, std::convert::Infallible>(())
    });
    let _row = written.unwrap();
    row
}

#[test]
fn values_that_only_the_host_knows() {
    let keyed = |value: &RowBuf| {
        (
            RowBuf::of(RowBuf::default().pair(number(1).get(), value.get())),
            1,
        )
    };
    let rows = [keyed(&pickled(1)), keyed(&pickled(2))];
    for reduction in [
        Reduction::Min { any_order: false },
        Reduction::Max,
        Reduction::TopK(std::num::NonZeroU128::MIN),
        Reduction::Sum { floats: false },
        Reduction::Mean { floats: true },
    ] {
        let build =
            move |of: &Typed<Updates>| reduced(of, By::Key, reduction.clone(), &no_exotic());
        let (operator, cause) = failure(1, &rows, &build);
        assert_eq!(operator, "reduce");
        let message = cause.to_string();
        assert!(
            message.contains("an order") || message.contains("do not add up"),
            "{message}"
        );
    }
}

#[test]
fn functions_of_the_host_that_fail() {
    struct Fails;
    impl Combine for Fails {
        fn combine(&mut self, _: &Cells, _: [&Cells; 2], _: &mut Cells) -> UserResult<()> {
            Err("combine".into())
        }
    }
    let rows = [(pair(1, 2), 1)];
    let joined = |result: fn() -> JoinResult| {
        move |of: &Typed<Updates>| {
            let arranged = arrange(of, By::Key, "arrange")?;
            arranged.join(&arranged, result(), "join")
        }
    };
    let (operator, cause) = failure(1, &rows, &joined(|| JoinResult::Function(Box::new(Fails))));
    assert_eq!(
        (operator.as_str(), cause.to_string().as_str()),
        ("join", "combine")
    );
    let (operator, cause) = failure(1, &rows, &|of| {
        let fails = |_: &Cells, _: &Lists<Cells>, _: &mut Lists<Cells>| {
            Err::<(), _>(KernelError::Caller("reducer".into()))
        };
        arrange(of, By::Key, "arrange")?
            .reduce(Reducer::new(fails), Form::Pair, "reduce")?
            .updates()
    });
    assert_eq!(
        (operator.as_str(), cause.to_string().as_str()),
        ("reduce", "reducer")
    );
}

#[test]
fn batches_of_another_kind() {
    let wrong = Batch::Updates(Builder::default().finish(&Point::from([0])));
    let error = <arrow_array::RecordBatch as Content>::from_batch(wrong).unwrap_err();
    assert!(matches!(
        error,
        Error::WrongKind {
            expected: Kind::Columns,
            found: Kind::Updates
        }
    ));
    assert_eq!(
        error.to_string(),
        "updates of a collection came where record batches are read"
    );
    // A stream that was assumed to be of another kind fails where it is read, and not by a panic.
    let (operator, cause) = failure(1, &[(number(1), 1)], &|of| {
        let columns = Typed::<arrow_array::RecordBatch>::assume(of.stream().clone());
        let unary = Unary::<_, Updates>::new(&columns, "columns", Pact::Pipeline)?;
        Ok(unary.on_messages(|input, _| {
            while input.next()?.is_some() {}
            Ok(())
        }))
    });
    let error = cause.downcast::<Error>().unwrap();
    assert_eq!(operator, "columns");
    assert!(matches!(
        *error,
        Error::WrongKind {
            expected: Kind::Columns,
            found: Kind::Updates
        }
    ));
}

#[test]
fn a_loop_that_passes_the_last_time() {
    let (operator, cause) = failure(1, &[(number(1), 1)], &|of| {
        let scope = of.scope();
        let inner = scope.nested("loop", 1)?;
        let entered = inner.enter(of.stream())?;
        let summary = Summary::step(2, 1 << 63);
        let (variable, round) = Variable::new(&inner, summary, "no end".to_owned())?;
        let both = [entered, round.into_stream()];
        let both = Typed::assume(pointstamp_engine::operators::concatenate(&inner, both)?);
        let input = variable.input(&both)?;
        variable.connect(input)?;
        let left = Typed::assume(inner.leave(both.stream())?);
        inner.close();
        Ok(left)
    });
    assert!(
        cause.to_string().contains("2^64 - 1"),
        "{operator}: {cause}"
    );
}

#[test]
fn a_variable_that_is_never_defined() {
    let ran = execute::<Batch, ()>(1, Mode::Demand, |worker| {
        worker.dataflow("open", 2, |scope| {
            let made = Variable::new(scope, Summary::step(2, 1), "define it".to_owned());
            drop(made.map_err(ended)?);
            Ok(())
        })
    });
    let error = ran.unwrap_err().error;
    assert!(error.to_string().contains("define it"), "{error}");
}

#[test]
fn arrangements_of_unlike_scopes() {
    Place::Threads(1).run(|worker| {
        let scope = worker.begin_dataflow("outer", 2);
        let (_input, capability, stream) = scope.unordered_input()?;
        drop(capability);
        let two = arrange(&Typed::assume(stream), By::Key, "arrange").map_err(ended)?;
        assert!(matches!(two, Arrangement::Two(_)));
        let one = worker.begin_dataflow("other", 1);
        // A scope with fewer coordinates is none inside.
        assert!(matches!(two.enter(&one), Err(Error::OtherScope)));
        // One with as many is, where it is inside.
        let other = worker.begin_dataflow("other", 2);
        assert!(matches!(two.enter(&other), Err(Error::Engine(_))));
        for scope in [scope, one, other] {
            worker.discard(&scope);
        }
        Ok(())
    });
}

#[test]
fn tuples_of_parts_that_a_record_lacks_name_the_record() {
    let wide = tuple([part(Source::Record, 0), part(Source::Record, 2)]);
    let (_, cause) = failure(1, &[(pair(4, 5), 1)], &move |of| {
        project(of, Projection::new(wide.clone(), Nulls::Value), "wide")
    });
    let error = cause.downcast::<Error>().unwrap();
    let Error::Expression(Failure::NoPart(what, record)) = *error else {
        panic!("{error:?}");
    };
    assert_eq!(what, "record[2]");
    assert_eq!(Value::of(record.get()).part(1), Value::Number(5.0));
}

/// A batch of a peer that is broken: its updates are at times before its message's.
#[test]
fn updates_before_the_time_of_their_message() {
    for build in [
        (|of| arrange(of, By::Key, "arrange")?.updates()) as fn(&Typed<Updates>) -> _,
        consolidate,
        of_count,
    ] {
        let ran = execute::<Batch, ()>(1, Mode::Demand, |worker| {
            let input = Input::new();
            worker.dataflow("early", 1, |scope| {
                let updates = Typed::assume(input.attach(scope)?);
                collect(&build(&updates).map_err(ended)?, |_| ())
            })?;
            input.advance_to(&Point::from([5]))?;
            for _ in 0..10 {
                worker.step()?;
            }
            let mut builder = Builder::default();
            builder.push(pair(1, 2).get(), &Point::from([2]), 1);
            builder.push(pair(1, 2).get(), &Point::from([7]), 1);
            let batch = Batch::Updates(builder.finish(&Point::from([5])));
            input.send(batch).map_err(|_| EngineError::Closed)?;
            input.close();
            worker.run()
        });
        let (operator, cause) = found(ran.expect_err("it is refused").error);
        let error = cause.downcast::<Error>().unwrap();
        let Error::Early { time, message } = *error else {
            panic!("{operator}: {error}");
        };
        assert_eq!((time, message), (Point::from([2]), Point::from([5])));
    }
}
