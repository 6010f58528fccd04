//! Each record goes to the worker that a router says.

use std::rc::Rc;

use pointstamp_channels::Sender;

use super::connection::{Connected, Connection};
use super::route::Route;
use crate::error::{Error, UserResult};
use crate::payload::{Message, Payload};
use crate::run::edge::{Edge, Inbox, Label, unsendable};
use crate::run::queue::LocalQueue;

struct Exchange<P> {
    label: Label,
    router: Box<dyn Route<P>>,
    local: Rc<LocalQueue<P>>,
    /// By worker; `None` for this one.
    remote: Vec<Option<Sender<Message<P>>>>,
    parts: Vec<Vec<P>>, // reused between batches
    reader: Rc<str>,
}

pub(super) fn connect<P: Payload>(
    router: Box<dyn Route<P>>,
    connection: Connection<'_, P>,
) -> Result<Connected<P>, Error> {
    let here = connection.label.here;
    let (mut remote, mut inbox) = (vec![None], None);
    if connection.fabric.peers() > 1 {
        let id = (connection.channel)();
        let (senders, receiver) = connection.fabric.open(here, id)?;
        remote = senders.into_iter().map(Some).collect();
        remote[here] = None;
        inbox = Some(Inbox { id, receiver });
    }
    let edge = Exchange {
        router,
        parts: remote.iter().map(|_| Vec::new()).collect(),
        remote,
        label: connection.label,
        local: connection.queue,
        reader: connection.reader,
    };
    Ok((Box::new(edge), inbox))
}

impl<P: Payload> Edge<P> for Exchange<P> {
    fn push(&mut self, message: Message<P>) -> UserResult<()> {
        let Message { time, data } = message;
        let routed = self.router.route(data, &mut self.parts);
        routed.map_err(|cause| {
            let operator = self.reader.to_string();
            Error::Route { operator, cause }
        })?;
        for (worker, (part, remote)) in self.parts.iter_mut().zip(&self.remote).enumerate() {
            for data in part.drain(..).filter(|data| !data.is_empty()) {
                let message = Message {
                    time: time.clone(),
                    data,
                };
                if let Some(sender) = remote {
                    self.label.sent(&time, &message.data, worker);
                    let sent = sender.push(message);
                    sent.map_err(|cause| unsendable(&self.reader, cause))?;
                } else {
                    self.label.sent(&time, &message.data, self.label.here);
                    self.local.push(message);
                }
            }
        }
        Ok(())
    }
}
