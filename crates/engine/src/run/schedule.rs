//! The interface of an operator to its scope.
//!
//! After Naiad's and timely dataflow's hierarchical scopes: an operator first describes itself (its internal summary,
//! the capabilities that it begins with), then the scope and the operator meet at a [`SharedProgress`] board: the
//! scope writes frontiers, schedules the operator, and collects consumed, internal and produced counts together. A
//! nested scope is an operator like any other, with one exception: its workers have already exchanged its progress,
//! so its report is not `local`.

use std::rc::Rc;

use pointstamp_order::{Point, Summary};
use pointstamp_progress::Connectivity;

use crate::cut::Outstanding;
use crate::error::Error;
use crate::inspect::ScopeState;
use crate::observe::OperatorId;
use crate::run::notify::Notify;
use crate::run::progress::SharedProgress;
use crate::run::taking::Taking;

/// An operator that can be scheduled.
pub(crate) trait Schedule {
    /// Runs once. `true` when the operator has work that no frontier shows and the dataflow must not end.
    fn schedule(&mut self) -> Result<bool, Error>;

    /// The contents of the operator.
    fn inspect(&mut self, address: &[usize]) -> Inside;

    /// Runs every scope, so that it sends progress that it has held back.
    fn flush(&mut self) {}

    /// Takes in the messages that operators leave at their inputs, so that they can be seen.
    fn pull(&mut self) -> Result<(), Error>;

    /// Takes the contents, for a checkpoint. Nothing is in flight.
    fn take(&mut self, taking: &mut Taking) -> Result<(), Error>;

    /// Adds the operators that have something to do.
    fn busy(&self, busy: &mut Vec<(OperatorId, String)>) {
        let _ = busy;
    }
}

/// The contents of an operator.
pub(crate) enum Inside {
    /// The batches that wait at each input of an operator.
    Operator(Vec<Waiting>),
    /// The operators of a scope.
    Scope(Box<ScopeState>),
}

/// Batches that wait at an input.
#[derive(Default)]
pub(crate) struct Waiting {
    /// The batches of this worker: the number of records at each time.
    pub(crate) here: Vec<(Point, usize)>,
    /// Whether there are some of others.
    pub(crate) remote: bool,
}

/// The description of an operator when its scope is installed.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each says one thing, and is read once"
)]
pub(crate) struct Description {
    pub(crate) id: OperatorId,
    pub(crate) name: String,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// From each input to each output, the summary of timestamps on the way.
    pub(crate) summary: Connectivity<Summary>,
    /// Capabilities that the instance of this worker begins with: `(output, time, count)`.
    pub(crate) initial: Vec<(usize, Point, i64)>,
    /// The counts at its ports when it begins, on all workers together.
    pub(crate) begins: Outstanding,
    /// Whether it has ended before it begins: the computation resumes from a checkpoint at which it had.
    pub(crate) finished: bool,
    /// Whether it pauses while sources are held.
    pub(crate) pauses: bool,
    /// Whether the report is this worker's own, to be sent to the others.
    pub(crate) local: bool,
    /// For each input, whether the operator is notified of its frontier.
    pub(crate) notify: Vec<Notify>,
    /// Whether it should run once at the start, with nothing received.
    pub(crate) start: bool,
    pub(crate) progress: Rc<SharedProgress>,
    pub(crate) operator: Box<dyn Schedule>,
}
