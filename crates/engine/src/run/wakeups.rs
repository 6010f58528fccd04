//! Requests for an operator to run that come from outside the dataflow: from a timer, or from another thread.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pointstamp_channels::{Doorbell, Event};
use rustc_hash::FxHashMap;

use crate::run::activation::{Activation, WeakActivation};

/// The timers and the registry of one worker.
pub struct Wakeups {
    doorbell: Doorbell,
    next: Cell<u64>,
    timers: RefCell<BinaryHeap<Reverse<(Instant, u64)>>>,
    registered: RefCell<FxHashMap<u64, Registered>>,
    /// How many registrations there may be before those of operators that are gone are swept out.
    sweep_at: Cell<usize>,
}

/// An operator that may be asked for by number.
struct Registered {
    activation: WeakActivation,
    /// Whether a request from another thread is on its way: one is enough.
    requested: Arc<AtomicBool>,
}

impl Wakeups {
    pub(crate) fn new(doorbell: Doorbell) -> Rc<Self> {
        let (next, timers, registered) = (Cell::new(0), RefCell::default(), RefCell::default());
        Rc::new(Wakeups {
            doorbell,
            next,
            timers,
            registered,
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
            // Before the operator runs: what is asked for from now on needs another run.
            registered.requested.store(false, Ordering::Release);
            registered.activation.upgrade()
        });
        match found {
            Some(Some(activation)) => activation.run(),
            Some(None) => drop(self.registered.borrow_mut().remove(&id)),
            None => {}
        }
    }

    /// Activates what is due, and says when the next timer is.
    pub(crate) fn fire(&self) -> Option<Instant> {
        loop {
            let next = self.timers.borrow().peek().map(|Reverse(timer)| *timer);
            match next {
                Some((at, id)) if at <= Instant::now() => {
                    self.timers.borrow_mut().pop();
                    self.activate(id);
                }
                other => return other.map(|(at, _)| at),
            }
        }
    }
}

/// Asks for one operator to run; for use on the operator's own worker. Clones ask for the same operator.
#[derive(Clone)]
pub struct Activator(Rc<Registration>);

struct Registration {
    id: u64,
    activation: WeakActivation,
    requested: Arc<AtomicBool>,
    wakeups: Rc<Wakeups>,
}

impl Activator {
    /// Asks for the operator to run in the worker's next step.
    pub fn activate(&self) {
        if let Some(activation) = self.0.activation.upgrade() {
            activation.run();
        }
    }

    /// Asks for the operator to run once `delay` has passed.
    pub fn activate_after(&self, delay: Duration) {
        if let Some(at) = Instant::now().checked_add(delay) {
            self.0
                .wakeups
                .timers
                .borrow_mut()
                .push(Reverse((at, self.0.id)));
        }
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

/// Asks for one operator to run; from any thread.
#[derive(Clone)]
pub struct RemoteActivator {
    id: u64,
    requested: Arc<AtomicBool>,
    doorbell: Doorbell,
}

impl RemoteActivator {
    /// Asks for the operator to run, and wakes its worker. Requests that the worker has not seen yet are one.
    pub fn activate(&self) {
        if self.requested.swap(true, Ordering::AcqRel) {
            return;
        }
        self.doorbell.ring(Event::Activate(self.id));
    }
}
