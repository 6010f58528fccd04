//! Whole programs on threads and processes.

mod common;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pointstamp_engine::error::{Error, UserResult};
use pointstamp_engine::operators::{Event, Input, Probe, capture, concatenate};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::scope::Scope;
use pointstamp_engine::stream::Stream;
use pointstamp_order::{PartialOrder, Point, Summary};
use pointstamp_progress::Mode;

use common::{SHAPES, threads};

type Batch = Vec<u64>;

#[allow(
    clippy::unnecessary_wraps,
    clippy::cast_possible_truncation,
    reason = "a router may fail, and small numbers fit"
)]
fn by_value(batch: Batch, parts: &mut [Vec<Batch>]) -> UserResult<()> {
    let peers = parts.len();
    let mut split = vec![Vec::new(); peers];
    for x in batch {
        split[x as usize % peers].push(x);
    }
    for (part, records) in parts.iter_mut().zip(split) {
        part.push(records);
    }
    Ok(())
}

/// Each batch through a function, which may send it to several outputs.
fn map(
    stream: &Stream<Batch>,
    outputs: usize,
    mut function: impl FnMut(Batch) -> Vec<Batch> + 'static,
) -> Result<Vec<Stream<Batch>>, Error> {
    let builder = stream.scope().operator("map")?;
    let input = builder.new_input(stream, Pact::Pipeline)?;
    let (mut ports, mut streams) = (Vec::new(), Vec::new());
    for _ in 0..outputs {
        let (port, stream) = builder.new_output()?;
        ports.push(port);
        streams.push(stream);
    }
    builder.build(move || {
        while let Some((capability, batch)) = input.next()? {
            for (port, part) in ports.iter().zip(function(batch)) {
                port.send(&capability, part)?;
            }
        }
        Ok(false)
    });
    Ok(streams)
}

/// A number of records for each time, kept until the time is closed everywhere; fails on a record that comes late.
fn count_per_time(
    stream: &Stream<Batch>,
    pact: Pact<Batch>,
    out: Rc<RefCell<Vec<(Point, u64)>>>,
) -> Result<Stream<Batch>, Error> {
    let builder = stream.scope().operator("count")?;
    let input = builder.new_input(stream, pact)?;
    let (output, counts) = builder.new_output()?;
    builder.notify();
    let mut held = BTreeMap::new();
    let mut passed: Vec<Point> = Vec::new();
    builder.build(move || {
        while let Some((capability, batch)) = input.next()? {
            let time = capability.time().clone();
            if passed.contains(&time) || !input.frontier().less_equal(&time) {
                return Err(format!("a record at {time}, which the frontier has passed").into());
            }
            let entry = held.entry(time).or_insert((0, None));
            entry.0 += batch.len() as u64;
            if entry.1.is_none() {
                entry.1 = Some(capability.retain(0)?);
            }
        }
        let closed: Vec<Point> = held
            .keys()
            .filter(|time| !input.frontier().less_equal(time))
            .cloned()
            .collect();
        for time in closed {
            let (count, capability) = held.remove(&time).unwrap();
            output.send(&capability.unwrap(), vec![count])?;
            out.borrow_mut().push((time.clone(), count));
            passed.push(time);
        }
        Ok(false)
    });
    Ok(counts)
}

#[test]
fn rounds_are_counted_when_they_close_and_not_before() {
    for shape in SHAPES {
        let workers = shape.peers();
        for mode in [Mode::Eager, Mode::Demand] {
            let totals = shape
                .run::<Batch, _>(mode, |worker| {
                    let (input, probe) = (Input::new(), Probe::new());
                    let out = Rc::new(RefCell::new(Vec::new()));
                    worker.dataflow("rounds", 1, |scope| {
                        let numbers = input.attach(scope)?;
                        probe.attach(&count_per_time(
                            &numbers,
                            Pact::exchange(by_value),
                            out.clone(),
                        )?)?;
                        Ok(())
                    })?;
                    for round in 0..20 {
                        input.send((0..100).collect()).unwrap();
                        let next = Point::new(&[round + 1]);
                        input.advance_to(&next)?;
                        worker.step_while(|| probe.less_than(&next))?;
                        assert!(out.borrow().iter().all(|(time, _)| time.less_than(&next)));
                        assert_eq!(out.borrow().len() as u64, round + 1);
                    }
                    Ok(out.take())
                })
                .unwrap();
            for round in 0..20 {
                let sum: u64 = totals.iter().map(|counts| counts[round].1).sum();
                assert_eq!(sum, 100 * workers as u64);
            }
        }
    }
}

