//! How the workers of one process find each other's queues.
//!
//! Workers build the same dataflows in the same order, so a [`ChannelId`] counted while building
//! means the same channel everywhere. The first worker to open a channel makes the queues of all;
//! the others pick theirs up, so that messages may be sent to a worker that has not built its part yet.
//! Opening a channel takes a lock and is done while building only; no message passes through here.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::queue::Queue;
use crate::{ChannelError, Doorbell, Mailbox, Receiver, Sender};

/// Names a channel: the same number on every worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelId {
    /// The dataflow, in the order in which the workers build them.
    pub dataflow: u32,
    /// The channel within it, in the order in which they are opened.
    pub channel: u32,
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.dataflow, self.channel)
    }
}

/// A channel that some workers have not opened yet.
struct Pending {
    queues: Box<dyn Any + Send>, // Vec<Arc<Queue<T>>>
    opened: Vec<bool>,
}

/// The meeting place of the workers of one process.
pub struct Fabric {
    doorbells: Vec<Doorbell>,
    pending: Mutex<FxHashMap<ChannelId, Pending>>,
}

impl Fabric {
    /// A fabric for `workers` threads of this process, and a mailbox for each of them.
    pub fn in_process(workers: usize) -> (Arc<Fabric>, Vec<Mailbox>) {
        let mailboxes: Vec<_> = (0..workers).map(|_| Mailbox::new()).collect();
        let doorbells = mailboxes.iter().map(Mailbox::doorbell).collect();
        (
            Arc::new(Fabric {
                doorbells,
                pending: Mutex::default(),
            }),
            mailboxes,
        )
    }

    /// How many workers there are.
    pub fn peers(&self) -> usize {
        self.doorbells.len()
    }

    /// The doorbell of a worker.
    pub fn doorbell(&self, worker: usize) -> &Doorbell {
        &self.doorbells[worker]
    }

    /// Opens a channel on `worker`: a sender to each worker, itself included, and its own receiver.
    ///
    /// # Errors
    ///
    /// [`ChannelError`] when another worker opened `id` for another type, or this worker opened it before
    /// and others have not yet.
    pub fn open<T: Send + 'static>(
        &self,
        worker: usize,
        id: ChannelId,
    ) -> Result<(Vec<Sender<T>>, Receiver<T>), ChannelError> {
        // Nothing that could panic runs under this lock: a poisoned one is still good.
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = pending.entry(id).or_insert_with(|| Pending {
            queues: Box::new(
                self.doorbells
                    .iter()
                    .map(|bell| Queue::<T>::new(id, bell.clone()))
                    .collect::<Vec<_>>(),
            ),
            opened: vec![false; self.doorbells.len()],
        });
        let queues = entry
            .queues
            .downcast_ref::<Vec<Arc<Queue<T>>>>()
            .ok_or(ChannelError::TypeMismatch { id })?;
        if std::mem::replace(&mut entry.opened[worker], true) {
            return Err(ChannelError::OpenedTwice { id, worker });
        }
        let senders = queues
            .iter()
            .map(|queue| Sender(Arc::clone(queue)))
            .collect();
        let receiver = Receiver(Arc::clone(&queues[worker]));
        if entry.opened.iter().all(|&opened| opened) {
            pending.remove(&id);
        }
        Ok((senders, receiver))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ChannelId = ChannelId {
        dataflow: 0,
        channel: 9,
    };

    #[test]
    fn messages_wait_for_a_worker_that_opens_late() {
        let (fabric, _mailboxes) = Fabric::in_process(2);
        let (senders, _mine) = fabric.open::<u64>(0, ID).unwrap();
        senders[1].push(5);
        let (_, receiver) = fabric.open::<u64>(1, ID).unwrap();
        assert_eq!(receiver.pop(), Some(5));
        assert!(
            fabric.pending.lock().unwrap().is_empty(),
            "an opened channel leaves nothing behind"
        );
    }

    #[test]
    fn other_types_and_second_receivers_are_refused() {
        let (fabric, _mailboxes) = Fabric::in_process(3);
        let _first = fabric.open::<u64>(0, ID).unwrap();
        assert_eq!(
            fabric.open::<String>(1, ID).err(),
            Some(ChannelError::TypeMismatch { id: ID })
        );
        assert_eq!(
            fabric.open::<u64>(0, ID).err(),
            Some(ChannelError::OpenedTwice { id: ID, worker: 0 })
        );
    }
}
