//! The workers of one computation, and how they end together.
//!
//! The first failure is kept, and stops everybody: workers look at the flag between operators, and parked ones are
//! woken. [`Seed`]s are sent to the threads that become workers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pointstamp_channels::{Fabric, Mailbox};
use pointstamp_progress::Mode;

use crate::agreement::Agreement;
use crate::error::Error;
use crate::payload::Payload;
use crate::worker::Worker;

/// A failure, and whose it was.
#[derive(Debug)]
pub struct Failure {
    /// The worker that failed.
    pub worker: usize,
    /// Why.
    pub error: Error,
}

/// What the workers of one computation share.
pub struct Cluster {
    fabric: Arc<Fabric>,
    mode: Mode,
    stopped: AtomicBool,
    failure: Mutex<Option<Failure>>,
    disagreement: OnceLock<String>,
    agreement: Agreement,
    /// Whether some worker dropped a dataflow: then those that wait for its end look again.
    dropped: AtomicBool,
}

/// A worker that has not been started: send it to its thread, then [`start`](Seed::start) it.
pub struct Seed {
    cluster: Arc<Cluster>,
    index: usize,
    mailbox: Mailbox,
}

impl Seed {
    /// The number that the worker will have.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Makes this thread the worker.
    pub fn start<P: Payload>(self) -> Worker<P> {
        Worker::new(self.index, self.cluster, self.mailbox)
    }
}

impl Cluster {
    /// A computation of `workers` threads of this process.
    pub fn in_process(workers: usize, mode: Mode) -> (Arc<Cluster>, Vec<Seed>) {
        let (fabric, mailboxes) = Fabric::in_process(workers);
        let cluster = Arc::new(Cluster {
            fabric,
            mode,
            stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
            disagreement: OnceLock::new(),
            agreement: Agreement::new(workers),
            dropped: AtomicBool::new(false),
        });
        let seeds = mailboxes.into_iter().enumerate();
        let seeds = seeds.map(|(index, mailbox)| Seed {
            cluster: Arc::clone(&cluster),
            index,
            mailbox,
        });
        let seeds = seeds.collect();
        (cluster, seeds)
    }

    pub(crate) fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn agreement(&self) -> &Agreement {
        &self.agreement
    }

    /// Stops every worker, and wakes those that sleep.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        (0..self.fabric.peers()).for_each(|worker| self.wake_worker(worker));
    }

    /// Wakes a worker of this process, if it sleeps: there is something to do that the engine does not know of.
    pub fn wake_worker(&self, worker: usize) {
        self.fabric.doorbell(worker).wake();
    }

    /// Whether the workers were told to stop.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Says why nothing more may run, if that is so.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !self.is_stopped() {
            return Ok(());
        }
        Err(self
            .disagreement
            .get()
            .map_or(Error::Stopped, |why| Error::Disagreement(why.clone())))
    }

    /// Notes that a worker dropped a dataflow.
    pub(crate) fn dropped(&self, worker: usize, dataflow: usize) {
        self.agreement.dropped(worker, dataflow);
        self.dropped.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether a dataflow was dropped anywhere.
    pub(crate) fn has_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Ends the computation because the workers built different graphs: each of them learns what differs.
    pub(crate) fn disagree(&self, why: &str) {
        let _first_wins = self.disagreement.set(why.to_owned());
        self.stop();
    }

    /// Keeps the first failure, and stops every worker.
    pub fn fail(&self, worker: usize, error: Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        // A worker that was stopped has not failed; who stopped it has, or will say so in a moment.
        if failure.is_none() && !matches!(error, Error::Stopped) {
            *failure = Some(Failure { worker, error });
        }
        drop(failure);
        self.stop();
    }

    /// Takes the failure that ended the computation, if one did.
    pub fn take_failure(&self) -> Option<Failure> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// Runs `main` as a worker on this thread: then closes what it left open and runs its dataflows to the end. An error
/// of either stops every worker; `None` is returned then.
pub fn run_worker<P: Payload, R>(
    seed: Seed,
    main: impl FnOnce(&Worker<P>) -> Result<R, Error>,
) -> Option<R> {
    let cluster = Arc::clone(&seed.cluster);
    let index = seed.index;
    let guard = StopOnPanic(&cluster);
    let worker = seed.start::<P>();
    let result = main(&worker).and_then(|result| {
        worker.finish_building()?;
        loop {
            worker.check_abandoned()?;
            if !worker.step_or_park(None)? {
                return Ok(result);
            }
        }
    });
    worker.end();
    std::mem::forget(guard);
    match result {
        Ok(result) => Some(result),
        Err(error) => {
            cluster.fail(index, error);
            None
        }
    }
}

/// Stops the other workers when this one panics, so that nobody waits for it.
struct StopOnPanic<'a>(&'a Cluster);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs `main` on `workers` threads and returns what they return, in order. One worker runs on the
/// calling thread.
///
/// # Errors
///
/// The first failure of any worker.
///
/// # Panics
///
/// When a worker panicked.
pub fn execute<P: Payload, R: Send>(
    workers: usize,
    mode: Mode,
    main: impl Fn(&Worker<P>) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Failure> {
    let (cluster, mut seeds) = Cluster::in_process(workers, mode);
    let results: Vec<Option<R>> = if workers == 1 {
        vec![run_worker(seeds.remove(0), &main)]
    } else {
        let main = &main;
        std::thread::scope(|scope| {
            let threads: Vec<_> = seeds
                .into_iter()
                .map(|seed| scope.spawn(move || run_worker(seed, main)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("a worker panicked"))
                .collect()
        })
    };
    match cluster.take_failure() {
        Some(failure) => Err(failure),
        None => Ok(results
            .into_iter()
            .map(|result| result.expect("no worker failed"))
            .collect()),
    }
}
