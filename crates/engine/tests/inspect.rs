//! The state of a worker's dataflows, and the holders of a time.

mod common;

use std::cell::RefCell;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Barrier;

use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::Error;
use pointstamp_engine::inspect::{Holder, ScopeState, Snapshot};
use pointstamp_engine::observe::OperatorId;
use pointstamp_engine::operators::{Input, Probe, concatenate};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::SendError;
use pointstamp_engine::worker::Worker;
use pointstamp_order::{PartialOrder, Point, Summary};
use pointstamp_progress::{Mode, Port};

type Batch = Vec<u64>;

/// Capabilities that an operator keeps although it should not.
type Kept = Rc<RefCell<Vec<Capability>>>;

/// A loop in which every number counts down; at 7, its capability is kept. Returns the places of the probe, by
/// number.
fn leaky(
    worker: &Worker<Batch>,
    input: &Input<Batch>,
    probe: &Probe,
    kept: &Kept,
) -> Result<OperatorId, Error> {
    let kept = Rc::clone(kept);
    worker.dataflow("leaky", 1, |scope| {
        let numbers = input.attach(scope)?;
        let inner = scope.nested("loop", 1)?;
        let (handle, around) = inner.feedback(Summary::step(2, 1))?;
        let both = concatenate(&inner, [inner.enter(&numbers)?, around])?;
        let builder = inner.operator("less")?;
        let port = builder.new_input(&both, Pact::Pipeline)?;
        let (output, less) = builder.new_output()?;
        builder.build(move || {
            while let Some((capability, batch)) = port.next()? {
                if batch.contains(&7) {
                    kept.borrow_mut().push(capability.retain(0)?);
                }
                let less = batch.iter().filter_map(|x| x.checked_sub(1)).collect();
                output
                    .send(&capability, less)
                    .map_err(SendError::into_cause)?;
            }
            Ok(false)
        });
        handle.connect(&less)?;
        inner.close();
        let out = inner.leave(&less)?;
        let behind = probe.attach(&out.forward("out", Pact::Broadcast)?)?;
        Ok(behind.operator())
    })
}

fn find(snapshot: &Snapshot, name: &str) -> OperatorId {
    fn search(scope: &ScopeState, name: &str) -> Option<OperatorId> {
        scope.operators.iter().find_map(|operator| {
            if operator.name == name {
                return Some(operator.id);
            }
            search(operator.scope.as_ref()?, name)
        })
    }
    let found = snapshot
        .dataflows
        .iter()
        .find_map(|scope| search(scope, name));
    found.unwrap_or_else(|| panic!("there is no {name}"))
}

fn names(snapshot: &Snapshot, holder: &Holder) -> Vec<String> {
    let steps = holder.path.iter();
    let name = |id| snapshot.name(id).expect("it is there").to_owned();
    let mut names: Vec<_> = steps.map(|step| name(step.operator)).collect();
    names.dedup();
    names
}

#[test]
fn a_capability_that_is_kept_in_a_loop_is_found_on_every_worker() {
    for shape in [
        common::threads(1),
        common::threads(2),
        common::processes(2, 1),
    ] {
        let barrier = Barrier::new(shape.peers());
        let found = shape.run(Mode::Demand, |worker| {
            let (input, probe, kept) = (Input::new(), Probe::new(), Kept::default());
            let at = leaky(worker, &input, &probe, &kept)?;
            let last = worker.peers() - 1;
            input.send(vec![3]).unwrap();
            if worker.index() == last {
                input.send(vec![9]).unwrap();
            }
            input.advance_to(&Point::new(&[1]))?;
            let end = Point::new(&[1]);
            // Until nothing but the leak is in the way.
            let mut steps = 0;
            let (snapshot, holder) = loop {
                steps += 1;
                assert!(steps < 1_000_000, "something else is in the way");
                worker.step()?;
                let snapshot = worker.inspect();
                assert_eq!(at, find(&snapshot, "probe"));
                let holders = snapshot.holders(at, Port::Target(0), Bound::Excluded(&end));
                assert!(!holders.is_empty(), "it cannot end");
                if let [holder] = &holders[..]
                    && snapshot.name(holder.operator) == Some("less")
                    && holder.port == Port::Source(0)
                {
                    break (snapshot, holder.clone());
                }
            };
            barrier.wait();
            assert!(probe.less_than(&end));
            let way = ["less", "loop", "out", "probe"];
            assert_eq!(names(&snapshot, &holder), way);
            // 9 was there before the loop had turned, and is 7 after two turns.
            assert_eq!((&holder.time, holder.count), (&Point::new(&[0, 2]), 1));
            assert_eq!(holder.here, i64::from(worker.index() == last));
            kept.take();
            worker.step_while(|| probe.less_than(&end))?;
            let snapshot = worker.inspect();
            let later = snapshot.holders(at, Port::Target(0), Bound::Included(&end));
            assert!(later.iter().any(|holder| {
                snapshot.name(holder.operator) == Some("input") && holder.time == end
            }));
            input.close();
            Ok(())
        });
        found.unwrap();
    }
}

