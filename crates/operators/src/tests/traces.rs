//! Traces read from outside, and imported into other dataflows while their own dataflow runs.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::rc::Rc;

use pointstamp_engine::error::Error as EngineError;
use pointstamp_engine::operators::{Input, Probe};
use pointstamp_engine::worker::Worker;
use pointstamp_order::Point;
use pointstamp_testkit::cases;
use proptest::prelude::*;

use super::support::Place;
use crate::batch::Batch;
use crate::collections::{
    Arrangement, By, Form, JoinResult, Reduction, Trace, Updates, arrange, reducer, set_fuel,
};
use crate::entry::model::{self, Bag};
use crate::entry::program::{Timed, no_exotic};
use crate::entry::running::{Feed, Pace, as_of, batch, collect, ended, grid};
use crate::entry::value::Value;
use crate::{Error, Typed};

/// The arrangement of a collection of pairs that is read.
#[derive(Clone, Copy, Debug)]
enum Of {
    Records,
    Keys,
    Counts,
    Distinct,
}

impl Of {
    fn arranged(self, stream: &Typed<Updates>) -> Result<Arrangement, Error> {
        let reduced = |by, reduction| {
            let (reducer, form) = reducer(reduction, &no_exotic(), "reduce");
            arrange(stream, by, "arrange")?.reduce(reducer, form, "reduce")
        };
        match self {
            Of::Records => arrange(stream, By::Record, "arrange"),
            Of::Keys => arrange(stream, By::Key, "arrange"),
            Of::Counts => reduced(By::Key, Reduction::Count),
            Of::Distinct => reduced(By::Record, Reduction::Distinct),
        }
    }

    fn form(self) -> Form {
        match self {
            Of::Records | Of::Distinct => Form::Key,
            Of::Keys | Of::Counts => Form::Pair,
        }
    }

    /// The records of the arrangement.
    fn of(self, input: &Bag) -> Bag {
        match self {
            Of::Records | Of::Keys => input.clone(),
            Of::Counts => model::reduce(input, |list| model::reduced(&Reduction::Count, list)),
            Of::Distinct => model::distinct(input),
        }
    }
}

fn pair() -> impl Strategy<Value = Value> {
    let part = || {
        prop_oneof![
            4 => (0..4_u8).prop_map(|number| Value::Number(f64::from(number))),
            1 => Just(Value::Text("a".to_owned())),
        ]
    };
    (part(), part()).prop_map(|(key, value)| Value::pair(key, value))
}

fn updates(dims: usize) -> impl Strategy<Value = Vec<Timed>> {
    let time = prop::collection::vec(0..3_u64, dims).prop_map(Point::from);
    let diff = prop::sample::select(vec![1_i64, 1, 2, -1]);
    prop::collection::vec((pair(), time, diff), 0..20)
}

fn inputs() -> impl Strategy<Value = (usize, Vec<Timed>)> {
    (1..4_usize).prop_flat_map(|dims| (Just(dims), updates(dims)))
}

/// The results of one worker: the imported updates, and the items of its trace at every time, at the end.
struct Seen {
    imported: Vec<Timed>,
    items: Vec<(Point, Bag)>,
}

/// Builds a dataflow, lets it run for some messages, and imports its trace into another one, beside which it
/// continues.
fn import_while_it_runs(
    worker: &Worker<Batch>,
    (dims, updates): (usize, &[Timed]),
    of: Of,
    before: usize,
    pace: Pace,
) -> Result<Seen, EngineError> {
    if let Some(fuel) = pace.fuel {
        set_fuel(fuel);
    }
    let (mut feed, trace) = worker.dataflow("first", dims, |scope| {
        let (input, capability, stream) = scope.unordered_input()?;
        let own = updates.iter().skip(worker.index()).step_by(worker.peers());
        let feed = Feed::new(input, capability, own.cloned().collect(), pace);
        let arranged = of.arranged(&Typed::assume(stream)).map_err(ended)?;
        assert_eq!(arranged.form(), of.form());
        Ok((feed, arranged.trace().map_err(ended)?))
    })?;
    for _ in 0..before {
        feed.send()?;
        for _ in 0..pace.steps {
            worker.step()?;
        }
    }
    let imported = Rc::new(RefCell::new(Vec::new()));
    worker.dataflow("second", dims, |scope| {
        let found = Rc::clone(&imported);
        let arranged = trace.import(scope).map_err(ended)?;
        assert_eq!(arranged.form(), of.form());
        collect(&arranged.updates().map_err(ended)?, move |update| {
            found.borrow_mut().push(update);
        })
    })?;
    for _ in 0..20 {
        feed.send()?;
        for _ in 0..pace.steps {
            worker.step()?;
        }
    }
    drop(feed);
    worker.run()?;
    let items = grid(dims)
        .into_iter()
        .map(|at| (at.clone(), items(&trace, &at, of.form())));
    let items = items.collect();
    assert!(trace.upper().is_empty(), "it is complete");
    Ok(Seen {
        imported: imported.take(),
        items,
    })
}

