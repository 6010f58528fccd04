//! An operator of a scope that runs.

use std::rc::Rc;

use pointstamp_progress::{Port, Target};

use crate::activation::Activation;
use crate::brake::Gate;
use crate::observe::{Observation, OperatorId, Room};
use crate::operate::{Description, Schedule};
use crate::progress::SharedProgress;

/// An operator of a subgraph, and what the subgraph knows of it.
pub(crate) struct Child {
    pub(super) id: OperatorId,
    pub(super) room: Rc<Room>,
    pub(super) description: Option<Description>, // until the subgraph is made
    pub(super) activation: Activation,
    pub(super) operator: Option<Box<dyn Schedule>>,
    pub(super) progress: Rc<SharedProgress>,
    pub(super) local: bool,
    pub(super) notify: bool,
    pub(super) incomplete: bool,
    /// Where it has no input, and feeds the dataflow: whether it may.
    pub(super) gate: Option<Gate>,
    /// Ports, inputs then outputs, at which a time may still appear, and how many of them.
    pub(super) open: Vec<bool>,
    pub(super) open_count: usize,
    pub(super) inputs: usize,
    /// By output: who reads it, and how many copies of a record arrive there.
    pub(super) readers: Vec<Vec<(Target, i64)>>,
}

impl Child {
    pub(crate) fn new(description: Description, activation: Activation, room: Rc<Room>) -> Self {
        Child {
            id: description.id,
            room,
            activation,
            operator: None,
            progress: Rc::clone(&description.progress),
            local: description.local,
            notify: description.notify,
            incomplete: false,
            gate: (description.local && description.inputs == 0).then(Gate::default),
            open: vec![false; description.inputs + description.outputs],
            open_count: 0,
            inputs: description.inputs,
            readers: vec![Vec::new(); description.outputs],
            description: Some(description),
        }
    }

    /// Ends the operator: it is complete, or goes with its dataflow.
    pub(super) fn shut_down(&mut self) {
        if let Some(operator) = self.operator.take() {
            drop(operator);
            self.room.tell(|| Observation::Shutdown { id: self.id });
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
    /// Capabilities and outputs of the operator may outlive it; nobody collects what they report.
    fn drop(&mut self) {
        self.progress.close();
        self.shut_down();
    }
}
