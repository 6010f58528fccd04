//! Holding the sources, so that the computation drains.
//!
//! Owns [`Holding`], one for a worker. While it is on, sources and other pausing operators are set aside when they
//! are to run, as is each operator that was activated from outside of its dataflow: by itself, by a timer, by another
//! thread. All of them run when it ends. Messages, frontiers and work that an operator yielded are not held. This is
//! no back-pressure: giving way does not end it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::observe::OperatorId;
use crate::run::activation::{Activation, WeakActivation};

/// The state of a hold of the worker's sources, and the activations that wait for its end.
#[derive(Default)]
pub(crate) struct Holding {
    /// The drain of a checkpoint holds them.
    drains: Cell<bool>,
    /// The worker begins from a checkpoint, and has yet to build dataflows of it.
    restores: Cell<bool>,
    /// `main` waits for the work of what it has sent.
    settles: Cell<bool>,
    /// Checkpoints are made.
    records: Cell<bool>,
    /// Another condition under which sources give way to work.
    strained: RefCell<Option<Box<dyn Fn() -> bool>>>,
    aside: RefCell<Vec<WeakActivation>>,
    /// The operators that have run since the last count, and since the count before: the ones that keep the
    /// computation from draining.
    ran: RefCell<[BTreeMap<OperatorId, Box<str>>; 2]>,
}

impl Holding {
    pub(crate) fn new() -> Rc<Self> {
        Rc::default()
    }

    /// Whether sources are held.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.drains.get() || self.restores.get() || self.settles.get()
    }

    /// Whether checkpoints are made.
    #[inline]
    pub(crate) fn records(&self) -> bool {
        self.records.get()
    }

    /// Whether sources give way to work: where checkpoints are made, so that little is in flight when they are held, and under the
    /// condition that was set.
    pub(crate) fn has_sources_give_way(&self) -> bool {
        let strained = self.strained.borrow();
        self.records() || strained.as_ref().is_some_and(|strained| strained())
    }

    /// Sets another condition under which sources give way to work.
    pub(crate) fn set_strained(&self, condition: impl Fn() -> bool + 'static) {
        let before = self.strained.borrow_mut().replace(Box::new(condition));
        drop(before); // after the borrow
    }

    /// Notes that checkpoints are made.
    pub(crate) fn set_records(&self) {
        self.records.set(true);
    }

    /// Whether dataflows of a checkpoint are still to be built.
    pub(crate) fn restores(&self) -> bool {
        self.restores.get()
    }

    /// Whether the worker takes part in a drain: progress is then sent at once.
    #[inline]
    pub(crate) fn drains(&self) -> bool {
        self.drains.get()
    }

    /// Has a node wait for the end.
    pub(crate) fn set_aside(&self, activation: &Activation) {
        self.aside.borrow_mut().push(activation.downgrade());
    }

    /// Begins or ends a drain.
    pub(crate) fn set_drains(&self, drains: bool) {
        self.drains.set(drains);
        self.ran.take();
        self.release();
    }

    /// Begins or ends the wait for dataflows of a checkpoint.
    pub(crate) fn set_restores(&self, restores: bool) {
        self.restores.set(restores);
        self.release();
    }

    /// Begins or ends the wait of `main` for work.
    pub(crate) fn set_settles(&self, settles: bool) {
        self.settles.set(settles);
        self.release();
    }

    fn release(&self) {
        if self.is_on() {
            return;
        }
        for activation in self.aside.take() {
            if let Some(activation) = activation.upgrade() {
                activation.run_as_asked();
            }
        }
    }

    /// Notes an operator that runs during a drain.
    pub(crate) fn runs(&self, id: OperatorId, name: &str) {
        let [now, _] = &mut *self.ran.borrow_mut();
        now.entry(id).or_insert_with(|| name.into());
    }

    /// Another count begins.
    pub(crate) fn counts(&self) {
        let [now, before] = &mut *self.ran.borrow_mut();
        *before = std::mem::take(now);
    }

    /// The operators that have run lately.
    pub(crate) fn ran(&self) -> Vec<(OperatorId, String)> {
        let [mut all, before] = self.ran.take();
        all.extend(before);
        all.into_iter()
            .map(|(id, name)| (id, name.into()))
            .collect()
    }
}
