//! Messages for one input that were sent by this worker.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use pointstamp_order::Point;

use crate::payload::{Message, Payload};
use crate::run::site::Site;

/// The queue of an input. A push activates the operator.
pub(crate) struct LocalQueue<P> {
    messages: RefCell<VecDeque<Message<P>>>,
    port: usize,
    /// Whether `port` is in the site's list of ready inputs.
    pub(crate) listed: Cell<bool>,
    pub(crate) site: Rc<Site>,
}

impl<P> LocalQueue<P> {
    pub(crate) fn new(port: usize, site: Rc<Site>) -> Rc<Self> {
        Rc::new(LocalQueue {
            messages: RefCell::default(),
            port,
            listed: Cell::new(false),
            site,
        })
    }

    pub(crate) fn push(&self, message: Message<P>) {
        self.messages.borrow_mut().push_back(message);
        self.site.backlog.set(self.site.backlog.get() + 1);
        self.announce();
    }

    pub(crate) fn pop(&self) -> Option<Message<P>> {
        let message = self.messages.borrow_mut().pop_front()?;
        self.site.backlog.set(self.site.backlog.get() - 1);
        Some(message)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.borrow().is_empty()
    }

    /// Lists the input as one with messages, and wakes the operator.
    pub(crate) fn announce(&self) {
        if !self.listed.get()
            && let Some(ready) = &mut *self.site.ready.borrow_mut()
        {
            ready.push_back(self.port);
            self.listed.set(true);
        }
        self.site.activation.run();
    }
}

impl<P: Payload> LocalQueue<P> {
    /// Copies of the messages, the first one first.
    pub(crate) fn messages(&self) -> Vec<Message<P>> {
        self.messages.borrow().iter().cloned().collect()
    }

    /// The number of records in each waiting batch, with its time.
    pub(crate) fn waiting(&self) -> Vec<(Point, usize)> {
        let messages = self.messages.borrow();
        let waiting = messages
            .iter()
            .map(|message| (message.time.clone(), message.data.len()));
        waiting.collect()
    }
}
