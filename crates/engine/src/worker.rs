//! A worker: one thread that builds dataflows and runs them.
//!
//! A worker owns its dataflows and shares nothing with other workers but channels, the agreement on what is
//! built, and the flag that stops everybody. How it runs them is in `run`.

mod run;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use pointstamp_channels::{ChannelId, Fabric, Mailbox};
use pointstamp_progress::Mode;
use rustc_hash::FxHashMap;

use crate::activation::Activation;
use crate::agreement::Blueprint;
use crate::brake::Brake;
use crate::cluster::Cluster;
use crate::edge::ClearOnDrop;
use crate::error::{BoxError, Error};
use crate::failing::Failing;
use crate::host::Host;
use crate::observe::{Observation, Observer, OperatorId, Room};
use crate::payload::Payload;
use crate::scope::Scope;
use crate::subgraph::Subgraph;
use crate::wakeups::Wakeups;

/// Somebody who is told that a channel has messages.
pub(crate) trait Arrival {
    /// The channel was empty and has messages now, or it may have.
    fn arrived(&self);
}

/// Something that `main` may leave open and that must be closed for the dataflow to end.
pub(crate) trait Close {
    /// Closes it.
    fn close(&self);
}

/// A worker. Clones are the same worker; it stays on its thread.
pub struct Worker<P: Payload>(Rc<WorkerCore<P>>);

struct WorkerCore<P: Payload> {
    index: usize,
    cluster: Arc<Cluster>,
    host: Rc<dyn Host>,
    failing: Rc<Failing>,
    room: Rc<Room>,
    mailbox: RefCell<Mailbox>,
    root: Activation,
    wakeups: Rc<Wakeups>,
    brake: Rc<Brake>,
    dataflows: RefCell<BTreeMap<usize, Dataflow>>,
    /// Dataflows begun so far: the number of the next.
    begun: Cell<usize>,
    channels: RefCell<FxHashMap<ChannelId, Weak<dyn Arrival>>>,
    open_inputs: RefCell<Vec<Weak<dyn Close>>>,
    stepping: Cell<bool>,
    /// Bytes that `main` has sent since the last step.
    unmoved: Cell<usize>,
    ended: Cell<bool>,
    payload: std::marker::PhantomData<fn(P)>,
}

/// An installed dataflow.
struct Dataflow {
    /// `None` while it runs.
    subgraph: Option<Subgraph>,
    activation: Activation,
    dropped: bool,
    #[allow(
        dead_code,
        reason = "held to be dropped: the edges go with the dataflow"
    )]
    edges: Box<dyn Any>,
    id: OperatorId,
    room: Rc<Room>,
}

impl Drop for Dataflow {
    fn drop(&mut self) {
        drop(self.subgraph.take());
        self.room.tell(|| Observation::Shutdown { id: self.id });
    }
}

impl<P: Payload> Clone for Worker<P> {
    fn clone(&self) -> Self {
        Worker(Rc::clone(&self.0))
    }
}

impl<P: Payload> Worker<P> {
    pub(crate) fn new(
        index: usize,
        cluster: Arc<Cluster>,
        mailbox: Mailbox,
        host: Rc<dyn Host>,
    ) -> Self {
        let wakeups = Wakeups::new(mailbox.doorbell());
        let failing = Failing::new(cluster.clone(), index, Rc::clone(&host));
        let brake = Brake::new(Arc::clone(&cluster));
        Worker(Rc::new(WorkerCore {
            index,
            cluster,
            host,
            failing,
            room: Room::new(),
            mailbox: RefCell::new(mailbox),
            root: Activation::root(),
            wakeups,
            brake,
            dataflows: RefCell::default(),
            begun: Cell::new(0),
            channels: RefCell::default(),
            open_inputs: RefCell::default(),
            stepping: Cell::new(false),
            unmoved: Cell::new(0),
            ended: Cell::new(false),
            payload: std::marker::PhantomData,
        }))
    }

    /// This worker's number, from zero.
    pub fn index(&self) -> usize {
        self.0.index
    }

    /// How many workers there are.
    pub fn peers(&self) -> usize {
        self.fabric().peers()
    }

    pub(crate) fn fabric(&self) -> &Fabric {
        self.0.cluster.fabric()
    }

    pub(crate) fn progress_mode(&self) -> Mode {
        self.0.cluster.mode()
    }

