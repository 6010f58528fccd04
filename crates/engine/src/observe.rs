//! The channel of observers, through which the engine reports events.
//!
//! Owns [`Observer`], the events for it ([`Observation`]), and the `Observers` of a worker, which everything on the worker
//! shares. Invariant: nothing is built for an event, and nothing is counted, while there is no observer: then an
//! observation costs the test of one flag. The events follow timely dataflow's log streams.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pointstamp_order::Point;
use pointstamp_progress::{Location, Source, Target};

/// A change to the count of a pointstamp, or to a frontier.
pub type Change = ((Location, Point), i64);

/// An operator of a worker. A scope is an operator, too. Workers that built the same graph number it alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorId {
    /// The dataflow's number.
    pub dataflow: u32,
    /// The operator's number in the dataflow, all scopes together, in the order in which they were begun. The dataflow itself, its
    /// root scope, is 0.
    pub operator: u32,
}

impl fmt::Display for OperatorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.dataflow, self.operator)
    }
}

/// An edge of a dataflow: from an output to an input, or across the boundary of a scope. Workers that built the same graph number
/// it alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeId {
    /// The dataflow's number.
    pub dataflow: u32,
    /// The edge's number in the dataflow, all scopes together, in the order in which they were made.
    pub edge: u32,
}

impl fmt::Display for EdgeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.dataflow, self.edge)
    }
}

/// An event on a worker, reported as it happens. Times are those in the scope of the operator.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// A scope is installed: reported before its contents. Afterwards it runs as an operator.
    ScopeMade {
        /// Its number.
        id: OperatorId,
        /// The path from the worker: the dataflow's number, then the index in each scope.
        address: &'a [usize],
        /// Its name.
        name: &'a str,
        /// The number of coordinates of times inside.
        dims: usize,
        /// The number of streams that enter.
        inputs: usize,
        /// The number of streams that leave.
        outputs: usize,
    },
    /// An operator is installed.
    OperatorMade {
        /// Its number.
        id: OperatorId,
        /// The path from the worker.
        address: &'a [usize],
        /// Its name.
        name: &'a str,
        /// The number of inputs.
        inputs: usize,
        /// The number of outputs.
        outputs: usize,
    },
    /// An edge is installed: reported after the operators that it joins.
    EdgeMade {
        /// Its number.
        id: EdgeId,
        /// The scope that it is in.
        scope: OperatorId,
        /// From where; nodes are indices in the scope, and node 0 is the scope's boundary.
        source: Source,
        /// Whereto.
        target: Target,
        /// The way in which it moves records: `"pipeline"`, `"exchange"`, `"broadcast"`, across a boundary
        /// (`"enter"`, `"leave"`), or not at all (`"watch"`: the frontier alone).
        pact: &'static str,
    },
    /// An operator or scope begins to run.
    ScheduleBegins {
        /// The operator.
        id: OperatorId,
    },
    /// An operator or scope has run, well or not.
    ScheduleEnds {
        /// The operator.
        id: OperatorId,
    },
    /// A source is not run, since too many bytes are in flight. It is reported again at the next check.
    SourceHeld {
        /// The operator.
        id: OperatorId,
    },
    /// A batch is sent. A batch across the boundary of a scope has arrived with that; all others are reported again
    /// when they are received.
    MessageSent {
        /// Along which edge.
        edge: EdgeId,
        /// The time of the message, in the scope where the edge begins.
        time: &'a Point,
        /// The number of records.
        records: usize,
        /// To which worker.
        worker: usize,
    },
    /// A batch is taken by the operator that reads it.
    MessageReceived {
        /// From which edge.
        edge: EdgeId,
        /// The time of the message.
        time: &'a Point,
        /// The number of records.
        records: usize,
        /// Whether another worker sent it.
        remote: bool,
    },
    /// Changes to the counts of a scope's pointstamps go to every other worker.
    ProgressSent {
        /// The scope that they are of.
        scope: OperatorId,
        /// The changes to counts.
        changes: &'a [Change],
    },
    /// Changes to the counts of a scope's pointstamps have come from other workers, from one or the sum of several.
    ProgressReceived {
        /// The scope that they are of.
        scope: OperatorId,
        /// The changes to counts.
        changes: &'a [Change],
    },
    /// Frontiers have moved: which times may still appear at the ports in a scope.
    FrontierMoved {
        /// The scope.
        scope: OperatorId,
        /// The times that joined the frontiers (1) and left them (-1).
        changes: &'a [Change],
    },
    /// A capability is made: from a message, or from another one. It may be reported before the operator, while the
    /// dataflow is being built.
    CapabilityMade {
        /// Its number on this worker; a capability that is moved to a later time keeps it.
        capability: u64,
        /// The operator that owns it.
        operator: OperatorId,
        /// For which output.
        port: usize,
        /// Its time.
        time: &'a Point,
    },
    /// A capability moves to a later time.
    CapabilityDowngraded {
        /// Its number; 0 where it was made before there was an observer.
        capability: u64,
        /// The operator that owns it.
        operator: OperatorId,
        /// For which output.
        port: usize,
        /// The time that is given up.
        from: &'a Point,
        /// The time that it has now.
        to: &'a Point,
    },
    /// A capability is given up.
    CapabilityDropped {
        /// Its number; 0 where it was made before there was an observer.
        capability: u64,
        /// The operator that owned it.
        operator: OperatorId,
        /// For which output.
        port: usize,
        /// Its time.
        time: &'a Point,
    },
    /// The worker begins to sleep, since there is nothing to do.
    ParkBegins,
    /// The worker is awake.
    ParkEnds,
    /// An operator or scope is complete, or its dataflow was dropped: it never runs again, and its contents
    /// are freed.
    Shutdown {
        /// The operator.
        id: OperatorId,
    },
}

