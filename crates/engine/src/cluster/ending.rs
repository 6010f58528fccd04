//! The end of a computation: the first failure, the workers that it stops, and the farewells between
//! processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use pointstamp_channels::{Fabric, Farewell, Reason};

use super::departures::Departures;
use crate::error::{Disagreement, Error};
use crate::run::failing::Stops;

/// A failure, and the worker that failed.
#[derive(Debug)]
pub struct Failure {
    /// The worker of this process that failed, if it was one.
    pub worker: Option<usize>,
    /// Why.
    pub error: Error,
}

/// The end of the workers of one process, and of the process among others.
pub struct Ending {
    fabric: Arc<Fabric>,
    stopped: AtomicBool,
    failure: Mutex<Option<Failure>>,
    /// Whether there was a failure, also when it has been taken.
    failed: AtomicBool,
    disagreement: OnceLock<Disagreement>,
    departures: Departures,
    /// Held while this process says farewell, and set once it has: all other processes must receive the same
    /// farewell, and the first may answer by closing its connection before the last has received it.
    farewell: Mutex<bool>,
}

impl Ending {
    pub(super) fn new(fabric: Arc<Fabric>) -> Self {
        let (process, processes) = place(&fabric);
        Ending {
            fabric,
            stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
            disagreement: OnceLock::new(),
            departures: Departures::new(process, processes),
            farewell: Mutex::new(false),
        }
    }

    /// Stops every worker of this process, and wakes sleeping ones. Other processes are not informed: see
    /// [`abandon`](Self::abandon).
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.fabric.wake_all();
    }

    /// Whether the workers were stopped.
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
            .map_or(Error::Stopped, |why| why.clone().into()))
    }

    /// Ends the computation because the workers built different graphs: every worker, in every process, gets
    /// the difference.
    pub(super) fn disagree(&self, why: &Disagreement) -> Error {
        if self.disagreement.set(why.clone()).is_ok() {
            self.say_failed(self.process(), Reason::Disagreed(why.to_string()));
        }
        self.stop();
        why.clone().into()
    }

    /// Keeps the first failure of this process, stops every worker of it, and sends the other processes the
    /// reason: a sentence, followed by a traceback where there is one.
    pub fn fail_because(&self, worker: usize, error: Error, reason: String) {
        // A worker that was stopped has not failed; the failed one has reported it, or will in a moment.
        if !matches!(error, Error::Stopped) {
            tracing::debug!(worker, %error, "the computation fails");
            let worker = Some(worker);
            if self.keep(Failure { worker, error }) {
                self.say_failed(self.process(), Reason::Raised(reason)); // once: not where a disagreement was said
            }
        }
        self.stop();
    }

    /// Stops every worker of every process, for a reason that is no worker's failure: an interruption.
    pub fn abandon(&self, reason: String) {
        tracing::info!(%reason, "the computation is abandoned");
        self.stop();
        self.say_failed(self.process(), Reason::Raised(reason));
    }

    /// Keeps a failure, if it is the first.
    pub(super) fn keep(&self, failure: Failure) -> bool {
        let mut kept = self.failure();
        let first = !self.failed.swap(true, Ordering::AcqRel);
        if first {
            *kept = Some(failure);
            self.departures.failed();
        }
        first
    }

    fn failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock()
    }

    /// Takes the failure that ended the computation, if one did.
    pub fn take_failure(&self) -> Option<Failure> {
        let mut failure = self.failure().take()?;
        if let Error::Fatal(error) = failure.error {
            failure.error = Arc::try_unwrap(error).unwrap_or_else(Error::Fatal);
        }
        Some(failure)
    }

    #[allow(clippy::cast_possible_truncation, reason = "processes are few")]
    fn say_failed(&self, origin: usize, reason: Reason) {
        let origin = origin as u32;
        self.say_farewell(Farewell::Failed { origin, reason });
    }

    /// Sends all other processes this process's farewell; only the first call does. When this returns, they
    /// have it.
    fn say_farewell(&self, how: Farewell) {
        if let Some(transport) = self.fabric.transport() {
            let mut said = self.farewell.lock();
            if !std::mem::replace(&mut *said, true) {
                transport.farewell(how);
            }
        }
    }

    /// Another process failed, and says so, or is lost.
    pub(super) fn peer_failed(&self, from: usize, origin: usize, reason: Reason) {
        let Some(transport) = self.fabric.transport() else {
            return;
        };
        if self.disagreement.get().is_some() {
            // The process that detected it keeps it in a moment. Others that end because of it have not failed.
            return self.stop();
        }
        let worker = None;
        if let Reason::Disagreed(why) = reason {
            let error = self.disagree(&Disagreement::Reported(why));
            self.keep(Failure { worker, error });
            return;
        }
        let (own, processes) = place(&self.fabric);
        let (process, reason) = if origin == own || origin >= processes {
            (
                from,
                Reason::Lost(format!("it lost this process: {reason}")),
            )
        } else {
            (origin, reason)
        };
        let address = transport.address(process);
        let error = Error::Peer {
            process,
            address,
            reason: reason.clone(),
        };
        if self.keep(Failure { worker, error }) {
            self.say_failed(process, reason);
        }
        self.stop();
    }

    /// Another process has left, or is lost.
    pub(super) fn has_left(&self, process: usize) {
        self.departures.left(process);
    }

    fn process(&self) -> usize {
        place(&self.fabric).0
    }

    /// Says that all workers of this process have come to their end: well, unless there was a failure. A process that relays
    /// progress says so later, in [`wait_for_others`](Self::wait_for_others).
    pub fn leave(&self) {
        if self.fabric.members().is_empty() {
            self.say_farewell(Farewell::Done); // after a failure that was said, and this does nothing
        }
    }

    /// Waits until all other processes have left, or for a moment after a failure, but not longer than until `deadline`. Whether
    /// that is over: then call [`close`](super::Cluster::close), and look for a failure.
    ///
    /// A process that relays progress says farewell in here, when the processes that it relays for have left: they
    /// have said all that they had to say, and need nothing more.
    pub fn wait_for_others(&self, deadline: Option<Instant>) -> bool {
        let members = self.fabric.members();
        if !members.is_empty() {
            if !self.departures.wait_for(members, deadline) {
                return false;
            }
            self.fabric.flush();
            self.say_farewell(Farewell::Done);
        }
        self.departures.wait(deadline)
    }
}

impl Stops for Ending {
    fn stop(&self) {
        Ending::stop(self);
    }

    fn disagree(&self, why: &Disagreement) {
        let _first = Ending::disagree(self, why);
    }

    fn fail(&self, worker: usize, error: Error, reason: String) {
        self.fail_because(worker, error, reason);
    }
}

/// The number of this process, and how many there are.
pub(super) fn place(fabric: &Fabric) -> (usize, usize) {
    fabric
        .transport()
        .map_or((0, 1), |all| (all.process(), all.processes()))
}
