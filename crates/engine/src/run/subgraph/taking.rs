//! A scope's part in a checkpoint: to send progress that it holds back, and to take the contents of its
//! operators.

use pointstamp_progress::Location;

use super::Subgraph;
use crate::error::Error;
use crate::identity::Identities;
use crate::observe::OperatorId;
use crate::run::taking::{Found, Taking};

impl Subgraph {
    /// Runs the scope and the scopes in it.
    pub(super) fn flush_scopes(&mut self) {
        self.activation.run();
        for child in &mut self.children {
            if let Some(operator) = &mut child.operator {
                operator.flush();
            }
        }
    }

    pub(super) fn pull_inputs(&mut self) -> Result<(), Error> {
        let mut operators = self
            .children
            .iter_mut()
            .filter_map(|child| child.operator.as_mut());
        operators.try_for_each(|operator| operator.pull())
    }

    pub(super) fn take_operators(&mut self, taking: &mut Taking) -> Result<(), Error> {
        let mut identities = Identities::default();
        for (i, child) in self.children.iter_mut().enumerate() {
            let node = i + 1;
            let identity = identities.next(&taking.scope, &child.name);
            let finished = child.operator.is_none();
            if child.local || finished {
                let mut held: Vec<_> = match &mut child.held {
                    _ if !child.local => Vec::new(),
                    Some(held) => held.iter().cloned().collect(),
                    // Alone, all that is held is held here.
                    None => (0..child.readers.len())
                        .flat_map(|port| {
                            let counts = self.view.pointstamps(Location::source(node, port));
                            counts
                                .into_iter()
                                .map(move |(time, count)| ((port, time), count))
                        })
                        .collect(),
                };
                held.sort();
                let held = held.into_iter();
                taking.found.push(Found {
                    id: child.id,
                    identity: identity.clone(),
                    name: child.name.to_string(),
                    finished,
                    held: held
                        .map(|((port, time), count)| (port, time, count))
                        .collect(),
                });
            }
            if let Some(operator) = &mut child.operator {
                let around = std::mem::replace(&mut taking.scope, identity);
                let taken = operator.take(taking);
                taking.scope = around;
                taken?;
            }
        }
        Ok(())
    }

    pub(super) fn busy_operators(&self, busy: &mut Vec<(OperatorId, String)>) {
        for child in &self.children {
            let Some(operator) = &child.operator else {
                continue;
            };
            if child.local && child.activation.is_asked_to_run() {
                busy.push((child.id, child.name.to_string()));
            }
            operator.busy(busy);
        }
    }
}
