//! The one loop that runs a worker.
//!
//! A step takes in arrived events, then visits the active dataflows once each. A worker with nothing to do parks;
//! data, progress, an activator on any thread, a timer or a stop wakes it. All waiting goes through a turn of the
//! same loop, which calls the host before each step and during each sleep.

use std::time::{Duration, Instant};

use pointstamp_channels::Ring;

use super::Worker;
use super::abandoned::Abandoned;
use crate::error::{Error, RestoreError};
use crate::observe::Observation;
use crate::payload::Payload;
use crate::run::schedule::Schedule;

/// The permission of a turn to sleep where there is nothing to do.
#[derive(Clone, Copy)]
pub(super) enum Sleep {
    No,
    /// Until there is, or until then.
    Until(Instant),
    /// Until there is, while `main` waits for a checkpoint that the worker takes part in.
    Held,
    /// Until there is, or until every worker has finished.
    Attending,
    /// Until there is work, as long as dataflows that others have dropped leave something to wait for.
    Waiting(Abandoned),
}

/// The sleep of a worker that waits: it would never end if all of its dataflows were dropped elsewhere. While
/// one is left, `main` may wait for it, and the others may be dropped here, too, in a moment.
const WAITING: Sleep = Sleep::Waiting(Abandoned::All);

/// The result of a turn.
enum Turned {
    /// A step, after which a dataflow is left or not.
    Stepped(bool),
    /// A sleep, in which it was time to check for an interruption; with the time until which it lasts at
    /// most.
    Slept(Option<Instant>),
}

/// Ends a step, also one that panics.
struct Ends<'a, P: Payload>(&'a Worker<P>);

impl<P: Payload> Drop for Ends<'_, P> {
    fn drop(&mut self) {
        self.0.fabric().step_ended(self.0.0.index);
        self.0.0.stepping.set(false);
    }
}

impl<P: Payload> Worker<P> {
    /// Runs active dataflows once. `false` when no dataflow is left.
    ///
    /// # Errors
    ///
    /// The error of an operator; [`Error::Stopped`] or [`Error::Disagreement`] when another worker ended the
    /// computation; [`Error::Reentrant`] when called from inside an operator.
    pub fn step(&self) -> Result<bool, Error> {
        self.turn(Sleep::No)
    }

    /// One turn of the loop: the host's turn, sleep where there is nothing to do, and a step. An error that is not the host's ends
    /// the computation.
    pub(super) fn turn(&self, sleep: Sleep) -> Result<bool, Error> {
        if self.is_stepping() {
            return Err(Error::Reentrant); // before it sleeps, for ever, where it is called
        }
        let host = &*self.0.host;
        let mut sleep = sleep;
        host.before_step().map_err(|cause| Error::Host { cause })?;
        loop {
            let patience = host.patience();
            let mut outcome = None;
            let failing = &self.0.failing;
            host.apart(&mut || {
                let run = failing.contain(|| self.sleep_and_step(sleep, patience));
                outcome = Some(run.and_then(|outcome| outcome));
            });
            match outcome.expect("a host calls what it is given") {
                Ok(Turned::Stepped(more)) => {
                    if !self.0.cutting.keeps_main() {
                        return Ok(more);
                    }
                    sleep = Sleep::Held;
                    host.while_held().map_err(|cause| Error::Host { cause })?;
                }
                Ok(Turned::Slept(due)) => {
                    host.interrupted(due)
                        .map_err(|cause| Error::Host { cause })?;
                    let next = match sleep {
                        Sleep::Held => host.while_held(),
                        _ => host.before_step(),
                    };
                    next.map_err(|cause| Error::Host { cause })?;
                }
                Err(error @ (Error::Reentrant | Error::Ended { .. })) => return Err(error),
                Err(error) => return Err(self.0.failing.fail(error)),
            }
        }
    }

    /// Sleeps and steps; only sleeps where it was time to check for an interruption before there was work.
    fn sleep_and_step(&self, sleep: Sleep, patience: Option<Duration>) -> Result<Turned, Error> {
        let waits = match sleep {
            Sleep::Held => true,
            Sleep::Attending => !self.0.cluster.all_finished(),
            _ => self.has_dataflows(),
        };
        if !matches!(sleep, Sleep::No) && !self.has_work() && waits {
            let deadline = match sleep {
                Sleep::Until(deadline) => Some(deadline),
                Sleep::Waiting(which) => self.check_abandoned(which)?,
                Sleep::No | Sleep::Held | Sleep::Attending => None,
            };
            let slice = patience.map(|patience| Instant::now() + patience);
            self.park([deadline, slice].into_iter().flatten().min());
            let over = || deadline.is_some_and(|end| Instant::now() >= end);
            let called = self.0.host.is_called();
            if slice.is_some() && !called && !self.has_work() && !over() && self.check().is_ok() {
                let due = [deadline, self.0.wakeups.next_timer()];
                return Ok(Turned::Slept(due.into_iter().flatten().min()));
            }
        }
        self.step_now().map(Turned::Stepped)
    }