/// A source in scopes in scopes, which sends nothing before it has run some times.
fn deep_source(scope: &Scope<Batch>, depth: usize) -> Result<Stream<Batch>, Error> {
    if depth > 0 {
        let inner = scope.nested("inner", 1)?;
        let left = inner.leave(&deep_source(&inner, depth - 1)?)?;
        inner.close();
        return Ok(left);
    }
    let builder = scope.operator("source")?;
    let (output, stream, capability) = builder.new_held_output()?;
    let activator = builder.activator();
    builder.start();
    let (mut held, mut runs) = (Some(capability), 0);
    builder.build(move || {
        runs += 1;
        if runs == 5
            && let Some(capability) = held.take()
        {
            output.send(&capability, vec![7])?;
        }
        activator.activate();
        Ok(false)
    });
    Ok(stream)
}

#[test]
fn what_a_nested_scope_holds_at_the_start_is_seen_outside_from_the_start() {
    for shape in SHAPES {
        for depth in 1..3 {
            let seen = shape
                .run::<Batch, _>(Mode::Demand, |worker| {
                    let seen = Rc::new(RefCell::new(Vec::new()));
                    let probe = Probe::new();
                    worker.dataflow("starts", 1, |scope| {
                        let builder = scope.operator("watch")?;
                        let input =
                            builder.new_input(&deep_source(scope, depth)?, Pact::Pipeline)?;
                        let (_output, stream) = builder.new_output()?;
                        builder.notify();
                        builder.start();
                        let seen = Rc::clone(&seen);
                        let mut came = false;
                        builder.build(move || {
                            while let Some((_, batch)) = input.next()? {
                                assert_eq!(batch, [7]);
                                came = true;
                            }
                            seen.borrow_mut().push((came, input.frontier().is_empty()));
                            Ok(false)
                        });
                        probe.attach(&stream)
                    })?;
                    assert!(probe.less_than(&Point::new(&[1])), "before the first step");
                    if worker.peers() == 1 {
                        assert!(
                            (0..100).any(|_| !worker.step().unwrap()),
                            "it ends: {seen:?}"
                        );
                    }
                    worker.run()?;
                    Ok(seen.take())
                })
                .unwrap();
            for seen in seen {
                assert!(!seen.contains(&(false, true)), "{seen:?}");
                assert_eq!(seen.last(), Some(&(true, true)));
            }
        }
    }
}

/// Collatz: numbers go round a loop, in a nested scope, until they are 1; the number of trips is the
/// coordinate at which they leave.
fn collatz(scope: &Scope<Batch>, numbers: &Stream<Batch>) -> Result<Stream<Batch>, Error> {
    let inner = scope.nested("loop", 1)?;
    let (handle, cycle) = inner.feedback(Summary::step(2, 1))?;
    let entered = inner.enter(numbers)?;
    let merged =
        concatenate(&inner, [entered, cycle])?.forward("exchange", Pact::exchange(by_value))?;
    let parts = map(&merged, 2, |batch| {
        let (done, going): (Vec<u64>, Vec<u64>) = batch.into_iter().partition(|&x| x == 1);
        vec![
            done,
            going
                .into_iter()
                .map(|x| if x % 2 == 0 { x / 2 } else { 3 * x + 1 })
                .collect(),
        ]
    })?;
    handle.connect(&parts[1])?;
    let left = inner.leave(&parts[0])?;
    inner.close();
    Ok(left)
}

