//! The state of a running scope, for inspection.

use pointstamp_order::{ChangeBatch, Point};
use pointstamp_progress::Location;

use super::{Child, Subgraph};
use crate::inspect::{EdgeState, InputState, OperatorState, OutputState, ScopeState};
use crate::observe::Change;
use crate::run::brake::Gate;
use crate::run::progress::PortChanges;
use crate::run::schedule::Inside;
use crate::run::view::View;

impl Subgraph {
    /// The state of the scope now; the caller gives its address.
    pub(crate) fn inspect(&mut self, address: &[usize]) -> ScopeState {
        let inner = self.outer_dims + self.appended;
        let pending = self.view.pending();
        ScopeState {
            id: self.id,
            address: address.to_vec(),
            name: self.name.clone(),
            dims: inner,
            inputs: (0..self.inputs)
                .map(|port| self.view.frontier(Location::source(0, port)))
                .collect(),
            operators: (0..self.children.len())
                .map(|index| self.inspect_child(index, address, &pending))
                .collect(),
            edges: self
                .edges
                .iter()
                .map(|edge| EdgeState {
                    id: edge.id,
                    source: edge.source,
                    target: edge.target,
                    pact: edge.pact,
                })
                .collect(),
            hops: self.view.hops(),
            unsent: self.view.unsent(),
        }
    }

    /// Returns the state of a child. `pending` has the changes that were not propagated in the scope.
    fn inspect_child(
        &mut self,
        index: usize,
        address: &[usize],
        pending: &[Change],
    ) -> OperatorState {
        let node = index + 1;
        let Subgraph { children, view, .. } = self;
        let child = &mut children[index];
        let address: Vec<_> = address.iter().copied().chain([node]).collect();
        let mut inputs: Vec<_> = (0..child.inputs)
            .map(|port| {
                let at = Location::target(node, port);
                InputState {
                    frontier: view.frontier(at),
                    pointstamps: view.pointstamps(at),
                    ..InputState::default()
                }
            })
            .collect();
        let outputs = (0..child.readers.len())
            .map(|port| {
                let at = Location::source(node, port);
                OutputState {
                    frontier: view.frontier(at),
                    pointstamps: view.pointstamps(at),
                    here: child.held_at(port, at, view.as_ref(), pending),
                }
            })
            .collect();
        let mut scope = None;
        match child
            .operator
            .as_mut()
            .map(|operator| operator.inspect(&address))
        {
            Some(Inside::Operator(waiting)) => {
                for (input, waiting) in inputs.iter_mut().zip(waiting) {
                    input.waiting = waiting.here;
                    input.remote = waiting.remote;
                }
            }
            Some(Inside::Scope(inside)) => scope = Some(inside),
            None => {}
        }
        OperatorState {
            id: child.id,
            name: child.name.to_string(),
            address,
            inputs,
            outputs,
            complete: child.operator.is_none(),
            busy: child.incomplete,
            held_back: child.gate.as_ref().is_some_and(Gate::is_held),
            scope,
        }
    }
}

impl Child {
    /// The capabilities that this worker has for an output, by time, including changes that were not
    /// collected yet. On a single worker they are all that are counted in the scope.
    fn held_at(
        &mut self,
        output: usize,
        at: Location,
        view: &dyn View,
        pending: &[Change],
    ) -> Vec<(Point, i64)> {
        let mut all = ChangeBatch::new();
        let mut add = |changes: &mut PortChanges| {
            let changes = changes.iter().filter(|((port, _), _)| *port == output);
            all.extend(changes.map(|((_, time), diff)| (time.clone(), *diff)));
        };
        add(&mut self.progress.internal.borrow_mut());
        if let Some(held) = &mut self.held {
            add(held);
        } else {
            let pending = pending.iter().filter(|((place, _), _)| *place == at);
            all.extend(pending.map(|((_, time), diff)| (time.clone(), *diff)));
            all.extend(view.pointstamps(at));
        }
        all.into_inner()
    }
}
