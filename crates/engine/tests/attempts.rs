//! Attempts at a cut: participants, attempts that fail, and the requirements for resuming from a cut.

mod common;
#[path = "common/cutting.rs"]
mod cutting;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pointstamp_engine::cut::{
    Changes, Cuts, GivenUp, Limits, Objection, Part, RescaleError, Share, State, Unlike, rescale,
};
use pointstamp_engine::error::{Error, RestoreError, UserResult};
use pointstamp_engine::operators::{Input, Probe, concatenate};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::scope::Scope;
use pointstamp_engine::stream::Stream;
use pointstamp_engine::worker::Worker;
use pointstamp_order::{Point, Summary};
use pointstamp_progress::Mode;

use common::{processes, threads};
use cutting::{Batch, LONG};

/// Keeps the reports of cuts.
#[derive(Default)]
struct Attempts {
    parts: RefCell<Vec<Part<Batch>>>,
    given_up: RefCell<Vec<GivenUp>>,
    complete: Cell<u64>,
    /// The number of parts that `take` has returned.
    returned: Cell<usize>,
}

impl Cuts<Batch> for Attempts {
    fn taken(&self, part: Part<Batch>) -> UserResult<()> {
        self.parts.borrow_mut().push(part);
        Ok(())
    }

    fn complete(&self, attempt: u64) {
        self.complete.set(attempt);
    }

    fn given_up(&self, given_up: GivenUp) {
        self.given_up.borrow_mut().push(given_up);
    }
}

fn recorded(worker: &Worker<Batch>, limits: Limits) -> Rc<Attempts> {
    let recorder = Rc::new(Attempts::default());
    worker.set_cuts(limits, recorder.clone());
    recorder
}

/// Takes a cut of the workers; returns the part of this one, which may have been taken already: another
/// worker asks.
fn take(worker: &Worker<Batch>, recorder: &Attempts) -> Result<Part<Batch>, Error> {
    let before = recorder.returned.get();
    recorder.returned.set(before + 1);
    if worker.index() == 0 {
        worker.request_cut();
    }
    worker.step_while(|| recorder.parts.borrow().len() == before)?;
    let part = recorder.parts.borrow()[before].clone();
    Ok(part)
}

/// Counts up, one record a run, until it is stopped or reaches `most`.
fn source(scope: &Scope<Batch>, runs: Rc<Cell<u64>>, most: u64) -> Result<Stream<Batch>, Error> {
    let builder = scope.operator("source")?;
    let (output, stream, capability) = builder.new_held_output()?;
    builder.start();
    let activator = builder.activator();
    let restored = builder.restored();
    if let Some([bytes]) = restored.as_ref().map(|restored| restored.state.pieces()) {
        runs.set(postcard::from_bytes(&bytes.to_bytes().unwrap()).unwrap());
    }
    let sent = runs.clone();
    builder.keeps(move || {
        Ok(State::Workers(vec![
            postcard::to_stdvec(&sent.get())?.into(),
        ]))
    });
    let mut capability = Some(capability);
    builder.build(move || {
        if let Some(held) = capability.as_mut().filter(|_| runs.get() < most) {
            output.send(held, vec![runs.get()])?;
            runs.set(runs.get() + 1);
            held.downgrade(&Point::new(&[runs.get()]))?;
            activator.activate();
        } else {
            capability = None;
        }
        Ok(false)
    });
    Ok(stream)
}

fn collect(stream: &Stream<Batch>) -> Result<Rc<RefCell<Vec<u64>>>, Error> {
    let builder = stream.scope().operator("collect")?;
    let input = builder.new_input(stream, Pact::Pipeline)?;
    builder.stateless();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let sink = seen.clone();
    builder.build(move || {
        while let Some((_, batch)) = input.next()? {
            sink.borrow_mut().extend(batch);
        }
        Ok(false)
    });
    Ok(seen)
}

#[test]
fn a_worker_that_does_not_step_delays_cuts_and_pauses_nobody() {
    let blocked = AtomicBool::new(true);
    threads(2)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let limits = Limits {
                ready: Duration::from_millis(5),
                ..LONG
            };
            let recorder = recorded(worker, limits);
            let runs = Rc::new(Cell::new(0));
            let seen = worker.dataflow("count", 1, |scope| {
                collect(&source(scope, runs.clone(), 100_000)?)
            })?;
            if worker.index() == 1 {
                while blocked.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
            } else {
                worker.request_cut();
                while recorder.given_up.borrow().is_empty() {
                    let before = runs.get();
                    worker.step()?;
                    assert!(
                        runs.get() > before || before == 100_000,
                        "the source was held"
                    );
                }
                let given_up = recorder.given_up.borrow()[0].clone();
                assert_eq!((given_up.attempt, &given_up.missing[..]), (1, &[1][..]));
                assert!(given_up.busy.is_empty() && !given_up.unlike);
                blocked.store(false, Ordering::SeqCst);
            }
            worker.run()?;
            assert_eq!(seen.borrow().len(), 100_000);
            Ok(())
        })
        .unwrap();
}