#[test]
fn a_loop_in_a_nested_scope_ends_and_closes_its_times() {
    for shape in SHAPES {
        let workers = shape.peers();
        let counts = shape
            .run::<Batch, _>(Mode::Demand, |worker| {
                let input = Input::new();
                let out = Rc::new(RefCell::new(Vec::new()));
                worker.dataflow("collatz", 1, |scope| {
                    let ones = collatz(scope, &input.attach(scope)?)?;
                    count_per_time(&ones, Pact::exchange(by_value), out.clone())?;
                    Ok(())
                })?;
                for round in 0..5 {
                    input.send((1..100).collect()).unwrap();
                    input.advance_to(&Point::new(&[round + 1]))?;
                    worker.step()?;
                }
                input.close();
                worker.run()?;
                Ok(out.take())
            })
            .unwrap();
        let mut totals = BTreeMap::new();
        for (time, count) in counts.into_iter().flatten() {
            *totals.entry(time).or_insert(0) += count;
        }
        let expected: BTreeMap<_, _> = (0..5)
            .map(|round| (Point::new(&[round]), 99 * workers as u64))
            .collect();
        assert_eq!(totals, expected);
    }
}

#[test]
fn broadcast_reaches_every_worker_and_is_counted_so() {
    for shape in SHAPES {
        let workers = shape.peers();
        let counts = shape
            .run::<Batch, _>(Mode::Demand, |worker| {
                let input = Input::new();
                let out = Rc::new(RefCell::new(Vec::new()));
                worker.dataflow("broadcast", 1, |scope| {
                    let all = input.attach(scope)?.forward("broadcast", Pact::Broadcast)?;
                    count_per_time(&all, Pact::Pipeline, out.clone())?;
                    Ok(())
                })?;
                input.send(vec![worker.index() as u64; 3]).unwrap();
                input.close();
                worker.run()?;
                Ok(out.take())
            })
            .unwrap();
        assert!(
            counts
                .iter()
                .all(|counts| *counts == [(Point::new(&[0]), 3 * workers as u64)])
        );
    }
}

#[test]
fn capture_tells_a_frontier_that_its_messages_keep() {
    let events = threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let input = Input::new();
            let events = Rc::new(RefCell::new(Vec::new()));
            let sink = events.clone();
            worker.dataflow("capture", 1, |scope| {
                capture(&input.attach(scope)?, move |event| {
                    sink.borrow_mut().push(event);
                    Ok(())
                })
            })?;
            for round in 0..3 {
                input.send(vec![round]).unwrap();
                input.advance_to(&Point::new(&[round + 1]))?;
                while worker.has_work() {
                    worker.step()?;
                }
            }
            input.close();
            worker.run()?;
            Ok(events
                .take()
                .into_iter()
                .map(|event| format!("{event:?}"))
                .collect::<Vec<_>>())
        })
        .unwrap()
        .remove(0);
    let p = |t: u64| Point::new(&[t]);
    let mut expected = vec![Event::Progress(vec![(p(0), 1)])];
    for round in 0..3 {
        expected.push(Event::Messages(p(round), vec![round]));
        expected.push(Event::Progress(vec![(p(round), -1), (p(round + 1), 1)]));
    }
    expected.push(Event::Progress(vec![(p(3), -1)]));
    assert_eq!(
        events,
        expected
            .iter()
            .map(|event: &Event<Batch>| format!("{event:?}"))
            .collect::<Vec<_>>()
    );
}

