//! The state of a worker in the current attempt at a cut.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use pointstamp_progress::drain::{Due, Leader, Member};

use super::common_time::CommonTime;
use crate::cut::{Cuts, Limits, Standing};
use crate::observe::OperatorId;
use crate::payload::Payload;

/// The state of a worker in the current attempt at a cut.
pub(super) struct CutAttempt<P: Payload> {
    pub(super) cuts: RefCell<Option<Rc<dyn Cuts<P>>>>,
    pub(super) limits: Cell<Limits>,
    pub(super) member: RefCell<Member>,
    /// Used by one worker only.
    pub(super) leader: RefCell<Leader<Standing>>,
    /// The time until which the leader waits for the answers to its order.
    pub(super) deadline: Cell<Option<Instant>>,
    /// The search for a common time of the inputs of `main`.
    pub(super) common: CommonTime,
    /// The times that the patience is doubled: once more for each attempt that failed because a worker did not answer in time, and once less
    /// for each that succeeds.
    pub(super) unanswered: Cell<u32>,
    /// The reason why the leader gives up: the workers that had not answered, and whether workers had
    /// different dataflows.
    pub(super) verdict: RefCell<(Vec<usize>, bool)>,
    /// The bytes in flight in this process when its sources were held.
    pub(super) in_flight: Cell<usize>,
    /// The operators that kept the last attempt from draining; none since a cut was taken.
    pub(super) undrained: RefCell<Vec<(OperatorId, String)>>,
    /// Another attempt was requested during the current one.
    pub(super) wanted: Cell<bool>,
    /// Whether there is something to do for an attempt.
    pub(super) attends: Cell<bool>,
    /// Dataflows that are being built.
    pub(super) building: RefCell<BTreeSet<usize>>,
    pub(super) dropped: RefCell<BTreeSet<usize>>,
}

impl<P: Payload> CutAttempt<P> {
    pub(super) fn new(peers: usize) -> Self {
        CutAttempt {
            cuts: RefCell::default(),
            limits: Cell::default(),
            member: RefCell::default(),
            leader: RefCell::new(Leader::new(peers)),
            deadline: Cell::default(),
            common: CommonTime::default(),
            unanswered: Cell::default(),
            verdict: RefCell::default(),
            in_flight: Cell::default(),
            undrained: RefCell::default(),
            wanted: Cell::default(),
            attends: Cell::default(),
            building: RefCell::default(),
            dropped: RefCell::default(),
        }
    }

    pub(super) fn begins(&self, dataflow: usize) {
        self.building.borrow_mut().insert(dataflow);
    }

    pub(super) fn is_built(&self, dataflow: usize) {
        self.building.borrow_mut().remove(&dataflow);
    }

    /// Whether a dataflow is being built.
    pub(super) fn builds(&self) -> bool {
        !self.building.borrow().is_empty()
    }

    pub(super) fn drops(&self, dataflow: usize) {
        self.dropped.borrow_mut().insert(dataflow);
    }

    /// Whether the worker does not return to `main`: it takes part in a drain, or waits for one at the common time of inputs.
    pub(super) fn keeps_main(&self) -> bool {
        self.attends.get() && (self.member.borrow().is_held() || self.common.is_stopped())
    }

    /// Whether nothing may run.
    pub(super) fn is_frozen(&self) -> bool {
        self.attends.get() && self.member.borrow().is_frozen()
    }

    #[inline]
    pub(super) fn attends(&self) -> bool {
        self.attends.get()
    }

    /// When there is something to do, if nothing else happens.
    pub(super) fn due(&self) -> Option<Instant> {
        if !self.attends.get() {
            return None;
        }
        let deadlines = [self.deadline.get(), self.common.deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Whether it is time for something.
    pub(super) fn is_due(&self) -> bool {
        self.due().is_some_and(|due| due <= Instant::now())
    }

    /// Returns the time that workers have to say that they are ready, or to hold their sources.
    ///
    /// It doubles with each attempt that failed because a worker did not answer, up to a fifth of the time for the drain, and is halved by each
    /// that succeeds. So a computation whose steps take longer than [`Limits::ready`] has cuts, too.
    pub(super) fn patience(&self) -> Duration {
        let Limits { ready, drain, .. } = self.limits.get();
        let doubled = ready.saturating_mul(2_u32.saturating_pow(self.unanswered.get()));
        doubled.min(ready.max(drain / 5))
    }

    /// Whether the leader has waited for long enough.
    pub(super) fn is_late(&self) -> bool {
        let deadline = self.deadline.get();
        deadline.is_some_and(|end| end <= Instant::now())
    }

    /// Looks again whether there is something to do.
    pub(super) fn look(&self) {
        let member = self.member.borrow();
        let leads = self.leader.borrow().attempt().is_some();
        let attends =
            leads || member.is_held() || member.due() != Due::Nothing || self.common.attends();
        self.attends.set(attends);
    }

    pub(super) fn cuts(&self) -> Option<Rc<dyn Cuts<P>>> {
        self.cuts.borrow().clone()
    }
}
