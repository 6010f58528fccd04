//! Back-pressure: the bytes in flight stay bounded, and nothing stops for ever because of it.

mod common;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pointstamp_engine::error::{Error, UserResult};
use pointstamp_engine::operators::{Input, concatenate};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::scope::Scope;
use pointstamp_engine::stream::Stream;
use pointstamp_engine::worker::Worker;
use pointstamp_order::{Point, Summary};
use pointstamp_progress::Mode;

use common::{Shape, processes, threads};

type Batch = Vec<u64>;

const RECORDS: usize = 4000;
const BATCHES: usize = 1000;
const HIGH_WATER: usize = 1 << 20;

/// Whole batches, each to the worker that its first record says.
#[allow(
    clippy::unnecessary_wraps,
    clippy::cast_possible_truncation,
    reason = "a router may fail, and small numbers fit"
)]
fn by_first(batch: Batch, parts: &mut [Vec<Batch>]) -> UserResult<()> {
    let to = batch[0] as usize % parts.len();
    parts[to].push(batch);
    Ok(())
}

/// An operator without inputs: some batches with each run, `batches` in all.
fn source(scope: &Scope<Batch>, batches: usize) -> Result<Stream<Batch>, Error> {
    let builder = scope.operator("source")?;
    let (output, stream, capability) = builder.new_held_output()?;
    builder.start();
    let activator = builder.activator();
    let mut capability = Some(capability);
    let mut sent = 0;
    builder.build(move || {
        for _ in 0..5 {
            if let Some(held) = &capability
                && sent < batches
            {
                output.send(held, vec![sent as u64; RECORDS])?;
                sent += 1;
                activator.activate();
            } else {
                capability = None;
            }
        }
        Ok(false)
    });
    Ok(stream)
}

