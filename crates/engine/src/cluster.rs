//! The workers of one computation, in one process or in several, and how they end together.
//!
//! The first failure is kept, and stops every worker: workers check the flag between operators, and parked ones are
//! woken; other processes are informed by the farewell of this one. [`Seed`]s are sent to the threads that become
//! workers.
//!
//! A process leaves when all its workers have come to their end, and is done when all others have left too: a failure that comes
//! late, elsewhere, is a failure of the whole computation.

mod agreement;
pub(crate) mod blueprint;
mod control;
mod cut_inboxes;
mod cut_messages;
mod departures;
mod ending;
mod hold;
mod listener;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use pointstamp_channels::{
    Fabric, Farewell, LINGER, Mailbox, Overseer, Reason, Traffic, Transport,
};
use pointstamp_progress::Mode;

use agreement::Agreement;
use blueprint::Blueprint;
use control::Control;
use cut_inboxes::CutInboxes;
use listener::MessageListener;

pub(crate) use cut_messages::LEADER;

pub use ending::{Ending, Failure};
pub use hold::Hold;
pub use listener::Handler;

use crate::error::{Disagreement, Error};
use crate::run::changes::Changes;

/// The state that the workers of one process share.
pub struct Cluster {
    fabric: Arc<Fabric>,
    mode: Mode,
    ending: Arc<Ending>,
    agreement: Agreement,
    /// Whether some worker dropped a dataflow: workers that wait for the end of one check again.
    dropped: AtomicBool,
    listener: MessageListener,
    cut_inboxes: CutInboxes,
}

/// A worker that has not been started: send it to its thread, then `start` it.
pub struct Seed {
    cluster: Arc<Cluster>,
    index: usize,
    mailbox: Mailbox,
}

impl Seed {
    /// The number that the worker will have.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The cluster that the worker is one of.
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// The parts from which the worker is made.
    pub(crate) fn into_parts(self) -> (usize, Arc<Cluster>, Mailbox) {
        (self.index, self.cluster, self.mailbox)
    }
}

/// The default number of bytes that may be in flight in one process before its sources pause.
pub const HIGH_WATER: usize = 256 << 20;

impl Cluster {
    /// A computation of `workers` threads of this process. While more than `high_water` bytes are on their way between them,
    /// sources pause.
    pub fn in_process(workers: usize, mode: Mode, high_water: usize) -> (Arc<Cluster>, Vec<Seed>) {
        let (fabric, mailboxes) = Fabric::in_process(workers, high_water);
        Self::new(fabric, mailboxes, mode)
    }

    /// This process's part of a computation of `workers` threads in each of the processes that the transport connects. Each
    /// process pauses the sources of all while more than `high_water` bytes are on their way in it.
    ///
    /// When the workers have ended, call [`leave`](Ending::leave) and [`wait_for_others`](Ending::wait_for_others) of its
    /// [`ending`](Self::ending), and [`close`](Self::close).
    pub fn in_cluster(
        workers: usize,
        mode: Mode,
        high_water: usize,
        transport: Arc<dyn Transport>,
    ) -> (Arc<Cluster>, Vec<Seed>) {
        Self::in_cluster_lingering(workers, mode, high_water, transport, LINGER)
    }

    /// Creates a computation as [`in_cluster`](Self::in_cluster) does, with another time for which the
    /// workers' progress is held to be combined: none, to send each worker's progress by itself.
    pub fn in_cluster_lingering(
        workers: usize,
        mode: Mode,
        high_water: usize,
        transport: Arc<dyn Transport>,
        linger: Duration,
    ) -> (Arc<Cluster>, Vec<Seed>) {
        Self::in_cluster_of_groups(workers, mode, high_water, transport, linger, 1)
    }

