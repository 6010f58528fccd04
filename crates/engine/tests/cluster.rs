//! Computations of several processes: their common end, and the messages between them.

mod common;

use std::time::Duration;

use pointstamp_channels::Encoder;
use pointstamp_engine::cluster::Failure;
use pointstamp_engine::error::{BuildError, Error, UserResult};
use pointstamp_engine::operators::{Input, Probe};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::payload::Payload;
use pointstamp_engine::scope::Scope;
use pointstamp_engine::worker::Worker;
use pointstamp_order::Point;
use pointstamp_progress::Mode;
use pointstamp_testkit::memory::Delay;

use common::{Shape, grouped, processes};

type Batch = Vec<u64>;

/// A dataflow that stays open until the input is closed.
fn open_dataflow(worker: &Worker<Batch>, name: &str) -> Result<(Input<Batch>, Probe), Error> {
    let (input, probe) = (Input::new(), Probe::new());
    worker.dataflow(name, 1, |scope| {
        probe.attach(&input.attach(scope)?.forward("all", Pact::Broadcast)?)
    })?;
    Ok((input, probe))
}

/// Runs until another worker ends it.
fn for_ever(worker: &Worker<Batch>) -> Result<(), Error> {
    let (_input, _probe) = open_dataflow(worker, "for ever")?;
    worker.step_while(|| true)
}

/// The failure of each process.
fn failures<R: std::fmt::Debug>(results: Vec<Result<Vec<R>, Failure>>) -> Vec<Failure> {
    let results = results.into_iter();
    results
        .map(|result| result.expect_err("every process fails"))
        .collect()
}

#[test]
fn a_difference_between_processes_is_seen_by_every_worker() {
    for shape in [processes(2, 1), processes(3, 2)] {
        let seen = std::sync::Mutex::new(0);
        let results = shape.run_each::<Batch, _>(Mode::Demand, |worker, _| {
            let odd = worker.index() == worker.peers() - 1;
            let run = || {
                open_dataflow(worker, if odd { "odd" } else { "even" })?;
                worker.step_while(|| true)
            };
            let error = run().unwrap_err();
            let text = error.to_string();
            assert!(text.contains("'odd'") && text.contains("'even'"), "{text}");
            assert!(matches!(error.shared(), Error::Disagreement(_)));
            *seen.lock().unwrap() += 1;
            Err::<(), _>(error)
        });
        assert_eq!(seen.into_inner().unwrap(), shape.peers());
        for failure in failures(results) {
            assert!(
                matches!(failure.error, Error::Disagreement(_)),
                "{failure:?}"
            );
        }
    }
}

#[test]
fn a_process_that_ends_without_building_what_others_built_is_found_out_by_all() {
    let results = processes(2, 2).run_each::<Batch, _>(Mode::Demand, |worker, _| {
        if worker.index() < 2 {
            for_ever(worker)?;
        }
        Ok(())
    });
    // Also where nothing is left to run.
    for failure in failures(results) {
        let text = failure.error.to_string();
        assert!(matches!(failure.error, Error::Disagreement(_)), "{text}");
        assert!(text.contains("ended without building it"), "{text}");
    }
}

#[test]
fn a_dataflow_dropped_in_one_process_only_is_found_out_by_all() {
    let results = processes(2, 1).run_each::<Batch, _>(Mode::Demand, |worker, _| {
        open_dataflow(worker, "half dropped")?;
        if worker.index() == 1 {
            worker.drop_dataflow(0);
        }
        Ok(())
    });
    for failure in failures(results) {
        let text = failure.error.to_string();
        assert!(
            text.contains("dropped on worker 1 but not on worker 0"),
            "{text}"
        );
    }
}

/// Checks that a process names the one where it began.
fn names(failure: &Failure, origin: usize, why: &str) {
    let Error::Peer {
        process,
        address,
        reason,
    } = &failure.error
    else {
        panic!("{failure:?}");
    };
    assert_eq!(
        (*process, address.as_str()),
        (origin, &*format!("memory:{origin}"))
    );
    assert!(reason.text().contains(why), "{reason}");
    assert_eq!(failure.worker, None);
}

