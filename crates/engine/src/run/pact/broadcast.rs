//! Each record goes to every worker.

use std::rc::Rc;

use pointstamp_channels::Sender;

use super::connection::{Connected, Connection};
use crate::error::{Error, UserResult};
use crate::payload::{Message, Payload};
use crate::run::edge::{Edge, Inbox, Label, unsendable};
use crate::run::queue::LocalQueue;

struct Broadcast<P> {
    label: Label,
    local: Rc<LocalQueue<P>>,
    /// To all workers but this one.
    remote: Vec<Sender<Message<P>>>,
    peers: usize,
    reader: Rc<str>,
}

pub(super) fn connect<P: Payload>(connection: Connection<'_, P>) -> Result<Connected<P>, Error> {
    let peers = connection.fabric.peers();
    let (mut remote, mut inbox) = (Vec::new(), None);
    if peers > 1 {
        let (here, id) = (connection.label.here, (connection.channel)());
        let (senders, receiver) = connection.fabric.open_broadcast(here, id)?;
        remote = senders;
        inbox = Some(Inbox { id, receiver });
    }
    let edge = Broadcast {
        remote,
        peers,
        label: connection.label,
        local: connection.queue,
        reader: connection.reader,
    };
    Ok((Box::new(edge), inbox))
}

impl<P: Payload> Edge<P> for Broadcast<P> {
    fn push(&mut self, message: Message<P>) -> UserResult<()> {
        for worker in 0..self.peers {
            self.label.sent(&message.time, &message.data, worker);
        }
        for sender in &self.remote {
            let sent = sender.push(message.clone());
            sent.map_err(|cause| unsendable(&self.reader, cause))?;
        }
        self.local.push(message);
        Ok(())
    }
}
