//! A worker's part in checkpoints.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use pointstamp_engine::cut::{Cuts, GivenUp, Part};
use pointstamp_engine::error::{Error as EngineError, UserResult};
use pointstamp_engine::payload::Payload;
use pointstamp_engine::wakeups::Activator;
use pointstamp_engine::worker::Worker;

use crate::error::Error;
use crate::options::Resumed;
use crate::shared::{Job, Shared};
use crate::word::Word;

/// The pause between two looks for the leader's word, at the start.
const LOOK: Duration = Duration::from_millis(1);

/// A worker's part in checkpoints.
pub struct Recording<P: Payload> {
    shared: Arc<Shared<P>>,
    index: usize,
    resumed: Cell<Option<Resumed>>,
    /// The last checkpoint that exists.
    committed: Cell<u64>,
    /// The last checkpoint that the leader knows the sinks here have shown.
    shown: Cell<u64>,
    /// The last checkpoint that all sinks have shown.
    covered: Cell<u64>,
    sinks: RefCell<Vec<Weak<Sink<P>>>>,
    /// Operators that run when a checkpoint is covered.
    subscribers: RefCell<Vec<Activator>>,
    /// The number of inputs that have a number.
    inputs: Cell<u64>,
    asked: Cell<u64>,
    answered: Cell<u64>,
    /// Why the last attempt came to nothing.
    failed: RefCell<Option<String>>,
}

/// An operator that shows the results that checkpoints cover.
pub struct Sink<P: Payload> {
    recording: Rc<Recording<P>>,
    activator: Activator,
    shown: Cell<u64>,
}

impl<P: Payload> Sink<P> {
    /// The last checkpoint that exists. The operator runs when it changes.
    pub fn committed(&self) -> u64 {
        self.recording.committed.get()
    }

    /// Notes that the operator has shown the results that a checkpoint covers.
    pub fn show(&self, number: u64) {
        self.shown.set(number);
        self.recording.check_shown();
    }

    /// Requests a checkpoint.
    pub fn ask(&self) {
        self.recording.ask();
    }
}

impl<P: Payload> Drop for Sink<P> {
    fn drop(&mut self) {
        self.shown.set(u64::MAX);
        self.recording.check_shown();
    }
}

impl<P: Payload> Recording<P> {
    pub(crate) fn begin(
        shared: &Arc<Shared<P>>,
        worker: &Worker<P>,
    ) -> Result<Rc<Self>, EngineError> {
        let recording = Rc::new(Recording {
            shared: Arc::clone(shared),
            index: worker.index(),
            resumed: Cell::default(),
            committed: Cell::default(),
            shown: Cell::default(),
            covered: Cell::default(),
            sinks: RefCell::default(),
            subscribers: RefCell::default(),
            inputs: Cell::default(),
            asked: Cell::default(),
            answered: Cell::default(),
            failed: RefCell::default(),
        });
        worker.set_cuts(shared.limits, Rc::clone(&recording) as Rc<dyn Cuts<P>>);
        if worker.index() == 0 {
            recording.say_begun();
        }
        while shared.begun().is_none() {
            worker.step()?; // ends with the computation
            std::thread::sleep(LOOK);
        }
        let host = |error: Error| EngineError::Host {
            cause: Box::new(error),
        };
        let share = shared.share(worker.index(), worker.peers()).map_err(host)?;
        if let Some((share, resumed)) = share {
            worker.restore_changed(share, shared.changes.clone())?;
            recording.resumed.set(Some(resumed));
            recording.committed.set(resumed.number);
            recording.shown.set(resumed.number);
            recording.covered.set(resumed.number);
        }
        Ok(recording)
    }

    /// Sends the beginning of the execution to the other processes; only the leader's process does.
    fn say_begun(&self) {
        let Some(begun) = self.shared.begun() else {
            return;
        };
        let bytes = Word::Begun(begun).to_bytes();
        let cluster = &self.shared.cluster;
        for worker in cluster.workers().end..cluster.peers() {
            cluster.say_to(0, worker, bytes.clone());
        }
    }

    /// The checkpoint from which the computation resumes.
    pub fn resumed(&self) -> Option<Resumed> {
        self.resumed.get()
    }

    /// The last checkpoint that exists and that all sinks have shown.
    pub fn covered(&self) -> u64 {
        self.covered.get()
    }

