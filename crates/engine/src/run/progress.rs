//! The progress that an operator and the scope around it exchange.
//!
//! The scope writes `frontiers`; the operator writes the rest. The scope collects all of an operator's report at
//! once, after a run, never half of it: consuming a message and holding its capability, or sending a message and
//! dropping the capability for it, must reach all workers together (progress-tracking, "a batch of changes"). Changes
//! are keyed by port, so that an operator with many ports pays only for the ports that changed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pointstamp_order::{ChangeBatch, Point};

/// Changes to counts, per port and time.
pub type PortChanges = ChangeBatch<(usize, Point)>;

/// The board between an operator and its scope.
#[derive(Default)]
pub struct SharedProgress {
    /// By input: changes to the frontier of times that may still arrive.
    pub frontiers: RefCell<PortChanges>,
    /// By input: records consumed.
    pub consumed: RefCell<PortChanges>,
    /// By output: changes to the capabilities held.
    pub internal: RefCell<PortChanges>,
    /// By output: records sent.
    pub produced: RefCell<PortChanges>,
    /// Whether the operator was dropped: remaining references to it report nothing, so that nothing
    /// accumulates here.
    closed: Cell<bool>,
}

impl SharedProgress {
    /// An empty board.
    pub fn new() -> Rc<Self> {
        Rc::default()
    }

    /// Marks the operator as dropped.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        for board in [
            &self.frontiers,
            &self.consumed,
            &self.internal,
            &self.produced,
        ] {
            board.take();
        }
    }

    /// Whether the operator was dropped.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }
}