#[test]
fn what_is_not_read_is_found_where_it_waits() {
    let outcome = common::threads(1).run(Mode::Demand, |worker: &Worker<Batch>| {
        let (input, probe) = (Input::new(), Probe::new());
        worker.dataflow("unread", 1, |scope| {
            let stream = input.attach(scope)?;
            let builder = scope.operator("lazy")?;
            let port = builder.new_input(&stream, Pact::Pipeline)?;
            let (_output, lazy) = builder.new_output()?;
            let mut read = false;
            builder.notify();
            builder.build(move || {
                // Only the first batch: the others are forgotten.
                if !read && port.next()?.is_some() {
                    read = true;
                }
                Ok(false)
            });
            probe.attach(&lazy).map(drop)
        })?;
        input.send(vec![1]).unwrap();
        input.send(vec![2, 3]).unwrap();
        input.send(vec![4]).unwrap();
        input.advance_to(&Point::new(&[5]))?;
        while worker.has_work() {
            worker.step()?;
        }
        let snapshot = worker.inspect();
        let at = find(&snapshot, "probe");
        let bound = Point::new(&[5]);
        let holders = snapshot.holders(at, Port::Target(0), Bound::Excluded(&bound));
        let lazy = find(&snapshot, "lazy");
        let [holder] = &holders[..] else {
            panic!("{holders:?}");
        };
        assert_eq!((holder.operator, holder.port), (lazy, Port::Target(0)));
        assert_eq!(
            (&holder.time, holder.count, holder.here),
            (&Point::new(&[0]), 3, 3)
        );
        let state = snapshot.operator(lazy).unwrap();
        let waits: Vec<_> = state.inputs[0].waiting.iter().map(|(_, n)| *n).collect();
        assert_eq!(waits, [2, 1]);
        assert!(!state.inputs[0].remote && !state.complete && !state.held_back);
        assert_eq!(snapshot.dataflows[0].edges.len(), 2);
        worker.drop_dataflow(0);
        Ok(())
    });
    outcome.unwrap();
}

/// At every port: something holds each time of the frontier, and nothing holds an earlier one.
fn check(snapshot: &Snapshot, scope: &ScopeState) -> usize {
    let mut checked = 0;
    for operator in &scope.operators {
        let inputs = operator.inputs.iter().map(|input| &input.frontier);
        let outputs = operator.outputs.iter().map(|output| &output.frontier);
        let inputs = inputs
            .enumerate()
            .map(|(i, times)| (Port::Target(i), times));
        let outputs = outputs
            .enumerate()
            .map(|(i, times)| (Port::Source(i), times));
        for (port, frontier) in inputs.chain(outputs) {
            let all = snapshot.holders(operator.id, port, Bound::Unbounded);
            assert_eq!(all.is_empty(), frontier.is_empty(), "{}", operator.name);
            for time in frontier {
                let until = snapshot.holders(operator.id, port, Bound::Included(time));
                let before = snapshot.holders(operator.id, port, Bound::Excluded(time));
                assert!(!until.is_empty(), "{} {port:?} {time}", operator.name);
                assert!(before.is_empty(), "{} {port:?} {time}", operator.name);
                for Holder {
                    time: held, path, ..
                } in until
                {
                    let (first, last) = (path[0], path[path.len() - 1]);
                    assert_eq!((last.operator, last.port), (operator.id, port));
                    let dims = held.dims().min(time.dims());
                    assert!(
                        held.truncate(dims).less_equal(&time.truncate(dims)),
                        "{first:?}"
                    );
                }
                checked += 1;
            }
        }
        if let Some(inside) = &operator.scope {
            checked += check(snapshot, inside);
        }
    }
    checked
}

#[test]
fn what_holds_a_time_agrees_with_the_frontiers() {
    let outcome = common::threads(1).run(Mode::Demand, |worker: &Worker<Batch>| {
        let (input, probe, kept) = (Input::new(), Probe::new(), Kept::default());
        leaky(worker, &input, &probe, &kept)?;
        let mut checked = 0;
        for round in 0..4 {
            input.send(vec![round, 6 + round]).unwrap();
            input.advance_to(&Point::new(&[round + 1]))?;
            while worker.has_work() {
                worker.step()?;
            }
            let snapshot = worker.inspect();
            checked += check(&snapshot, &snapshot.dataflows[0]);
        }
        assert_eq!(kept.borrow().len(), 3);
        kept.take();
        input.close();
        worker.run()?;
        assert!(worker.inspect().dataflows.is_empty());
        Ok(checked)
    });
    assert!(outcome.unwrap()[0] > 50);
}
