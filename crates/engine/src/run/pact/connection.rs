//! The context that a contract gets to connect an edge, and its result.

use std::rc::Rc;

use pointstamp_channels::{ChannelId, Fabric};

use crate::payload::Message;
use crate::run::edge::{Edge, Inbox, Label};
use crate::run::queue::LocalQueue;

/// The two ends that a contract connects: the input of an operator, on a worker.
pub(crate) struct Connection<'a, P> {
    pub(crate) label: Label,
    pub(crate) queue: Rc<LocalQueue<P>>,
    /// The operator that reads, for messages.
    pub(crate) reader: Rc<str>,
    pub(crate) fabric: &'a Fabric,
    /// Names a channel to other workers: called where one is needed, on all workers alike.
    pub(crate) channel: &'a dyn Fn() -> ChannelId,
}

/// An edge, and the inbox for records that other workers send along theirs.
pub(crate) type Connected<P> = (Box<dyn Edge<P>>, Option<Inbox<Message<P>>>);
