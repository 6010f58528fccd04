//! Arrangements used by later dataflows of the worker.
//!
//! The operator that builds an arrangement publishes its changes: each batch, and the frontier before which it is
//! complete. Its followers ([`import`](super::import)) are activated, and find them in a queue of their own.
//!
//! Owns the followers of an arrangement and their queues.
//!
//! Invariant: a follower gets each batch before the frontier that completes it, and learns when the operator goes.
//!
//! Cost: constant for each batch and follower; batches are shared.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use pointstamp_arrange::Sealed;
use pointstamp_engine::wakeups::Activator;
use pointstamp_order::{Antichain, Point};

use super::time::ScopeTime;
use pointstamp_rows::Cells;

/// A change of an arrangement, for followers that replay it into another scope.
pub(crate) enum Instruction<T> {
    /// A batch, with a time at or before all of its updates'.
    Batch(Point, Sealed<Cells, Cells, T>),
    /// It is complete before this.
    Upper(Vec<Point>),
    /// Its dataflow was dropped.
    Lost,
}

/// A follower of an arrangement.
pub(crate) struct Follower<T> {
    pub(crate) instructions: RefCell<VecDeque<Instruction<T>>>,
    activator: Activator,
}

impl<T> Follower<T> {
    /// A follower that is activated so.
    pub(crate) fn new(activator: Activator) -> Rc<Self> {
        Rc::new(Follower {
            instructions: RefCell::default(),
            activator,
        })
    }
}

/// The followers of an arrangement, and whether its operator was dropped.
pub(crate) struct Followers<T>(Rc<Shared<T>>);

struct Shared<T> {
    followers: RefCell<Vec<Weak<Follower<T>>>>,
    is_lost: Cell<bool>,
}

impl<T> Clone for Followers<T> {
    fn clone(&self) -> Self {
        Followers(Rc::clone(&self.0))
    }
}

impl<T> Default for Followers<T> {
    fn default() -> Self {
        Followers(Rc::new(Shared {
            followers: RefCell::default(),
            is_lost: Cell::new(false),
        }))
    }
}

impl<T: ScopeTime> Followers<T> {
    fn push(&self, instruction: impl Fn() -> Instruction<T>) {
        self.0.followers.borrow_mut().retain(|follower| {
            let Some(follower) = follower.upgrade() else {
                return false;
            };
            follower.instructions.borrow_mut().push_back(instruction());
            follower.activator.resume();
            true
        });
    }

    /// Adds a follower, for as long as it is held.
    pub(crate) fn join(&self, follower: &Rc<Follower<T>>) {
        self.0.followers.borrow_mut().push(Rc::downgrade(follower));
    }

    /// Whether the arrangement's operator was dropped: later followers receive nothing.
    pub(crate) fn are_lost(&self) -> bool {
        self.0.is_lost.get()
    }

    /// Says that a batch was added; each of its updates is at or after the time.
    pub(crate) fn added(&self, time: &Point, sealed: &Sealed<Cells, Cells, T>) {
        self.push(|| Instruction::Batch(time.clone(), sealed.clone()));
    }

    /// Says that the arrangement is complete before a frontier.
    pub(crate) fn complete(&self, upper: &Antichain<T>) {
        self.push(|| Instruction::Upper(upper.iter().map(T::point).collect()));
    }
}

/// Notifies the followers of an arrangement when its operator is dropped before it is complete.
pub(crate) struct Publisher<T: ScopeTime>(pub(crate) Followers<T>);

impl<T: ScopeTime> Drop for Publisher<T> {
    fn drop(&mut self) {
        self.0.0.is_lost.set(true);
        self.0.push(|| Instruction::Lost);
    }
}
