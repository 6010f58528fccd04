//! An operator of a scope that runs.

use std::rc::Rc;

use pointstamp_order::Point;
use pointstamp_progress::{Port, Target};

use crate::observe::{Observation, Observers, OperatorId};
use crate::run::activation::Activation;
use crate::run::brake::Gate;
use crate::run::notify::Notify;
use crate::run::progress::{PortChanges, SharedProgress};
use crate::run::schedule::{Description, Schedule};

/// An operator of a subgraph, with the subgraph's records about it.
pub(crate) struct Child {
    pub(super) id: OperatorId,
    pub(super) name: Box<str>,
    pub(super) observers: Rc<Observers>,
    pub(super) description: Option<Description>, // until the subgraph is made
    pub(super) activation: Activation,
    pub(super) operator: Option<Box<dyn Schedule>>,
    pub(super) progress: Rc<SharedProgress>,
    /// The number of capabilities that this worker has.
    pub(super) holding: i64,
    /// The capabilities, by output and time, where other workers may have some, too; for people.
    pub(super) held: Option<PortChanges>,
    pub(super) local: bool,
    /// By input: when its frontier makes the operator run.
    pub(super) notify: Vec<Notify>,
    pub(super) incomplete: bool,
    /// Whether it pauses while sources are held.
    pub(super) pauses: bool,
    /// The gate of a source, which decides whether it may run; present where it has no input.
    pub(super) gate: Option<Gate>,
    /// The number of times in its frontier, by port: inputs, then outputs.
    pub(super) frontiers: Vec<i64>,
    /// The number of ports at which a time may still appear.
    pub(super) open_count: usize,
    pub(super) inputs: usize,
    /// For each output: its readers, and the number of copies of a record that arrive there.
    pub(super) readers: Vec<Vec<(Target, i64)>>,
}

impl Child {
    /// An operator on one of `peers` workers.
    pub(crate) fn new(
        description: Description,
        activation: Activation,
        observers: Rc<Observers>,
        peers: usize,
    ) -> Self {
        let initial = description.initial.iter().cloned();
        let held = initial.map(|(port, time, count)| ((port, time), count));
        let held = held.collect();
        Child {
            id: description.id,
            name: description.name.as_str().into(),
            holding: description.initial.iter().map(|(_, _, count)| count).sum(),
            held: (peers > 1).then_some(held),
            observers,
            activation,
            operator: None,
            progress: Rc::clone(&description.progress),
            local: description.local,
            notify: description.notify.clone(),
            incomplete: false,
            pauses: description.pauses,
            gate: (description.local && description.inputs == 0).then(Gate::default),
            frontiers: vec![0; description.inputs + description.outputs],
            open_count: 0,
            inputs: description.inputs,
            readers: vec![Vec::new(); description.outputs],
            description: Some(description),
        }
    }

    /// Passes a change to the frontier of an input to the operator.
    pub(super) fn frontier_changed(&mut self, port: usize, time: Point, diff: i64) {
        let when = self.notify[port];
        if when == Notify::Never || self.operator.is_none() {
            return;
        }
        let board = &self.progress;
        board.frontiers.borrow_mut().update((port, time), diff);
        let holds = || self.holding > 0 || board.internal.borrow().has_updates();
        if when == Notify::Always || holds() {
            self.activation.run();
        }
    }

    /// Whether it runs when all its frontiers have become empty.
    pub(super) fn hears_the_end(&self) -> bool {
        self.notify.contains(&Notify::Always)
    }

    /// Ends the operator: it is complete, or goes with its dataflow.
    pub(super) fn shut_down(&mut self) {
        if let Some(operator) = self.operator.take() {
            drop(operator);
            self.observers
                .report(|| Observation::Shutdown { id: self.id });
        }
    }

    pub(super) fn port_index(&self, port: Port) -> usize {
        match port {
            Port::Target(port) => port,
            Port::Source(port) => self.inputs + port,
        }
    }
}

impl Drop for Child {
    /// Capabilities and outputs of the operator may outlive it; their reports are not collected.
    fn drop(&mut self) {
        self.progress.close();
        self.shut_down();
    }
}