#[test]
fn workers_whose_steps_take_longer_than_an_answer_may_take_have_cuts() {
    let complete = AtomicBool::new(false);
    threads(2)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let limits = Limits {
                ready: Duration::from_millis(1),
                ..LONG
            };
            let recorder = recorded(worker, limits);
            worker.dataflow("count", 1, |scope| {
                collect(&source(scope, Rc::new(Cell::new(0)), 10)?)
            })?;
            let mut attempts = 0;
            while !complete.load(Ordering::SeqCst) {
                worker.step()?;
                if worker.index() == 1 {
                    std::thread::sleep(Duration::from_millis(25)); // a step that takes long
                } else if recorder.complete.get() > 0 {
                    complete.store(true, Ordering::SeqCst);
                } else if recorder.given_up.borrow().len() == attempts {
                    attempts += 1;
                    assert!(attempts < 40, "no attempt succeeds");
                    worker.request_cut();
                }
            }
            worker.run()
        })
        .unwrap();
}

#[test]
fn workers_whose_main_has_returned_take_part() {
    for shape in [threads(2), processes(2, 1)] {
        let complete = shape
            .run::<Batch, _>(Mode::Demand, |worker| {
                let recorder = recorded(worker, LONG);
                let seen = worker.dataflow("count", 1, |scope| {
                    collect(&source(scope, Rc::new(Cell::new(0)), 10)?)
                })?;
                if worker.index() == 0 {
                    worker.run()?; // the dataflow has ended everywhere
                    for attempt in 1..=2 {
                        worker.request_cut();
                        while recorder.complete.get() < attempt {
                            worker.step()?;
                        }
                    }
                }
                worker.finish()?;
                assert_eq!(seen.borrow().len(), 10);
                Ok(recorder.complete.get())
            })
            .unwrap();
        assert_eq!(complete, [2, 0]);
    }
}

#[test]
fn what_does_not_drain_is_given_up_and_named_and_goes_on() {
    for shape in [threads(1), threads(2), processes(2, 1)] {
        let free = AtomicUsize::new(0);
        shape
            .run::<Batch, _>(Mode::Demand, |worker| {
                let limits = Limits {
                    drain: Duration::from_millis(20),
                    ..LONG
                };
                let recorder = recorded(worker, limits);
                let stop = Rc::new(Cell::new(false));
                let (input, ends) = (Input::new(), stop.clone());
                let seen = worker.dataflow("restless", 1, |scope| {
                    let stream = input.attach(scope)?;
                    let builder = scope.operator("restless")?;
                    let port = builder.new_input(&stream, Pact::Pipeline)?;
                    let (output, sent) = builder.new_output()?;
                    let activator = builder.activator();
                    builder.stateless();
                    builder.build(move || {
                        while let Some((capability, batch)) = port.next()? {
                            output.send(&capability, batch)?;
                        }
                        if !ends.get() {
                            activator.resume();
                        }
                        Ok(false)
                    });
                    collect(&sent)
                })?;
                input.send(vec![1]).unwrap();
                if worker.index() == 0 {
                    worker.request_cut();
                }
                worker.step_while(|| recorder.given_up.borrow().is_empty())?;
                let given_up = recorder.given_up.borrow()[0].clone();
                let names = given_up.busy.iter().map(|(_, name)| &name[..]);
                assert!(names.clone().any(|name| name == "restless"), "{given_up:?}");
                assert!(recorder.parts.borrow().is_empty());
                stop.set(true);
                // The next attempt finds them at rest.
                free.fetch_add(1, Ordering::SeqCst);
                while free.load(Ordering::SeqCst) < worker.peers() {
                    worker.step()?;
                    std::thread::yield_now();
                }
                let patient = self::recorded(worker, LONG);
                take(worker, &patient)?;
                input.send(vec![2]).unwrap();
                input.close();
                worker.run()?;
                assert_eq!(*seen.borrow(), [1, 2]);
                assert!(worker.index() > 0 || patient.complete.get() > 1);
                Ok(())
            })
            .unwrap();
    }
}

/// Records that go round for ever, unless they are to leave.
fn for_ever(
    scope: &Scope<Batch>,
    input: &Input<Batch>,
    leave: Rc<Cell<bool>>,
) -> Result<Rc<RefCell<Vec<u64>>>, Error> {
    let stream = input.attach(scope)?;
    let inner = scope.nested("loop", 1)?;
    let (handle, cycle) = inner.feedback(Summary::step(2, 1))?;
    let entered = inner.enter(&stream)?;
    let merged = concatenate(&inner, [entered, cycle])?;
    let builder = inner.operator("turn")?;
    let port = builder.new_input(&merged, Pact::Pipeline)?;
    let (out, leaving) = builder.new_output()?;
    let (on, going) = builder.new_output()?;
    builder.stateless();
    builder.build(move || {
        while let Some((capability, batch)) = port.next()? {
            if leave.get() {
                out.send(&capability, batch)?;
            } else {
                on.send(&capability, batch.into_iter().map(|x| x + 1).collect())?;
            }
        }
        Ok(false)
    });
    handle.connect(&going)?;
    let left = inner.leave(&leaving)?;
    inner.close();
    collect(&left)
}

