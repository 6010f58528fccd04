//! The records that operators still need, as a source sees them.

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use pointstamp_engine::error::Error;
use pointstamp_engine::operators::{Input, Probe, concatenate};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::SendError;
use pointstamp_engine::retention::Retention;
use pointstamp_engine::scope::Scope;
use pointstamp_engine::stream::Stream;
use pointstamp_engine::worker::Worker;
use pointstamp_order::{Point, Summary};
use pointstamp_progress::Mode;

type Batch = Vec<u64>;

type Says = Rc<RefCell<Option<Retention>>>;

fn at(time: u64) -> Point {
    Point::new(&[time])
}

fn settle(worker: &Worker<Batch>) -> Result<(), Error> {
    while worker.has_work() {
        worker.step()?;
    }
    Ok(())
}

/// Builds an operator that passes records on, and returns its retention.
fn keeper(stream: &Stream<Batch>) -> Result<(Stream<Batch>, Says), Error> {
    let builder = stream.scope().operator("keeper")?;
    let port = builder.new_input(stream, Pact::Pipeline)?;
    let (output, result) = builder.new_output()?;
    let says = builder.retention(&[&result])?;
    builder.build(move || {
        while let Some((capability, batch)) = port.next()? {
            let sent = output.send(&capability, batch);
            sent.map_err(SendError::into_cause)?;
        }
        Ok(false)
    });
    Ok((result, Rc::new(RefCell::new(says))))
}

/// Returns probes of the least time downstream of a stream, with retained records, and without.
fn watched(stream: &Stream<Batch>) -> Result<[Probe; 2], Error> {
    let probes = [Probe::new(), Probe::new()];
    for (probe, retained) in probes.iter().zip([true, false]) {
        Scope::watch_downstream(stream, probe, retained, || ())?;
    }
    Ok(probes)
}

fn says(of: &Says, what: impl FnOnce(&Retention)) {
    what(of.borrow().as_ref().expect("a source acknowledges"));
}

