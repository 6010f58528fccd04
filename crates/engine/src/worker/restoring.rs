//! The cut from which a worker resumes, and the state with which its operators begin.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cut::{Changes, OperatorPart, Outstanding, State, Totals, WHOLE};
use crate::payload::Payload;

/// The rest of a share.
pub(super) struct Restoring<P: Payload> {
    pub(super) begun: usize,
    /// By dataflow and identity.
    pub(super) dataflows: BTreeMap<usize, BTreeMap<String, OperatorPart<P>>>,
    pub(super) totals: Arc<Totals>,
    pub(super) changes: Changes,
    /// The identities of operators whose functions differ from those at the checkpoint.
    pub(super) changed: Vec<String>,
    /// By dataflow, the identities of which there are numbered ones, too.
    pub(super) namesakes: BTreeSet<(usize, String)>,
}

impl<P: Payload> Restoring<P> {
    /// The dataflows that have yet to be built. Not those that had ended and of which only the positions of
    /// inputs are left.
    pub(super) fn awaited(&self) -> Vec<usize> {
        let is_awaited = |operators: &BTreeMap<String, OperatorPart<P>>| {
            let mut parts = operators.iter();
            !operators.contains_key(WHOLE)
                || parts.any(|(at, it)| at != WHOLE && it.position.is_none())
        };
        let awaited = self.dataflows.iter().filter(|(_, it)| is_awaited(it));
        awaited.map(|(index, _)| *index).collect()
    }
}

/// The state with which an operator begins.
pub(crate) enum Beginning<P: Payload> {
    /// A new operator begins without state.
    Fresh,
    /// It had ended, with state that others read, and the position of an input of main.
    Ended(Option<(State, Option<u64>)>),
    /// With its contents at the checkpoint, and the counts of all workers together.
    Goes(Box<OperatorPart<P>>, Outstanding),
    /// With nothing, in a dataflow of the checkpoint, which has not this operator. Whether the program has said so.
    New(Box<OperatorPart<P>>, bool),
}