#[test]
fn a_loop_that_never_ends_drains_within_a_turn() {
    for shape in [threads(1), threads(2), processes(2, 1)] {
        let parts = shape
            .run::<Batch, _>(Mode::Demand, |worker| {
                let recorder = recorded(worker, LONG);
                let (input, leave) = (Input::new(), Rc::new(Cell::new(false)));
                let seen = worker.dataflow("for ever", 1, |scope| {
                    for_ever(scope, &input, leave.clone())
                })?;
                input.send(vec![0]).unwrap();
                for _ in 0..20 {
                    worker.step()?;
                }
                let part = take(worker, &recorder)?;
                assert_eq!(part.objections(), []);
                leave.set(true);
                input.close();
                worker.run()?;
                assert_eq!(seen.borrow().len(), 1);
                Ok(part)
            })
            .unwrap();
        let turns: Vec<_> = parts
            .iter()
            .map(|part| {
                let operators = part.dataflows[0].operators.iter();
                let queued: Vec<_> = operators
                    .flat_map(|operator| {
                        operator
                            .queued
                            .iter()
                            .map(|queued| (&operator.name, queued))
                    })
                    .collect();
                let [(name, queued)] = queued[..] else {
                    panic!("one batch waits, and not {queued:?}")
                };
                assert_eq!(name, "feedback");
                queued.batch[0]
            })
            .collect();
        let shares = Mutex::new(Share::of(parts));
        shape
            .run::<Batch, _>(Mode::Demand, |worker| {
                resume(worker, &shares)?;
                let (input, leave) = (Input::new(), Rc::new(Cell::new(true)));
                let seen =
                    worker.dataflow("for ever", 1, |scope| for_ever(scope, &input, leave))?;
                input.close();
                worker.run()?;
                assert_eq!(*seen.borrow(), [turns[worker.index()]]);
                Ok(())
            })
            .unwrap();
    }
}

/// Begins with the worker's share of the parts of a cut.
fn resume(worker: &Worker<Batch>, shares: &Mutex<Vec<Share<Batch>>>) -> Result<(), Error> {
    let here = worker.index();
    let share = shares
        .lock()
        .iter()
        .find(|it| it.part.worker == here)
        .cloned();
    worker.restore(share.unwrap())
}

/// Steps until there is nothing to do.
fn rest(worker: &Worker<Batch>) -> Result<(), Error> {
    let mut steps = 0;
    while worker.has_work() {
        worker.step()?;
        steps += 1;
        assert!(steps < 10_000, "there is always something to do");
    }
    Ok(())
}

/// Collects one input, and another one behind a scope inside of a scope.
fn through_scopes(
    worker: &Worker<Batch>,
    [direct, inside]: [&Input<Batch>; 2],
) -> Result<Rc<RefCell<Vec<u64>>>, Error> {
    worker.dataflow("two", 1, |scope| {
        collect(&direct.attach(scope)?)?;
        let outer = scope.nested("outer", 1)?;
        let entered = outer.enter(&inside.attach(scope)?)?;
        let inner = outer.nested("inner", 1)?;
        let passed = inner.enter(&entered)?.forward("pass", Pact::Pipeline)?;
        let left = inner.leave(&passed)?;
        inner.close();
        let left = outer.leave(&left)?;
        outer.close();
        collect(&left)
    })
}

#[test]
fn scopes_inside_of_a_scope_that_had_ended_have_nothing_to_do() {
    for shape in [threads(1), threads(2), processes(2, 1)] {
        let parts = shape
            .run::<Batch, _>(Mode::Demand, |worker| {
                let recorder = recorded(worker, LONG);
                let (direct, inside) = (Input::new(), Input::new());
                let seen = through_scopes(worker, [&direct, &inside])?;
                inside.send(vec![1]).unwrap();
                inside.close();
                worker.step_while(|| seen.borrow().is_empty())?;
                let part = take(worker, &recorder)?;
                direct.close();
                worker.run()?;
                Ok(part)
            })
            .unwrap();
        for part in &parts {
            let mut operators = part.dataflows[0].operators.iter();
            assert!(operators.any(|it| it.name == "outer" && it.finished));
        }
        let shares = Mutex::new(Share::of(parts));
        shape
            .run::<Batch, _>(Mode::Demand, |worker| {
                resume(worker, &shares)?;
                let recorder = recorded(worker, LONG);
                let (direct, inside) = (Input::new(), Input::new());
                through_scopes(worker, [&direct, &inside])?;
                inside.close();
                rest(worker)?;
                take(worker, &recorder)?;
                direct.close();
                worker.run()
            })
            .unwrap();
    }
}

/// The limit of what `main` has in flight, where it does not step: records, and times.
const PARTS: [usize; 2] = [4096, 256];

