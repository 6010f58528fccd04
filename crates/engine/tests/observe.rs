//! The events that a worker reports to its observers.

mod common;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use pointstamp_engine::error::Error;
use pointstamp_engine::observe::{EdgeId, Observation, Observer, OperatorId};
use pointstamp_engine::operators::{Input, Probe, concatenate};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::SendError;
use pointstamp_engine::scope::Scope;
use pointstamp_engine::worker::Worker;
use pointstamp_order::{Point, Summary};
use pointstamp_progress::Mode;

/// The events of one worker, added up.
#[derive(Debug, Default)]
struct Tally {
    operators: BTreeMap<OperatorId, (Vec<usize>, String)>,
    edges: BTreeMap<EdgeId, &'static str>,
    running: Vec<OperatorId>,
    runs: BTreeMap<OperatorId, u64>,
    sent: BTreeMap<EdgeId, usize>,
    sent_away: usize,
    received: BTreeMap<EdgeId, usize>,
    capabilities: BTreeMap<u64, Point>,
    progress: (usize, usize),
    frontiers: BTreeMap<(OperatorId, String), i64>,
    shut: Vec<OperatorId>,
}

impl Tally {
    fn observe(&mut self, observation: &Observation<'_>) {
        match *observation {
            Observation::ScopeMade {
                id, address, name, ..
            }
            | Observation::OperatorMade {
                id, address, name, ..
            } => {
                let new = self
                    .operators
                    .insert(id, (address.to_vec(), name.to_owned()));
                assert!(new.is_none(), "{id} is made once");
            }
            Observation::EdgeMade { id, pact, .. } => {
                assert!(self.edges.insert(id, pact).is_none(), "{id} is made once");
            }
            Observation::ScheduleBegins { id } => {
                assert!(self.operators.contains_key(&id));
                self.running.push(id);
                *self.runs.entry(id).or_default() += 1;
            }
            Observation::ScheduleEnds { id } => assert_eq!(self.running.pop(), Some(id)),
            Observation::MessageSent {
                edge,
                records,
                worker,
                ..
            } => {
                *self.sent.entry(edge).or_default() += records;
                self.sent_away += worker;
            }
            Observation::MessageReceived { edge, records, .. } => {
                *self.received.entry(edge).or_default() += records;
            }
            Observation::CapabilityMade {
                capability, time, ..
            } => {
                assert!(self.capabilities.insert(capability, time.clone()).is_none());
            }
            Observation::CapabilityDowngraded {
                capability,
                from,
                to,
                ..
            } => {
                let before = self.capabilities.insert(capability, to.clone());
                assert_eq!(before.as_ref(), Some(from));
            }
            Observation::CapabilityDropped {
                capability, time, ..
            } => {
                assert_eq!(self.capabilities.remove(&capability).as_ref(), Some(time));
            }
            Observation::ProgressSent { changes, .. } => self.progress.0 += changes.len(),
            Observation::ProgressReceived { changes, .. } => self.progress.1 += changes.len(),
            Observation::FrontierMoved { scope, changes } => {
                for ((location, time), diff) in changes {
                    let place = (scope, format!("{location} {time}"));
                    *self.frontiers.entry(place).or_default() += diff;
                }
            }
            Observation::Shutdown { id } => self.shut.push(id),
            _ => {}
        }
    }
}

