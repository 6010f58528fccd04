//! Requests for an operator to run that come from outside the dataflow: from a timer, or from another thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pointstamp_channels::{Doorbell, Ring};
use rustc_hash::FxHashMap;

use crate::run::activation::{Activation, WeakActivation};
use crate::run::holding::Holding;

/// The timers and the registry of one worker.
pub struct Wakeups {
    doorbell: Doorbell,
    holding: Rc<Holding>,
    next: Cell<u64>,
    timers: RefCell<BTreeSet<(Duration, u64)>>,
    /// The instant from which timers count.
    start: Instant,
    registered: RefCell<FxHashMap<u64, Registered>>,
    /// The time that operators have run, where checkpoints are made, and the beginning of the current step.
    worked: Cell<Duration>,
    stepping: Cell<Option<Instant>>,
    /// The number of registrations at which those of dropped operators are removed.
    sweep_at: Cell<usize>,
}

/// An operator that can be activated by number.
struct Registered {
    activation: WeakActivation,
    /// Whether a request from another thread is on its way: one is enough.
    requested: Arc<AtomicBool>,
}

impl Wakeups {
    pub(crate) fn new(doorbell: Doorbell, holding: Rc<Holding>) -> Rc<Self> {
        Rc::new(Wakeups {
            doorbell,
            holding,
            next: Cell::new(0),
            timers: RefCell::default(),
            start: Instant::now(),
            registered: RefCell::default(),
            worked: Cell::default(),
            stepping: Cell::default(),
            sweep_at: Cell::new(64),
        })
    }

    pub(crate) fn activator(self: Rc<Self>, activation: &Activation) -> Activator {
        let id = self.next.get();
        self.next.set(id + 1);
        let mut registered = self.registered.borrow_mut();
        if registered.len() >= self.sweep_at.get() {
            registered.retain(|_, registered| registered.activation.upgrade().is_some());
            self.sweep_at.set(2 * registered.len() + 64);
        }
        let requested = Arc::new(AtomicBool::new(false));
        let entry = Registered {
            activation: activation.downgrade(),
            requested: Arc::clone(&requested),
        };
        registered.insert(id, entry);
        drop(registered);
        let registration = Rc::new(Registration {
            id,
            activation: activation.downgrade(),
            requested,
            wakeups: self,
        });
        Activator(registration)
    }

    /// Runs the operator registered under `id`, if it still exists.
    pub(crate) fn activate(&self, id: u64) {
        let found = self.registered.borrow().get(&id).map(|registered| {
            // Before the operator runs: later activations need another run.
            registered.requested.store(false, Ordering::Release);
            registered.activation.upgrade()
        });
        match found {
            Some(Some(activation)) => self.asks(&activation),
            Some(None) => drop(self.registered.borrow_mut().remove(&id)),
            None => {}
        }
    }

    /// Activates an operator from outside the dataflow: now, or when sources resume.
    fn asks(&self, activation: &Activation) {
        if self.holding.is_on() {
            self.holding.set_aside(activation);
        } else {
            activation.run_as_asked();
        }
    }

    /// Activates operators that are due, and returns when the next timer is; while sources are held, timers
    /// wait.
    pub(crate) fn fire(&self) -> Option<Instant> {
        if self.holding.is_on() {
            return None;
        }
        loop {
            let (at, id) = *self.timers.borrow().first()?;
            let at = (self.start + at, id);
            if at.0 > Instant::now() {
                return Some(at.0);
            }
            self.timers.borrow_mut().pop_first();
            self.activate(id);
        }
    }

    /// Notes that operators begin to run.
    pub(crate) fn begin_work(&self) {
        if self.holding.records() {
            self.stepping.set(Some(Instant::now()));
        }
    }

    /// Notes that operators have run.
    pub(crate) fn end_work(&self) {
        let worked = self.worked();
        self.stepping.set(None);
        self.worked.set(worked);
    }

    /// The time that operators have run.
    pub(crate) fn worked(&self) -> Duration {
        let now = self.stepping.get().map(|begun| begun.elapsed());
        self.worked.get() + now.unwrap_or_default()
    }

    /// When the next timer is, or was, of an operator that still exists.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        let (timers, registered) = (self.timers.borrow(), self.registered.borrow());
        let exists = |id| registered.get(id)?.activation.upgrade();
        let next = timers.iter().find(|(_, id)| exists(id).is_some());
        next.map(|(at, _)| self.start + *at)
    }

    /// Activates an operator once a delay has passed.
    fn after(&self, delay: Duration, id: u64) {
        let at = self.start.elapsed().checked_add(delay);
        let at = at.and_then(|at| round_up(at, delay));
        if let Some(at) = at.filter(|at| self.start.checked_add(*at).is_some()) {
            self.timers.borrow_mut().insert((at, id));
        }
    }
}

