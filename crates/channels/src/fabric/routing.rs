//! Opening channels: the queues that a channel has in this process, and the senders that lead to queues of
//! other workers.
//!
//! It takes a lock and is done while building only.

use std::any::Any;
use std::sync::Arc;

use super::Fabric;
use crate::combine::Combine;
use crate::combiner::{Accumulator, Combined};
use crate::encode::Encode;
use crate::queue::Queue;
use crate::routes::{Entry, Queues};
use crate::sender::{Away, Sender, Way};
use crate::{ChannelError, ChannelId, Doorbell, Receiver, Recipient};

impl Fabric {
    /// Opens a channel on `worker`: a sender to each worker, itself included, and its own receiver.
    ///
    /// # Errors
    ///
    /// [`ChannelError`] when another worker opened `id` for another type, or this worker opened it before.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "workers of a process are few"
    )]
    pub fn open<T: Encode>(
        &self,
        worker: usize,
        id: ChannelId,
    ) -> Result<(Vec<Sender<T>>, Receiver<T>), ChannelError> {
        let queues = self.queues::<T>(worker, id, |_| ())?;
        let workers = self.doorbells.len();
        let sender = |to: usize| {
            if self.here().contains(&to) {
                return self.local(&queues[to - self.first], worker);
            }
            let route = Recipient::Worker(id, (to % workers) as u32);
            self.away(worker, vec![to / workers], route)
        };
        let senders = (0..self.peers).map(sender).collect();
        Ok((
            senders,
            Receiver::new(Arc::clone(&queues[worker - self.first])),
        ))
    }

    /// Opens a channel on `worker`: senders that together reach every worker but itself, and its own receiver. A message
    /// pushed to each of them is encoded once, and crosses to each other process once.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_broadcast<T: Encode>(
        &self,
        worker: usize,
        id: ChannelId,
    ) -> Result<(Vec<Sender<T>>, Receiver<T>), ChannelError> {
        let queues = self.queues::<T>(worker, id, |_| ())?;
        let mut senders = self.to_local_peers(&queues, worker);
        if let Some(uplink) = &self.uplink {
            // First: an error of encoding comes before anything was sent.
            let others = uplink.others().collect();
            senders.insert(0, self.away(worker, others, Recipient::Everyone(id)));
        }
        Ok((
            senders,
            Receiver::new(Arc::clone(&queues[worker - self.first])),
        ))
    }

    /// Opens a channel on `worker` whose messages go to every other worker, and are combined with those of the other workers
    /// of this process before they go to other processes.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_combined<T: Combine + Send>(
        &self,
        worker: usize,
        id: ChannelId,
    ) -> Result<(Combined<T>, Receiver<T>), ChannelError> {
        let mut accumulator = None;
        let queues = self.queues::<T>(worker, id, |entry| {
            if let Some(combiner) = &self.combiner {
                let shared = entry
                    .accumulator
                    .get_or_insert_with(|| Accumulator::<T>::new(id) as Arc<dyn Any + Send + Sync>);
                if let Ok(shared) = Arc::clone(shared).downcast::<Accumulator<T>>() {
                    accumulator = Some((Arc::clone(combiner), shared, worker - self.first));
                }
            }
        })?;
        let local = self.to_local_peers(&queues, worker);
        let receiver = Receiver::new(Arc::clone(&queues[worker - self.first]));
        Ok((Combined { accumulator, local }, receiver))
    }

    /// The queues of a channel in this process. `with` sees the channel's entry while no other thread does.
    fn queues<T: Encode>(
        &self,
        worker: usize,
        id: ChannelId,
        with: impl FnOnce(&mut Entry),
    ) -> Result<Vec<Arc<Queue<T>>>, ChannelError> {
        let mut routes = self.routes();
        let entry = routes.channels.entry(id).or_default();
        let inlet = Arc::clone(entry.inlet.get_or_insert_with(|| {
            let queue = |(stripe, bell): (usize, &Doorbell)| {
                Queue::<T>::new(id, bell.clone(), Arc::clone(&self.gauge), stripe)
            };
            Arc::new(Queues(
                self.doorbells.iter().enumerate().map(queue).collect(),
            ))
        }));
        let queues = inlet
            .as_any()
            .downcast_ref::<Queues<T>>()
            .ok_or(ChannelError::TypeMismatch { id })?;
        entry.opened.resize(self.doorbells.len(), false);
        if std::mem::replace(&mut entry.opened[worker - self.first], true) {
            return Err(ChannelError::OpenedTwice { id, worker });
        }
        let replayed = entry.replay(&*inlet);
        self.gauge.sub(self.gauge.others(), replayed);
        with(entry);
        Ok(queues.0.clone())
    }

    fn local<T>(&self, queue: &Arc<Queue<T>>, from: usize) -> Sender<T> {
        Sender(Way::Here(Arc::clone(queue), from - self.first))
    }

    fn to_local_peers<T>(&self, queues: &[Arc<Queue<T>>], worker: usize) -> Vec<Sender<T>> {
        let others = queues.iter().zip(self.here());
        let others = others.filter(|&(_, other)| other != worker);
        others.map(|(queue, _)| self.local(queue, worker)).collect()
    }

    fn away<T>(&self, from: usize, processes: Vec<usize>, route: Recipient) -> Sender<T> {
        let uplink = self
            .uplink
            .as_ref()
            .expect("workers elsewhere, and so a way there");
        Sender(Way::Away(Arc::new(Away {
            uplink: Arc::clone(uplink),
            stripe: from - self.first,
            processes,
            route,
        })))
    }

    /// Declares that `worker` is done with a dataflow: it reads none of its channels any more and opens no others.
    /// Once all workers of this process have done so, later messages for it are dropped.
    pub fn end_dataflow(&self, worker: usize, dataflow: u32) {
        let workers = self.doorbells.len();
        let removed = self.routes().end(worker - self.first, dataflow, workers);
        self.forget(&removed); // and dropped after the lock: a message may be anything
    }

    /// Says that `worker` opens no channel any more, and reads none. To be called once.
    pub fn end_worker(&self) {
        let removed = self.routes().leave(self.doorbells.len());
        self.forget(&removed);
    }

    fn forget(&self, removed: &[Entry]) {
        let waiting = removed.iter().map(Entry::waiting).sum();
        self.gauge.sub(self.gauge.others(), waiting);
        let workers = self.doorbells.len();
        let dropped = removed.iter().map(|entry| entry.messages(workers)).sum();
        self.gauge.taken(self.gauge.others(), dropped);
        self.pressure.weigh();
    }
}