#[test]
fn a_failure_stops_every_process_and_names_where_it_began() {
    let results = processes(3, 2).run_each::<Batch, _>(Mode::Demand, |worker, _| {
        if worker.index() == 3 {
            return Err(BuildError::Missing("no more bricks".into()).into());
        }
        for_ever(worker)
    });
    let failures = failures(results);
    names(&failures[0], 1, "no more bricks");
    names(&failures[2], 1, "no more bricks");
    assert_eq!(failures[1].worker, Some(3));
    assert!(matches!(failures[1].error, Error::Build(_)));
}

#[test]
fn a_failure_that_comes_late_is_raised_in_processes_that_have_ended() {
    let results = processes(2, 1).run_each::<Batch, _>(Mode::Demand, |worker, _| {
        if worker.index() == 1 {
            std::thread::sleep(Duration::from_millis(50));
            return Err(BuildError::Missing("too late".into()).into());
        }
        Ok(())
    });
    names(&failures(results)[0], 1, "too late");
}

#[test]
fn a_lost_process_ends_all_others_and_is_named() {
    let results = processes(3, 1).run_each::<Batch, _>(Mode::Demand, |worker, transport| {
        if worker.index() == 2 {
            transport.kill();
        }
        for_ever(worker)
    });
    let failures = failures(results);
    names(&failures[0], 2, "was cut");
    names(&failures[1], 2, "was cut");
}

#[test]
fn a_cut_connection_ends_all_processes() {
    let results = processes(3, 1).run_each::<Batch, _>(Mode::Demand, |worker, transport| {
        if worker.index() == 0 {
            transport.cut(1);
        }
        for_ever(worker)
    });
    let failures = failures(results);
    names(&failures[0], 1, "was cut");
    names(&failures[1], 0, "was cut");
    assert!(matches!(failures[2].error, Error::Peer { .. }));
}

/// A batch that cannot be written, or not be read.
#[derive(Clone, Debug)]
enum Stubborn {
    Unwritten,
    Unread,
}

impl Payload for Stubborn {
    fn len(&self) -> usize {
        1
    }

    fn encode(&self, out: &mut Encoder) -> UserResult<()> {
        match self {
            Stubborn::Unwritten => Err("it has a lock in it".into()),
            Stubborn::Unread => {
                out.put_slice(b"?");
                Ok(())
            }
        }
    }

    fn decode(_: bytes::Bytes) -> UserResult<Self> {
        Err("it is not what it was".into())
    }

    fn footprint(&self) -> usize {
        1
    }
}

#[test]
fn what_cannot_cross_is_refused_at_the_exchange_by_the_readers_name() {
    let run = |batch: Stubborn, pact: fn() -> Pact<Stubborn>| {
        let results = processes(2, 1).run_each::<Stubborn, _>(Mode::Demand, |worker, _| {
            let input = Input::new();
            worker.dataflow("stubborn", 1, |scope: &Scope<Stubborn>| {
                input.attach(scope)?.forward("the reader", pact()).map(drop)
            })?;
            if worker.index() == 0 {
                input.send(batch.clone()).map_err(|error| Error::Operator {
                    operator: "main".into(),
                    cause: error.into_cause(),
                })?;
            }
            input.close();
            worker.run()
        });
        failures(results)
    };
    let exchange = || {
        Pact::exchange(|batch: Stubborn, parts: &mut [Vec<Stubborn>]| {
            parts[1].push(batch);
            Ok(())
        })
    };
    for pact in [exchange as fn() -> Pact<Stubborn>, || Pact::Broadcast] {
        let failed = run(Stubborn::Unwritten, pact);
        let text = failed[0].error.to_string();
        assert!(
            text.contains("'the reader' cannot be sent to another process: it has a lock in it"),
            "{text}"
        );
        names(&failed[1], 0, "it has a lock in it");
        let failed = run(Stubborn::Unread, pact);
        let text = failed[1].error.to_string();
        assert!(
            text.contains("operator 'the reader' cannot read")
                && text.contains("it is not what it was"),
            "{text}"
        );
        names(&failed[0], 1, "it is not what it was");
    }
}