/// Returns the records of a trace at a time, and checks that they are also those of each key.
fn items(trace: &Trace, at: &Point, form: Form) -> Bag {
    let mut found = Vec::new();
    for (key, (value, count)) in trace.items(at).unwrap() {
        let of_key = trace.get(key.get(), at).unwrap();
        assert!(
            of_key
                .iter()
                .any(|(row, times)| row.get() == value.get() && *times == count)
        );
        let (key, value) = (Value::of(key.get()), Value::of(value.get()));
        found.push(match form {
            Form::Pair => (Value::pair(key, value), count),
            Form::Key => (key, count),
        });
    }
    model::bag(found)
}

fn agrees((dims, updates): &(usize, Vec<Timed>), of: Of, before: usize, pace: Pace, on: Place) {
    let seen = on.run(|worker| import_while_it_runs(worker, (*dims, updates), of, before, pace));
    let imported: Vec<Timed> = seen.iter().flat_map(|seen| seen.imported.clone()).collect();
    for at in grid(*dims) {
        let expected = of.of(&as_of(updates, &at));
        assert_eq!(as_of(&imported, &at), expected, "imported, at {at}");
        let shares = seen
            .iter()
            .flat_map(|seen| &seen.items)
            .filter(|(time, _)| *time == at);
        let all = model::bag(shares.flat_map(|(_, bag)| bag.clone()));
        assert_eq!(all, expected, "read at {at}");
    }
}

fn pace() -> impl Strategy<Value = Pace> {
    (1..4_usize, 0..4_usize, 0..4_usize).prop_map(|(message, steps, fuel)| Pace {
        message,
        steps,
        fuel: NonZeroUsize::new(fuel),
    })
}

fn of() -> impl Strategy<Value = Of> {
    prop::sample::select(vec![Of::Records, Of::Keys, Of::Counts, Of::Distinct])
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn an_imported_trace_is_the_arrangement(
        inputs in inputs(),
        of in of(),
        before in 0..8_usize,
        pace in pace(),
        workers in 1..4_usize,
    ) {
        agrees(&inputs, of, before, pace, Place::Threads(workers));
    }

    #[test]
    fn an_imported_trace_is_the_arrangement_in_any_order(
        inputs in inputs(),
        of in of(),
        before in 0..8_usize,
        pace in pace(),
        seed: u64,
    ) {
        agrees(&inputs, of, before, pace, Place::Simulated(1, 2, seed));
    }
}

/// A dataflow with an input of pairs, arranged by key.
struct Pairs {
    input: Input<Batch>,
    probe: Probe,
    arranged: Arrangement,
    number: usize,
}

fn pairs(worker: &Worker<Batch>) -> Result<Pairs, EngineError> {
    let (input, probe) = (Input::new(), Probe::new());
    let scope = worker.begin_dataflow("pairs", 1);
    let stream = Typed::assume(input.attach(&scope)?);
    let arranged = arrange(&stream, By::Key, "arrange").map_err(ended)?;
    probe.attach(arranged.stream().stream())?;
    let number = worker.install(&scope)?;
    Ok(Pairs {
        input,
        probe,
        arranged,
        number,
    })
}

impl Pairs {
    fn send(
        &self,
        worker: &Worker<Batch>,
        time: u64,
        key: u8,
        value: u8,
    ) -> Result<(), EngineError> {
        let at = Point::from([time]);
        let pair = Value::pair(Value::Number(key.into()), Value::Number(value.into()));
        let sent = self.input.send(Batch::Updates(batch(
            &[(pair, at, 1)],
            &Point::from([time]),
        )));
        sent.map_err(|error| panic!("{}", error.into_cause()))
            .unwrap_or(());
        let next = Point::from([time + 1]);
        self.input.advance_to(&next)?;
        worker.step_while(|| self.probe.less_than(&next))
    }
}

