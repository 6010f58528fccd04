//! An operator under construction, and what it tells its scope when it is installed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use pointstamp_order::{Antichain, Point, Summary};
use pointstamp_progress::Connectivity;

use crate::error::{BuildError, Error};
use crate::observe::OperatorId;
use crate::payload::Payload;
use crate::run::activation::Activation;
use crate::run::capability::OutputCore;
use crate::run::closure::{ClosureOperator, Logic};
use crate::run::notify::Notify;
use crate::run::port::InputCore;
use crate::run::schedule::Description;
use crate::run::site::Site;

/// How the shared part of an output is made.
pub(super) type MakeOutput = fn(usize, Rc<Site>) -> Rc<OutputCore>;

/// An operator under construction.
pub(crate) struct Draft<P> {
    pub(super) name: String,
    pub(super) dims: usize,
    pub(super) site: Rc<Site>,
    pub(super) inputs: Vec<Rc<InputCore<P>>>,
    pub(super) outputs: Vec<Rc<OutputCore>>,
    /// Summaries that differ from the identity; an empty list is no path.
    pub(super) summaries: BTreeMap<(usize, usize), Vec<Summary>>,
    /// When a frontier makes it run: by input, and for the inputs that are not named.
    pub(super) notify_by_input: BTreeMap<usize, Notify>,
    pub(super) notify: Notify,
    pub(super) start: bool,
    /// Outputs that begin with a capability.
    pub(super) initial: Vec<usize>,
    /// Outputs whose capabilities say which records are still needed: see [`Retention`](super::retention::Retention).
    pub(super) retentions: Vec<usize>,
    /// Outputs on which nothing is sent, each with the one input whose frontier it has.
    pub(super) silent: BTreeMap<usize, usize>,
    /// Whether it may need any record of its inputs for as long as it runs.
    pub(super) retains_forever: bool,
    /// Whether a source that acknowledges is upstream: known when the dataflow is complete.
    pub(super) asked: Rc<Cell<bool>>,
    /// What is still missing.
    pub(super) missing: Option<BuildError>,
    pub(super) logic: Option<Logic>,
}

impl<P: Payload> Draft<P> {
    /// What the operator tells its scope; ends the construction.
    pub(crate) fn describe(&mut self) -> Result<Description, Error> {
        if let Some(missing) = self.missing.take() {
            return Err(missing.into());
        }
        if self.logic.is_none() && !self.inputs.is_empty() {
            return Err(BuildError::NeverBuilt(self.name.clone()).into());
        }
        let (inputs, outputs) = (self.inputs.len(), self.outputs.len());
        let identity = Summary::identity(self.dims);
        let mut summary = Connectivity::empty();
        for (port, input) in self.inputs.iter().enumerate() {
            let mut row = Vec::new();
            for output in 0..outputs {
                if self.silent.get(&output).is_some_and(|&of| of != port) {
                    continue;
                }
                let named = self.summaries.get(&(port, output));
                row.push((
                    output,
                    named.cloned().unwrap_or_else(|| vec![identity.clone()]),
                ));
            }
            row.retain(|(_, list)| !list.is_empty());
            for (output, list) in &row {
                summary.set(
                    port,
                    *output,
                    list.iter().cloned().collect::<Antichain<_>>(),
                );
            }
            *input.ticket.summaries.borrow_mut() = row;
            input.ticket.outputs.borrow_mut().clone_from(&self.outputs);
        }
        let minimum = Point::minimum(self.dims);
        let named = |port| self.notify_by_input.get(&port).copied();
        let notify: Vec<_> = (0..inputs)
            .map(|port| named(port).unwrap_or(self.notify))
            .collect();
        let hears = notify.iter().any(|notify| *notify != Notify::Never);
        Ok(Description {
            name: self.name.clone(),
            inputs,
            outputs,
            summary,
            initial: self
                .initial
                .iter()
                .map(|&port| (port, minimum.clone()))
                .collect(),
            local: true,
            notify,
            start: self.start,
            id: self.site.id,
            progress: Rc::clone(&self.site.progress),
            operator: Box::new(ClosureOperator {
                name: self.name.clone(),
                remote: self
                    .inputs
                    .iter()
                    .filter(|input| input.remote.borrow().is_some())
                    .cloned()
                    .collect(),
                inputs: std::mem::take(&mut self.inputs),
                site: Rc::clone(&self.site),
                notify: hears,
                logic: self.logic.take(),
                moved: Vec::new(),
            }),
        })
    }

    /// Hands out what the operator would have run: it will not be installed.
    pub(crate) fn give_up(&mut self) -> Option<Logic> {
        self.site.progress.close();
        self.logic.take()
    }

    /// The output on which nothing is ever sent, and whose frontier is that of an input.
    pub(crate) fn silent_output(&mut self, input: usize) -> usize {
        let there = self.silent.iter().find(|&(_, &of)| of == input);
        if let Some((&port, _)) = there {
            return port;
        }
        let port = self.add_output(OutputCore::new).port;
        self.silent.insert(port, input);
        port
    }

    /// The outputs that records of an input may lead to.
    ///
    /// # Arguments
    ///
    /// `retained` includes the outputs of retentions.
    pub(crate) fn outputs_of(&self, input: usize, retained: bool) -> Vec<usize> {
        (0..self.outputs.len())
            .filter(|port| !self.silent.contains_key(port))
            .filter(|port| retained || !self.retentions.contains(port))
            .filter(|&port| {
                let named = self.summaries.get(&(input, port));
                named.is_none_or(|summaries| !summaries.is_empty())
            })
            .collect()
    }

    pub(super) fn add_output(&mut self, make: MakeOutput) -> Rc<OutputCore> {
        let core = make(self.outputs.len(), Rc::clone(&self.site));
        self.outputs.push(Rc::clone(&core));
        core
    }

    /// Whether times do not simply pass from every input to every output.
    pub(crate) fn advances_times(&self) -> bool {
        !self.summaries.is_empty()
    }

    /// Whether it may need any record of its inputs for as long as it runs.
    pub(crate) fn retains_forever(&self) -> bool {
        self.retains_forever
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn id(&self) -> OperatorId {
        self.site.id
    }

    pub(crate) fn activation(&self) -> &Activation {
        &self.site.activation
    }

    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.inputs.len(), self.outputs.len())
    }
}