/// Dataflows one after another, and some of them dropped while batches are in flight: messages that arrive
/// before they are built here, or after they have ended, disturb nothing.
#[test]
fn dataflows_come_and_go_at_different_times() {
    for seed in 0..4 {
        let shape = Shape {
            delay: Delay::Random {
                seed,
                most: Duration::from_millis(2),
            },
            ..processes(3, 2)
        };
        let results = shape.run::<Batch, _>(Mode::Eager, |worker| {
            for round in 0..30 {
                let (input, probe) = open_dataflow(worker, "come and go")?;
                let own = worker.index() as u64;
                for time in 0..(own + round) % 4 {
                    input.send(vec![own; 10]).unwrap();
                    input.advance_to(&Point::new(&[time + 1]))?;
                    worker.step()?;
                }
                if round % 3 == 2 {
                    let last = *worker.installed_dataflows().last().unwrap();
                    worker.drop_dataflow(last);
                } else {
                    input.close();
                    if round % 3 == 0 {
                        worker.step_while(|| !probe.is_done())?;
                    }
                }
            }
            worker.run()
        });
        assert!(results.is_ok(), "{results:?}");
    }
}

/// Rounds in which every worker waits for all others; the number of frames and bytes of progress that each process
/// sent for one.
fn barrier(shape: Shape, rounds: u64) -> (f64, f64) {
    let sent = shape.run::<Batch, _>(Mode::Demand, |worker| {
        let (input, probe) = open_dataflow(worker, "barrier")?;
        for round in 1..=rounds {
            let next = Point::new(&[round]);
            input.advance_to(&next)?;
            worker.step_while(|| probe.less_than(&next))?;
        }
        let traffic = worker.cluster().traffic();
        Ok((traffic.progress_frames, traffic.progress_bytes))
    });
    let sent = sent.unwrap();
    // One worker of each process.
    let sent = sent.chunks(shape.workers).map(|process| process[0]);
    let (frames, bytes) = sent.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    #[allow(clippy::cast_precision_loss, reason = "a ratio")]
    let per_round = |count: u64| count as f64 / rounds as f64;
    (per_round(frames), per_round(bytes))
}

#[test]
fn progress_between_processes_follows_the_processes_and_not_the_workers() {
    for (count, most) in [(1, 0.0), (2, 2.0), (4, 12.0)] {
        for workers in [1, 2, 4] {
            let (frames, bytes) = barrier(processes(count, workers), 200);
            println!("{count} x {workers}: {frames:.1} frames, {bytes:.0} bytes a round");
            // As many as pairs of processes, and some more where a worker was late.
            assert!(
                frames <= 4.0 * most + 0.1,
                "{frames} frames a round from {count} processes of {workers} workers"
            );
        }
    }
}

#[test]
fn relays_send_for_their_groups() {
    // Of five processes in pairs, processes 0, 2 and 4 relay, and process 4 for itself alone.
    let (frames, _) = barrier(grouped(5, 2, 2), 200);
    println!("{frames:.1} frames a round");
    // Two from members, six between relays, two to members; more where a process was late. Straight, there would be 20.
    assert!((9.0..20.0).contains(&frames), "{frames} frames a round");
}

#[test]
fn programs_end_whatever_the_groups_are() {
    for group in 1..=5 {
        let results = grouped(5, 1, group).run::<Batch, _>(Mode::Demand, |worker| {
            let (input, probe) = open_dataflow(worker, "rounds")?;
            for round in 1..=50 {
                // One process after the other is alone with something to say.
                if round % 5 == worker.index() as u64 {
                    std::thread::sleep(Duration::from_micros(100));
                }
                let next = Point::new(&[round]);
                input.send(vec![round]).unwrap();
                input.advance_to(&next)?;
                worker.step_while(|| probe.less_than(&next))?;
            }
            Ok(probe.less_than(&Point::new(&[50])))
        });
        assert_eq!(results.unwrap(), [false; 5], "groups of {group}");
    }
}

#[test]
fn a_lost_relay_ends_all_others_and_is_named() {
    let results = grouped(4, 1, 2).run_each::<Batch, ()>(Mode::Demand, |worker, transport| {
        if worker.index() == 2 {
            transport.kill();
        }
        for_ever(worker)
    });
    for (process, failure) in failures(results).iter().enumerate() {
        if process != 2 {
            names(failure, 2, "was cut");
        }
    }
}