#[test]
fn a_trace_that_gave_up_the_past_begins_where_it_may_read() {
    Place::Threads(1).run(|worker| {
        let scope = worker.begin_dataflow("pairs", 1);
        let (input, probe) = (Input::new(), Probe::new());
        let stream = Typed::assume(input.attach(&scope)?);
        let arranged = arrange(&stream, By::Key, "arrange").map_err(ended)?;
        let mut trace = arranged.trace().map_err(ended)?;
        probe.attach(arranged.stream().stream())?;
        let number = worker.install(&scope)?;
        let pairs = Pairs {
            input,
            probe,
            arranged,
            number,
        };
        for time in 0..6 {
            pairs.send(worker, time, 1, 2)?;
        }
        assert_eq!((trace.len(), trace.is_empty()), (6, false));
        assert!(trace.bytes() > 0);
        assert_eq!(trace.since(), [Point::from([0])]);
        assert_eq!(trace.upper(), [Point::from([6])]);
        assert_eq!(trace.latest_complete(1), Some(Point::from([5])));
        trace.allow_merging_before(&Point::from([4]));
        assert_eq!(trace.since(), [Point::from([4])]);
        let key = Value::Number(1.0).row();
        let count = |trace: &Trace, at: u64| trace.get(key.get(), &Point::from([at])).unwrap()[0].1;
        assert_eq!([count(&trace, 4), count(&trace, 5)], [5, 6]);
        // Times that it does not distinguish any more are merged sooner or later; the sums stay.
        for time in 6..40 {
            pairs.send(worker, time, 1, 2)?;
            trace.allow_merging_before(&Point::from([time]));
        }
        assert_eq!(count(&trace, 39), 40);
        assert!(trace.len() < 40, "{} updates are kept", trace.len());
        // An earlier time is not given back.
        trace.allow_merging_before(&Point::from([3]));
        assert_eq!(trace.since(), [Point::from([39])]);
        pairs.input.close();
        worker.run()?;
        assert_eq!(trace.latest_complete(1), Some(Point::from([u64::MAX])));
        Ok(())
    });
}

#[test]
fn the_latest_complete_time_of_partially_ordered_ones() {
    Place::Threads(1).run(|worker| {
        let trace = worker.dataflow("pairs", 2, |scope| {
            let (_input, mut capability, stream) = scope.unordered_input()?;
            let arranged = arrange(&Typed::assume(stream), By::Key, "arrange").map_err(ended)?;
            let trace = arranged.trace().map_err(ended)?;
            let other = capability.delayed(&Point::from([0, 3]))?;
            capability.downgrade(&Point::from([2, 0]))?;
            Ok((trace, capability, other))
        });
        let (trace, capability, other) = trace?;
        assert_eq!(trace.latest_complete(2), None, "before the first step");
        for _ in 0..10 {
            worker.step()?;
        }
        // Complete: all before (2, 0) in the first coordinate, and before (0, 3) in the second.
        assert_eq!(trace.latest_complete(2), Some(Point::from([1, 2])));
        drop(capability);
        for _ in 0..10 {
            worker.step()?;
        }
        assert_eq!(trace.latest_complete(2), Some(Point::from([u64::MAX, 2])));
        drop(other);
        worker.run()
    });
}

#[test]
fn a_reader_that_comes_when_nothing_was_kept_is_refused() {
    Place::Threads(1).run(|worker| {
        let pairs = pairs(worker)?;
        pairs.send(worker, 0, 1, 2)?;
        assert!(matches!(pairs.arranged.trace(), Err(Error::NothingKept)));
        assert_eq!(pairs.arranged.keeps().unwrap().size(), Some((0, 0, 0)));
        pairs.input.close();
        worker.run()
    });
}

#[test]
fn a_trace_of_a_dropped_dataflow_is_not_imported() {
    Place::Threads(2).run(|worker| {
        let scope = worker.begin_dataflow("first", 1);
        let input = Input::new();
        let stream = Typed::assume(input.attach(&scope)?);
        let trace = arrange(&stream, By::Key, "arrange").and_then(|arranged| arranged.trace());
        let trace = trace.map_err(ended)?;
        let number = worker.install(&scope)?;
        worker.step()?;
        worker.drop_dataflow(number);
        let scope = worker.begin_dataflow("second", 1);
        assert!(matches!(trace.import(&scope), Err(Error::TraceDropped)));
        worker.discard(&scope);
        Ok(())
    });
}