/// Rounds a moment up, to a grid whose step is at most a 64th of the delay that led to it. An operator that
/// sets a timer whenever it runs, by a timer or for another reason, would otherwise set more and more of
/// them; on the grid those that are about the same are one, and there are never more than about 128 for one
/// delay.
fn round_up(at: Duration, delay: Duration) -> Option<Duration> {
    let finest = 1 << 14; // 16 microseconds
    let step = (delay.as_nanos() / 64).max(finest).next_power_of_two() / 2;
    let nanos = at.as_nanos().div_ceil(step) * step;
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

/// Activates one operator; for use on the operator's own worker. Clones activate the same operator.
#[derive(Clone)]
pub struct Activator(Rc<Registration>);

struct Registration {
    id: u64,
    activation: WeakActivation,
    requested: Arc<AtomicBool>,
    wakeups: Rc<Wakeups>,
}

impl Activator {
    /// Activates the operator for the worker's next step; while sources are held for a checkpoint, once they resume.
    pub fn activate(&self) {
        if let Some(activation) = self.0.activation.upgrade() {
            self.0.wakeups.asks(&activation);
        }
    }

    /// Has the operator run again in the worker's next step, because it has stopped in the middle of work that its inputs have brought.
    /// A checkpoint waits until no operator asks for this.
    pub fn resume(&self) {
        if let Some(activation) = self.0.activation.upgrade() {
            activation.run();
        }
    }

    /// Returns true while dataflows of the checkpoint from which the worker resumes are still to be built.
    pub fn awaits_dataflows(&self) -> bool {
        self.0.wakeups.holding.restores()
    }

    /// Activates the operator once `delay` has passed, or up to a 64th of it later: requests for about the
    /// same moment are one.
    pub fn activate_after(&self, delay: Duration) {
        self.0.wakeups.after(delay, self.0.id);
    }

    /// Returns the time that operators of the worker have run, where checkpoints are made. A source compares it between two
    /// runs, to send no more than what can be worked on while a checkpoint waits.
    pub fn worked(&self) -> Duration {
        self.0.wakeups.worked()
    }

    /// The same request, from any thread.
    pub fn remote(&self) -> RemoteActivator {
        RemoteActivator {
            id: self.0.id,
            requested: Arc::clone(&self.0.requested),
            doorbell: self.0.wakeups.doorbell.clone(),
        }
    }
}

/// Activates one operator, from any thread.
#[derive(Clone)]
pub struct RemoteActivator {
    id: u64,
    requested: Arc<AtomicBool>,
    doorbell: Doorbell,
}

impl RemoteActivator {
    /// Activates the operator, and wakes its worker. Requests that the worker has not seen yet are one.
    pub fn activate(&self) {
        if self.requested.swap(true, Ordering::AcqRel) {
            return;
        }
        self.doorbell.ring(Ring::Activate(self.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_never_rounded_down_nor_far_up() {
        for delay in [0, 1, 999, 1 << 20, 5_000_000_000, 3_600_000_000_000] {
            let delay = Duration::from_nanos(delay);
            let most = (delay / 64).max(Duration::from_nanos(1 << 14));
            for at in [0, 1, 12_345, 987_654_321_987] {
                let at = Duration::from_nanos(at);
                let rounded = round_up(at, delay).unwrap();
                let late = rounded.checked_sub(at);
                assert!(late.is_some_and(|late| late <= most), "{at:?} {delay:?}");
            }
        }
        assert_eq!(round_up(Duration::MAX, Duration::from_secs(1)), None);
    }

    #[test]
    fn timers_of_one_operator_do_not_pile_up() {
        let (_fabric, mailboxes) = pointstamp_channels::Fabric::in_process(1, 1 << 20);
        let wakeups = Wakeups::new(mailboxes[0].doorbell(), Holding::new());
        let activation = Activation::root().child(1);
        let activator = Rc::clone(&wakeups).activator(&activation);
        for _ in 0..100_000 {
            activator.activate_after(Duration::from_secs(3600));
        }
        let pending = wakeups.timers.borrow().len();
        assert!((1..200).contains(&pending), "{pending}");
        activator.activate_after(Duration::MAX); // never
        assert_eq!(wakeups.timers.borrow().len(), pending);
    }
}