#[test]
fn main_that_does_not_step_sends_in_parts_and_waits_for_no_loop_and_no_source() {
    threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let recorder = recorded(worker, LONG);
            let (looped, input) = (Input::new(), Input::new());
            let leave = Rc::new(Cell::new(false));
            let left = worker.dataflow("for ever", 1, |scope| {
                for_ever(scope, &looped, leave.clone())
            })?;
            let runs = Rc::new(Cell::new(0));
            let counted = worker.dataflow("count", 1, |scope| {
                collect(&source(scope, runs.clone(), u64::MAX)?)
            })?;
            let seen = worker.dataflow("parts", 1, |scope| collect(&input.attach(scope)?))?;
            looped.send(vec![0]).unwrap();
            let in_flight = |sent: usize| sent - seen.borrow().len();
            let (mut most, mut sent) = ([0, 0], 0);
            for moves in [false, true] {
                while in_flight(sent) > 0 {
                    worker.step()?;
                }
                for number in 1..=20_000 {
                    sent += 1;
                    input.send(vec![sent as u64]).unwrap();
                    most[usize::from(moves)] = most[usize::from(moves)].max(in_flight(sent));
                    if moves {
                        input.advance_to(&Point::new(&[number]))?;
                    }
                }
            }
            assert!(most[0] <= PARTS[0], "{most:?}");
            assert!(most[1] <= PARTS[1] + 1, "{most:?}");
            // A part takes a few steps, and no second.
            assert!(runs.get() < 2000, "{}", runs.get());
            leave.set(true);
            while left.borrow().is_empty() {
                worker.step()?;
            }
            assert!(left.borrow()[0] < 2000, "{:?}", left.borrow());
            // The source goes on, and a cut is taken.
            worker.step_while(|| counted.borrow().len() < 2000)?;
            take(worker, &recorder)?;
            for index in worker.installed_dataflows() {
                worker.drop_dataflow(index);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_cut_waits_for_dataflows_that_are_being_built() {
    threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let recorder = recorded(worker, LONG);
            let first = Input::<Batch>::new();
            worker.dataflow("first", 1, |scope| collect(&first.attach(scope)?))?;
            let (begun, second) = (worker.begin_dataflow("second", 1), Input::<Batch>::new());
            collect(&second.attach(&begun)?)?;
            worker.request_cut();
            for _ in 0..20 {
                worker.step()?;
            }
            assert!(recorder.parts.borrow().is_empty() && recorder.given_up.borrow().is_empty());
            worker.install(&begun)?;
            worker.step_while(|| recorder.parts.borrow().is_empty())?;
            assert_eq!(recorder.parts.borrow()[0].dataflows.len(), 2);
            Ok(())
        })
        .unwrap();
}

#[test]
fn workers_that_have_dropped_different_dataflows_take_no_part() {
    let stage = AtomicUsize::new(0);
    threads(2)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let recorder = recorded(worker, LONG);
            let (one, other) = (Input::<Batch>::new(), Input::<Batch>::new());
            worker.dataflow("kept", 1, |scope| collect(&one.attach(scope)?))?;
            worker.dataflow("dropped", 1, |scope| collect(&other.attach(scope)?))?;
            if worker.index() == 0 {
                worker.drop_dataflow(1);
                worker.request_cut();
                while recorder.given_up.borrow().is_empty() {
                    worker.step()?;
                }
                assert!(recorder.given_up.borrow()[0].unlike);
                stage.store(1, Ordering::SeqCst);
            } else {
                while stage.load(Ordering::SeqCst) == 0 {
                    worker.step()?;
                }
                worker.drop_dataflow(1);
                stage.store(2, Ordering::SeqCst);
            }
            while stage.load(Ordering::SeqCst) < 2 {
                worker.step()?;
            }
            let part = take(worker, &recorder)?;
            assert_eq!((part.begun, part.dataflows.len()), (2, 1));
            Ok(())
        })
        .unwrap();
}

/// Builds three dataflows: one that ends, one that is dropped, and one that counts to 40.
fn three(worker: &Worker<Batch>) -> Result<[Rc<RefCell<Vec<u64>>>; 3], Error> {
    let count = |most| {
        worker.dataflow("count", 1, move |scope| {
            collect(&source(scope, Rc::default(), most)?)
        })
    };
    let ends = count(3)?;
    let dropped = count(1000)?;
    worker.drop_dataflow(1);
    Ok([ends, dropped, count(40)?])
}

#[test]
fn dataflows_that_had_ended_do_not_run_again() {
    let parts = threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let recorder = recorded(worker, LONG);
            let [ends, dropped, last] = three(worker)?;
            for _ in 0..10 {
                worker.step()?;
            }
            assert_eq!((ends.borrow().len(), dropped.borrow().len()), (3, 0));
            let part = take(worker, &recorder)?;
            let before = last.borrow().len();
            worker.run()?;
            assert_eq!(last.borrow().len(), 40);
            Ok((part, before))
        })
        .unwrap();
    let (part, before) = parts.into_iter().next().unwrap();
    assert_eq!(
        part.dataflows.iter().map(|it| it.index).collect::<Vec<_>>(),
        [2]
    );
    threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            worker.restore(Share::of(vec![part.clone()]).remove(0))?;
            assert_eq!(worker.unrestored(), [2]);
            let [ends, dropped, last] = three(worker)?;
            worker.run()?;
            assert!(ends.borrow().is_empty() && dropped.borrow().is_empty());
            let expected: Vec<_> = (before as u64..40).collect();
            assert_eq!(*last.borrow(), expected);
            Ok(())
        })
        .unwrap();
}

