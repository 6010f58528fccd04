//! Installation of a scope when its dataflow is complete: it is described to the other workers and to
//! observers, and turned into a running subgraph.

use std::cell::RefCell;
use std::rc::Rc;

use pointstamp_channels::Combined;

use super::draft::Draft;
use super::scope::{ChildDraft, Scope, State};
use crate::cluster::blueprint::Blueprint;
use crate::error::{BuildError, Error};
use crate::observe::{Observation, Observers};
use crate::payload::Payload;
use crate::run::changes::Changes;
use crate::run::edge::Inbox;
use crate::run::subgraph::{Child, Parts, Subgraph};

impl<P: Payload> ChildDraft<P> {
    fn install(
        &self,
        around: &Scope<P>,
        observers: &Rc<Observers>,
        peers: usize,
    ) -> Result<Box<Child>, Error> {
        match self {
            ChildDraft::Operator(draft) => install_operator(draft, around, observers, peers),
            ChildDraft::Scope(scope) => {
                let subgraph = scope.install()?;
                Ok(scope.as_child(subgraph, observers, peers))
            }
        }
    }

    /// Frees the contents of the scope, also where a builder of it is kept.
    pub(super) fn give_up(&self) {
        match self {
            ChildDraft::Operator(draft) => {
                let logic = draft.borrow_mut().give_up();
                drop(logic); // after the borrow: dropping it may run user code
            }
            ChildDraft::Scope(scope) => scope.discard(),
        }
    }
}

// The three functions below are not inlined: their stack would be needed once for each scope around a scope.

#[inline(never)]
fn install_operator<P: Payload>(
    draft: &RefCell<Draft<P>>,
    around: &Scope<P>,
    observers: &Rc<Observers>,
    peers: usize,
) -> Result<Box<Child>, Error> {
    let mut draft = draft.borrow_mut();
    let has_namesakes = |identity: &str| {
        let dataflow = around.address()[0];
        around.has_namesakes(identity) || around.worker().had_namesakes(dataflow, identity)
    };
    let (description, activation) = (draft.describe(has_namesakes)?, draft.activation().clone());
    if draft.changed {
        around.worker().note_changed(&draft.identity);
    }
    Ok(Box::new(Child::new(
        description,
        activation,
        Rc::clone(observers),
        peers,
    )))
}

impl<P: Payload> Scope<P> {
    #[inline(never)]
    fn as_child(
        &self,
        subgraph: Box<Subgraph>,
        observers: &Rc<Observers>,
        peers: usize,
    ) -> Box<Child> {
        let activation = self.0.activation.clone();
        let mut description = subgraph.describe();
        let dataflow = self.0.address[0];
        description.finished = self.0.worker.has_ended(dataflow, self.identity());
        Box::new(Child::new(
            description,
            activation,
            Rc::clone(observers),
            peers,
        ))
    }

    /// Describes the scope and all in it, for the comparison between workers.
    pub(crate) fn blueprint(&self, blueprint: &mut Blueprint) {
        let at = &self.0.address[1..];
        blueprint.scope(at, &self.0.name, self.0.dims);
        for (i, child) in self.0.children.borrow().iter().enumerate() {
            match child {
                ChildDraft::Operator(draft) => {
                    let draft = draft.borrow();
                    blueprint.operator(at, i + 1, draft.name(), draft.shape());
                }
                ChildDraft::Scope(scope) => scope.blueprint(blueprint),
            }
        }
        for edge in self.0.edges.borrow().iter() {
            blueprint.edge(at, edge);
        }
    }

    /// Reports the scope and everything in it to the observers.
    pub(crate) fn announce(&self) {
        let observers = self.0.worker.observers();
        observers.report(|| Observation::ScopeMade {
            id: self.0.id,
            address: &self.0.address,
            name: &self.0.name,
            dims: self.0.dims,
            inputs: self.0.inputs.get(),
            outputs: self.0.outputs.get(),
        });
        let mut address = self.0.address.clone();
        for (i, child) in self.0.children.borrow().iter().enumerate() {
            match child {
                ChildDraft::Operator(draft) => {
                    let draft = draft.borrow();
                    let (inputs, outputs) = draft.shape();
                    address.push(i + 1);
                    observers.report(|| Observation::OperatorMade {
                        id: draft.id(),
                        address: &address,
                        name: draft.name(),
                        inputs,
                        outputs,
                    });
                    address.pop();
                }
                ChildDraft::Scope(scope) => scope.announce(),
            }
        }
        for edge in self.0.edges.borrow().iter() {
            observers.report(|| Observation::EdgeMade {
                id: edge.id,
                scope: self.0.id,
                source: edge.source,
                target: edge.target,
                pact: edge.pact,
            });
        }
    }

    /// Turns the scope, and the scopes nested in it, into running subgraphs. Recurses at most
    /// [`MAX_NESTED`](super::scope::MAX_NESTED) deep.
    pub(crate) fn install(&self) -> Result<Box<Subgraph>, Error> {
        if self.0.parent.is_some() && self.0.state.get() == State::Building {
            return Err(BuildError::StillOpen(self.path()).into());
        }
        self.0.state.set(State::Installed);
        let drafts = self.0.children.take();
        let (observers, peers) = (self.0.worker.observers(), self.0.worker.peers());
        let mut children = Vec::with_capacity(drafts.len());
        for draft in &drafts {
            match draft.install(self, observers, peers) {
                Ok(child) => children.push(*child),
                Err(error) => {
                    drafts.iter().for_each(ChildDraft::give_up);
                    return Err(error);
                }
            }
        }
        drop(drafts);
        self.assemble(children)
    }

    #[inline(never)]
    fn assemble(&self, children: Vec<Child>) -> Result<Box<Subgraph>, Error> {
        let worker = &self.0.worker;
        let mut links = None;
        if worker.peers() > 1 {
            links = Some(self.open_progress_channel()?);
        }
        let (subgraph, reader) = Subgraph::new(Parts {
            id: self.0.id,
            observers: Rc::clone(worker.observers()),
            name: self.0.name.clone(),
            outer_dims: self.0.parent.as_ref().map_or(self.0.dims, Scope::dims),
            inner_dims: self.0.dims,
            inputs: self.0.inputs.get(),
            outputs: self.0.outputs.get(),
            children,
            edges: self.0.edges.take(),
            input_counts: Rc::clone(&self.0.input_counts),
            activation: self.0.activation.clone(),
            mode: worker.progress_mode(),
            peers: worker.peers(),
            links,
            brake: Rc::clone(worker.brake()),
        })?;
        if let Some((id, reader)) = reader {
            worker.arrivals().expect(id, &reader);
        }
        Ok(Box::new(subgraph))
    }

    /// Opens the channel for the progress of a scope. It has numbers of its own: so a worker that builds another
    /// graph is detected by the comparison of the graphs, which names the difference, and not here.
    fn open_progress_channel(&self) -> Result<(Combined<Changes>, Inbox<Changes>), Error> {
        let id = self.next_channel(1 << 31);
        let worker = &self.0.worker;
        let (links, receiver) = worker.fabric().open_combined(worker.index(), id)?;
        Ok((links, Inbox { id, receiver }))
    }
}
