//! A worker: one thread that builds dataflows and runs them.
//!
//! A worker owns its dataflows and shares nothing with other workers except channels, the agreement on dataflows, and
//! the flag that stops all workers. Its dataflows are in `registry`; its steps are in `step`, its sleep in `park`,
//! after a look in `spin`; construction is in the layer above, `build`.

mod abandoned;
mod common_time;
mod common_time_member;
mod cut_attempt;
mod cut_member;
mod pace;
mod park;
mod pressure;
mod registry;
mod restoring;
mod resuming;
mod spin;
mod step;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use pointstamp_channels::{Fabric, Mailbox};
use pointstamp_progress::Mode;

use crate::cluster::{Cluster, Seed};
use crate::error::{BoxError, Error};
use crate::host::Host;
use crate::inspect::Snapshot;
use crate::observe::{Latest, Observer, Observers};
use crate::payload::Payload;
use crate::run::activation::Activation;
use crate::run::arrival::{Arrivals, OpenInputs};
use crate::run::brake::Brake;
use crate::run::failing::Failing;
use crate::run::holding::Holding;
use crate::run::subgraph::Subgraph;
use crate::run::taking::Tray;
use crate::run::wakeups::Wakeups;
use cut_attempt::CutAttempt;
use pace::Pace;
use registry::Registry;
use restoring::Restoring;
use spin::Spin;

pub(crate) use restoring::Beginning;

/// A worker. Clones are the same worker; it stays on its thread.
pub struct Worker<P: Payload>(Rc<WorkerCore<P>>);

struct WorkerCore<P: Payload> {
    index: usize,
    cluster: Arc<Cluster>,
    host: Rc<dyn Host>,
    failing: Rc<Failing>,
    observers: Rc<Observers>,
    mailbox: RefCell<Mailbox>,
    spin: Spin,
    wakeups: Rc<Wakeups>,
    brake: Rc<Brake>,
    holding: Rc<Holding>,
    cutting: CutAttempt<P>,
    restoring: RefCell<Option<Restoring<P>>>,
    tray: Rc<Tray<P>>,
    registry: Registry,
    arrivals: Arrivals,
    open_inputs: OpenInputs,
    stepping: Cell<bool>,
    /// Bytes that `main` has sent since the last step.
    unmoved: Cell<usize>,
    pace: Pace,
    ended: Cell<bool>,
    /// A dataflow that others have dropped, and since when that is known here.
    forsaken: Cell<Option<(usize, Instant)>>,
    resource: RefCell<Option<Arc<dyn Any + Send + Sync>>>,
}

impl<P: Payload> Clone for Worker<P> {
    fn clone(&self) -> Self {
        Worker(Rc::clone(&self.0))
    }
}

impl<P: Payload> Worker<P> {
    /// Makes this thread the worker, in a host.
    pub(crate) fn start(seed: Seed, host: Rc<dyn Host>) -> Self {
        let (index, cluster, mailbox) = seed.into_parts();
        let holding = Holding::new();
        let wakeups = Wakeups::new(mailbox.doorbell(), Rc::clone(&holding));
        let failing = Failing::new(cluster.ending().clone(), index, Rc::clone(&host));
        let fabric = cluster.fabric();
        let brake = Brake::new(Arc::clone(fabric), Rc::clone(&holding));
        let cutting = CutAttempt::new(fabric.peers());
        let spin = Spin::new(fabric.here().len(), fabric.peers());
        Worker(Rc::new(WorkerCore {
            index,
            cluster,
            host,
            failing,
            observers: Observers::new(),
            mailbox: RefCell::new(mailbox),
            spin,
            wakeups,
            brake,
            holding,
            cutting,
            restoring: RefCell::default(),
            tray: Rc::default(),
            registry: Registry::new(),
            arrivals: Arrivals::default(),
            open_inputs: OpenInputs::default(),
            stepping: Cell::new(false),
            unmoved: Cell::new(0),
            pace: Pace::new(),
            ended: Cell::new(false),
            forsaken: Cell::new(None),
            resource: RefCell::default(),
        }))
    }

    /// This worker's number, from zero.
    pub fn index(&self) -> usize {
        self.0.index
    }

    /// The number of workers.
    pub fn peers(&self) -> usize {
        self.fabric().peers()
    }

    pub(crate) fn fabric(&self) -> &Fabric {
        self.0.cluster.fabric()
    }

    pub(crate) fn progress_mode(&self) -> Mode {
        self.0.cluster.mode()
    }

    /// The number of bytes that may be in flight in this process before its sources pause.
    pub fn high_water(&self) -> usize {
        self.fabric().high_water()
    }

