//! When operators run because a frontier has moved.

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::Error;
use pointstamp_engine::operator::Notify;
use pointstamp_engine::operators::Input;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::worker::Worker;
use pointstamp_order::Point;
use pointstamp_progress::Mode;

type Batch = Vec<u64>;

fn settle(worker: &Worker<Batch>) -> Result<(), Error> {
    while worker.has_work() {
        worker.step()?;
    }
    Ok(())
}

#[test]
fn an_operator_hears_of_the_inputs_that_it_asked_about() {
    let outcome = common::threads(1).run(Mode::Demand, |worker: &Worker<Batch>| {
        let (loud, mute) = (Input::new(), Input::new());
        let (runs, seen) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let (count, look) = (Rc::clone(&runs), Rc::clone(&seen));
        worker.dataflow("two inputs", 1, |scope| {
            let (a, b) = (loud.attach(scope)?, mute.attach(scope)?);
            let builder = scope.operator("listens")?;
            builder.notify();
            let a = builder.new_input(&a, Pact::Pipeline)?;
            let b = builder.new_input(&b, Pact::Pipeline)?;
            builder.notify_of(b.port(), Notify::Never);
            builder.build(move || {
                count.set(count.get() + 1);
                assert!(b.frontier().is_empty(), "it is not kept");
                *look.borrow_mut() = a.frontier().frontier().to_vec();
                Ok(false)
            });
            Ok(())
        })?;
        settle(worker)?;
        let before = runs.get();
        mute.advance_to(&Point::new(&[3]))?;
        settle(worker)?;
        assert_eq!(runs.get(), before);
        loud.advance_to(&Point::new(&[4]))?;
        settle(worker)?;
        assert_eq!(runs.get(), before + 1);
        assert_eq!(*seen.borrow(), [Point::new(&[4])]);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn an_operator_that_holds_nothing_is_left_alone() {
    let outcome = common::threads(1).run(Mode::Demand, |worker: &Worker<Batch>| {
        let input = Input::new();
        let (runs, sent) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let (count, out) = (Rc::clone(&runs), Rc::clone(&sent));
        worker.dataflow("sums", 1, |scope| {
            let stream = input.attach(scope)?;
            let builder = scope.operator("sum")?;
            let port = builder.new_input(&stream, Pact::Pipeline)?;
            builder.notify_of(port.port(), Notify::WhileHolding);
            builder.new_output()?;
            let mut held: Vec<(Capability, u64)> = Vec::new();
            builder.build(move || {
                count.set(count.get() + 1);
                while let Some((capability, batch)) = port.next()? {
                    assert!(
                        port.frontier().less_equal(capability.time()),
                        "it is up to date"
                    );
                    held.push((capability.retain(0)?, batch.iter().sum()));
                }
                held.retain(|(capability, sum)| {
                    let open = port.frontier().less_equal(capability.time());
                    if !open {
                        out.borrow_mut().push((capability.time().clone(), *sum));
                    }
                    open
                });
                Ok(false)
            });
            Ok(())
        })?;
        let advance = |time: u64| -> Result<i32, Error> {
            let before = runs.get();
            input.advance_to(&Point::new(&[time]))?;
            settle(worker)?;
            Ok(runs.get() - before)
        };
        settle(worker)?;
        assert_eq!(
            advance(1)? + advance(2)? + advance(3)?,
            0,
            "nothing is held"
        );
        input.send(vec![1, 2]).unwrap();
        settle(worker)?;
        assert_eq!(advance(4)?, 1, "time 3 is closed");
        assert_eq!(*sent.borrow(), [(Point::new(&[3]), 3)]);
        assert_eq!(advance(5)? + advance(6)?, 0);
        let before = runs.get();
        input.close();
        worker.run()?;
        assert_eq!(runs.get(), before, "it ends without a notification");
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn work_that_no_frontier_shows_keeps_its_dataflow() {
    let outcome = common::threads(1).run(Mode::Demand, |worker: &Worker<Batch>| {
        let input = Input::new();
        let busy = Rc::new(Cell::new(true));
        let state = Rc::clone(&busy);
        let mut activator = None;
        worker.dataflow("without outputs", 1, |scope| {
            let inner = scope.nested("inner", 1)?;
            let builder = inner.operator("works")?;
            let port = builder.new_input(&inner.enter(&input.attach(scope)?)?, Pact::Pipeline)?;
            activator = Some(builder.activator());
            builder.build(move || {
                while port.next()?.is_some() {}
                Ok(state.get())
            });
            inner.close();
            Ok(())
        })?;
        input.send(vec![7]).unwrap();
        input.close();
        settle(worker)?;
        assert!(worker.has_dataflows(), "it is not done");
        busy.set(false);
        activator.unwrap().activate();
        settle(worker)?;
        assert!(!worker.has_dataflows());
        Ok(())
    });
    outcome.unwrap();
}
