//! Runs of a program on processes whose interleaving is determined by a seed.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test program uses a part of it"
)]

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointstamp_channels::LINGER;
use pointstamp_engine::cluster::{Cluster, HIGH_WATER};
use pointstamp_engine::error::{BoxError, Error};
use pointstamp_engine::execute::run_worker;
use pointstamp_engine::host::Host;
use pointstamp_engine::payload::Payload;
use pointstamp_engine::worker::Worker;
use pointstamp_progress::Mode;
use pointstamp_simulate::{Found, Link, World};

/// The limit of a time in which nothing happens, against hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs `main` on each worker; returns their results. The seed also says how many processes are in a group.
pub fn simulate<P: Payload, R: Send>(
    processes: usize,
    workers: usize,
    seed: u64,
    main: impl Fn(&Worker<P>) -> Result<R, Error> + Sync,
) -> Vec<R> {
    let world = World::new(processes, workers, seed, false, PATIENCE);
    let group = 1 + usize::try_from(seed).unwrap_or(0) % processes;
    let clusters: Vec<_> = (0..processes)
        .map(|process| {
            let link = Arc::new(Link::new(Arc::clone(&world), process));
            Cluster::in_cluster_of_groups(workers, Mode::Demand, HIGH_WATER, link, LINGER, group)
        })
        .collect();
    let (main, mut results, mut ends) = (&main, Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (cluster, seeds) in clusters {
            for seed in seeds {
                let world = Arc::clone(&world);
                threads.push(scope.spawn(move || {
                    let worker = seed.index();
                    world.enter(worker);
                    let host: Rc<dyn Host> = Rc::new(Turns {
                        world: Arc::clone(&world),
                        worker,
                        found: Cell::default(),
                    });
                    let result = run_worker(seed, &host, main);
                    world.leave(worker);
                    result
                }));
            }
            ends.push(cluster);
        }
        for thread in threads {
            results.push(thread.join().expect("a worker's thread ends"));
        }
    });
    for cluster in &ends {
        cluster.ending().leave();
    }
    for cluster in ends {
        cluster.close();
        if let Some(failure) = cluster.ending().take_failure() {
            panic!("{}", failure.error);
        }
    }
    let results = results.into_iter();
    results
        .map(|result| result.expect("no worker failed"))
        .collect()
}

/// A worker that does something when it has the turn, and never sleeps.
struct Turns {
    world: Arc<World>,
    worker: usize,
    found: Cell<Found>,
}

impl Turns {
    fn turn(&self) -> Result<(), BoxError> {
        let turn = self.world.turn(self.worker, self.found.take(), &|| ());
        turn.map_err(|_| format!("worker {} and all others wait for ever", self.worker).into())
    }
}

impl Host for Turns {
    fn before_step(&self) -> Result<(), BoxError> {
        self.turn()
    }

    fn while_held(&self) -> Result<(), BoxError> {
        self.turn()
    }

    fn before_end(&self) -> Result<(), BoxError> {
        Ok(())
    }

    fn patience(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn interrupted(&self, due: Option<Instant>) -> Result<(), BoxError> {
        let is_due = due.is_some();
        self.found.set(Found::Nothing { is_due });
        Ok(())
    }
}
