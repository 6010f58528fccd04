//! How the workers of a computation find each other's queues.
//!
//! Workers build the same dataflows in the same order, so a [`ChannelId`] counted while building
//! means the same channel everywhere. The first worker of a process to open a channel makes the queues of all of that process;
//! the others pick theirs up, so that messages may be sent to a worker that has not built its part yet.
//! Opening a channel takes a lock and is done while building only; no message between workers of one process passes through here,
//! and one of another process passes through the thread that reads its connection.
//!
//! Workers are numbered over all processes: worker `w` of process `p` is number `p * workers + w`.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::activity::Activity;
use crate::combiner::{Combine, Combined, Combiner, LINGER, Pot};
use crate::encode::Encode;
use crate::gauge::Gauge;
use crate::pressure::Pressure;
use crate::queue::Queue;
use crate::routes::{Arrived, Entry, Queues, Routes};
use crate::sender::{Away, COMPUTATION, PRESSURE, Sender, Uplink, Way};
use crate::{
    ChannelError, Doorbell, Farewell, Mailbox, Receive, Receiver, Route, Traffic, Transport,
};

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

/// Told of what arrives from other processes that is not a channel's. Called by the threads that read
/// connections: nothing here may wait for a worker.
pub trait Overseer: Send + Sync {
    /// A message of another process to this one's.
    fn control(&self, from: usize, body: Bytes);

    /// Another process has left; nothing more comes from it.
    fn left(&self, from: usize, how: Farewell);

    /// Another process is gone without a word, or sent what makes no sense: why, in a sentence.
    fn lost(&self, from: usize, why: String);
}

/// The meeting place of the workers of one process, and their way to those of others.
pub struct Fabric {
    /// The number of the first worker here.
    first: usize,
    peers: usize,
    doorbells: Vec<Doorbell>,
    activity: Arc<Activity>,
    routes: Mutex<Routes>,
    gauge: Arc<Gauge>,
    pressure: Pressure,
    uplink: Option<Arc<Uplink>>,
    combiner: Option<Arc<Combiner>>,
    overseer: OnceLock<Weak<dyn Overseer>>,
}

impl Fabric {
    /// A fabric for `workers` threads of this process alone, and a mailbox for each of them.
    pub fn in_process(workers: usize, high_water: usize) -> (Arc<Fabric>, Vec<Mailbox>) {
        Self::new(workers, high_water, None, LINGER)
    }

    /// A fabric for `workers` threads of this process, and as many of each process that the transport connects. Nothing arrives
    /// before [`start`](Self::start).
    pub fn in_cluster(
        workers: usize,
        high_water: usize,
        transport: Arc<dyn Transport>,
    ) -> (Arc<Fabric>, Vec<Mailbox>) {
        Self::new(workers, high_water, Some(transport), LINGER)
    }

    fn new(
        workers: usize,
        high_water: usize,
        transport: Option<Arc<dyn Transport>>,
        linger: Duration,
    ) -> (Arc<Fabric>, Vec<Mailbox>) {
        let mailboxes: Vec<_> = (0..workers).map(|_| Mailbox::new()).collect();
        let doorbells: Vec<_> = mailboxes.iter().map(Mailbox::doorbell).collect();
        let (process, processes) = match &transport {
            Some(transport) => (transport.process(), transport.processes()),
            None => (0, 1),
        };
        let gauge = Arc::new(Gauge::new(workers));
        let transport = transport.filter(|_| processes > 1);
        let uplink =
            transport.map(|transport| Arc::new(Uplink::new(transport, Arc::clone(&gauge))));
        let activity = Arc::new(Activity::new(doorbells.clone()));
        let combiner = uplink
            .as_ref()
            .map(|uplink| Combiner::new(Arc::clone(&activity), Arc::clone(uplink), linger));
        let pressure = Pressure::new(
            Arc::clone(&gauge),
            Arc::clone(&activity),
            uplink.clone(),
            high_water,
        );
        let fabric = Fabric {
            first: process * workers,
            peers: processes * workers,
            doorbells,
            activity,
            routes: Mutex::default(),
            gauge,
            pressure,
            uplink,
            combiner,
            overseer: OnceLock::new(),
        };
        (Arc::new(fabric), mailboxes)
    }

    /// Begins to take in what arrives from other processes.
    pub fn start(self: &Arc<Self>, overseer: Weak<dyn Overseer>) {
        let _once = self.overseer.set(overseer);
        if let Some(uplink) = &self.uplink {
            let fabric = Arc::downgrade(self);
            uplink.transport().start(Arc::new(Inbound { fabric }));
        }
    }