    fn step_now(&self) -> Result<bool, Error> {
        if self.0.stepping.replace(true) {
            return Err(Error::Reentrant);
        }
        let _ends = Ends(self);
        self.0.unmoved.set(0);
        self.fabric().step_begins(self.0.index);
        self.step_inner()
    }

    fn step_inner(&self) -> Result<bool, Error> {
        self.check()?;
        self.receive_events();
        if self.0.cluster.has_cut_messages(self.0.index) {
            self.take_cut_messages()?;
        }
        if self.0.cutting.attends() {
            return self.step_attending();
        }
        self.run_active()?;
        Ok(self.has_dataflows())
    }

    /// A step while a cut is attempted.
    fn step_attending(&self) -> Result<bool, Error> {
        if !self.0.cutting.is_frozen() {
            self.run_active()?;
        }
        self.attend()?;
        Ok(self.has_dataflows())
    }

    /// Visits the active dataflows once each.
    fn run_active(&self) -> Result<(), Error> {
        self.0.wakeups.fire();
        self.0.brake.check();
        self.0.wakeups.begin_work();
        let mut outcome = Ok(());
        while outcome.is_ok()
            && let Some(index) = self.0.registry.root().next_active()
        {
            outcome = self.visit(index);
        }
        self.0.registry.root().end_pass();
        self.0.wakeups.end_work();
        outcome
    }

    fn receive_events(&self) {
        let mut mailbox = self.0.mailbox.borrow_mut();
        while let Some(event) = mailbox.next() {
            match event {
                Ring::Channel(id) => {
                    self.0.arrivals.arrived(id);
                }
                Ring::Activate(id) => self.0.wakeups.activate(id),
            }
        }
    }

    fn visit(&self, index: usize) -> Result<(), Error> {
        let registry = &self.0.registry;
        let Some(mut running) = registry.begin(index) else {
            return Ok(());
        };
        let id = running.id;
        running.activation.begin();
        self.0
            .observers
            .report(|| Observation::ScheduleBegins { id });
        let result = self.check().and_then(|()| running.subgraph.schedule());
        self.0.observers.report(|| Observation::ScheduleEnds { id });
        running.activation.end();
        let dropped = registry.is_dropped(index);
        match result {
            Ok(true) if !dropped => {
                registry.put_back(index, running.subgraph);
                Ok(())
            }
            other => {
                let removed = registry.remove(index);
                drop(running.subgraph); // either may run user code
                drop(removed);
                self.forget_dataflow(index);
                if !dropped && matches!(other, Ok(false)) {
                    self.0.cluster.completed(self.0.index, index);
                }
                other.map(drop)
            }
        }
    }

    /// Whether a step is running: this was called from inside an operator, and another step is refused.
    pub fn is_stepping(&self) -> bool {
        self.0.stepping.get()
    }

    /// Steps, after sleeping for at most `timeout` where there is nothing to do.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn step_or_park(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.turn(deadline.map_or(WAITING, Sleep::Until))
    }

    /// Steps while the condition holds and a dataflow is left, sleeping where there is nothing to do.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step), and [`Error::Disagreement`] when all that this worker could wait for was dropped by others.
    pub fn step_while(&self, mut condition: impl FnMut() -> bool) -> Result<(), Error> {
        self.try_step_while(|| Ok(condition()))
    }

    /// Steps as [`step_while`](Self::step_while) does, with a condition that may fail.
    ///
    /// # Errors
    ///
    /// Errors of the condition, and those of [`step_while`](Self::step_while).
    pub fn try_step_while(
        &self,
        mut condition: impl FnMut() -> Result<bool, Error>,
    ) -> Result<(), Error> {
        while condition()? {
            if !self.turn(WAITING)? {
                break;
            }
        }
        Ok(())
    }

    /// Steps until every dataflow is complete.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step), and [`Error::Disagreement`] when another worker dropped one of them.
    pub fn run(&self) -> Result<(), Error> {
        loop {
            self.check_abandoned(Abandoned::Any)?;
            if !self.turn(Sleep::Waiting(Abandoned::Any))? {
                return Ok(());
            }
        }
    }

    /// Closes the inputs that `main` left open, announces that this worker builds no more dataflows, and
    /// steps until every dataflow is complete.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and [`Error::Disagreement`] when another worker built more dataflows.
    pub fn finish(&self) -> Result<(), Error> {
        self.check()?;
        let sent = self.0.host.before_end();
        sent.map_err(|cause| Error::Host { cause })?;
        let dataflows = self.unrestored();
        if !dataflows.is_empty() {
            let worker = self.0.index;
            let error = RestoreError::NotBuilt { worker, dataflows };
            return Err(self.0.failing.fail(error.into()));
        }
        self.0.open_inputs.close();
        let finished = self.0.cluster.finish(self.0.index);
        finished.map_err(|error| self.0.failing.fail(error))?;
        self.run()?;
        // A cut needs every worker, and the `main` of another one may wait for a cut.
        while self.records() && !self.0.cluster.all_finished() {
            self.turn(Sleep::Attending)?;
        }
        Ok(())
    }
}