/// Two sources of one dataflow, which count to these numbers.
fn both(worker: &Worker<Batch>, most: [u64; 2]) -> Result<Rc<RefCell<Vec<u64>>>, Error> {
    worker.dataflow("both", 1, |scope| {
        let streams = most.map(|most| source(scope, Rc::default(), most));
        let [one, other] = streams;
        collect(&concatenate(scope, [one?, other?])?)
    })
}

#[test]
fn an_operator_that_had_ended_does_not_run_again() {
    let part = threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let recorder = recorded(worker, LONG);
            let seen = both(worker, [3, 40])?;
            for _ in 0..10 {
                worker.step()?;
            }
            let part = take(worker, &recorder)?;
            assert_eq!(seen.borrow().iter().filter(|&&x| x < 3).count(), 6);
            Ok(part)
        })
        .unwrap()
        .remove(0);
    let sources = part.dataflows[0]
        .operators
        .iter()
        .filter(|it| it.name == "source");
    let finished: Vec<_> = sources.map(|it| it.finished).collect();
    assert_eq!(finished, [true, false]);
    threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            worker.restore(Share::of(vec![part.clone()]).remove(0))?;
            let seen = both(worker, [3, 40])?;
            worker.run()?;
            let seen = seen.borrow();
            assert!(seen.is_sorted() && seen[0] > 3 && seen.last() == Some(&39));
            Ok(())
        })
        .unwrap();
}

/// Sends its records after a hundred runs, for each of which it activates itself.
fn asks_itself(stream: &Stream<Batch>) -> Result<Stream<Batch>, Error> {
    let builder = stream.scope().operator("asks itself")?;
    let input = builder.new_input(stream, Pact::Pipeline)?;
    let (output, sent) = builder.new_output()?;
    let activator = builder.activator();
    let mut waiting = Vec::new();
    if let Some(mut restored) = builder.restored()
        && let [bytes] = restored.state.pieces()
    {
        let records: Vec<u64> = postcard::from_bytes(&bytes.to_bytes().unwrap()).unwrap();
        let held = restored.held.pop();
        waiting.extend(held.map(|held| (held, records)));
    }
    let waiting = Rc::new(RefCell::new(waiting));
    let kept = waiting.clone();
    builder.keeps(move || {
        let records: Vec<_> = kept
            .borrow()
            .iter()
            .flat_map(|(_, it)| it.clone())
            .collect();
        Ok(State::Workers(vec![postcard::to_stdvec(&records)?.into()]))
    });
    let mut runs = 0;
    builder.build(move || {
        while let Some((capability, batch)) = input.next()? {
            waiting.borrow_mut().push((capability.retain(0)?, batch));
        }
        if waiting.borrow().is_empty() {
            return Ok(false);
        }
        runs += 1;
        if runs < 100 {
            activator.activate();
            return Ok(false);
        }
        for (capability, records) in waiting.take() {
            output.send(&capability, records)?;
        }
        Ok(false)
    });
    Ok(sent)
}

#[test]
fn an_operator_that_has_asked_for_itself_runs_after_the_cut_here_and_there() {
    let parts = threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let (recorder, input) = (recorded(worker, LONG), Input::new());
            let seen = worker.dataflow("asks", 1, |scope| {
                collect(&asks_itself(&input.attach(scope)?)?)
            })?;
            worker.step()?;
            input.send(vec![7, 8]).unwrap();
            let part = take(worker, &recorder)?;
            assert!(seen.borrow().is_empty(), "it ran on while it was held");
            input.close();
            worker.run()?;
            assert_eq!(*seen.borrow(), [7, 8]);
            Ok(part)
        })
        .unwrap();
    threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            worker.restore(Share::of(parts.clone()).remove(0))?;
            let input = Input::new();
            let seen = worker.dataflow("asks", 1, |scope| {
                collect(&asks_itself(&input.attach(scope)?)?)
            })?;
            for _ in 0..110 {
                worker.step()?;
            }
            assert_eq!(*seen.borrow(), [7, 8]);
            worker.drop_dataflow(0);
            Ok(())
        })
        .unwrap();
}

#[test]
fn sources_wait_until_all_dataflows_of_a_cut_are_built() {
    let two = |worker: &Worker<Batch>, between: &dyn Fn() -> Result<(), Error>| {
        let runs = Rc::new(Cell::new(0));
        worker.dataflow("count", 1, |scope| {
            collect(&source(scope, runs.clone(), 1_000_000)?)
        })?;
        let built = runs.get();
        between()?;
        assert_eq!(runs.get(), built, "a source ran before all was built");
        let other = Input::new();
        let seen = worker.dataflow("other", 1, |scope| collect(&other.attach(scope)?))?;
        Ok::<_, Error>((runs, other, seen))
    };
    let parts = threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let recorder = recorded(worker, LONG);
            let _open = two(worker, &|| Ok(()))?;
            let part = take(worker, &recorder)?;
            worker.drop_dataflow(0);
            Ok(part)
        })
        .unwrap();
    threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            worker.restore(Share::of(parts.clone()).remove(0))?;
            let (runs, ..) = two(worker, &|| {
                (0..10).try_for_each(|_| worker.step().map(drop))
            })?;
            let before = runs.get();
            for _ in 0..3 {
                worker.step()?;
            }
            assert!(runs.get() > before);
            worker.drop_dataflow(0);
            Ok(())
        })
        .unwrap();
}

