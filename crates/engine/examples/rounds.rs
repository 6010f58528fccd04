//! Rounds of a barrier and of an exchange on the engine alone, to be compared between two builds of it.
//!
//! `rounds WORKERS ROUNDS [barrier|exchange]` prints the nanoseconds of a round of each, or of one.
//! `benches/python/observability.py compiled` builds it twice, once with `--cfg unobserved`, which leaves out the
//! engine's checks for observers, and compares.

#[path = "programs/barrier.rs"]
mod barrier;

use std::time::Instant;

use pointstamp_engine::execute::execute;
use pointstamp_engine::operators::{Input, Probe};
use pointstamp_engine::pact::Pact;
use pointstamp_order::Point;
use pointstamp_progress::Mode;

const BATCH: u64 = 64;

/// A program with its name; it runs on a number of workers for a number of rounds.
type Program = (&'static str, fn(usize, u64));

fn barrier(workers: usize, rounds: u64) {
    execute::<Vec<u64>, ()>(workers, Mode::Demand, |worker| {
        barrier::barrier(worker, rounds)
    })
    .expect("the barrier ends");
}

/// Sends a small batch a round through an exchange and three more operators, so that the cost per message
/// shows.
fn exchange(workers: usize, rounds: u64) {
    execute::<Vec<u64>, ()>(workers, Mode::Demand, |worker| {
        let (input, probe) = (Input::new(), Probe::new());
        worker.dataflow("exchange", 1, |scope| {
            let route = |batch: Vec<u64>, parts: &mut [Vec<Vec<u64>>]| {
                let peers = parts.len();
                let mut split = vec![Vec::new(); peers];
                for (at, x) in batch.into_iter().enumerate() {
                    split[at % peers].push(x);
                }
                for (part, records) in parts.iter_mut().zip(split) {
                    part.push(records);
                }
                Ok(())
            };
            let mut stream = input
                .attach(scope)?
                .forward("exchange", Pact::exchange(route))?;
            for _ in 0..3 {
                stream = stream.forward("forward", Pact::Pipeline)?;
            }
            probe.attach(&stream).map(drop)
        })?;
        for round in 1..=rounds {
            input.send((0..BATCH).collect()).expect("the input is open");
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

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u64>().ok());
    let (Some(workers), Some(rounds)) = (number(0), number(1)) else {
        eprintln!("rounds WORKERS ROUNDS [barrier|exchange]");
        std::process::exit(2);
    };
    let workers = usize::try_from(workers).unwrap_or(1);
    let programs: [Program; 2] = [("barrier", barrier), ("exchange", exchange)];
    for (name, run) in programs {
        if arguments.get(2).is_some_and(|only| only != name) {
            continue;
        }
        let begin = Instant::now();
        run(workers, rounds);
        println!("{}", begin.elapsed().as_nanos() / u128::from(rounds));
    }
}
