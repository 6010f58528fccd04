//! A worker: one thread that builds dataflows and runs them.
//!
//! A worker owns its dataflows and shares nothing with other workers but channels, the agreement on what is
//! built, and the flag that stops everybody. A step takes in what arrived, then visits the active dataflows
//! once each. A worker with nothing to do parks; data, progress, an activator on any thread, a timer or a stop
//! wakes it.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointstamp_channels::{ASK, ChannelId, Event, Fabric, Mailbox};
use pointstamp_progress::Mode;
use rustc_hash::FxHashMap;

use crate::activation::Activation;
use crate::agreement::Blueprint;
use crate::brake::Brake;
use crate::cluster::Cluster;
use crate::edge::ClearOnDrop;
use crate::error::Error;
use crate::operate::Schedule;
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
}

impl<P: Payload> Clone for Worker<P> {
    fn clone(&self) -> Self {
        Worker(Rc::clone(&self.0))
    }
}

impl<P: Payload> Worker<P> {
    pub(crate) fn new(index: usize, cluster: Arc<Cluster>, mailbox: Mailbox) -> Self {
        let wakeups = Wakeups::new(mailbox.doorbell());
        let brake = Brake::new(Arc::clone(&cluster));
        Worker(Rc::new(WorkerCore {
            index,
            cluster,
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

    pub(crate) fn wakeups(&self) -> &Rc<Wakeups> {
        &self.0.wakeups
    }

    pub(crate) fn brake(&self) -> &Rc<Brake> {
        &self.0.brake
    }

    pub(crate) fn root_activation(&self) -> &Activation {
        &self.0.root
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

    /// Installs a dataflow: from the next step on it runs. Returns its number.
    ///
    /// # Errors
    ///
    /// When the graph cannot run, or another worker built a different one.
    pub fn install(&self, scope: &Scope<P>) -> Result<usize, Error> {
        let index = scope.address()[0];
        scope.check_building()?;
        self.check().inspect_err(|_| self.discard(scope))?;
        scope.connect_watches();
        if self.peers() > 1 {
            let mut blueprint = Blueprint::new(scope.name());
            scope.blueprint(&mut blueprint);
            let posted = self.0.cluster.post(self.0.index, index, blueprint);
            posted.inspect_err(|_| self.discard(scope))?;
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
        };
        self.0.dataflows.borrow_mut().insert(index, dataflow);
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
    fn check(&self) -> Result<(), Error> {
        if self.0.ended.get() {
            Err(Error::Stopped)
        } else {
            self.0.cluster.check()
        }
    }

    /// Runs what is active once. `false` when no dataflow is left.
    ///
    /// # Errors
    ///
    /// The error of an operator; [`Error::Stopped`] or [`Error::Disagreement`] when another worker ended the
    /// computation; [`Error::Reentrant`] when called from inside an operator.
    pub fn step(&self) -> Result<bool, Error> {
        if self.0.stepping.replace(true) {
            return Err(Error::Reentrant);
        }
        self.0.unmoved.set(0);
        self.fabric().step_begins(self.0.index);
        let outcome = self.step_inner();
        self.fabric().step_ended(self.0.index);
        self.0.stepping.set(false);
        outcome
    }

    fn step_inner(&self) -> Result<bool, Error> {
        self.check()?;
        self.receive_events();
        self.0.wakeups.fire();
        self.0.brake.check();
        let mut outcome = Ok(());
        while outcome.is_ok()
            && let Some(index) = self.0.root.next_active()
        {
            outcome = self.visit(index);
        }
        self.0.root.end_pass();
        outcome?;
        Ok(self.has_dataflows())
    }

    fn receive_events(&self) {
        let mut mailbox = self.0.mailbox.borrow_mut();
        while let Some(event) = mailbox.next() {
            match event {
                Event::Channel(id) => {
                    let reader = self.0.channels.borrow().get(&id).and_then(Weak::upgrade);
                    if let Some(reader) = reader {
                        reader.arrived();
                    }
                }
                Event::Activate(id) => self.0.wakeups.activate(id),
            }
        }
    }

    fn visit(&self, index: usize) -> Result<(), Error> {
        let taken = self
            .0
            .dataflows
            .borrow_mut()
            .get_mut(&index)
            .and_then(|dataflow| {
                dataflow
                    .subgraph
                    .take()
                    .map(|subgraph| (subgraph, dataflow.activation.clone()))
            });
        let Some((mut subgraph, activation)) = taken else {
            // Still being built: it is enqueued when it is installed.
            if let Some(activation) = self.0.root.find(&[index]) {
                activation.forget_requests();
            }
            return Ok(());
        };
        activation.begin();
        let result = self.check().and_then(|()| subgraph.schedule());
        activation.end();
        let mut dataflows = self.0.dataflows.borrow_mut();
        let dropped = dataflows
            .get(&index)
            .is_none_or(|dataflow| dataflow.dropped);
        match result {
            Ok(true) if !dropped => {
                if let Some(dataflow) = dataflows.get_mut(&index) {
                    dataflow.subgraph = Some(subgraph);
                }
                Ok(())
            }
            other => {
                let removed = dataflows.remove(&index);
                drop(dataflows); // before what the dataflow holds: dropping it may run user code
                drop(subgraph);
                drop(removed);
                self.0.root.forget(index);
                self.forget_dataflow(index);
                if !dropped && matches!(other, Ok(false)) {
                    self.0.cluster.completed(self.0.index, index);
                }
                other.map(drop)
            }
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

    /// Whether a step is running: this was called from inside an operator, and another step is refused.
    pub fn is_stepping(&self) -> bool {
        self.0.stepping.get()
    }

    /// Whether a step would find something to do now.
    pub fn has_work(&self) -> bool {
        self.0.root.has_active()
            || !self.0.mailbox.borrow().is_empty()
            || self.0.brake.is_released()
    }

    /// Sleeps until there may be something to do, or until `deadline`.
    pub fn park(&self, deadline: Option<Instant>) {
        if self.has_work() || self.check().is_err() {
            return;
        }
        let timer = self.0.wakeups.fire();
        if self.has_work() {
            return; // a timer was due
        }
        let fabric = self.fabric();
        let others = fabric.parks(self.0.index);
        let deadlines = [deadline, timer, others, self.0.brake.deadline()];
        let deadline = deadlines.into_iter().flatten().min();
        self.0.mailbox.borrow().park(deadline);
        fabric.woke(self.0.index);
    }

    /// Notes what `main` sends: only a step moves it on.
    pub fn sends(&self, data: &P) {
        let unmoved = self.0.unmoved.get();
        self.0.unmoved.set(unmoved.saturating_add(data.footprint()));
    }

    /// Whether too much is on its way for more to be sent by `main`.
    pub fn is_pressed(&self) -> bool {
        if self.is_stepping() {
            return false;
        }
        self.fabric().weigh();
        self.fabric().is_pressed() || self.holds_too_much()
    }

    /// Whether so much of what `main` sent has not moved yet that a step is due.
    fn holds_too_much(&self) -> bool {
        self.0.unmoved.get() > self.fabric().high_water()
    }

    /// Steps while too much is on its way, so that less is, but not longer than until `deadline`; whether there is room then. Where
    /// nothing moves any more there is room, after a second: nobody waits for ever. Inside an operator, which must not wait,
    /// there always is.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn make_room(&self, deadline: Option<Instant>) -> Result<bool, Error> {
        let fabric = self.fabric();
        let releases = fabric.releases();
        if self.is_stepping() {
            return Ok(true);
        }
        if self.holds_too_much() {
            self.step()?;
        }
        fabric.weigh();
        while fabric.is_pressed() && fabric.releases() == releases {
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(false);
            }
            self.0.brake.ask();
            if !self.has_work() {
                let soon = now + ASK;
                self.park(Some(deadline.map_or(soon, |deadline| deadline.min(soon))));
            }
            self.step()?;
        }
        Ok(true)
    }

    /// Steps, after sleeping for at most `timeout` where there is nothing to do.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn step_or_park(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        if self.is_stepping() {
            return Err(Error::Reentrant);
        }
        if !self.has_work() {
            if !self.has_dataflows() {
                return self.step();
            }
            self.park(timeout.and_then(|timeout| Instant::now().checked_add(timeout)));
        }
        self.step()
    }

    /// Steps while the condition holds and a dataflow is left, sleeping where there is nothing to do.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn step_while(&self, mut condition: impl FnMut() -> bool) -> Result<(), Error> {
        while condition() {
            if !self.step_or_park(None)? {
                break;
            }
        }
        Ok(())
    }

    /// Closes what `main` left open and says that this worker builds no more.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] when another worker built more dataflows.
    pub fn finish_building(&self) -> Result<(), Error> {
        for input in self.0.open_inputs.take() {
            if let Some(input) = input.upgrade() {
                input.close();
            }
        }
        self.0.cluster.finish(self.0.index)
    }

    /// Checks that the dataflows that are left can still end.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] when another worker dropped one of them.
    pub fn check_abandoned(&self) -> Result<(), Error> {
        if !self.0.cluster.has_dropped() {
            return Ok(());
        }
        for index in self.installed_dataflows() {
            self.0.cluster.check_abandoned(self.0.index, index)?;
        }
        Ok(())
    }

    /// Steps until every dataflow is complete.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn run(&self) -> Result<(), Error> {
        while self.step_or_park(None)? {}
        Ok(())
    }

    /// Ends the worker: what its dataflows hold is freed, and nothing runs on it any more. This breaks the
    /// references from operators' closures back to the worker.
    pub fn end(&self) {
        if self.0.ended.replace(true) {
            return;
        }
        for input in self.0.open_inputs.take() {
            if let Some(input) = input.upgrade() {
                input.close();
            }
        }
        let dataflows = self.0.dataflows.take();
        self.0.channels.take();
        self.0.brake.clear();
        drop(dataflows);
        self.fabric().flush();
        self.fabric().end_worker();
    }
}