#[test]
fn times_of_a_restored_computation_begin_where_they_were() {
    let program = |worker: &Worker<Batch>, input: &Input<Batch>, probe: &Probe| {
        worker.dataflow("probed", 1, |scope| {
            let stream = input.attach(scope)?;
            probe.attach(&stream.forward("exchange", Pact::Broadcast)?)?;
            Ok(())
        })
    };
    for shape in [threads(2), processes(2, 1)] {
        let parts = shape
            .run::<Batch, _>(Mode::Demand, |worker| {
                let (recorder, input, probe) = (recorded(worker, LONG), Input::new(), Probe::new());
                program(worker, &input, &probe)?;
                input.send(vec![1, 2]).unwrap();
                input.advance_to(&Point::new(&[5 + worker.index() as u64]))?;
                input.send(vec![3]).unwrap();
                take(worker, &recorder)
            })
            .unwrap();
        let shares = Share::of(parts);
        let shares = Mutex::new(shares.into_iter().map(Some).collect::<Vec<_>>());
        let looked = AtomicUsize::new(0);
        shape
            .run::<Batch, _>(Mode::Demand, |worker| {
                let here = worker.index();
                worker.restore(shares.lock()[here].take().unwrap())?;
                let (input, probe) = (Input::new(), Probe::new());
                program(worker, &input, &probe)?;
                let at = Point::new(&[5 + here as u64]);
                let resumed = input
                    .resumed()
                    .map(|(time, standing)| (time, standing.sent));
                assert_eq!(resumed, Some((at.clone(), 1)));
                assert_eq!(input.time(), Some(at));
                worker.step()?;
                assert!(!probe.less_than(&Point::new(&[5])), "a time that was over");
                assert!(probe.less_equal(&Point::new(&[5])));
                looked.fetch_add(1, Ordering::SeqCst);
                while looked.load(Ordering::SeqCst) < worker.peers() {
                    std::thread::yield_now();
                }
                input.close();
                worker.run()?;
                assert!(probe.is_done());
                Ok(())
            })
            .unwrap();
    }
}

fn only<P: Clone>(parts: &[P]) -> P {
    parts[0].clone()
}

/// A worker that has something, built by `build` and cut.
fn one(build: impl Fn(&Scope<Batch>, &Stream<Batch>) -> Result<(), Error> + Sync) -> Part<Batch> {
    let parts = threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let (recorder, input) = (recorded(worker, LONG), Input::new());
            worker.dataflow("flow", 1, |scope| build(scope, &input.attach(scope)?))?;
            input.send(vec![1]).unwrap();
            let part = take(worker, &recorder)?;
            worker.drop_dataflow(0); // an operator may hold a time for ever
            Ok(part)
        })
        .unwrap();
    only(&parts)
}

/// Returns the error of resuming from a part with another program.
fn refused(
    part: &Part<Batch>,
    build: impl Fn(&Scope<Batch>, &Stream<Batch>) -> Result<(), Error> + Sync,
) -> RestoreError {
    let failure = threads(1).run::<Batch, _>(Mode::Demand, |worker| {
        worker.restore(Share::of(vec![part.clone()]).remove(0))?;
        let input = Input::new();
        worker.dataflow("flow", 1, |scope| build(scope, &input.attach(scope)?))?;
        Ok(())
    });
    match failure.unwrap_err().error {
        Error::Restore(error) => *error,
        error => panic!("{error}"),
    }
}

fn keeping(stream: &Stream<Batch>, state: State) -> Result<(), Error> {
    let builder = stream.scope().operator("keeping")?;
    let input = builder.new_input(stream, Pact::Pipeline)?;
    builder.keeps(move || Ok(state.clone()));
    builder.build(move || {
        while input.next()?.is_some() {}
        Ok(false)
    });
    Ok(())
}

/// An operator of this name that takes up its state, and keeps it.
fn with_state(stream: &Stream<Batch>, name: &str) -> Result<(), Error> {
    let builder = stream.scope().operator(name)?;
    let input = builder.new_input(stream, Pact::Pipeline)?;
    drop(builder.restored());
    builder.keeps(|| Ok(State::Workers(vec![b"state".to_vec().into()])));
    builder.build(move || {
        while input.next()?.is_some() {}
        Ok(false)
    });
    Ok(())
}

/// Resumes from a part with another program, and takes a part after `steps`.
fn goes_on(
    part: &Part<Batch>,
    changes: &Changes,
    build: impl Fn(&Scope<Batch>, &Stream<Batch>) -> Result<(), Error> + Sync,
) {
    let share = Share::of(vec![part.clone()]).remove(0);
    threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            worker.restore_changed(share.clone(), changes.clone())?;
            let input = Input::new();
            worker.dataflow("flow", 1, |scope| build(scope, &input.attach(scope)?))?;
            input.close();
            worker.run()
        })
        .unwrap();
}