/// Takes one batch with each run, and takes its time. The most that was on its way is noted.
fn slow(stream: &Stream<Batch>, most: &'static AtomicUsize) -> Result<Rc<RefCell<usize>>, Error> {
    let builder = stream.scope().operator("slow")?;
    let input = builder.new_input(stream, Pact::exchange(by_first))?;
    let cluster = stream.scope().worker().cluster().clone();
    let seen = Rc::new(RefCell::new(0));
    let count = seen.clone();
    builder.build(move || {
        most.fetch_max(cluster.in_flight(), Ordering::Relaxed);
        if let Some((_, batch)) = input.next()? {
            *count.borrow_mut() += batch.len();
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(false)
    });
    Ok(seen)
}

const SHAPES: [Shape; 3] = [threads(3), processes(2, 1), processes(2, 2)];

fn bounded(
    shape: Shape,
    main: impl Fn(&Worker<Batch>, &'static AtomicUsize) -> Result<usize, Error> + Sync,
) {
    let most: &'static AtomicUsize = Box::leak(Box::default());
    let shape = Shape {
        high_water: HIGH_WATER,
        ..shape
    };
    let seen = shape
        .run(Mode::Demand, |worker| main(worker, most))
        .unwrap();
    assert_eq!(
        seen.into_iter().sum::<usize>(),
        shape.peers() * BATCHES * RECORDS,
        "nothing is lost"
    );
    let most = most.load(Ordering::Relaxed);
    let all = shape.peers() * BATCHES * RECORDS * size_of::<u64>();
    println!("{shape:?}: at most {most} bytes of {all}");
    // Bytes that are sent while the notice of it is in flight are added.
    assert!(
        most < 16 * HIGH_WATER,
        "{shape:?}: {most} bytes on their way"
    );
    assert!(most > HIGH_WATER, "{shape:?}: there was no pressure");
}

#[test]
fn sources_pause_while_too_much_is_on_its_way() {
    for shape in SHAPES {
        bounded(shape, |worker, most| {
            let seen = worker.dataflow("flood", 1, |scope| slow(&source(scope, BATCHES)?, most))?;
            worker.run()?;
            Ok(seen.take())
        });
    }
}

/// Takes all batches, works on one with each run, and notes the most that waited.
fn staging(stream: &Stream<Batch>) -> Result<Rc<RefCell<usize>>, Error> {
    let builder = stream.scope().operator("staging")?;
    let input = builder.new_input(stream, Pact::Pipeline)?;
    let activator = builder.activator();
    let most = Rc::new(RefCell::new(0));
    let (noted, mut waits) = (most.clone(), 0_usize);
    builder.build(move || {
        while input.next()?.is_some() {
            waits += 1;
        }
        let mut most = noted.borrow_mut();
        *most = (*most).max(waits);
        waits = waits.saturating_sub(1);
        if waits > 0 {
            activator.resume();
        }
        Ok(false)
    });
    Ok(most)
}

#[test]
fn sources_give_way_to_work_while_a_condition_holds() {
    let most = |strained: bool| {
        let found = threads(1).run(Mode::Demand, |worker| {
            worker.give_way_while(move || strained);
            let most = worker.dataflow("staged", 1, |scope| staging(&source(scope, 100)?))?;
            worker.run()?;
            Ok(most.take())
        });
        found.unwrap()[0]
    };
    assert_eq!(most(true), 5, "the batches of one run of the source");
    assert!(most(false) > 50);
}

#[test]
fn inputs_that_main_drives_step_the_worker_while_too_much_is_on_its_way() {
    for shape in SHAPES {
        bounded(shape, |worker, most| {
            let input = Input::new();
            let seen = worker.dataflow("flood", 1, |scope| slow(&input.attach(scope)?, most))?;
            for number in 0..BATCHES {
                input.send(vec![number as u64; RECORDS]).unwrap();
            }
            input.close();
            worker.run()?;
            Ok(seen.take())
        });
    }
}

/// Batches go round a loop and grow in number; a single byte on its way is too much.
#[test]
fn loops_do_not_stand_still() {
    for shape in [threads(2), processes(2, 1), processes(2, 2)] {
        let shape = Shape {
            high_water: 1,
            ..shape
        };
        let counts = shape.run::<Batch, _>(Mode::Demand, |worker| {
            let input = Input::new();
            let rounds = Rc::new(RefCell::new(0));
            let count = rounds.clone();
            worker.dataflow("loop", 1, |scope| {
                let fed = concatenate(scope, [input.attach(scope)?, source(scope, 2)?])?;
                let inner = scope.nested("loop", 1)?;
                let (handle, cycle) = inner.feedback(Summary::step(2, 1))?;
                let entered = inner.enter(&fed)?;
                let merged = concatenate(&inner, [entered, cycle])?;
                let builder = inner.operator("double")?;
                let port = builder.new_input(&merged, Pact::exchange(by_first))?;
                let (output, stream) = builder.new_output()?;
                builder.build(move || {
                    while let Some((capability, batch)) = port.next()? {
                        *count.borrow_mut() += 1;
                        if capability.time().last() < Some(6) {
                            for next in [batch[0], batch[0] + 1] {
                                output.send(&capability, vec![next; 10])?;
                            }
                        }
                    }
                    Ok(false)
                });
                handle.connect(&stream)?;
                inner.close();
                Ok(())
            })?;
            for number in 0..4 {
                input.send(vec![number; 10]).unwrap();
            }
            input.close();
            worker.run()?;
            Ok(rounds.take())
        });
        let counts = counts.unwrap();
        assert_eq!(
            counts.iter().sum::<usize>(),
            shape.peers() * 6 * ((1 << 7) - 1)
        );
    }
}

/// An operator that leaves its input alone until its other input is complete gets that input, although the
/// pressure pauses its source.
#[test]
fn an_operator_that_waits_for_a_source_gets_what_it_waits_for() {
    for shape in [threads(2), processes(2, 1)] {
        let shape = Shape {
            high_water: 100_000,
            ..shape
        };
        let seen = shape.run::<Batch, _>(Mode::Demand, |worker| {
            let input = Input::new();
            let seen = Rc::new(RefCell::new((0, 0)));
            let count = seen.clone();
            worker.dataflow("patience", 1, |scope| {
                let first = source(scope, 1)?;
                let builder = scope.operator("patient")?;
                let first = builder.new_input(&first, Pact::exchange(by_first))?;
                let second = builder.new_input(&input.attach(scope)?, Pact::exchange(by_first))?;
                builder.notify();
                builder.build(move || {
                    let mut count = count.borrow_mut();
                    while let Some((_, batch)) = first.next()? {
                        count.0 += batch.len();
                    }
                    if first.frontier().is_empty() {
                        while let Some((_, batch)) = second.next()? {
                            count.1 += batch.len();
                        }
                    }
                    Ok(false)
                });
                Ok(())
            })?;
            for _ in 0..3 {
                input.send_now(vec![0, 1]).unwrap();
                input.send_now(vec![u64::MAX; 20_000]).unwrap();
                input.advance_to(&Point::new(&[1])).unwrap();
            }
            input.close();
            worker.run()?;
            Ok(seen.take())
        });
        let seen = seen.unwrap().into_iter();
        let seen = seen.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        assert_eq!(seen, (2 * RECORDS, 2 * 3 * 20_002));
    }
}

/// Bytes that an exchange has passed on are not counted, so it passes on little at a time.
#[test]
fn an_exchange_leaves_what_the_operator_behind_it_cannot_take_yet() {
    static MOST: AtomicUsize = AtomicUsize::new(0);
    static SENT: AtomicUsize = AtomicUsize::new(0);
    const MANY: usize = 16;
    let taken = threads(2).run(Mode::Demand, |worker: &Worker<Batch>| {
        let input = Input::new();
        let taken = worker.dataflow("moved", 1, |scope| {
            let moved = input
                .attach(scope)?
                .forward("exchange", Pact::exchange(by_first))?;
            let builder = scope.operator("behind")?;
            let behind = builder.new_input(&moved, Pact::Pipeline)?;
            let taken = Rc::new(RefCell::new(0));
            let count = taken.clone();
            builder.build(move || {
                let mut waiting = 0;
                while behind.next()?.is_some() {
                    waiting += 1;
                }
                *count.borrow_mut() += waiting;
                MOST.fetch_max(waiting, Ordering::SeqCst);
                Ok(false)
            });
            Ok(taken)
        })?;
        if worker.index() == 0 {
            for _ in 0..MANY {
                input
                    .send(vec![1; 1 << 17]) // a mebibyte
                    .expect("the input is open");
                worker.step()?;
            }
            SENT.store(1, Ordering::SeqCst);
        }
        while SENT.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now(); // all of it waits when worker 1 begins
        }
        input.close();
        worker.run()?;
        Ok(*taken.borrow())
    });
    assert_eq!(taken.expect("all of it is moved"), [0, MANY]);
    assert_eq!(MOST.load(Ordering::SeqCst), 1);
}
