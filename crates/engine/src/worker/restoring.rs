//! What a worker goes on from, and with what its operators begin.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cut::{Changes, OperatorPart, Outstanding, State, Totals};
use crate::payload::Payload;

/// What is left of a share.
pub(super) struct Restoring<P: Payload> {
    pub(super) begun: usize,
    /// By dataflow and identity.
    pub(super) dataflows: BTreeMap<usize, BTreeMap<String, OperatorPart<P>>>,
    pub(super) totals: Arc<Totals>,
    pub(super) changes: Changes,
    /// By dataflow, the identities of which there are numbered ones, too.
    pub(super) namesakes: BTreeSet<(usize, String)>,
}

/// With what an operator begins.
pub(crate) enum Beginning<P: Payload> {
    /// As new.
    Fresh,
    /// It had ended; with what others read of it.
    Ended(Option<State>),
    /// With what it had, and what all workers had together.
    Goes(Box<OperatorPart<P>>, Outstanding),
    /// With nothing, in a dataflow of the checkpoint, which has not this operator. Whether the program has said so.
    New(Box<OperatorPart<P>>, bool),
}
