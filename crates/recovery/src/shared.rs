//! The state that the workers and the thread of a process share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use parking_lot::Mutex;
use pointstamp_engine::cluster::Cluster;
use pointstamp_engine::cut::{Changes, GivenUp, Limits, Part, Share, rescale};
use pointstamp_engine::payload::Payload;
use pointstamp_store::{Location, Reader};

use crate::error::Error;
use crate::options::Resumed;
use crate::part::{self, Known};
use crate::word::{Begun, Word};

/// A job of the process's thread.
pub(crate) enum Job<P: Payload> {
    /// A worker's part of a cut.
    Write(Box<Part<P>>),
    /// On the leader: an attempt came to nothing.
    GivenUp(GivenUp),
    /// A message for the leader, of a worker.
    Receive(usize, Word),
    /// The leader's decision about an attempt, to all processes: the set of known pieces changes.
    Settled { number: Option<u64>, rewrites: bool },
    /// The workers have ended.
    End {
        whole: bool,
        reply: Sender<Result<(), Error>>,
    },
}

/// The state that the workers and the thread of a process share.
pub(crate) struct Shared<P: Payload> {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) jobs: Sender<Job<P>>,
    pub(crate) limits: Limits,
    pub(crate) changes: Changes,
    location: Location,
    beginning: Mutex<Beginning<P>>,
}

/// The state with which the workers of a process begin.
struct Beginning<P: Payload> {
    begun: Option<Begun>,
    /// The shares of workers that have not taken theirs, once the checkpoint was read.
    shares: Option<BTreeMap<usize, Share<P>>>,
    /// For the thread: by worker, the pieces of the checkpoint.
    known: BTreeMap<usize, Arc<Known>>,
    reader: Option<Reader>,
}

impl<P: Payload> Shared<P> {
    pub(crate) fn new(
        cluster: &Arc<Cluster>,
        jobs: Sender<Job<P>>,
        limits: Limits,
        changes: Changes,
        location: Location,
        begun: Option<Begun>,
        reader: Option<Reader>,
    ) -> Self {
        Shared {
            cluster: Arc::clone(cluster),
            jobs,
            limits,
            changes,
            location,
            beginning: Mutex::new(Beginning {
                begun,
                shares: None,
                known: BTreeMap::new(),
                reader,
            }),
        }
    }

    /// Gives the process's thread a job.
    pub(crate) fn give(&self, job: Job<P>) {
        let _the_process_ends = self.jobs.send(job);
    }

    /// Says something to the leader, from a worker of this process.
    pub(crate) fn tell_leader(&self, from: usize, word: Word) {
        if self.cluster.process() == 0 {
            self.give(Job::Receive(from, word));
        } else {
            self.cluster.say_to(from, 0, word.to_bytes());
        }
    }

    /// Takes out, for the thread, the pieces of the checkpoint from which the execution resumes.
    pub(crate) fn take_known(&self) -> (BTreeMap<usize, Arc<Known>>, Option<Reader>) {
        let mut beginning = self.beginning.lock();
        (
            std::mem::take(&mut beginning.known),
            beginning.reader.clone(),
        )
    }

    /// Notes the beginning that the leader has sent.
    pub(crate) fn begin(&self, begun: Begun) {
        self.beginning.lock().begun = Some(begun);
    }

    /// The beginning that the leader has sent.
    pub(crate) fn begun(&self) -> Option<Begun> {
        self.beginning.lock().begun
    }

    /// The share with which a worker resumes.
    pub(crate) fn share(
        &self,
        worker: usize,
        peers: usize,
    ) -> Result<Option<(Share<P>, Resumed)>, Error> {
        let mut beginning = self.beginning.lock();
        let Some(number) = beginning.begun.and_then(|begun| begun.from) else {
            return Ok(None);
        };
        if beginning.shares.is_none() {
            let reader = match &beginning.reader {
                Some(reader) => reader.clone(),
                None => self
                    .location
                    .read(Some(number))?
                    .ok_or_else(|| Error::Malformed(format!("there is no checkpoint {number}")))?,
            };
            let (parts, known) = part::read::<P>(&reader)?;
            let parts = rescale(parts, peers)?;
            // Which pieces a worker takes up is not known: all are known to all.
            let known = Arc::new(known);
            let of_worker = |worker| (worker, Arc::clone(&known));
            beginning.known = (0..peers).map(of_worker).collect();
            let shares = Share::of(parts).into_iter().enumerate();
            beginning.shares = Some(shares.collect());
            beginning.reader = Some(reader);
        }
        let resumed = beginning.reader.as_ref().map(Resumed::of);
        let share = beginning
            .shares
            .as_mut()
            .and_then(|shares| shares.remove(&worker));
        Ok(share.zip(resumed))
    }
}
