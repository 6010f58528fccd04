//! Whole programs on the engine and on timely: the same operators, the same rounds, workers as threads.
//!
//! * barrier: a loop of one operator that holds a capability for the next round, as timely's `barrier` example; an operation is a round.
//! * exchange: batches of 8-byte records to the worker of their remainder; an operation is a record.
//! * idle: 100 dataflows of 100 operators, one of them advanced per round; an operation is a round.
//!
//! A sample runs a whole computation, threads and construction included, of as many operations as make those small.

#![allow(
    clippy::cast_possible_truncation,
    reason = "counts of rounds, which fit"
)]

#[path = "../../crates/engine/examples/programs/barrier.rs"]
mod barrier;

use pointstamp_bench::harness::Table;
use pointstamp_engine::execute::execute;
use pointstamp_engine::operators::{Input, Probe};
use pointstamp_engine::pact::Pact;
use pointstamp_order::Point;
use pointstamp_progress::Mode;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::InputHandle;
use timely::dataflow::channels::pact::{Exchange as TheirExchange, Pipeline};
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::{ConnectLoop, Feedback, Input as _, Probe as _};

const BATCH: usize = 1024;
const FLOWS: usize = 100;
const DEPTH: usize = 100;

fn our_barrier(workers: usize, rounds: u64) {
    execute::<Vec<u64>, ()>(workers, Mode::Demand, |worker| {
        barrier::barrier(worker, rounds)
    })
    .expect("the barrier ends");
}

fn their_barrier(workers: usize, rounds: u64) {
    timely::execute(timely::Config::process(workers), move |worker| {
        worker.dataflow::<u64, _, _>(move |scope| {
            let (handle, stream) = scope.feedback::<Vec<u64>>(1);
            stream
                .unary_frontier::<CapacityContainerBuilder<Vec<u64>>, _, _, _>(
                    Pipeline,
                    "barrier",
                    |capability, _| {
                        let mut held = Some(capability);
                        move |(input, frontier), _| {
                            input.for_each(|_, _| ());
                            while let Some(capability) = &mut held {
                                if frontier.less_equal(capability.time()) {
                                    break;
                                }
                                let next = *capability.time() + 1;
                                if next < rounds {
                                    capability.downgrade(&next);
                                } else {
                                    held = None;
                                }
                            }
                        }
                    },
                )
                .connect_loop(handle);
        });
    })
    .expect("the barrier ends");
}

fn our_exchange(workers: usize, rounds: u64) {
    execute::<Vec<u64>, ()>(workers, Mode::Demand, |worker| {
        let (input, probe) = (Input::new(), Probe::new());
        worker.dataflow("exchange", 1, |scope| {
            let route = |batch: Vec<u64>, parts: &mut [Vec<Vec<u64>>]| {
                let peers = parts.len() as u64;
                if let [only] = parts {
                    only.push(batch);
                    return Ok(());
                }
                let mut split: Vec<Vec<u64>> =
                    parts.iter().map(|_| Vec::with_capacity(BATCH)).collect();
                for x in batch {
                    split[(x % peers) as usize].push(x);
                }
                for (part, records) in parts.iter_mut().zip(split) {
                    part.push(records);
                }
                Ok(())
            };
            let stream = input
                .attach(scope)?
                .forward("exchange", Pact::exchange(route))?;
            probe.attach(&stream).map(drop)
        })?;
        for round in 1..=rounds {
            input
                .send((0..BATCH as u64).collect())
                .expect("the input is open");
            let time = Point::new(&[round]);
            input.advance_to(&time)?;
            while probe.less_than(&time) {
                worker.step()?;
            }
        }
        Ok(())
    })
    .expect("the exchange ends");
}

fn their_exchange(workers: usize, rounds: u64) {
    timely::execute(timely::Config::process(workers), move |worker| {
        let mut input = InputHandle::<u64, CapacityContainerBuilder<Vec<u64>>>::new();
        let probe = worker.dataflow(|scope| {
            let stream = scope.input_from(&mut input);
            let stream = stream.unary::<CapacityContainerBuilder<Vec<u64>>, _, _, _>(
                TheirExchange::new(|x: &u64| *x),
                "exchange",
                |_, _| {
                    move |input, output| {
                        input.for_each(|time, data| {
                            output.session(&time).give_container(data);
                        });
                    }
                },
            );
            stream.probe().0
        });
        for round in 1..=rounds {
            input.send_batch(&mut (0..BATCH as u64).collect());
            input.advance_to(round);
            while probe.less_than(input.time()) {
                worker.step();
            }
        }
    })
    .expect("the exchange ends");
}

fn our_idle(workers: usize, rounds: u64) {
    execute::<Vec<u64>, ()>(workers, Mode::Demand, |worker| {
        let mut flows = Vec::new();
        for _ in 0..FLOWS {
            let (input, probe) = (Input::new(), Probe::new());
            worker.dataflow("flow", 1, |scope| {
                let mut stream = input.attach(scope)?;
                for _ in 0..DEPTH {
                    stream = stream.forward("forward", Pact::Pipeline)?;
                }
                probe.attach(&stream).map(drop)
            })?;
            flows.push((input, probe));
        }
        for round in 0..rounds {
            let (input, probe) = &flows[round as usize % FLOWS];
            let time = Point::new(&[round + 1]);
            input.advance_to(&time)?;
            while probe.less_than(&time) {
                worker.step()?;
            }
        }
        Ok(())
    })
    .expect("the dataflows end");
}

fn their_idle(workers: usize, rounds: u64) {
    timely::execute(timely::Config::process(workers), move |worker| {
        let mut flows = Vec::new();
        for _ in 0..FLOWS {
            let mut input = InputHandle::<u64, CapacityContainerBuilder<Vec<u64>>>::new();
            let probe = worker.dataflow(|scope| {
                let mut stream = scope.input_from(&mut input);
                for _ in 0..DEPTH {
                    stream = stream.unary::<CapacityContainerBuilder<Vec<u64>>, _, _, _>(
                        Pipeline,
                        "forward",
                        |_, _| {
                            move |input, output| {
                                input.for_each(|time, data| {
                                    output.session(&time).give_container(data);
                                });
                            }
                        },
                    );
                }
                stream.probe().0
            });
            flows.push((input, probe));
        }
        for round in 0..rounds {
            let (input, probe) = &mut flows[round as usize % FLOWS];
            input.advance_to(round + 1);
            while probe.less_than(input.time()) {
                worker.step();
            }
        }
    })
    .expect("the dataflows end");
}

fn main() {
    let table = Table::new("whole programs");
    for workers in [1, 2] {
        let plural = if workers == 1 { "worker" } else { "workers" };
        table.compare_runs(
            &format!("barrier, {workers} {plural}: a round"),
            Some(if workers == 1 { 0.6 } else { 0.8 }),
            50_000,
            &mut |count| our_barrier(workers, count as u64),
            &mut |count| their_barrier(workers, count as u64),
        );
        table.compare_runs(
            &format!("exchange of u64, {workers} {plural}: a record"),
            Some(0.5),
            2_000 * BATCH,
            &mut |count| our_exchange(workers, count.div_ceil(BATCH) as u64),
            &mut |count| their_exchange(workers, count.div_ceil(BATCH) as u64),
        );
        table.compare_runs(
            &format!("1 of 100 dataflows of 100 operators, {workers} {plural}: a round"),
            Some(1.2),
            5_000,
            &mut |count| our_idle(workers, count as u64),
            &mut |count| their_idle(workers, count as u64),
        );
    }
}