/// Receives the events of a worker: a log, a counter, a page that shows them.
///
/// It is called on the worker's thread, in the middle of the event: it must not use the worker, nor anything of its
/// dataflows, and should be quick. It takes the time of the event itself.
pub trait Observer {
    /// Takes an event.
    fn observe(&self, observation: &Observation<'_>);
}

impl<F: Fn(&Observation<'_>)> Observer for F {
    fn observe(&self, observation: &Observation<'_>) {
        self(observation);
    }
}

/// The observers to which everything on a worker reports.
#[derive(Default)]
pub(crate) struct Observers {
    observed: Cell<bool>,
    all: RefCell<Vec<Rc<dyn Observer>>>,
    /// Capabilities numbered so far.
    capabilities: Cell<u64>,
    /// The operator that has begun to run last, for other threads: its dataflow's number above its own.
    latest: Arc<AtomicU64>,
}

/// Shows any thread the operator of a worker that has begun to run last.
#[derive(Clone)]
pub struct Latest(Arc<AtomicU64>);

impl Latest {
    /// The operator; one of number 0, which is no operator, before any has run.
    #[allow(clippy::cast_possible_truncation, reason = "the halves of a number")]
    pub fn operator(&self) -> OperatorId {
        let packed = self.0.load(Ordering::Relaxed);
        OperatorId {
            dataflow: (packed >> 32) as u32,
            operator: packed as u32,
        }
    }
}

impl Observers {
    /// No observers.
    pub(crate) fn new() -> Rc<Self> {
        Rc::default()
    }

    /// Notes that an operator runs now.
    #[inline]
    pub(crate) fn runs(&self, id: OperatorId) {
        if cfg!(unobserved) {
            return;
        }
        let packed = u64::from(id.dataflow) << 32 | u64::from(id.operator);
        self.latest.store(packed, Ordering::Relaxed);
    }

    /// A handle that shows the operator that has begun to run last.
    pub(crate) fn latest(&self) -> Latest {
        Latest(Arc::clone(&self.latest))
    }

    /// Whether there is an observer. Never in a build with `--cfg unobserved`, by which the cost of this check is
    /// measured.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        !cfg!(unobserved) && self.observed.get()
    }

    /// Reports an event, if there is an observer.
    #[inline]
    pub(crate) fn report<'a>(&self, observation: impl FnOnce() -> Observation<'a>) {
        if self.is_observed() {
            self.report_now(&observation());
        }
    }

    #[cold]
    fn report_now(&self, observation: &Observation<'_>) {
        let observers = self.all.borrow().clone();
        for observer in observers {
            observer.observe(observation);
        }
    }

    /// The number of a new capability: 0 while there is no observer.
    #[inline]
    pub(crate) fn number_capability(&self) -> u64 {
        if !self.is_observed() {
            return 0;
        }
        let number = self.capabilities.get() + 1;
        self.capabilities.set(number);
        number
    }

    /// Adds an observer.
    pub(crate) fn add(&self, observer: Rc<dyn Observer>) {
        self.all.borrow_mut().push(observer);
        self.observed.set(true);
    }

    /// Removes an observer.
    pub(crate) fn remove(&self, observer: &Rc<dyn Observer>) {
        let mut observers = self.all.borrow_mut();
        observers.retain(|other| !Rc::ptr_eq(other, observer));
        self.observed.set(!observers.is_empty());
    }

    /// Removes all observers.
    pub(crate) fn clear(&self) {
        self.observed.set(false);
        let observers = self.all.take();
        drop(observers); // after the borrow: dropping them may run user code
    }
}
