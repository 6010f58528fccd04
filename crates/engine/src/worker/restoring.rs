//! The cut from which a worker resumes, and the state with which its operators begin.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cut::{Changes, OperatorPart, Outstanding, State, Totals};
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

/// The state with which an operator begins.
pub(crate) enum Beginning<P: Payload> {
    /// A new operator begins without state.
    Fresh,
    /// It had ended, with state that others read.
    Ended(Option<State>),
    /// With its contents at the checkpoint, and the counts of all workers together.
    Goes(Box<OperatorPart<P>>, Outstanding),
    /// With nothing, in a dataflow of the checkpoint, which has not this operator. Whether the program has said so.
    New(Box<OperatorPart<P>>, bool),
}
