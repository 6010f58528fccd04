//! The state that the parts of one operator share: its ports, its queues, its capabilities.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use crate::observe::{Observers, OperatorId};
use crate::run::activation::Activation;
use crate::run::failing::Failing;
use crate::run::progress::SharedProgress;

/// The place of an operator on its worker.
pub(crate) struct Site {
    pub(crate) id: OperatorId,
    pub(crate) activation: Activation,
    pub(crate) progress: Rc<SharedProgress>,
    pub(crate) failing: Rc<Failing>,
    pub(crate) observers: Rc<Observers>,
    /// Moves whenever the capability of the last message taken ends.
    pub(crate) generation: Cell<u64>,
    /// Messages in the operator's local queues.
    pub(crate) backlog: Cell<usize>,
    /// Inputs that have messages, for operators with many inputs that request this list.
    pub(crate) ready: RefCell<Option<VecDeque<usize>>>,
}

impl Site {
    pub(crate) fn new(
        id: OperatorId,
        activation: Activation,
        failing: Rc<Failing>,
        observers: Rc<Observers>,
    ) -> Rc<Self> {
        Rc::new(Site {
            id,
            activation,
            progress: SharedProgress::new(),
            failing,
            observers,
            generation: Cell::new(0),
            backlog: Cell::new(0),
            ready: RefCell::new(None),
        })
    }

    /// Ends the validity of the last message's capability.
    pub(crate) fn expire(&self) {
        self.generation.set(self.generation.get() + 1);
    }
}
