//! Running a dataflow on threads, and in an order that a seed draws.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pointstamp_engine::cluster::{Cluster, HIGH_WATER};
use pointstamp_engine::error::{BoxError, Error};
use pointstamp_engine::execute::{execute, run_worker};
use pointstamp_engine::host::Host;
use pointstamp_engine::worker::Worker;
use pointstamp_progress::Mode;
use pointstamp_simulate::{Found, Link, World};
use pointstamp_spill::Budget;

use crate::batch::Batch;

/// The workers on which a program runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// On so many threads.
    Threads(usize),
    /// On so many processes of so many workers each, whose interleaving is determined by a seed.
    Simulated(usize, usize, u64),
}

impl Place {
    /// Runs `main` on each worker; returns their results.
    ///
    /// # Panics
    ///
    /// When a worker fails.
    pub(crate) fn run<R: Send>(
        self,
        main: impl Fn(&Worker<Batch>) -> Result<R, Error> + Sync,
    ) -> Vec<R> {
        let budget = budget();
        let main = |worker: &Worker<Batch>| {
            if let Some(budget) = &budget {
                worker.set_resource(Arc::clone(budget) as _);
            }
            main(worker)
        };
        match self {
            Place::Threads(workers) => match execute(workers, Mode::Demand, main) {
                Ok(results) => results,
                Err(failure) => panic!("{}", failure.error),
            },
            Place::Simulated(processes, workers, seed) => simulate(processes, workers, seed, &main),
        }
    }
}

/// A budget that has room for nothing, where `POINTSTAMP_STORED` is set: all state is on disk.
fn budget() -> Option<Arc<Budget>> {
    std::env::var_os("POINTSTAMP_STORED")
        .map(|_| Budget::new(64, &std::env::temp_dir()).expect("files can be made"))
}

/// The limit of a time in which nothing happens in a simulated program, against hangs.
const PATIENCE: Duration = Duration::from_secs(120);

fn simulate<R: Send>(
    processes: usize,
    workers: usize,
    seed: u64,
    main: &(impl Fn(&Worker<Batch>) -> Result<R, Error> + Sync),
) -> Vec<R> {
    let world = World::new(processes, workers, seed, false, PATIENCE);
    let clusters: Vec<_> = (0..processes)
        .map(|process| {
            let link = Arc::new(Link::new(Arc::clone(&world), process));
            Cluster::in_cluster(workers, Mode::Demand, HIGH_WATER, link)
        })
        .collect();
    let (mut results, mut ends) = (Vec::new(), Vec::new());
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
                        found: std::cell::Cell::default(),
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
    results
        .into_iter()
        .map(|result| result.expect("no worker failed"))
        .collect()
}

/// A worker that does something when it has the turn, and never sleeps.
struct Turns {
    world: Arc<World>,
    worker: usize,
    found: std::cell::Cell<Found>,
}

impl Host for Turns {
    fn before_step(&self) -> Result<(), BoxError> {
        let turn = self.world.turn(self.worker, self.found.take(), &|| ());
        turn.map_err(|_| format!("worker {} and all others wait for ever", self.worker).into())
    }

    fn while_held(&self) -> Result<(), BoxError> {
        self.before_step() // the others have the turn, too
    }

    fn before_end(&self) -> Result<(), BoxError> {
        Ok(())
    }

    fn patience(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn interrupted(&self, due: Option<std::time::Instant>) -> Result<(), BoxError> {
        let is_due = due.is_some();
        self.found.set(Found::Nothing { is_due });
        Ok(())
    }
}
