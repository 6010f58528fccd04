//! Taking the state of a worker's operators for a checkpoint.
//!
//! A scope walks its operators and notes in a [`Taking`] the place of every operator, and the times that it holds.
//! Parts that depend on the type of batches, an operator puts into the [`Tray`] of its worker. The worker joins both
//! by the operators' numbers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use pointstamp_order::Point;

use crate::cut::{Form, Queued, State};
use crate::error::UserResult;
use crate::observe::OperatorId;
use crate::payload::Payload;
use crate::run::capability::OutputCore;

/// The findings of a walk through the scopes of a dataflow.
#[derive(Default)]
pub(crate) struct Taking {
    /// The identity of the scope where the walk is; empty for the dataflow.
    pub(crate) scope: String,
    pub(crate) found: Vec<Found>,
}

/// An operator, or a scope that has ended.
pub(crate) struct Found {
    pub(crate) id: OperatorId,
    pub(crate) identity: String,
    pub(crate) name: String,
    /// It has ended: nothing of it is left.
    pub(crate) finished: bool,
    /// The capabilities that it holds here, by output and time.
    pub(crate) held: Vec<(usize, Point, i64)>,
}

/// State that others read, and that outlives its operator.
pub trait Lends {
    /// Whether anybody may still read it. It is not asked for again after it was not.
    fn is_read(&self) -> bool;

    /// Takes the state for a checkpoint.
    ///
    /// # Errors
    ///
    /// Whatever is to end the computation.
    fn take(&mut self) -> UserResult<State>;

    /// Returns, for an input of main, the number of records that were sent at its last time. Only the next execution
    /// reads such a state: it need not build a dataflow of which nothing else is left.
    fn position(&self) -> Option<u64> {
        None
    }
}

/// State that others read, with the operator that it belongs to.
pub(crate) struct Lent {
    pub(crate) dataflow: usize,
    pub(crate) identity: String,
    pub(crate) name: String,
    pub(crate) lends: Box<dyn Lends>,
}

/// Collected state of operators, before it is matched with their identities, and state that others read.
pub(crate) struct Tray<P: Payload> {
    kept: RefCell<Vec<(OperatorId, Kept<P>)>>,
    lent: RefCell<Vec<Lent>>,
    /// The number of readers at the last check.
    read: Cell<usize>,
}

impl<P: Payload> Default for Tray<P> {
    fn default() -> Self {
        Tray {
            kept: RefCell::default(),
            lent: RefCell::default(),
            read: Cell::new(0),
        }
    }
}

impl<P: Payload> Tray<P> {
    pub(crate) fn put(&self, id: OperatorId, kept: Kept<P>) {
        self.kept.borrow_mut().push((id, kept));
    }

    pub(crate) fn empty(&self) -> Vec<(OperatorId, Kept<P>)> {
        self.kept.take()
    }

    /// Adds state that an operator lends.
    pub(crate) fn lend(&self, lent: Lent) {
        self.lent.borrow_mut().push(lent);
        if self.lent.borrow().len() > 2 * self.read.get() + 16 {
            let read = self.lent();
            self.give_back(read);
        }
    }

    /// Takes out the state that is still read.
    pub(crate) fn lent(&self) -> Vec<Lent> {
        let mut lent = self.lent.take();
        lent.retain(|one| one.lends.is_read());
        lent
    }

    /// Puts back the state that was taken out.
    pub(crate) fn give_back(&self, lent: Vec<Lent>) {
        self.read.set(lent.len());
        let added = self.lent.replace(lent);
        self.lent.borrow_mut().extend(added);
    }
}

/// The state of one operator.
pub(crate) struct Kept<P: Payload> {
    pub(crate) queued: Vec<Queued<P>>,
    /// `None` where it does not say.
    pub(crate) state: Option<State>,
    pub(crate) latest: Vec<u64>,
    pub(crate) position: Option<u64>,
    pub(crate) form: Arc<Form>,
}

/// Returns an operator's state.
pub(crate) type TakeState = Box<dyn FnMut() -> UserResult<State>>;

/// An operator's declaration of its state.
pub(crate) enum Keeps {
    /// Nothing was said.
    Unsaid,
    /// It has none.
    Nothing,
    /// The function that takes the state.
    State(TakeState),
}

/// The taker of an operator's part of a checkpoint.
pub(crate) struct Keeper<P: Payload> {
    pub(crate) tray: Rc<Tray<P>>,
    pub(crate) keeps: Keeps,
    /// For an input: the records that were sent at its time.
    pub(crate) position: Option<Box<dyn Fn() -> u64>>,
    pub(crate) outputs: Vec<Rc<OutputCore>>,
    /// The operator's kind and inputs.
    pub(crate) form: Arc<Form>,
}