    /// Creates a computation as [`in_cluster_lingering`](Self::in_cluster_lingering) does, whose processes are in groups of so many:
    /// the first process of each group adds up the group's progress and passes it on. With groups of one, every
    /// process sends its progress to every other one. [`group_of`](pointstamp_channels::group_of) says how many are good.
    ///
    /// # Panics
    ///
    /// When groups have no process.
    pub fn in_cluster_of_groups(
        workers: usize,
        mode: Mode,
        high_water: usize,
        transport: Arc<dyn Transport>,
        linger: Duration,
        group: usize,
    ) -> (Arc<Cluster>, Vec<Seed>) {
        let (fabric, mailboxes) =
            Fabric::in_cluster_of_groups::<Changes>(workers, high_water, transport, linger, group);
        let (cluster, seeds) = Self::new(fabric, mailboxes, mode);
        let overseer: Weak<Cluster> = Arc::downgrade(&cluster);
        cluster.fabric.start(overseer);
        (cluster, seeds)
    }

    fn new(fabric: Arc<Fabric>, mailboxes: Vec<Mailbox>, mode: Mode) -> (Arc<Cluster>, Vec<Seed>) {
        let cluster = Arc::new(Cluster {
            mode,
            ending: Arc::new(Ending::new(Arc::clone(&fabric))),
            agreement: Agreement::new(fabric.peers()),
            dropped: AtomicBool::new(false),
            listener: MessageListener::default(),
            cut_inboxes: CutInboxes::new(fabric.here().len()),
            fabric,
        });
        let seeds = cluster.fabric.here().zip(mailboxes);
        let seeds = seeds.map(|(index, mailbox)| Seed {
            cluster: Arc::clone(&cluster),
            index,
            mailbox,
        });
        let seeds = seeds.collect();
        (cluster, seeds)
    }