    /// How many workers there are, in all processes.
    pub fn peers(&self) -> usize {
        self.peers
    }

    /// The numbers of the workers of this process.
    pub fn here(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.doorbells.len()
    }

    /// The connections to the other processes, if there are any.
    pub fn transport(&self) -> Option<&Arc<dyn Transport>> {
        self.uplink.as_ref().map(|uplink| uplink.transport())
    }

    /// The doorbell of a worker of this process.
    ///
    /// # Panics
    ///
    /// When the worker is another process's.
    pub fn doorbell(&self, worker: usize) -> &Doorbell {
        &self.doorbells[worker - self.first]
    }

    /// Wakes every worker of this process.
    pub fn wake_all(&self) {
        self.activity.wake_all();
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        // Nothing that could panic runs under this lock: a poisoned one is still good.
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

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
            let route = Route::Worker(id, (to % workers) as u32);
            self.away(vec![to / workers], route)
        };
        let senders = (0..self.peers).map(sender).collect();
        Ok((senders, Receiver(Arc::clone(&queues[worker - self.first]))))
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
            senders.insert(0, self.away(others, Route::Everyone(id)));
        }
        Ok((senders, Receiver(Arc::clone(&queues[worker - self.first]))))
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
        let mut pot = None;
        let queues = self.queues::<T>(worker, id, |entry| {
            if let Some(combiner) = &self.combiner {
                let shared = entry
                    .pot
                    .get_or_insert_with(|| Pot::<T>::new(id) as Arc<dyn Any + Send + Sync>);
                if let Ok(shared) = Arc::clone(shared).downcast::<Pot<T>>() {
                    pot = Some((Arc::clone(combiner), shared, worker - self.first));
                }
            }
        })?;
        let local = self.to_local_peers(&queues, worker);
        let receiver = Receiver(Arc::clone(&queues[worker - self.first]));
        Ok((Combined { pot, local }, receiver))
    }

    /// The queues of a channel in this process. `with` sees the channel's entry while nobody else does.
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

    fn away<T>(&self, processes: Vec<usize>, route: Route) -> Sender<T> {
        let uplink = self
            .uplink
            .as_ref()
            .expect("workers elsewhere, and so a way there");
        Sender(Way::Away(Arc::new(Away {
            uplink: Arc::clone(uplink),
            processes,
            route,
        })))
    }

    /// Says that `worker` is done with a dataflow: it reads none of its channels any more and opens no others. Once all workers
    /// of this process have said so, what still arrives for it is dropped.
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
        self.pressure.weigh();
    }

    /// Sends a message to every other process itself.
    pub fn send_control(&self, message: &[Bytes]) {
        if let Some(uplink) = &self.uplink {
            uplink.send_control(message);
        }
    }

    /// Notes that a worker begins a step.
    #[inline]
    pub fn step_begins(&self, worker: usize) {
        if self.peers == 1 {
            return; // nobody to tell, and nothing is ever on its way
        }
        self.activity.steps(worker - self.first);
        if let Some(combiner) = &self.combiner {
            combiner.step_begins(worker - self.first);
        }
    }

    /// Notes that a worker has ended a step, sends what is combined, unless it is better to wait, and looks how much is on
    /// its way.
    #[inline]
    pub fn step_ended(&self, worker: usize) {
        if self.peers == 1 {
            return;
        }
        self.activity.outside(worker - self.first);
        self.pressure.weigh();
        if let Some(combiner) = &self.combiner {
            combiner.step_ended(worker - self.first);
        }
    }

    /// Notes that a worker goes to sleep. It must wake at the time that is returned, if one is, and say so by
    /// [`woke`](Self::woke).
    #[inline]
    pub fn parks(&self, worker: usize) -> Option<Instant> {
        self.activity.parks(worker - self.first);
        let combiner = self.combiner.as_ref()?;
        combiner.parks(worker - self.first)
    }

    /// Notes that a worker has slept.
    #[inline]
    pub fn woke(&self, worker: usize) {
        self.activity.outside(worker - self.first);
        if let Some(combiner) = &self.combiner {
            combiner.woke();
        }
    }

    /// Whether what feeds the computation is to pause: too much is on its way, here or in another process.
    #[inline]
    pub fn is_pressed(&self) -> bool {
        self.pressure.is_on()
    }

    /// How many bytes may be on their way in a process before what feeds the computation pauses.
    #[inline]
    pub fn high_water(&self) -> usize {
        self.pressure.high_water()
    }

    #[cfg(test)]
    pub(crate) fn pressure(&self) -> &Pressure {
        &self.pressure
    }

    /// Looks how much is on its way, as at the end of a step.
    pub fn weigh(&self) {
        if self.peers > 1 {
            self.pressure.weigh();
        }
    }

    /// A number that changes whenever [`is_pressed`](Self::is_pressed) ceases to hold, and all workers are woken then. Read it first:
    /// whoever finds the fabric pressed afterwards sees this change.
    #[inline]
    pub fn releases(&self) -> u64 {
        self.pressure.releases()
    }

    /// Asks the processes that are pressed to give way if nothing moves in them. To be called every [`ASK`](crate::ASK) by whoever
    /// waits for the pressure to end.
    pub fn ask_for_release(&self) {
        self.pressure.ask();
    }

    /// Sends what is combined, without waiting for anybody.
    pub fn flush(&self) {
        if let Some(combiner) = &self.combiner {
            combiner.flush();
        }
    }

    /// Ends the connections to the other processes, and the threads that serve them. Call it last, on a thread of one's own.
    pub fn close(&self) {
        if let Some(combiner) = &self.combiner {
            combiner.close();
        }
        if let Some(transport) = self.transport() {
            transport.close();
        }
    }

    /// What was sent to other processes so far.
    pub fn traffic(&self) -> Traffic {
        self.uplink
            .as_ref()
            .map_or_else(Traffic::default, |uplink| uplink.traffic())
    }

    /// Bytes on their way: in queues between workers, not yet written to connections, or arrived and not consumed.
    pub fn in_flight(&self) -> usize {
        self.gauge.level()
    }
}

