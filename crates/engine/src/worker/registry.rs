//! The dataflows that a worker has: which are installed, which of them runs, which were dropped while they ran.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::error::Error;
use crate::inspect::ScopeState;
use crate::observe::{Observation, Observers, OperatorId};
use crate::run::activation::Activation;
use crate::run::schedule::Schedule;
use crate::run::subgraph::Subgraph;

/// An installed dataflow.
pub(super) struct Dataflow {
    /// `None` while it runs. It is moved with every step, and so must be small to move.
    subgraph: Option<Box<Subgraph>>,
    activation: Activation,
    dropped: bool,
    #[allow(
        dead_code,
        reason = "held to be dropped: the edges go with the dataflow"
    )]
    edges: Box<dyn Any>,
    id: OperatorId,
    observers: Rc<Observers>,
}

impl Drop for Dataflow {
    fn drop(&mut self) {
        drop(self.subgraph.take());
        tracing::debug!(dataflow = self.id.dataflow, "dataflow ended");
        self.observers
            .report(|| Observation::Shutdown { id: self.id });
    }
}

/// A dataflow that is taken out to be run.
pub(super) struct Running {
    pub(super) subgraph: Box<Subgraph>,
    pub(super) activation: Activation,
    pub(super) id: OperatorId,
}

/// The dataflows of a worker, by their numbers, with the active ones.
///
/// A removed dataflow is returned to the caller, and the caller drops it: that may run user code, which may use the
/// registry again.
pub(super) struct Registry {
    root: Activation,
    dataflows: RefCell<BTreeMap<usize, Dataflow>>,
    /// Dataflows begun so far: the number of the next.
    begun: Cell<usize>,
}

impl Registry {
    pub(super) fn new() -> Self {
        Registry {
            root: Activation::root(),
            dataflows: RefCell::default(),
            begun: Cell::new(0),
        }
    }

    /// The activation that is the parent of the dataflows' activations.
    pub(super) fn root(&self) -> &Activation {
        &self.root
    }

    /// The number of a new dataflow.
    pub(super) fn number(&self) -> usize {
        self.begun.replace(self.begun.get() + 1)
    }

    /// The number of dataflows that were begun.
    pub(super) fn begun(&self) -> usize {
        self.begun.get()
    }

    /// Runs the scopes of all dataflows, so that they send progress that they have held back.
    pub(super) fn flush(&self) {
        self.each(Schedule::flush);
    }

    /// Takes in the messages that operators leave at their inputs.
    pub(super) fn pull(&self) -> Result<(), Error> {
        let mut outcome = Ok(());
        self.each(|subgraph| {
            if outcome.is_ok() {
                outcome = subgraph.pull();
            }
        });
        outcome
    }

    /// Adds the operators that have something to do.
    pub(super) fn busy(&self, busy: &mut Vec<(OperatorId, String)>) {
        self.each(|subgraph| subgraph.busy(busy));
    }

    fn each(&self, mut visit: impl FnMut(&mut Subgraph)) {
        let mut dataflows = self.dataflows.borrow_mut();
        let subgraphs = dataflows
            .values_mut()
            .filter_map(|it| it.subgraph.as_deref_mut());
        subgraphs.for_each(&mut visit);
    }

    /// Takes a dataflow in. When it ends, `edges` are dropped with it.
    pub(super) fn install(
        &self,
        index: usize,
        subgraph: Box<Subgraph>,
        edges: Box<dyn Any>,
        observers: &Rc<Observers>,
    ) {
        let dataflow = Dataflow {
            id: subgraph.id(),
            activation: subgraph.activation().clone(),
            subgraph: Some(subgraph),
            dropped: false,
            edges,
            observers: Rc::clone(observers),
        };
        self.dataflows.borrow_mut().insert(index, dataflow);
    }

    /// The numbers of the dataflows that are not complete.
    pub(super) fn installed(&self) -> Vec<usize> {
        let dataflows = self.dataflows.borrow();
        let kept = dataflows.iter().filter(|(_, dataflow)| !dataflow.dropped);
        kept.map(|(&index, _)| index).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.dataflows.borrow().is_empty()
    }

    /// The states of the dataflows that do not run at the moment.
    pub(super) fn inspect(&self) -> Vec<ScopeState> {
        let mut dataflows = self.dataflows.borrow_mut();
        let installed = dataflows.iter_mut().filter_map(|(&index, dataflow)| {
            let subgraph = dataflow.subgraph.as_mut()?;
            Some(subgraph.inspect(&[index]))
        });
        installed.collect()
    }

    /// Whether a dataflow is there, dropped or not.
    pub(super) fn contains(&self, index: usize) -> bool {
        self.dataflows.borrow().contains_key(&index)
    }

    /// Notes that a dataflow is dropped, and removes it unless it runs: then the step that runs it does.
    pub(super) fn discard(&self, index: usize) -> Option<Dataflow> {
        let mut dataflows = self.dataflows.borrow_mut();
        let dataflow = dataflows.get_mut(&index)?;
        dataflow.dropped = true;
        match dataflow.subgraph {
            Some(_) => dataflows.remove(&index),
            None => None,
        }
    }

    /// Takes a dataflow out to be run. `None` where it is still being built: it becomes active when it is installed.
    pub(super) fn begin(&self, index: usize) -> Option<Running> {
        let mut dataflows = self.dataflows.borrow_mut();
        let dataflow = dataflows.get_mut(&index);
        let Some((dataflow, subgraph)) = dataflow.and_then(|it| {
            let subgraph = it.subgraph.take()?;
            Some((it, subgraph))
        }) else {
            drop(dataflows);
            if let Some(activation) = self.root.find(&[index]) {
                activation.forget_requests();
            }
            return None;
        };
        Some(Running {
            subgraph,
            activation: dataflow.activation.clone(),
            id: dataflow.id,
        })
    }

    /// Whether a dataflow that runs was dropped meanwhile.
    pub(super) fn is_dropped(&self, index: usize) -> bool {
        let dataflows = self.dataflows.borrow();
        dataflows.get(&index).is_none_or(|it| it.dropped)
    }

    /// Puts a dataflow back that was taken out.
    pub(super) fn put_back(&self, index: usize, subgraph: Box<Subgraph>) {
        if let Some(dataflow) = self.dataflows.borrow_mut().get_mut(&index) {
            dataflow.subgraph = Some(subgraph);
        }
    }

    /// Removes a dataflow that has run.
    pub(super) fn remove(&self, index: usize) -> Option<Dataflow> {
        self.dataflows.borrow_mut().remove(&index)
    }

    /// Removes all.
    pub(super) fn take(&self) -> BTreeMap<usize, Dataflow> {
        self.dataflows.take()
    }
}