    pub(crate) fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    /// The end of the computation.
    pub fn ending(&self) -> &Arc<Ending> {
        &self.ending
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// The number of workers in all processes.
    pub fn peers(&self) -> usize {
        self.fabric.peers()
    }

    /// The workers of this process, by their numbers among all.
    pub fn workers(&self) -> Range<usize> {
        self.fabric.here()
    }

    /// The number of this process.
    pub fn process(&self) -> usize {
        ending::place(&self.fabric).0
    }

    /// The number of processes.
    pub fn processes(&self) -> usize {
        ending::place(&self.fabric).1
    }

    /// The number of frames and bytes that were sent to other processes so far.
    pub fn traffic(&self) -> Traffic {
        self.fabric.traffic()
    }

    /// Bytes that are on their way in this process, about.
    pub fn in_flight(&self) -> usize {
        self.fabric.in_flight()
    }

    /// Says something to the program around the engine in every other process.
    pub fn say(&self, what: Vec<u8>) {
        let worker = self.fabric.here().start;
        self.tell(&Control::Said { worker, what });
    }

    /// Registers a function that gets the messages of programs of other processes, also earlier ones, with
    /// the number of the process. It is called on the thread that receives from that process, and must return
    /// soon. Only the first registration has an effect.
    pub fn listen(&self, handler: Handler) {
        self.listener.register(handler);
    }

    /// Wakes a worker of this process, if it sleeps: the program has work for it outside the engine.
    ///
    /// # Panics
    ///
    /// When the worker is another process's.
    pub fn wake_worker(&self, worker: usize) {
        self.fabric.doorbell(worker).wake();
    }

    fn tell(&self, control: &Control) {
        if self.processes() > 1 {
            self.fabric.send_control(&[control.to_bytes()]);
        }
    }

    /// Compares the dataflow that a worker of this process built with those of other workers. A difference
    /// ends the computation.
    pub(crate) fn post(
        &self,
        worker: usize,
        dataflow: usize,
        blueprint: Blueprint,
    ) -> Result<(), Error> {
        let name = blueprint.name().to_owned();
        let first = !self.agreement.has_posted(self.fabric.here(), dataflow);
        let sent = (first && self.processes() > 1).then(|| blueprint.clone());
        let posted = self
            .agreement
            .post(worker, dataflow, &name, Some(blueprint));
        posted.map_err(|why| self.ending.disagree(&why))?;
        self.tell(&Control::Posted {
            worker,
            dataflow,
            name,
            blueprint: sent,
        });
        Ok(())
    }

    /// Notes that a worker of this process builds no more.
    pub(crate) fn finish(&self, worker: usize) -> Result<(), Error> {
        self.tell(&Control::Finished { worker });
        let finished = self.note_finished(worker);
        finished.map_err(|why| self.ending.disagree(&why))
    }

    fn note_finished(&self, worker: usize) -> Result<(), Disagreement> {
        let finished = self.agreement.finish(worker);
        if self.all_finished() {
            self.fabric.wake_all(); // workers that attend until then
        }
        finished
    }

    /// Whether no worker builds any more.
    pub(crate) fn all_finished(&self) -> bool {
        self.agreement.all_finished()
    }

    /// Notes that a worker of this process dropped a dataflow.
    pub(crate) fn dropped(&self, worker: usize, dataflow: usize) {
        self.tell(&Control::Dropped { worker, dataflow });
        self.note_dropped(worker, dataflow);
    }

    fn note_dropped(&self, worker: usize, dataflow: usize) {
        self.agreement.dropped(worker, dataflow);
        self.agreement.ended(worker..worker + 1, dataflow);
        self.dropped.store(true, Ordering::Release);
        self.fabric.wake_all();
    }

    /// Notes that a dataflow has come to its end on a worker of this process.
    pub(crate) fn completed(&self, worker: usize, dataflow: usize) {
        self.tell(&Control::Ended { worker, dataflow });
        self.agreement.ended(worker..worker + 1, dataflow);
    }

    /// Why a dataflow that a worker of this process still has cannot end, if that is so.
    pub(crate) fn abandoned(&self, worker: usize, dataflow: usize) -> Option<Disagreement> {
        self.agreement.abandoned(worker, dataflow)
    }

    /// Whether a dataflow was dropped anywhere.
    pub(crate) fn has_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Ends the connections to the other processes. Call it last, on a thread that does nothing else.
    pub fn close(&self) {
        self.fabric.close();
    }
}

impl Overseer for Cluster {
    fn control(&self, from: usize, body: bytes::Bytes) {
        let workers = self.fabric.here().len();
        let theirs = from * workers..(from + 1) * workers;
        let control = Control::from_bytes(&body).ok();
        let Some(control) = control.filter(|control| control.is_from(&theirs)) else {
            return self.lost(from, "it sent a message that makes no sense".to_owned());
        };
        let outcome = match control {
            Control::Cut {
                worker,
                to,
                message,
            } => {
                if !self.fabric.here().contains(&to) {
                    return self.lost(
                        from,
                        format!("it sent a message to worker {to}, which is not here"),
                    );
                }
                self.deliver_cut_message(worker, to, message);
                Ok(())
            }
            Control::Posted {
                worker,
                dataflow,
                name,
                blueprint,
            } => self.agreement.post(worker, dataflow, &name, blueprint),
            Control::Finished { worker } => self.note_finished(worker),
            Control::Dropped { worker, dataflow } => {
                self.note_dropped(worker, dataflow);
                Ok(())
            }
            Control::Said { what, .. } => {
                self.listener.receive(from, what);
                Ok(())
            }
            Control::Ended { worker, dataflow } => {
                self.agreement.ended(worker..worker + 1, dataflow);
                Ok(())
            }
        };
        if let Err(why) = outcome {
            let error = self.ending.disagree(&why);
            let worker = None;
            self.ending.keep(Failure { worker, error });
        }
    }

    fn left(&self, from: usize, how: Farewell) {
        if let Farewell::Failed { origin, reason } = how {
            self.ending.peer_failed(from, origin as usize, reason);
        }
        self.ending.has_left(from);
    }

    fn lost(&self, from: usize, why: String) {
        // No warning: the workers that end because of it raise an error with the reason, and a process that has
        // failed itself sees the others leave.
        tracing::info!(process = from, %why, "a process is lost");
        self.ending.peer_failed(from, from, Reason::Lost(why));
        self.ending.has_left(from);
    }
}