#[test]
fn operators_come_and_go_where_nothing_is_lost() {
    let part = one(|_, stream| {
        with_state(stream, "keeping")?;
        stream.forward("passing", Pact::Pipeline).map(drop)
    });
    goes_on(&part, &Changes::default(), |_, stream| {
        with_state(&stream.forward("before", Pact::Pipeline)?, "keeping")
    });
    let changes = Changes {
        new: ["another".to_owned()].into(),
        dropped: ["keeping".to_owned()].into(),
    };
    goes_on(&part, &changes, |_, stream| with_state(stream, "another"));
}

#[test]
fn one_of_several_operators_of_a_name_that_reads_something_else_is_refused() {
    let part = one(|_, stream| {
        with_state(stream, "keeping")?;
        with_state(&stream.forward("passing", Pact::Pipeline)?, "keeping")
    });
    let error = refused(&part, |_, stream| {
        let passed = stream.forward("passing", Pact::Pipeline)?;
        with_state(&passed, "keeping")?;
        with_state(stream, "keeping")
    });
    assert!(matches!(error, RestoreError::Reads { identity, .. } if identity == "keeping"));
    // The first of them has ended: the second has its identity.
    let error = refused(&part, |_, stream| {
        with_state(&stream.forward("passing", Pact::Pipeline)?, "keeping")
    });
    assert!(matches!(error, RestoreError::Reads { identity, .. } if identity == "keeping"));
    // One is put before it.
    let part = one(|_, stream| with_state(&stream.forward("passing", Pact::Pipeline)?, "keeping"));
    let error = refused(&part, |_, stream| {
        with_state(stream, "keeping")?;
        with_state(&stream.forward("passing", Pact::Pipeline)?, "keeping")
    });
    assert!(matches!(error, RestoreError::Reads { identity, .. } if identity == "keeping"));
}

#[test]
fn what_is_not_the_program_of_the_cut_is_refused() {
    let part = one(|_, stream| with_state(stream, "keeping"));
    let other = |name: &'static str| {
        move |_: &Scope<Batch>, stream: &Stream<Batch>| {
            stream.forward(name, Pact::Pipeline).map(drop)
        }
    };
    let error = refused(&part, |_, _| Ok(()));
    assert!(matches!(error, RestoreError::Missing { operator, .. } if operator == "keeping"));
    let error = refused(&part, other("keeping"));
    assert!(matches!(error, RestoreError::Left { operator, .. } if operator == "keeping"));
    let error = refused(&part, other("another"));
    assert!(matches!(error, RestoreError::Missing { operator, .. } if operator == "keeping"));
    let error = refused(&part, |scope, stream| {
        with_state(stream, "keeping")?;
        let (output, _, capability) = scope.operator("more")?.new_held_output()?;
        drop((output, capability));
        Ok(())
    });
    assert!(matches!(error, RestoreError::NewSource { operator, .. } if operator == "more"));
    let error = refused(&part, |_, stream| {
        with_state(stream, "keeping")?;
        with_state(stream, "more")
    });
    assert!(matches!(error, RestoreError::Unknown { operator, .. } if operator == "more"));
    let failure = threads(1).run::<Batch, _>(Mode::Demand, |worker| {
        worker.restore(Share::of(vec![part.clone()]).remove(0))
    });
    let Error::Restore(error) = failure.unwrap_err().error else {
        panic!("main built nothing")
    };
    let dataflows = vec![0];
    assert_eq!(
        *error,
        RestoreError::NotBuilt {
            worker: 0,
            dataflows
        }
    );
    let late = threads(1).run::<Batch, _>(Mode::Demand, |worker| {
        worker.dataflow("flow", 1, |_| Ok(()))?;
        worker.restore(Share::of(vec![part.clone()]).remove(0))
    });
    assert!(
        matches!(late.unwrap_err().error, Error::Restore(error) if *error == RestoreError::Begun)
    );
    let two = threads(2).run::<Batch, _>(Mode::Demand, |worker| {
        worker.restore(Share::of(vec![part.clone()]).remove(0))
    });
    let Error::Restore(error) = two.unwrap_err().error else {
        panic!("a part of one worker for two")
    };
    assert!(matches!(
        *error,
        RestoreError::OtherWorker {
            worker: 0,
            peers: 1,
            ..
        }
    ));
}

#[test]
fn operators_whose_state_would_be_lost_are_named() {
    let part = one(|_, stream| {
        let builder = stream.scope().operator("silent")?;
        let input = builder.new_input(stream, Pact::Pipeline)?;
        builder.build(move || {
            while input.next()?.is_some() {}
            Ok(false)
        });
        let builder = stream.scope().operator("holding")?;
        let input = builder.new_input(stream, Pact::Pipeline)?;
        let (_output, _) = builder.new_output()?;
        builder.stateless();
        let mut held = Vec::new();
        builder.build(move || {
            while let Some((capability, _)) = input.next()? {
                held.push(capability.retain(0)?);
            }
            Ok(false)
        });
        keeping(stream, State::None)
    });
    let objections = part.objections();
    let [
        Objection::Unsaid { name, .. },
        Objection::HoldsTime {
            name: other, time, ..
        },
    ] = &objections[..]
    else {
        panic!("{objections:?}")
    };
    assert_eq!((&name[..], &other[..]), ("silent", "holding"));
    assert_eq!(*time, Point::new(&[0]));
}