/// Takes in what arrives from other processes.
struct Inbound {
    fabric: Weak<Fabric>,
}

impl Inbound {
    fn overseer(&self) -> Option<Arc<dyn Overseer>> {
        self.fabric.upgrade()?.overseer.get()?.upgrade()
    }

    fn forget(&self, process: usize) {
        if let Some(fabric) = self.fabric.upgrade() {
            fabric.pressure.forget(process);
        }
    }

    /// A word of another process to this one.
    fn control(&self, fabric: &Fabric, from: usize, body: &Bytes) {
        let made_sense = match body.first() {
            Some(&PRESSURE) => fabric.pressure.hear(from, &body[1..]),
            Some(&COMPUTATION) => {
                if let Some(overseer) = self.overseer() {
                    overseer.control(from, body.slice(1..));
                }
                true
            }
            _ => false,
        };
        if !made_sense && let Some(overseer) = self.overseer() {
            overseer.lost(
                from,
                format!("process {from} sent a message that makes no sense"),
            );
        }
    }
}

impl Receive for Inbound {
    fn frame(&self, from: usize, route: Route, body: Bytes) {
        let Some(fabric) = self.fabric.upgrade() else {
            return;
        };
        let workers = fabric.doorbells.len();
        let (id, worker) = match route {
            Route::Control => return self.control(&fabric, from, &body),
            Route::Everyone(id) => (id, None),
            Route::Worker(id, worker) if (worker as usize) < workers => (id, Some(worker as usize)),
            Route::Worker(id, worker) => {
                if let Some(overseer) = self.overseer() {
                    overseer.lost(
                        from,
                        format!(
                            "process {from} sent a message of channel {id} for worker {worker} of a process of {workers}"
                        ),
                    );
                }
                return;
            }
        };
        let bytes = body.len();
        let arrived = fabric.routes().arrive(id, worker, body, workers);
        match arrived {
            Arrived::At(inlet, body) => inlet.deliver(worker, body),
            Arrived::Kept => fabric.gauge.add(fabric.gauge.others(), bytes),
            Arrived::Dropped => {}
        }
        fabric.pressure.weigh();
    }

    fn left(&self, from: usize, how: Farewell) {
        self.forget(from);
        if let Some(overseer) = self.overseer() {
            overseer.left(from, how);
        }
    }

    fn lost(&self, from: usize, why: String) {
        self.forget(from);
        if let Some(overseer) = self.overseer() {
            overseer.lost(from, why);
        }
    }

    fn written(&self, bytes: usize) {
        if let Some(fabric) = self.fabric.upgrade() {
            fabric.gauge.sub(fabric.gauge.others(), bytes);
            fabric.pressure.weigh();
        }
    }
}

#[cfg(test)]
mod tests;