#[test]
fn what_is_needed_is_downstream_and_holds_up_no_frontier() {
    let outcome = common::threads(1).run(Mode::Demand, |worker: &Worker<Batch>| {
        let (input, shown) = (Input::new(), Probe::new());
        let (mut probes, mut of) = (None, None);
        worker.dataflow("one keeper", 1, |scope| {
            scope.acknowledges();
            let stream = input.attach(scope)?;
            probes = Some(watched(&stream)?);
            let (result, says) = keeper(&stream)?;
            shown.attach(&result)?;
            of = Some(says);
            Ok(())
        })?;
        let ([retained, visible], of) = (probes.unwrap(), of.unwrap());
        input.send(vec![1]).unwrap();
        input.advance_to(&at(10))?;
        settle(worker)?;
        assert!(!visible.less_than(&at(10)) && !shown.less_than(&at(10)));
        assert!(retained.less_equal(&at(0)), "it has said nothing yet");
        // The records of messages at 0, 2 and 5 have event times up to 7, 4 and 9.
        says(&of, |of| {
            of.take(0, 7);
            of.take(5, 9);
            of.take(2, 4);
            of.keep(Some(10), 3);
        });
        settle(worker)?;
        assert_eq!(
            retained.frontier().elements(),
            [at(0)],
            "that of 0 is needed for 7"
        );
        says(&of, |of| of.keep(Some(11), 8));
        settle(worker)?;
        assert_eq!(
            retained.frontier().elements(),
            [at(0)],
            "what is sent before 11 may be there"
        );
        input.advance_to(&at(12))?;
        settle(worker)?;
        assert_eq!(retained.frontier().elements(), [at(5)]);
        says(&of, |of| of.keep(Some(12), 12));
        settle(worker)?;
        assert_eq!(retained.frontier().elements(), [at(12)]);
        input.close();
        settle(worker)?;
        assert!(visible.is_done() && !retained.is_done());
        says(&of, |of| of.keep(None, 0));
        settle(worker)?;
        assert!(retained.is_done());
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn what_results_were_made_of_is_needed_as_long_as_the_results() {
    let outcome = common::threads(1).run(Mode::Demand, |worker: &Worker<Batch>| {
        let input = Input::new();
        let (mut probes, mut both) = (None, None);
        worker.dataflow("two keepers", 1, |scope| {
            scope.acknowledges();
            let stream = input.attach(scope)?;
            probes = Some(watched(&stream)?);
            let (result, first) = keeper(&stream)?;
            let (_, second) = keeper(&result)?;
            both = Some((first, second));
            Ok(())
        })?;
        let ([retained, _], (first, second)) = (probes.unwrap(), both.unwrap());
        input.advance_to(&at(20))?;
        settle(worker)?;
        // The first has sent something at 9 that came of 3, and the second needs it until 15.
        says(&first, |of| of.settle(9, Some(20)));
        says(&second, |of| of.settle(0, Some(9)));
        settle(worker)?;
        assert_eq!(retained.frontier().elements(), [at(0)]);
        says(&second, |of| of.settle(15, Some(16)));
        settle(worker)?;
        assert_eq!(retained.frontier().elements(), [at(16)]);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn there_is_none_where_nobody_asks_and_in_nested_scopes() {
    let outcome = common::threads(1).run(Mode::Demand, |worker: &Worker<Batch>| {
        let input = Input::<Batch>::new();
        let mut found = Vec::new();
        worker.dataflow("unasked", 1, |scope| {
            let stream = input.attach(scope)?;
            assert!(keeper(&stream)?.1.borrow().is_none());
            let forever = Scope::retaining_forever(&stream);
            scope.acknowledges();
            let inner = scope.nested("inner", 1)?;
            let entered = inner.enter(&stream)?;
            assert!(keeper(&entered)?.1.borrow().is_none());
            inner.close();
            found.push(forever);
            Ok(())
        })?;
        let names: Vec<_> = found[0]
            .operators()
            .into_iter()
            .map(|(_, name)| name)
            .collect();
        assert_eq!(names, ["keeper"], "the one inside");
        input.close();
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn an_operator_whose_input_has_ended_before_it_began_holds_nothing() {
    let outcome = common::threads(1).run(Mode::Demand, |worker: &Worker<Batch>| {
        worker.dataflow("empty", 1, |scope| {
            scope.acknowledges();
            let (_, empty) = scope.operator("empty")?.new_output()?;
            let builder = scope.operator("keeper")?;
            let port = builder.new_input(&empty, Pact::Pipeline)?;
            let (_, result) = builder.new_output()?;
            let retention = builder
                .retention(&[&result])?
                .expect("a source acknowledges");
            builder.notify();
            builder.build(move || {
                let until = port.frontier().frontier().first().and_then(Point::last);
                retention.keep(until, 0);
                Ok(false)
            });
            Ok(())
        })?;
        for _ in 0..20 {
            worker.step()?;
        }
        assert!(worker.installed_dataflows().is_empty(), "it ends");
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn on_a_cycle_there_is_none_and_what_is_downstream_of_it_comes_to_its_end() {
    let outcome = common::threads(1).run(Mode::Demand, |worker: &Worker<Batch>| {
        let input = Input::new();
        let (mut probes, mut all, mut found) = (None, None, None);
        worker.dataflow("a loop", 1, |scope| {
            scope.acknowledges();
            let stream = input.attach(scope)?;
            probes = Some(watched(&stream)?);
            found = Some(Scope::retaining_forever(&stream));
            let (before, first) = keeper(&stream)?;
            let (handle, again) = scope.feedback(Summary::step(1, 1))?;
            let (round, second) = keeper(&concatenate(scope, [before, again])?)?;
            let (back, third) = keeper(&round)?;
            handle.connect(&back)?;
            let (_, last) = keeper(&round)?;
            all = Some([first, second, third, last]);
            Ok(())
        })?;
        let ([retained, _], all) = (probes.unwrap(), all.unwrap());
        let asked: Vec<_> = all
            .iter()
            .map(|of| of.borrow().as_ref().unwrap().is_asked())
            .collect();
        assert_eq!(asked, [true, false, false, true]);
        assert_eq!(found.unwrap().operators().len(), 2, "those that go round");
        input.close();
        settle(worker)?;
        assert!(!retained.is_done(), "two have said nothing yet");
        for of in [&all[0], &all[3]] {
            says(of, |of| of.keep(None, 0));
        }
        settle(worker)?;
        assert!(retained.is_done());
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn of_many_messages_some_are_merged_and_more_is_needed_than_was_said() {
    let outcome = common::threads(1).run(Mode::Demand, |worker: &Worker<Batch>| {
        let input = Input::new();
        let (mut probes, mut of) = (None, None);
        worker.dataflow("one keeper", 1, |scope| {
            scope.acknowledges();
            let stream = input.attach(scope)?;
            probes = Some(watched(&stream)?);
            of = Some(keeper(&stream)?.1);
            Ok(())
        })?;
        let ([retained, _], of) = (probes.unwrap(), of.unwrap());
        let many = 100_000;
        input.send(vec![1]).unwrap();
        for time in 0..many {
            // Nothing leaves the dataflow meanwhile: unneeded records wait.
            says(&of, |of| {
                of.take(time, time + 3);
                of.keep(Some(time + 1), time);
            });
        }
        assert!(of.borrow().as_ref().unwrap().entries() <= 2 * 4096);
        input.advance_to(&at(many))?;
        settle(worker)?;
        let needed = retained.frontier().elements()[0].last().unwrap();
        assert_eq!(needed, many - 4, "the latest is never left out");
        says(&of, |of| {
            for time in 0..many {
                of.take(many + time, many + time + 3);
            }
        });
        assert!(of.borrow().as_ref().unwrap().entries() <= 4096);
        input.advance_to(&at(2 * many))?;
        settle(worker)?;
        let middle = many + many / 2;
        says(&of, |of| of.keep(Some(2 * many), middle));
        settle(worker)?;
        let needed = retained.frontier().elements()[0].last().unwrap();
        assert!(needed <= middle - 3, "{needed}");
        assert!(needed > middle - 200, "{needed}");
        Ok(())
    });
    outcome.unwrap();
}