/// Two inputs whose records all workers see.
fn two_inputs(worker: &Worker<Batch>) -> Result<[Input<Batch>; 2], Error> {
    let inputs = [Input::new(), Input::new()];
    worker.dataflow("two", 1, |scope| {
        for input in &inputs {
            collect(&input.attach(scope)?.forward("exchange", Pact::Broadcast)?)?;
        }
        Ok(())
    })?;
    Ok(inputs)
}

#[test]
fn inputs_of_main_stop_at_a_time_that_all_workers_have() {
    const ROUNDS: u64 = 400;
    for shape in [threads(1), threads(3), processes(2, 2)] {
        let parts = shape
            .run::<Batch, _>(Mode::Demand, |worker| {
                let limits = Limits {
                    common: LONG.ready,
                    ..LONG
                };
                let (recorder, here) = (recorded(worker, limits), worker.index() as u64);
                let inputs = two_inputs(worker)?;
                for round in 0..ROUNDS {
                    for input in &inputs {
                        input.send(vec![round]).unwrap();
                        if round % 5 == here {
                            worker.step()?; // in the middle of a time
                        }
                        input.advance_to(&Point::new(&[round + 1 + here % 2 * (round % 2)]))?;
                    }
                    if round % (here + 2) == 0 {
                        worker.step()?;
                    }
                    if here == 0 && round % 20 == 0 {
                        worker.request_cut();
                    }
                }
                inputs.iter().for_each(Input::close);
                worker.run()?;
                Ok(recorder.parts.take())
            })
            .unwrap();
        let cuts = parts[0].len();
        assert!(cuts > 2, "{cuts}");
        for cut in 0..cuts {
            let parts: Vec<_> = parts.iter().map(|parts| parts[cut].clone()).collect();
            let peers = parts.len();
            rescale(parts, peers + 1).unwrap();
        }
    }
}

#[test]
fn inputs_that_have_no_time_in_common_are_cut_where_they_are() {
    let limits = Limits {
        common: Duration::from_millis(20),
        ..LONG
    };
    let parts = threads(2)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let recorder = recorded(worker, limits);
            let [first, _] = two_inputs(worker)?;
            first.send(vec![1]).unwrap();
            if worker.index() == 1 {
                first.advance_to(&Point::new(&[1]))?;
            }
            take(worker, &recorder)
        })
        .unwrap();
    let error = rescale(parts, 3).unwrap_err();
    assert!(matches!(error, RescaleError::Unlike { .. }), "{error}");
}

#[test]
fn main_that_has_stopped_goes_on_where_another_worker_does_not_step() {
    let limits = Limits {
        common: Duration::from_millis(20),
        ..LONG
    };
    let goes_on = AtomicBool::new(false);
    threads(2)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let recorder = recorded(worker, limits);
            let inputs = two_inputs(worker)?;
            if worker.index() == 0 {
                worker.request_cut();
                worker.step()?;
                worker.step()?;
                assert!(recorder.parts.borrow().is_empty());
                goes_on.store(true, Ordering::SeqCst);
            }
            while !goes_on.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            worker.step_while(|| recorder.parts.borrow().is_empty())?;
            inputs.iter().for_each(Input::close);
            worker.run()
        })
        .unwrap();
}

#[test]
fn what_is_not_by_key_needs_as_many_workers_as_before() {
    let whole = one(|_, stream| keeping(stream, State::Workers(vec![Vec::new().into()])));
    let error = rescale(vec![whole.clone()], 2).unwrap_err();
    // Main has sent a part of a time.
    assert!(
        matches!(&error, RescaleError::Unlike { name, unlike: Unlike::Sent, .. } if name == "input"),
        "{error}"
    );
    let mut whole = whole;
    for operator in &mut whole.dataflows[0].operators {
        operator.position = operator.position.map(|_| 0);
    }
    let error = rescale(vec![whole.clone()], 2).unwrap_err();
    assert!(matches!(error, RescaleError::NotKeyed { name, .. } if name == "keeping"));
    assert_eq!(rescale(vec![whole.clone()], 1).unwrap().len(), 1);
    let error = rescale(vec![whole.clone(), whole.clone()], 3).unwrap_err();
    assert_eq!(error, RescaleError::Parts);
    let pieces = [vec![1].into(), vec![2].into()];
    for (state, expected) in [
        (State::Groups(pieces.to_vec()), [&pieces[..]; 3].concat()),
        (State::Parts(pieces.to_vec()), pieces.to_vec()),
    ] {
        let mut operators = whole.dataflows[0].operators.iter_mut();
        let keeping = operators.find(|operator| operator.name == "keeping");
        keeping.unwrap().state = Some(state);
        let divided = rescale(vec![whole.clone()], 3).unwrap();
        let operators = divided.iter().flat_map(|part| &part.dataflows[0].operators);
        let keeping = operators.filter(|operator| operator.name == "keeping");
        let pieces = keeping.flat_map(|operator| operator.state.as_ref().unwrap().pieces());
        assert_eq!(pieces.cloned().collect::<Vec<_>>(), expected);
    }
}