/// Counts down in a loop, every number on the worker of its remainder, with the tally as the observer.
fn countdown(worker: &Worker<Vec<u64>>, tally: &Rc<RefCell<Tally>>) -> Result<(), Error> {
    let observer = Rc::clone(tally);
    let observer: Rc<dyn Observer> =
        Rc::new(move |said: &Observation<'_>| observer.borrow_mut().observe(said));
    worker.observe(Rc::clone(&observer));
    let (input, probe) = (Input::new(), Probe::new());
    worker.dataflow("countdown", 1, |scope| {
        let numbers = input.attach(scope)?;
        let inner = scope.nested("loop", 1)?;
        let (handle, around) = inner.feedback(Summary::step(2, 1))?;
        let entered = inner.enter(&numbers)?;
        let both = concatenate(&inner, [entered, around])?;
        let route = |batch: Vec<u64>, parts: &mut [Vec<Vec<u64>>]| {
            for x in batch {
                let worker = x % parts.len() as u64;
                parts[usize::try_from(worker).unwrap()].push(vec![x]);
            }
            Ok(())
        };
        let builder = inner.operator("less")?;
        let port = builder.new_input(&both, Pact::exchange(route))?;
        let (output, less) = builder.new_output()?;
        builder.build(move || {
            while let Some((capability, batch)) = port.next()? {
                let kept = capability.retain(0)?;
                let batch = batch.iter().filter_map(|x| x.checked_sub(1)).collect();
                output.send(&kept, batch).map_err(SendError::into_cause)?;
            }
            Ok(false)
        });
        handle.connect(&less)?;
        inner.close();
        probe.attach(&inner.leave(&less)?)?;
        Ok(())
    })?;
    for round in 0..3_u64 {
        input.send(vec![4 + worker.index() as u64]).unwrap();
        let next = Point::new(&[round + 1]);
        input.advance_to(&next)?;
        worker.step_while(|| probe.less_than(&next))?;
    }
    input.close();
    worker.run()?;
    worker.unobserve(&observer);
    drop(observer);
    let after = tally.borrow().runs.clone();
    worker.dataflow("unseen", 1, |scope| {
        probe.attach(&Input::new().attach(scope)?)
    })?;
    worker.step()?;
    assert_eq!(tally.borrow().runs, after, "it is not observed any more");
    Ok(())
}

#[test]
fn what_is_told_adds_up() {
    for shape in common::SHAPES {
        let outcome = shape.run(Mode::Demand, |worker| {
            let tally = Rc::default();
            countdown(worker, &tally)?;
            let tally = Rc::try_unwrap(tally).map_err(drop);
            Ok(tally.expect("the observer is gone").into_inner())
        });
        let tallies = outcome.unwrap();
        let peers = shape.peers();
        let (mut sent, mut received) = (BTreeMap::new(), BTreeMap::new());
        for tally in &tallies {
            assert_eq!(tally.operators, tallies[0].operators, "numbered alike");
            assert_eq!(tally.edges, tallies[0].edges, "numbered alike");
            assert!(tally.running.is_empty());
            assert!(tally.capabilities.is_empty(), "{:?}", tally.capabilities);
            assert!(tally.frontiers.values().all(|count| *count == 0));
            let mut shut = tally.shut.clone();
            shut.sort();
            assert!(
                tally.operators.keys().eq(&shut),
                "all that was made ends, once"
            );
            assert_eq!(tally.progress.0 > 0, peers > 1);
            assert_eq!(tally.progress.1 > 0, peers > 1);
            for (total, part) in [(&mut sent, &tally.sent), (&mut received, &tally.received)] {
                for (edge, records) in part {
                    *total.entry(*edge).or_insert(0) += records;
                }
            }
        }
        let crosses = |edge: &EdgeId| matches!(tallies[0].edges[edge], "enter" | "leave");
        assert!(sent.keys().any(crosses));
        sent.retain(|edge, _| !crosses(edge));
        assert_eq!(sent, received, "all that was sent was received");
        let name = |id: &OperatorId| tallies[0].operators[id].1.clone();
        let names: Vec<_> = tallies[0].operators.keys().map(name).collect();
        assert_eq!(names[..3], ["countdown", "input", "loop"]);
        // Each number comes round until it is nothing: x + 1 times.
        let less = tallies[0]
            .edges
            .iter()
            .find(|(_, pact)| **pact == "exchange");
        let rounds: usize = (0..peers).map(|worker| 3 * (5 + worker)).sum();
        assert_eq!(received[less.unwrap().0], rounds);
    }
}

#[test]
fn who_observes_nothing_costs_no_numbers() {
    let made = common::threads(1).run(Mode::Demand, |worker: &Worker<Vec<u64>>| {
        let begun = worker.dataflow("flow", 1, Scope::unordered_input);
        let (_input, first, _stream) = begun?;
        assert_eq!(first.number(), 0);
        let count = Rc::new(Cell::new(0));
        let observer = Rc::clone(&count);
        worker.observe(Rc::new(move |said: &Observation<'_>| {
            if let Observation::CapabilityDropped { capability, .. } = said {
                assert_eq!(*capability, 0, "made before there was an observer");
                observer.set(observer.get() + 1);
            }
        }));
        drop(first);
        Ok(count.get())
    });
    assert_eq!(made.unwrap(), [1]);
}
