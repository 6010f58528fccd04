//! Records stay on their worker.

use std::rc::Rc;

use super::connection::Connection;
use crate::error::UserResult;
use crate::payload::{Message, Payload};
use crate::run::edge::{Edge, Label};
use crate::run::queue::LocalQueue;

struct Pipeline<P> {
    label: Label,
    queue: Rc<LocalQueue<P>>,
}

pub(super) fn connect<P: Payload>(connection: Connection<'_, P>) -> Box<dyn Edge<P>> {
    let Connection { label, queue, .. } = connection;
    Box::new(Pipeline { label, queue })
}

impl<P: Payload> Edge<P> for Pipeline<P> {
    fn push(&mut self, message: Message<P>) -> UserResult<()> {
        let Label { here, .. } = self.label;
        self.label.sent(&message.time, &message.data, here);
        self.queue.push(message);
        Ok(())
    }
}
