//! The fabric, by which the workers of a computation find each other's queues.
//!
//! Workers build the same dataflows in the same order, so a [`ChannelId`](crate::ChannelId) counted while building
//! means the same channel everywhere. The first worker of a process to open a channel makes the queues of all of that process;
//! the others pick theirs up, so that messages may be sent to a worker that has not built its part yet.
//! Opening a channel takes a lock and is done while building only; no message between workers of one process passes through here,
//! and one of another process passes through the thread that reads its connection.
//!
//! Workers are numbered over all processes: worker `w` of process `p` is number `p * workers + w`.

use std::ops::Range;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;

use crate::activity::Activity;
use crate::combine::Combine;
use crate::combiner::{Combiner, LINGER, Route};
use crate::gauge::{Gauge, Tally};
use crate::lock::lock;
use crate::pressure::Pressure;
use crate::relay::{Place, Relaying};
use crate::routes::Routes;
use crate::sender::Uplink;
use crate::sync::{Mutex, MutexGuard};
use crate::{Doorbell, Farewell, Mailbox, Traffic, Transport};

mod inbound;
#[cfg(all(test, shuttle))]
mod models;
mod routing;
mod steps;

/// Receives events from other processes that belong to no channel. Called by the threads that read
/// connections: an implementation must not wait for a worker.
pub trait Overseer: Send + Sync {
    /// A message of another process to this one's.
    fn control(&self, from: usize, body: Bytes);

    /// Another process has left; nothing more comes from it.
    fn left(&self, from: usize, how: Farewell);

    /// Another process left without a farewell, or sent malformed data. `why` gives the reason in a sentence.
    fn lost(&self, from: usize, why: String);
}

/// The queues between the workers of one process, and their connections to the workers of other processes.
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
    /// The other processes that this one relays progress for.
    members: Range<usize>,
    overseer: OnceLock<Weak<dyn Overseer>>,
}

impl Fabric {
    /// A fabric for `workers` threads of this process alone, and a mailbox for each of them.
    pub fn in_process(workers: usize, high_water: usize) -> (Arc<Fabric>, Vec<Mailbox>) {
        Self::new(workers, high_water, None, LINGER, |_| Route::Straight, 1)
    }

    /// A fabric for `workers` threads of this process, and as many of each process that the transport connects. Nothing arrives
    /// before [`start`](Self::start).
    pub fn in_cluster(
        workers: usize,
        high_water: usize,
        transport: Arc<dyn Transport>,
    ) -> (Arc<Fabric>, Vec<Mailbox>) {
        Self::in_cluster_lingering(workers, high_water, transport, LINGER)
    }

    /// Creates a fabric as [`in_cluster`](Self::in_cluster) does, with another time for which messages of
    /// workers are held to be combined.
    pub fn in_cluster_lingering(
        workers: usize,
        high_water: usize,
        transport: Arc<dyn Transport>,
        linger: Duration,
    ) -> (Arc<Fabric>, Vec<Mailbox>) {
        Self::new(
            workers,
            high_water,
            Some(transport),
            linger,
            |_| Route::Straight,
            1,
        )
    }

    /// Creates a fabric as [`in_cluster_lingering`](Self::in_cluster_lingering) does, in which combined messages go by
    /// [relays](crate::relay), where groups have more than one process. Every channel of combined messages is of type `T`.
    ///
    /// # Panics
    ///
    /// When groups have no process.
    pub fn in_cluster_of_groups<T: Combine + Send>(
        workers: usize,
        high_water: usize,
        transport: Arc<dyn Transport>,
        linger: Duration,
        group: usize,
    ) -> (Arc<Fabric>, Vec<Mailbox>) {
        assert!(group > 0, "groups of no processes");
        let route = |place: &Place| {
            let relay = || Box::new(Relaying::<T>::new(place.clone(), linger)) as _;
            if group == 1 {
                Route::Straight
            } else {
                Route::of(place, relay)
            }
        };
        Self::new(workers, high_water, Some(transport), linger, route, group)
    }

    fn new(
        workers: usize,
        high_water: usize,
        transport: Option<Arc<dyn Transport>>,
        linger: Duration,
        route: impl FnOnce(&Place) -> Route,
        group: usize,
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
        let place = Place::new(process, processes, group);
        let members = place.members();
        let combiner = uplink.as_ref().map(|uplink| {
            let (activity, uplink) = (Arc::clone(&activity), Arc::clone(uplink));
            Combiner::new(activity, uplink, route(&place), linger)
        });
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
            members,
            overseer: OnceLock::new(),
        };
        (Arc::new(fabric), mailboxes)
    }

    /// The number of workers in all processes.
    pub fn peers(&self) -> usize {
        self.peers
    }

    /// The numbers of the workers of this process.
    pub fn here(&self) -> Range<usize> {
        self.first..self.first + self.doorbells.len()
    }

    /// The numbers of the other processes that this one relays progress for: it stays until they have left.
    pub fn members(&self) -> Range<usize> {
        self.members.clone()
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
        lock(&self.routes)
    }

    /// Sends a message to every other process itself.
    pub fn send_control(&self, message: &[Bytes]) {
        if let Some(uplink) = &self.uplink {
            uplink.send_control(message);
        }
    }

    /// Sends a message to another process itself.
    pub fn send_control_to(&self, process: usize, message: Bytes) {
        if let Some(uplink) = &self.uplink {
            uplink.send_control_to(process, message);
        }
    }

    /// The messages that a worker of this process has sent to others and taken from them. The first worker of the
    /// process includes the counts of its other threads.
    pub fn tally(&self, worker: usize) -> Tally {
        let mut tally = self.gauge.tally(worker - self.first);
        if worker == self.first {
            let others = self.gauge.tally(self.gauge.others());
            tally.sent += others.sent;
            tally.taken += others.taken;
        }
        tally
    }

    /// Ends the connections to the other processes, and the threads that serve them. Call it last, on a thread that
    /// does nothing else.
    pub fn close(&self) {
        if let Some(combiner) = &self.combiner {
            combiner.close();
        }
        if let Some(transport) = self.transport() {
            transport.close();
        }
    }

    /// The number of frames and bytes that were sent to other processes so far.
    pub fn traffic(&self) -> Traffic {
        self.uplink
            .as_ref()
            .map_or_else(Traffic::default, |uplink| uplink.traffic())
    }

    /// The number of channels that are open in this process, or have frames that wait for a worker to open
    /// them.
    pub fn channels(&self) -> usize {
        self.routes().channels.len()
    }

    /// Bytes on their way: in queues between workers, not yet written to connections, or arrived and not consumed.
    pub fn in_flight(&self) -> usize {
        self.gauge.level()
    }
}