#[test]
fn an_error_in_an_operator_stops_everybody_and_names_it() {
    for shape in SHAPES {
        let workers = shape.peers();
        let failure = shape
            .run::<Batch, _>(Mode::Demand, |worker| {
                let input = Input::new();
                let index = worker.index();
                worker.dataflow("failing", 1, |scope| {
                    let builder = scope.operator("the culprit")?;
                    let port = builder.new_input(&input.attach(scope)?, Pact::Pipeline)?;
                    builder.build(move || match port.next()? {
                        Some(_) => Err("it had to happen".into()),
                        None => Ok(false),
                    });
                    Ok(())
                })?;
                if index == workers - 1 {
                    input.send(vec![1]).unwrap();
                }
                worker.step_while(|| true)?; // the input stays open: no worker would end by itself
                Ok(())
            })
            .unwrap_err();
        assert_eq!(failure.worker, Some(workers - 1));
        assert_eq!(
            failure.error.to_string(),
            "operator 'the culprit' failed: it had to happen"
        );
    }
}

#[test]
fn an_operator_that_lets_go_of_a_capability_does_not_wake_itself() {
    let runs = threads(1)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let input = Input::new();
            let runs = Rc::new(Cell::new(0));
            let count = runs.clone();
            worker.dataflow("quiet", 1, |scope| {
                let builder = scope.operator("churn")?;
                let port = builder.new_input(&input.attach(scope)?, Pact::Pipeline)?;
                let (_output, _) = builder.new_output()?;
                let mut held = None;
                builder.build(move || {
                    count.set(count.get() + 1);
                    while let Some((capability, _)) = port.next()? {
                        held = Some(capability.retain(0)?);
                    }
                    let again = held.clone();
                    drop(again); // moves counts on every run
                    Ok(false)
                });
                Ok(())
            })?;
            input.send(vec![1]).unwrap();
            for _ in 0..100 {
                worker.step()?;
            }
            worker.drop_dataflow(0);
            Ok(runs.get())
        })
        .unwrap();
    assert!(runs[0] <= 2, "{} runs for one message", runs[0]);
}

#[test]
fn idle_workers_park_and_activators_wake_them() {
    let woken = AtomicUsize::new(0);
    threads(2)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let input = Input::<Batch>::new();
            let probe = Probe::new();
            let ran = Rc::new(Cell::new(0));
            let count = ran.clone();
            let activator = worker.dataflow("parked", 1, |scope| {
                let builder = scope.operator("sleeper")?;
                let port = builder.new_input(&input.attach(scope)?, Pact::Pipeline)?;
                let (_, stream) = builder.new_output()?;
                builder.build(move || {
                    count.set(count.get() + 1);
                    while port.next()?.is_some() {}
                    Ok(false)
                });
                probe.attach(&stream)?;
                Ok(builder.activator())
            })?;
            while worker.has_work() {
                worker.step()?;
            }
            let before = ran.get();
            let remote = activator.remote();
            let thread = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(30));
                remote.activate();
            });
            let mut steps = 0;
            while ran.get() == before {
                worker.step_or_park(None)?;
                steps += 1;
            }
            thread.join().unwrap();
            assert!(
                steps < 20,
                "{steps} steps for one wake-up: the worker spins"
            );
            let before = ran.get();
            activator.activate_after(std::time::Duration::from_millis(10));
            while ran.get() == before {
                worker.step_or_park(None)?;
            }
            woken.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
    assert_eq!(woken.into_inner(), 2);
}

/// Workers step one dataflow while others, ahead of them, already send into the next: no wake-up is lost.
#[test]
fn dataflows_built_one_after_another_wait_for_every_worker() {
    for mode in [Mode::Eager, Mode::Demand] {
        threads(4)
            .run::<Batch, _>(mode, |worker| {
                for _ in 0..100 {
                    let (input, probe) = (Input::new(), Probe::new());
                    worker.dataflow("barrier", 1, |scope| {
                        // Stepping while building forgets nothing either.
                        let stream = input.attach(scope)?;
                        worker.step()?;
                        probe.attach(&stream.forward("all", Pact::Broadcast)?)
                    })?;
                    input.send(vec![1]).unwrap();
                    input.close();
                    worker.step_while(|| !probe.is_done())?;
                }
                worker.run()
            })
            .unwrap();
    }
}
