//! Running a program on several processes that are connected in memory.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test program uses a part of it"
)]

use std::sync::Arc;

use pointstamp_channels::LINGER;
use pointstamp_engine::cluster::{Cluster, Failure, HIGH_WATER};
use pointstamp_engine::error::Error;
use pointstamp_engine::execute::run_workers;
use pointstamp_engine::payload::Payload;
use pointstamp_engine::worker::Worker;
use pointstamp_progress::Mode;
use pointstamp_testkit::memory::{self, Delay, Memory};

/// The numbers of processes and workers of a run, and its limits.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub processes: usize,
    pub workers: usize,
    /// The number of processes in a group whose first adds up their progress.
    pub group: usize,
    pub delay: Delay,
    pub high_water: usize,
}

/// Threads of one process.
pub const fn threads(workers: usize) -> Shape {
    processes(1, workers)
}

/// So many processes of so many workers.
pub const fn processes(processes: usize, workers: usize) -> Shape {
    Shape {
        processes,
        workers,
        group: 1,
        delay: Delay::None,
        high_water: HIGH_WATER,
    }
}

/// So many processes of so many workers, in groups of so many.
pub const fn grouped(processes: usize, workers: usize, group: usize) -> Shape {
    let shape = self::processes(processes, workers);
    Shape { group, ..shape }
}

/// The shapes on which every program must give the same.
pub const SHAPES: [Shape; 9] = [
    threads(1),
    threads(2),
    threads(4),
    processes(2, 1),
    processes(3, 1),
    processes(2, 2),
    processes(3, 2),
    grouped(3, 2, 2),
    grouped(5, 1, 2),
];

impl Shape {
    pub fn peers(self) -> usize {
        self.processes * self.workers
    }

    /// Runs `main` on every worker of every process and returns the result of each process. `main` gets the
    /// process's transport, to disturb it.
    pub fn run_each<P: Payload, R: Send>(
        self,
        mode: Mode,
        main: impl Fn(&Worker<P>, &Memory) -> Result<R, Error> + Sync,
    ) -> Vec<Result<Vec<R>, Failure>> {
        let main = &main;
        let transports = memory::connect(self.processes, self.delay);
        std::thread::scope(|scope| {
            let process = |transport: Arc<Memory>| {
                scope.spawn(move || {
                    let (cluster, seeds) = Cluster::in_cluster_of_groups(
                        self.workers,
                        mode,
                        self.high_water,
                        transport.clone(),
                        LINGER,
                        self.group,
                    );
                    run_workers(&cluster, seeds, |worker| main(worker, &transport))
                })
            };
            let processes: Vec<_> = transports.into_iter().map(process).collect();
            let processes = processes.into_iter();
            processes
                .map(|process| process.join().expect("a process panicked"))
                .collect()
        })
    }

    /// Runs `main` on every worker and returns all results, or the failure of the first process that failed
    /// by itself.
    pub fn run<P: Payload, R: Send>(
        self,
        mode: Mode,
        main: impl Fn(&Worker<P>) -> Result<R, Error> + Sync,
    ) -> Result<Vec<R>, Failure> {
        if self.processes == 1 {
            let (cluster, seeds) = Cluster::in_process(self.workers, mode, self.high_water);
            return run_workers(&cluster, seeds, main);
        }
        let (mut results, mut failures) = (Vec::new(), Vec::new());
        for process in self.run_each(mode, |worker, _| main(worker)) {
            match process {
                Ok(returned) => results.extend(returned),
                Err(failure) => failures.push(failure),
            }
        }
        failures.sort_by_key(|failure| matches!(failure.error, Error::Peer { .. }));
        match failures.into_iter().next() {
            Some(failure) => Err(failure),
            None => Ok(results),
        }
    }
}