    /// The workers that this one belongs to.
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.0.cluster
    }

    /// Gives the worker's operators something that they share, of a type that the engine does not know. To be called before
    /// dataflows are built.
    pub fn set_resource(&self, resource: Arc<dyn Any + Send + Sync>) {
        let before = self.0.resource.borrow_mut().replace(resource);
        drop(before); // after the borrow
    }

    /// Has sources give way to the other work of their scope while a condition holds, for a second each at most: for example while there is
    /// no memory for more.
    pub fn give_way_while(&self, condition: impl Fn() -> bool + 'static) {
        self.0.holding.set_strained(condition);
    }

    /// Returns the thing that the operators of this worker share, if it is of this type.
    pub fn resource<R: Any + Send + Sync>(&self) -> Option<Arc<R>> {
        let resource = self.0.resource.borrow().clone();
        resource?.downcast().ok()
    }

    /// Whether both are the same worker.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn failing(&self) -> &Rc<Failing> {
        &self.0.failing
    }

    pub(crate) fn host(&self) -> &dyn Host {
        &*self.0.host
    }

    /// A handle that shows any thread the operator that has begun to run last on this worker.
    pub fn latest(&self) -> Latest {
        self.0.observers.latest()
    }

    pub(crate) fn observers(&self) -> &Rc<Observers> {
        &self.0.observers
    }

    /// Adds an observer of this worker's later events: dataflows that are installed, operators that run,
    /// messages, progress, capabilities. There may be several. A worker without observers pays nothing for
    /// them.
    pub fn observe(&self, observer: Rc<dyn Observer>) {
        self.0.observers.add(observer);
    }

    /// The state of this worker's dataflows: their graphs, and the counts in them. For people; called between
    /// steps.
    pub fn inspect(&self) -> Snapshot {
        Snapshot {
            worker: self.0.index,
            peers: self.peers(),
            pressed: self.fabric().is_pressed(),
            in_flight: self.fabric().in_flight(),
            dataflows: self.0.registry.inspect(),
        }
    }

    /// Removes an observer.
    pub fn unobserve(&self, observer: &Rc<dyn Observer>) {
        self.0.observers.remove(observer);
    }

    pub(crate) fn wakeups(&self) -> &Rc<Wakeups> {
        &self.0.wakeups
    }

    pub(crate) fn brake(&self) -> &Rc<Brake> {
        &self.0.brake
    }

    /// The tray into which operators put their state.
    pub(crate) fn tray(&self) -> &Rc<Tray<P>> {
        &self.0.tray
    }

    pub(crate) fn root_activation(&self) -> &Activation {
        self.0.registry.root()
    }

    /// Ends the computation because data was lost: by an error of the host's, or by one that a send returned.
    pub fn fail(&self, cause: BoxError) -> Error {
        self.0.failing.fail(match cause.downcast::<Error>() {
            Ok(error) => *error,
            Err(cause) => Error::Host { cause },
        })
    }

    /// The readers that are notified when a channel has messages.
    pub(crate) fn arrivals(&self) -> &Arrivals {
        &self.0.arrivals
    }

    /// The inputs that are closed when `main` ends.
    pub(crate) fn open_inputs(&self) -> &OpenInputs {
        &self.0.open_inputs
    }

    /// The number of a new dataflow, whose construction begins.
    pub(crate) fn number_dataflow(&self) -> usize {
        let index = self.0.registry.number();
        self.0.cutting.begins(index);
        index
    }

    /// Notes that a dataflow is not being built any more.
    pub(crate) fn is_built(&self, index: usize) {
        self.0.cutting.is_built(index);
    }

    /// Runs a dataflow from the next step on. When it ends, `edges` are dropped with it.
    pub(crate) fn keep(&self, index: usize, subgraph: Box<Subgraph>, edges: Box<dyn Any>) {
        self.0
            .registry
            .install(index, subgraph, edges, &self.0.observers);
    }

    /// The numbers of the dataflows that are not complete.
    pub fn installed_dataflows(&self) -> Vec<usize> {
        self.0.registry.installed()
    }

    /// Whether a dataflow is left.
    pub fn has_dataflows(&self) -> bool {
        !self.0.registry.is_empty()
    }

    /// Removes a dataflow, complete or not. Every worker must.
    pub fn drop_dataflow(&self, index: usize) {
        if !self.0.registry.contains(index) {
            return;
        }
        let worker = self.0.index;
        tracing::debug!(worker, dataflow = index, "dataflow dropped");
        self.0.cluster.dropped(worker, index);
        self.0.cutting.drops(index);
        if let Some(dropped) = self.0.registry.discard(index) {
            drop(dropped); // it may run user code
            self.forget_dataflow(index);
        } // else it is running: `step` removes it
    }

    /// Says why nothing more may run, if that is so.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`], [`Error::Stopped`] or [`Error::Disagreement`].
    pub fn check(&self) -> Result<(), Error> {
        if self.0.ended.get() {
            let worker = self.0.index;
            Err(Error::Ended { worker })
        } else {
            self.0.cluster.ending().check()
        }
    }

    /// Removes a dataflow that has ended.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "dataflows are counted in u32"
    )]
    pub(crate) fn forget_dataflow(&self, index: usize) {
        self.0.registry.root().forget(index);
        self.0.arrivals.forget(index as u32);
        self.fabric().end_dataflow(self.0.index, index as u32);
    }

    /// Ends the worker: the contents of its dataflows are freed, and nothing runs on it any more. This breaks
    /// the references from operators' closures back to the worker.
    pub fn end(&self) {
        if self.0.ended.replace(true) {
            return;
        }
        self.0.open_inputs.close();
        let dataflows = self.0.registry.take();
        self.0.arrivals.clear();
        self.0.brake.clear();
        drop(dataflows);
        self.0.observers.clear();
        self.fabric().flush();
        self.fabric().end_worker();
    }
}
