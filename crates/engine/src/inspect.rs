//! The state of a worker's dataflows, as plain data: for people, and to find the reason why a time waits.
//!
//! Owns [`Snapshot`]. It is taken between two steps, changes nothing, and refers to nothing live, so that it may be
//! kept, sent elsewhere and combined with those of other workers. [`Snapshot::holders`] finds the holders of a time.
//! Taking a snapshot costs a walk over all operators, edges and outstanding pointstamps.

mod holders;

use pointstamp_order::{Point, Summary};
use pointstamp_progress::{Location, Source, Target};

use crate::observe::{Change, EdgeId, OperatorId};

pub use holders::{Holder, Step};

/// The state of a worker's dataflows.
///
/// Counts of pointstamps are sums over all workers, as far as their progress has arrived here; fields named `here`
/// are this worker's share.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The worker's number.
    pub worker: usize,
    /// The number of workers.
    pub peers: usize,
    /// Whether so much is on its way in this process that sources are held back.
    pub pressed: bool,
    /// The number of bytes in flight in this process, approximately.
    pub in_flight: usize,
    /// The dataflows that are installed and not complete. A dataflow that is running now is left out.
    pub dataflows: Vec<ScopeState>,
}

/// A scope. The root scope of a dataflow stands for the dataflow.
#[derive(Debug, Clone)]
pub struct ScopeState {
    /// Its number.
    pub id: OperatorId,
    /// The path from the worker.
    pub address: Vec<usize>,
    /// Its name.
    pub name: String,
    /// The number of coordinates of times inside.
    pub dims: usize,
    /// By input of the scope: the least times that may still enter, with the coordinates that they have inside.
    pub inputs: Vec<Vec<Point>>,
    /// The operators in it; the first is node 1.
    pub operators: Vec<OperatorState>,
    /// The edges in it.
    pub edges: Vec<EdgeState>,
    /// All direct connections between ports, along an edge or through an operator, with the summary; `None`
    /// where no time passes.
    pub hops: Vec<(Location, Location, Option<Summary>)>,
    /// Changes to counts that this worker has not sent to the others yet.
    pub unsent: Vec<Change>,
}

/// An edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeState {
    /// Its number.
    pub id: EdgeId,
    /// From where; node 0 is the scope's boundary.
    pub source: Source,
    /// Whereto.
    pub target: Target,
    /// The contract of the edge, as in [`Observation::EdgeMade`](crate::observe::Observation::EdgeMade).
    pub pact: &'static str,
}

/// An operator, or a scope as an operator of the scope around it.
#[derive(Debug, Clone)]
pub struct OperatorState {
    /// Its number.
    pub id: OperatorId,
    /// The path from the worker.
    pub address: Vec<usize>,
    /// Its name.
    pub name: String,
    /// Its inputs.
    pub inputs: Vec<InputState>,
    /// Its outputs.
    pub outputs: Vec<OutputState>,
    /// Whether it never runs again.
    pub complete: bool,
    /// Whether it said that it has work that no frontier shows.
    pub busy: bool,
    /// Whether it is a source that is held back, since too much is on its way.
    pub held_back: bool,
    /// Its contents, where it is a scope that is not complete.
    pub scope: Option<Box<ScopeState>>,
}

/// An input of an operator.
#[derive(Debug, Clone, Default)]
pub struct InputState {
    /// The least times that may still arrive.
    pub frontier: Vec<Point>,
    /// Records that were sent and not consumed, on any worker, by time.
    pub pointstamps: Vec<(Point, i64)>,
    /// Batches that wait here and come from this worker: the number of records at each time.
    pub waiting: Vec<(Point, usize)>,
    /// Whether batches of other workers wait here.
    pub remote: bool,
}

/// An output of an operator.
#[derive(Debug, Clone, Default)]
pub struct OutputState {
    /// The least times at which something may still be sent.
    pub frontier: Vec<Point>,
    /// Capabilities that are held, on any worker, by time.
    pub pointstamps: Vec<(Point, i64)>,
    /// The counts of this worker, including those that it has not reported yet.
    pub here: Vec<(Point, i64)>,
}

impl Snapshot {
    /// The operator with a number, if it is in the snapshot.
    pub fn operator(&self, id: OperatorId) -> Option<&OperatorState> {
        self.dataflows.iter().find_map(|scope| scope.operator(id))
    }

    /// The name of an operator, a scope or a dataflow.
    pub fn name(&self, id: OperatorId) -> Option<&str> {
        let dataflow = self.dataflows.iter().find(|scope| scope.id == id);
        let name = dataflow.map(|scope| &*scope.name);
        name.or_else(|| Some(&self.operator(id)?.name))
    }
}

impl ScopeState {
    /// The operator in this scope, or in a scope inside, that has a number.
    pub fn operator(&self, id: OperatorId) -> Option<&OperatorState> {
        self.operators.iter().find_map(|operator| {
            if operator.id == id {
                return Some(operator);
            }
            operator.scope.as_ref()?.operator(id)
        })
    }
}