    /// The workers that this one belongs to.
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.0.cluster
    }

    /// Whether both are the same worker.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn failing(&self) -> &Rc<Failing> {
        &self.0.failing
    }

    pub(crate) fn room(&self) -> &Rc<Room> {
        &self.0.room
    }

    /// Tells an observer, from now on, what this worker does: dataflows that are installed, operators that run, messages, progress,
    /// capabilities. There may be several. A worker without any pays nothing for them.
    pub fn observe(&self, observer: Rc<dyn Observer>) {
        self.0.room.enter(observer);
    }

    /// Tells an observer nothing more.
    pub fn unobserve(&self, observer: &Rc<dyn Observer>) {
        self.0.room.leave(observer);
    }

    pub(crate) fn wakeups(&self) -> &Rc<Wakeups> {
        &self.0.wakeups
    }

    pub(crate) fn brake(&self) -> &Rc<Brake> {
        &self.0.brake
    }

    pub(crate) fn root_activation(&self) -> &Activation {
        &self.0.root
    }

    /// Ends the computation because something was lost: by an error of the host's, or by one that a send returned.
    pub fn fail(&self, cause: BoxError) -> Error {
        self.0.failing.fail(match cause.downcast::<Error>() {
            Ok(error) => *error,
            Err(cause) => Error::Host { cause },
        })
    }

    /// Registers who is told that a channel has messages.
    pub(crate) fn expect_arrivals(&self, id: ChannelId, reader: &Rc<dyn Arrival>) {
        self.0
            .channels
            .borrow_mut()
            .insert(id, Rc::downgrade(reader));
        // Another worker may have sent before; if this one was stepping, the event found nobody and is gone.
        reader.arrived();
    }

    pub(crate) fn register_input(&self, input: Weak<dyn Close>) {
        let mut open = self.0.open_inputs.borrow_mut();
        if open.len() >= 64 && open.len().is_power_of_two() {
            open.retain(|input| input.strong_count() > 0);
        }
        open.push(input);
    }

    /// Begins a dataflow; end it with [`install`](Self::install), or give it up with
    /// [`discard`](Self::discard). Its number is not used again either way, so that the workers go on counting alike.
    ///
    /// # Panics
    ///
    /// After 2^32 dataflows.
    pub fn begin_dataflow(&self, name: &str, dims: usize) -> Scope<P> {
        let index = self.0.begun.get();
        self.0.begun.set(index + 1);
        Scope::root(
            self,
            u32::try_from(index).expect("fewer than 2^32 dataflows"),
            name,
            dims,
        )
    }

    /// Installs a dataflow: from the next step on it runs. What was sent into it while it was built is routed now. Returns
    /// its number.
    ///
    /// # Errors
    ///
    /// When the graph cannot run; when another worker built a different one, or what was sent cannot be routed, which ends the
    /// computation.
    pub fn install(&self, scope: &Scope<P>) -> Result<usize, Error> {
        let index = scope.address()[0];
        scope.check_building()?;
        self.check().inspect_err(|_| self.discard(scope))?;
        scope.connect_watches();
        if self.peers() > 1 {
            let mut blueprint = Blueprint::new(scope.name());
            scope.blueprint(&mut blueprint);
            let posted = self.0.cluster.post(self.0.index, index, blueprint);
            if let Err(error) = posted {
                self.discard(scope);
                return Err(self.0.failing.fail(error));
            }
        }
        if self.0.room.is_observed() {
            scope.announce();
        }
        let subgraph = scope.install().inspect_err(|_| {
            self.0.cluster.dropped(self.0.index, index); // the others have heard that it is there
            self.discard(scope);
        })?;
        let activation = scope.activation().clone();
        let dataflow = Dataflow {
            subgraph: Some(subgraph),
            activation,
            dropped: false,
            edges: Box::new(ClearOnDrop(Rc::clone(scope.tees()))),
            id: scope.id(),
            room: Rc::clone(&self.0.room),
        };
        self.0.dataflows.borrow_mut().insert(index, dataflow);
        let sent = scope.tees().open();
        sent.map_err(|cause| self.0.failing.fail_by(cause))?;
        Ok(index)
    }

    /// Gives up a dataflow that was begun and not installed.
    pub fn discard(&self, scope: &Scope<P>) {
        let index = scope.address()[0];
        scope.discard();
        self.0.root.forget(index);
        self.forget_dataflow(index);
    }

    /// Builds and installs a dataflow.
    ///
    /// # Errors
    ///
    /// What `build` returns, and as [`install`](Self::install).
    pub fn dataflow<R>(
        &self,
        name: &str,
        dims: usize,
        build: impl FnOnce(&Scope<P>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let scope = self.begin_dataflow(name, dims);
        match build(&scope) {
            Ok(value) => {
                self.install(&scope)?;
                Ok(value)
            }
            Err(error) => {
                self.discard(&scope);
                Err(error)
            }
        }
    }

    /// The numbers of the dataflows that are not complete.
    pub fn installed_dataflows(&self) -> Vec<usize> {
        let dataflows = self.0.dataflows.borrow();
        dataflows
            .iter()
            .filter(|(_, dataflow)| !dataflow.dropped)
            .map(|(&index, _)| index)
            .collect()
    }

    /// Whether a dataflow is left.
    pub fn has_dataflows(&self) -> bool {
        !self.0.dataflows.borrow().is_empty()
    }

    /// Removes a dataflow, complete or not. Every worker must.
    pub fn drop_dataflow(&self, index: usize) {
        let mut dataflows = self.0.dataflows.borrow_mut();
        let Some(dataflow) = dataflows.get_mut(&index) else {
            return;
        };
        self.0.cluster.dropped(self.0.index, index);
        dataflow.dropped = true;
        if dataflow.subgraph.is_some() {
            let removed = dataflows.remove(&index);
            drop(dataflows); // before what the dataflow holds: dropping it may run user code
            drop(removed);
            self.0.root.forget(index);
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
            self.0.cluster.check()
        }
    }

    /// Forgets the channels of a dataflow that has gone.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "dataflows are counted in u32"
    )]
    fn forget_dataflow(&self, dataflow: usize) {
        self.0
            .channels
            .borrow_mut()
            .retain(|id, _| id.dataflow as usize != dataflow);
        self.fabric().end_dataflow(self.0.index, dataflow as u32);
    }

    /// Closes what `main` left open.
    fn close_inputs(&self) {
        for input in self.0.open_inputs.take() {
            if let Some(input) = input.upgrade() {
                input.close();
            }
        }
    }

    /// Ends the worker: what its dataflows hold is freed, and nothing runs on it any more. This breaks the
    /// references from operators' closures back to the worker.
    pub fn end(&self) {
        if self.0.ended.replace(true) {
            return;
        }
        self.close_inputs();
        let dataflows = self.0.dataflows.take();
        self.0.channels.take();
        self.0.brake.clear();
        drop(dataflows);
        self.0.room.clear();
        self.fabric().flush();
        self.fabric().end_worker();
    }
}
