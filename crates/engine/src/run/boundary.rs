//! Edges that cross the boundary of a scope: inwards a timestamp gains coordinates, and the records are counted as input of the
//! scope; outwards it loses them.

use std::cell::RefCell;
use std::rc::Rc;

use crate::error::UserResult;
use crate::payload::{Message, Payload};
use crate::run::activation::Activation;
use crate::run::edge::{Edge, Label};
use crate::run::progress::PortChanges;
use crate::run::tee::Tee;

/// A scope appends at most this many coordinates at once.
pub(crate) const MAX_APPENDED: usize = 16;
/// The coordinates that entering a scope appends.
pub(crate) const ZEROS: [u64; MAX_APPENDED] = [0; MAX_APPENDED];

/// Into a scope.
pub(crate) struct Enter<P> {
    pub(crate) label: Label,
    pub(crate) port: usize,
    pub(crate) dims: usize,
    pub(crate) counts: Rc<RefCell<PortChanges>>,
    pub(crate) scope: Activation,
    pub(crate) inside: Tee<P>,
}

impl<P: Payload> Edge<P> for Enter<P> {
    fn push(&mut self, message: Message<P>) -> UserResult<()> {
        let Message { time, data } = message;
        self.label.sent(&time, &data, self.label.here);
        let time = time.extend(&ZEROS[..self.dims]);
        let count = ((self.port, time.clone()), data.len() as i64);
        self.counts.borrow_mut().update(count.0, count.1);
        self.scope.run();
        self.inside.push(Message { time, data })
    }
}

/// Out of a scope.
pub(crate) struct Leave<P> {
    pub(crate) label: Label,
    pub(crate) dims: usize,
    pub(crate) outside: Tee<P>,
}

impl<P: Payload> Edge<P> for Leave<P> {
    fn push(&mut self, message: Message<P>) -> UserResult<()> {
        let Message { time, mut data } = message;
        self.label.sent(&time, &data, self.label.here);
        let time = time.truncate(self.dims);
        data.left(self.dims);
        self.outside.push(Message { time, data })
    }
}
