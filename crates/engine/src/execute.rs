//! Running the workers of a process: each to its end, whatever that is.
//!
//! A worker ends when its main has returned and its dataflows are complete, or by an error or a panic, which is
//! reported to all others.

use std::rc::Rc;
use std::sync::Arc;

use pointstamp_progress::Mode;

use crate::cluster::{Cluster, Failure, HIGH_WATER, Seed};
use crate::error::Error;
use crate::host::{Host, Plain};
use crate::payload::Payload;
use crate::run::failing::Failing;
use crate::worker::Worker;

/// Runs `main` as a worker on this thread, then closes the inputs that it left open and runs its dataflows to
/// the end. An error of either, or a panic, stops every worker, in every process; `None` is returned then.
pub fn run_worker<P: Payload, R>(
    seed: Seed,
    host: &Rc<dyn Host>,
    main: impl FnOnce(&Worker<P>) -> Result<R, Error>,
) -> Option<R> {
    let (ending, index) = (Arc::clone(seed.cluster().ending()), seed.index());
    let failing = Failing::new(ending, index, Rc::clone(host));
    // The state after a panic is only ended and dropped; the panic is noted.
    let contained = |run: &mut dyn FnMut()| drop(failing.contain(run));
    let (mut seed, mut main) = (Some(seed), Some(main));
    let (mut worker, mut result) = (None, None);
    contained(&mut || {
        let (Some(seed), Some(main)) = (seed.take(), main.take()) else {
            return;
        };
        let worker = worker.insert(Worker::start(seed, Rc::clone(host)));
        let ran = main(worker).and_then(|result| worker.finish().map(|()| result));
        result = ran.map_err(|error| failing.fail(error)).ok();
    });
    contained(&mut || host.ends());
    contained(&mut || {
        if let Some(worker) = &worker {
            worker.end();
        }
    });
    contained(&mut || drop(worker.take()));
    result
}

/// Runs `main` on `workers` threads and returns their results, in order. One worker runs on the calling
/// thread.
///
/// # Errors
///
/// The first failure of any worker.
pub fn execute<P: Payload, R: Send>(
    workers: usize,
    mode: Mode,
    main: impl Fn(&Worker<P>) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Failure> {
    let (cluster, seeds) = Cluster::in_process(workers, mode, HIGH_WATER);
    run_workers(&cluster, seeds, main)
}

/// Runs `main` on each of a cluster's workers in this process, says farewell to the other processes, and
/// returns the results of the workers here, in order. One worker runs on the calling thread.
///
/// # Errors
///
/// The first failure of any worker, or of another process.
pub fn run_workers<P: Payload, R: Send>(
    cluster: &Cluster,
    mut seeds: Vec<Seed>,
    main: impl Fn(&Worker<P>) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Failure> {
    let results: Vec<Option<R>> = if seeds.len() == 1 {
        vec![run_worker(seeds.remove(0), &plain(), &main)]
    } else {
        let main = &main;
        std::thread::scope(|scope| {
            let threads: Vec<_> = seeds
                .into_iter()
                .map(|seed| scope.spawn(move || run_worker(seed, &plain(), main)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or(None))
                .collect()
        })
    };
    cluster.ending().leave();
    while !cluster.ending().wait_for_others(None) {}
    cluster.close();
    match cluster.ending().take_failure() {
        Some(failure) => Err(failure),
        None => results
            .into_iter()
            .collect::<Option<Vec<R>>>()
            .ok_or(Failure {
                worker: None,
                error: Error::Stopped,
            }),
    }
}

fn plain() -> Rc<dyn Host> {
    Rc::new(Plain)
}