#[test]
fn a_dataflow_that_imports_one_that_is_dropped_fails() {
    let failure = pointstamp_engine::execute::execute::<Batch, ()>(
        1,
        pointstamp_progress::Mode::Demand,
        |worker| {
            let scope = worker.begin_dataflow("first", 1);
            let (input, probe) = (Input::new(), Probe::new());
            let stream = Typed::assume(input.attach(&scope)?);
            let arranged = arrange(&stream, By::Key, "arrange").map_err(ended)?;
            let trace = arranged.trace().map_err(ended)?;
            probe.attach(arranged.stream().stream())?;
            let number = worker.install(&scope)?;
            let pairs = Pairs {
                input,
                probe,
                arranged,
                number,
            };
            pairs.send(worker, 0, 1, 2)?;
            let found = Rc::new(RefCell::new(Vec::new()));
            worker.dataflow("second", 1, |scope| {
                let found = Rc::clone(&found);
                let updates = trace.import(scope).and_then(|arranged| arranged.updates());
                collect(&updates.map_err(ended)?, move |update| {
                    found.borrow_mut().push(update);
                })
            })?;
            for _ in 0..10 {
                worker.step()?;
            }
            assert_eq!(found.borrow().len(), 1);
            worker.drop_dataflow(pairs.number);
            worker.run()
        },
    );
    let error = failure.unwrap_err().error;
    assert!(error.to_string().contains("was dropped"), "{error}");
}

/// A dataflow that is dropped in the middle of its work, with its state, does not disturb others, and its
/// holds on a shared trace are released.
#[test]
#[cfg_attr(miri, ignore = "it takes minutes")]
fn a_dataflow_dropped_in_the_middle() {
    for steps in 0..12 {
        Place::Threads(2).run(|worker| {
            set_fuel(NonZeroUsize::MIN);
            let scope = worker.begin_dataflow("first", 1);
            let (input, probe) = (Input::new(), Probe::new());
            let stream = Typed::assume(input.attach(&scope)?);
            let arranged = arrange(&stream, By::Key, "arrange").map_err(ended)?;
            let mut trace = arranged.trace().map_err(ended)?;
            probe.attach(arranged.stream().stream())?;
            let number = worker.install(&scope)?;
            let pairs = Pairs {
                input,
                probe,
                arranged,
                number,
            };
            let second = worker.begin_dataflow("second", 1);
            let imported = trace.import(&second).map_err(ended)?;
            let (count, form) = reducer(Reduction::Count, &no_exotic(), "count");
            let counts = imported.reduce(count, form, "count").map_err(ended)?;
            let joined = counts
                .join(&imported, JoinResult::Pairs, "join")
                .map_err(ended)?;
            collect(&joined, |_| ())?;
            let second = worker.install(&second)?;
            for number in 0..6 {
                let pair = Value::pair(Value::Number(1.0), Value::Number(f64::from(number)));
                let at = Point::from([0]);
                let one = batch(&[(pair, at.clone(), 1)], &at);
                let sent = pairs.input.send(Batch::Updates(one));
                sent.map_err(|error| panic!("{}", error.into_cause()))
                    .unwrap_or(());
            }
            pairs.input.advance_to(&Point::from([1]))?;
            for _ in 0..steps {
                worker.step()?;
            }
            worker.drop_dataflow(second);
            for time in 1..30 {
                pairs.send(worker, time, 1, 9)?;
                trace.allow_merging_before(&Point::from([time]));
            }
            let key = Value::Number(1.0).row();
            let all = trace.get(key.get(), &Point::from([29])).unwrap();
            let all: i64 = all.iter().map(|(_, count)| count).sum();
            assert!(
                trace.len() < 40,
                "the dropped reader holds nothing back: {}",
                trace.len()
            );
            pairs.input.close();
            worker.run()?;
            Ok(all)
        });
    }
}

#[test]
fn an_entered_arrangement_has_no_trace_and_no_other_scope() {
    Place::Threads(1).run(|worker| {
        worker.dataflow("outer", 1, |scope| {
            let (_input, capability, stream) = scope.unordered_input()?;
            drop(capability);
            let stream = Typed::assume(stream);
            let outer = arrange(&stream, By::Key, "arrange").map_err(ended)?;
            let inner = scope.nested("inner", 1)?;
            let entered = outer.enter(&inner).map_err(ended)?;
            assert!(matches!(entered.trace(), Err(Error::EnteredTrace)));
            let joined = entered.join(&outer, JoinResult::Pairs, "join");
            assert!(matches!(joined, Err(Error::OtherScope)));
            let totals = entered.totals(crate::collections::Total::Count, "count");
            assert!(matches!(totals, Err(Error::NotTotal)));
            inner.close();
            Ok(())
        })?;
        worker.run()
    });
}
