//! Resuming from the cut of an earlier execution, until the worker's dataflows are built.
//!
//! Operators are found by their identities during construction, and get their parts of the cut. Sources are held
//! until all dataflows of the cut are built, so that no source sends records that a missing operator has waited for.

use std::collections::{BTreeMap, BTreeSet};

use super::Worker;
use super::restoring::{Beginning, Restoring};
use crate::cut::{Changes, OperatorPart, Share, WHOLE};
use crate::error::{Error, RestoreError};
use crate::identity::unnumbered;
use crate::payload::Payload;

impl<P: Payload> Worker<P> {
    /// Resumes from a cut: dataflows that are built afterwards begin with their contents at the cut. Sources
    /// are held until all of them are built.
    ///
    /// # Errors
    ///
    /// [`Error::Restore`] where the share is another worker's, or a dataflow was begun already.
    pub fn restore(&self, share: Share<P>) -> Result<(), Error> {
        self.restore_changed(share, Changes::default())
    }

    /// Resumes from a cut with a program that has changed: [`restore`](Self::restore).
    ///
    /// Operators that keep nothing may come and go in any case.
    ///
    /// # Errors
    ///
    /// As of [`restore`](Self::restore).
    pub fn restore_changed(&self, share: Share<P>, changes: Changes) -> Result<(), Error> {
        let Share { part, totals } = share;
        if (part.worker, part.peers) != (self.index(), self.peers()) {
            return Err(RestoreError::OtherWorker {
                worker: part.worker,
                peers: part.peers,
                here: (self.index(), self.peers()),
            }
            .into());
        }
        if self.0.registry.begun() > 0 {
            return Err(RestoreError::Begun.into());
        }
        let mut namesakes = BTreeSet::new();
        for dataflow in &part.dataflows {
            for operator in &dataflow.operators {
                let name = unnumbered(&operator.identity);
                if name != operator.identity {
                    namesakes.insert((dataflow.index, name.to_owned()));
                }
            }
        }
        let dataflows = part.dataflows.into_iter().map(|dataflow| {
            let operators = dataflow.operators.into_iter();
            let operators = operators.map(|operator| (operator.identity.clone(), operator));
            (dataflow.index, operators.collect::<BTreeMap<_, _>>())
        });
        let restoring = Restoring {
            begun: part.begun,
            namesakes,
            dataflows: dataflows.collect(),
            totals,
            changes,
            changed: Vec::new(),
        };
        let waits = !restoring.awaited().is_empty();
        *self.0.restoring.borrow_mut() = Some(restoring);
        self.0.holding.set_restores(waits);
        Ok(())
    }

    /// The number of dataflows that were begun, here or before the cut: dataflows that had ended at the cut
    /// may not have been begun here yet.
    pub fn begun(&self) -> usize {
        let restoring = self.0.restoring.borrow();
        let before = restoring.as_ref().map_or(0, |restoring| restoring.begun);
        self.0.registry.begun().max(before)
    }

    /// The dataflows of the cut that have yet to be built.
    pub fn unrestored(&self) -> Vec<usize> {
        let restoring = self.0.restoring.borrow();
        restoring.as_ref().map_or_else(Vec::new, Restoring::awaited)
    }

    /// Whether the worker resumes from a cut.
    pub(crate) fn restores(&self) -> bool {
        self.0.restoring.borrow().is_some()
    }

    /// The state with which an operator in these scopes begins.
    pub(crate) fn beginning(
        &self,
        dataflow: usize,
        identity: &str,
        name: &str,
        scopes: &[&str],
    ) -> Beginning<P> {
        let mut restoring = self.0.restoring.borrow_mut();
        let Some(restoring) = restoring.as_mut().filter(|it| dataflow < it.begun) else {
            return Beginning::Fresh;
        };
        let Some(operators) = restoring.dataflows.get_mut(&dataflow) else {
            return Beginning::Ended(None);
        };
        let ended = |scope: &str| operators.get(scope).is_some_and(|it| it.finished);
        if ended(WHOLE) || ended(identity) || scopes.iter().any(|scope| ended(scope)) {
            // The part stays, where it is a scope, for the operators inside.
            let lent = operators.get_mut(identity);
            let lent = lent.and_then(|part| Some((part.state.take()?, part.position)));
            return Beginning::Ended(lent);
        }
        if let Some(part) = operators.remove(identity) {
            let totals = restoring.totals.outstanding(dataflow, identity);
            return Beginning::Goes(Box::new(part), totals);
        }
        let said = restoring.changes.new.contains(identity);
        let part = OperatorPart::empty(identity.to_owned(), name.to_owned());
        Beginning::New(Box::new(part), said)
    }

    /// Whether the checkpoint has several operators in a scope of this one's name.
    pub(crate) fn had_namesakes(&self, dataflow: usize, identity: &str) -> bool {
        let restoring = self.0.restoring.borrow();
        let namesakes = restoring.as_ref().map(|it| &it.namesakes);
        namesakes.is_some_and(|it| it.contains(&(dataflow, unnumbered(identity).to_owned())))
    }

    /// Notes an operator with state whose functions differ from those at the checkpoint.
    pub(crate) fn note_changed(&self, identity: &str) {
        if let Some(restoring) = &mut *self.0.restoring.borrow_mut() {
            restoring.changed.push(identity.to_owned());
        }
    }

    /// Takes the identities of the operators with state whose functions differ from those at the checkpoint.
    pub fn changed(&self) -> Vec<String> {
        let mut restoring = self.0.restoring.borrow_mut();
        restoring
            .as_mut()
            .map_or_else(Vec::new, |it| std::mem::take(&mut it.changed))
    }

    /// Whether a scope of a dataflow had ended.
    pub(crate) fn has_ended(&self, dataflow: usize, identity: &str) -> bool {
        let restoring = self.0.restoring.borrow();
        let Some(restoring) = restoring.as_ref().filter(|it| dataflow < it.begun) else {
            return false;
        };
        let operators = restoring.dataflows.get(&dataflow);
        operators.is_none_or(|it| it.get(identity).is_some_and(|scope| scope.finished))
    }

    /// Whether a dataflow had ended, or was dropped: it does not run again. It is built now.
    pub(crate) fn is_ended_whole(&self, dataflow: usize) -> bool {
        let mut restoring = self.0.restoring.borrow_mut();
        let restoring = restoring.as_mut().filter(|it| dataflow < it.begun);
        let Some(restoring) = restoring else {
            return false;
        };
        let operators = restoring.dataflows.get(&dataflow);
        let whole = operators.map(|operators| operators.contains_key(WHOLE));
        if whole == Some(true) {
            restoring.dataflows.remove(&dataflow);
            if restoring.awaited().is_empty() {
                self.0.holding.set_restores(false);
            }
        }
        whole != Some(false)
    }

    /// Notes that a dataflow is built, with all that it had.
    pub(crate) fn is_restored(&self, dataflow: usize) -> Result<(), RestoreError> {
        let mut restoring = self.0.restoring.borrow_mut();
        let Some(restoring) = restoring.as_mut() else {
            return Ok(());
        };
        let Some(left) = restoring.dataflows.remove(&dataflow) else {
            return Ok(());
        };
        let dropped = &restoring.changes.dropped;
        let lost = |operator: &OperatorPart<P>| {
            !operator.is_empty() && !dropped.contains(&operator.identity)
        };
        if let Some(operator) = left.into_values().find(lost) {
            return Err(RestoreError::Missing {
                dataflow,
                operator: operator.name,
                identity: operator.identity,
            });
        }
        if restoring.awaited().is_empty() {
            self.0.holding.set_restores(false);
        }
        Ok(())
    }
}