    /// The random identity of the location, as text.
    pub fn lineage(&self) -> String {
        let begun = self.shared.begun();
        begun.map_or_else(String::new, |begun| begun.lineage.to_string())
    }

    /// Has an operator run whenever a checkpoint is covered.
    pub fn subscribe(&self, activator: Activator) {
        self.subscribers.borrow_mut().push(activator);
    }

    /// Registers an operator that shows the results that checkpoints cover.
    pub fn sink(self: &Rc<Self>, activator: Activator) -> Rc<Sink<P>> {
        let sink = Rc::new(Sink {
            recording: Rc::clone(self),
            activator,
            shown: Cell::new(self.committed.get()),
        });
        let mut sinks = self.sinks.borrow_mut();
        sinks.retain(|sink| sink.strong_count() > 0);
        sinks.push(Rc::downgrade(&sink));
        drop(sinks);
        sink
    }

    /// Requests a checkpoint; returns the number of the request.
    pub fn ask(&self) -> u64 {
        let request = self.asked.get() + 1;
        self.asked.set(request);
        self.shared.tell_leader(self.index, Word::Wanted(request));
        request
    }

    /// Returns the number of an input of which `main` repeats its records. It is the same on all workers, which
    /// connect inputs in one order.
    pub fn number_input(&self) -> u64 {
        self.inputs.replace(self.inputs.get() + 1)
    }

    /// Has the leader compare the records that all workers together have repeated to an input with those from before
    /// the checkpoint. `before` and `now` are this worker's shares of both digests.
    pub fn repeated(&self, number: u64, input: String, before: u64, now: u64) {
        self.shared.tell_leader(
            self.index,
            Word::Repeated {
                number,
                input,
                before,
                now,
            },
        );
    }

    /// Requests a checkpoint after which all workers end.
    pub fn stop(&self) {
        self.shared.tell_leader(self.index, Word::Stop);
    }

    /// The last request that a checkpoint has answered.
    pub fn answered(&self) -> u64 {
        self.answered.get()
    }

    /// Why the last attempt came to nothing.
    pub fn failed(&self) -> Option<String> {
        self.failed.borrow().clone()
    }

    /// Reports to the leader once all sinks have shown the last checkpoint.
    fn check_shown(&self) {
        let number = self.committed.get();
        if self.shown.get() >= number {
            return;
        }
        let sinks = self.sinks.borrow();
        let mut live = sinks.iter().filter_map(Weak::upgrade);
        if live.all(|sink| sink.shown.get() >= number) {
            self.shown.set(number);
            self.shared.tell_leader(self.index, Word::Shown { number });
        }
    }
}

impl<P: Payload> Cuts<P> for Recording<P> {
    fn taken(&self, part: Part<P>) -> UserResult<()> {
        if let Some(objection) = part.objections().into_iter().next() {
            return Err(Box::new(Error::Objection(objection)));
        }
        self.shared.give(Job::Write(Box::new(part)));
        Ok(())
    }

    fn receive(&self, from: usize, what: Vec<u8>) -> UserResult<()> {
        let word: Word = postcard::from_bytes(&what).map_err(Error::from)?;
        match word {
            Word::Begun(begun) => self.shared.begin(begun),
            Word::Committed { number, rewrites } => {
                self.failed.replace(None);
                self.committed.set(number);
                self.shared.give(Job::Settled {
                    number: Some(number),
                    rewrites,
                });
                let sinks: Vec<_> = self
                    .sinks
                    .borrow()
                    .iter()
                    .filter_map(Weak::upgrade)
                    .collect();
                for sink in sinks {
                    sink.activator.activate();
                }
                self.check_shown();
            }
            Word::Abandoned { why } => {
                self.failed.replace(Some(why));
                self.shared.give(Job::Settled {
                    number: None,
                    rewrites: false,
                });
            }
            Word::Covered { number, answers } => {
                self.covered.set(number);
                self.answered.set(answers);
                for activator in &*self.subscribers.borrow() {
                    activator.activate();
                }
            }
            Word::Stop if from == 0 => self.shared.cluster.ending().stop(),
            Word::Stop
            | Word::Wanted(_)
            | Word::Repeated { .. }
            | Word::Packed { .. }
            | Word::Failed { .. }
            | Word::Shown { .. } => {
                self.shared.give(Job::Receive(from, word));
            }
        }
        Ok(())
    }

    fn given_up(&self, given_up: GivenUp) {
        if self.index == 0 {
            self.shared.give(Job::GivenUp(given_up));
        }
    }
}
