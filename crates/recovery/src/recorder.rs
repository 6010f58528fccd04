//! The checkpoints of a process: its thread.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pointstamp_engine::cluster::Cluster;
use pointstamp_engine::cut::{Limits, Part};
use pointstamp_engine::error::Error as EngineError;
use pointstamp_engine::payload::Payload;
use pointstamp_engine::worker::Worker;
use pointstamp_store::{Attempt, Error as StoreError, Execution, Location, Reader, Turn};

use crate::error::Error;
use crate::leader::Leader;
use crate::options::{Options, Turns};
use crate::part::{self, Known};
use crate::place::location;
use crate::recording::Recording;
use crate::shared::{Job, Shared};
use crate::word::{Begun, Word};

/// The time for all workers to say that they are ready, and again for all to hold their sources: a step takes a quarter of a second where records take
/// long, since a run of a source is made as large as that.
const READY: Duration = Duration::from_millis(500);

/// The part of the time for a drain in which inputs of `main` are to come to a common time: one in so many.
const COMMON: u32 = 100;

/// A location whose execution has begun. It belongs to the process of the leading worker.
#[derive(Debug)]
pub struct Opened {
    location: Location,
    execution: Execution,
    from: Option<Reader>,
}

/// Begins an execution, after which no earlier one can make checkpoints at the location.
///
/// # Errors
///
/// [`Error::Store`], and [`Error::Ended`] where the checkpoint to resume from is the last one of an ended
/// computation.
pub fn open(options: &Options) -> Result<Opened, Error> {
    let location = location(&options.place, options.faults.as_ref())?;
    let opened = location.open(options.keep, options.at)?;
    let mut execution = opened.execution;
    if let Some(from) = &opened.from
        && from.manifest().checkpoint.ended
    {
        execution.prune()?; // the fences of starts like this one
        return Err(Error::Ended {
            number: from.manifest().number,
            place: options.place.display().to_string(),
        });
    }
    execution.prune()?;
    Ok(Opened {
        location,
        execution,
        from: opened.from,
    })
}

/// The checkpoints of a process.
pub struct Recorder<P: Payload> {
    shared: Arc<Shared<P>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<P: Payload> Recorder<P> {
    /// Starts the thread of a process. `opened` is the result of [`open`], in the process of the leading worker. In a
    /// simulation, the thread takes turns with the workers.
    ///
    /// # Errors
    ///
    /// That the thread cannot be started; as [`open`] for a place that is no location.
    pub fn start(
        cluster: &Arc<Cluster>,
        options: &Options,
        opened: Option<Opened>,
        turns: Option<Box<dyn Turns>>,
    ) -> Result<Self, Error> {
        let (jobs, received) = channel();
        let (location, execution, reader) = if let Some(opened) = opened {
            (opened.location, Some(opened.execution), opened.from)
        } else {
            let location = location(&options.place, options.faults.as_ref())?;
            (location, None, None)
        };
        let begun = execution.as_ref().map(|execution| Begun {
            execution: execution.number(),
            lineage: execution.lineage(),
            from: reader.as_ref().map(|reader| reader.manifest().number),
        });
        let common = match turns {
            Some(_) => Duration::ZERO, // the time plays no part in a simulation
            None => options.drain / COMMON,
        };
        let limits = Limits {
            ready: READY,
            common,
            drain: options.drain,
            ..Limits::default()
        };
        let shared = Arc::new(Shared::new(
            cluster,
            jobs,
            limits,
            options.changes.clone(),
            location.clone(),
            begun,
            reader,
        ));
        let leader = execution.map(|execution| Leader::new(cluster, options, execution));
        let writing = Writing {
            shared: Arc::clone(&shared),
            location,
            jobs: received,
            leader,
            reader: None,
            known: None,
            latest: BTreeMap::new(),
            failed: None,
        };
        let thread = std::thread::Builder::new().name("pointstamp-checkpoints".to_owned());
        let thread = thread
            .spawn(move || writing.run(turns))
            .map_err(Error::Thread)?;
        Ok(Recorder {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Lets a worker take part, on its thread and before it builds anything. Where there is a checkpoint, the worker
    /// resumes from it.
    ///
    /// # Errors
    ///
    /// Where the checkpoint cannot be restored.
    pub fn begin(&self, worker: &Worker<P>) -> Result<Rc<Recording<P>>, EngineError> {
        Recording::begin(&self.shared, worker)
    }

    /// Requests, on any thread, a checkpoint after which all workers end.
    pub fn stop(&self) {
        let first = self.shared.cluster.workers().start;
        self.shared.tell_leader(first, Word::Stop);
    }

    /// Ends the thread. Where the `whole` computation has come to its end, the last checkpoint says so.
    ///
    /// # Errors
    ///
    /// Where that checkpoint cannot be made.
    pub fn end(&self, whole: bool) -> Result<(), Error> {
        let Some(thread) = self.thread.lock().take() else {
            return Ok(());
        };
        let (reply, replied) = channel();
        let ended = match self.shared.jobs.send(Job::End { whole, reply }) {
            Ok(()) => replied.recv().unwrap_or(Ok(())),
            Err(_) => Ok(()),
        };
        let _a_panic_was_printed = thread.join();
        ended
    }
}

/// The thread of a process.
struct Writing<P: Payload> {
    shared: Arc<Shared<P>>,
    location: Location,
    jobs: Receiver<Job<P>>,
    leader: Option<Leader>,
    /// The reader of the last checkpoint, where its packs are to be written again or the execution resumed
    /// from it.
    reader: Option<Reader>,
    /// By worker, the pieces of the last checkpoint; `None` before the first.
    known: Option<BTreeMap<usize, Arc<Known>>>,
    /// By worker, the pieces of the current attempt.
    latest: BTreeMap<usize, Arc<Known>>,
    /// The first error of this thread, which ends the computation.
    failed: Option<String>,
}

impl<P: Payload> Writing<P> {
    fn run(mut self, turns: Option<Box<dyn Turns>>) {
        let mut first = turns.and_then(|turns| self.take_turns(&*turns));
        loop {
            let due = self.leader.as_ref().and_then(Leader::due);
            let job = match due {
                _ if first.is_some() => first.take().ok_or(RecvTimeoutError::Disconnected),
                None => self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => {
                    let wait = due.saturating_duration_since(Instant::now());
                    self.jobs.recv_timeout(wait)
                }
            };
            let done = match job {
                Ok(Job::End { whole, reply }) => {
                    let ended = match (&mut self.leader, self.failed.take()) {
                        // The workers had come to their end before they received it.
                        (_, Some(failed)) if whole => Err(Error::Malformed(failed)),
                        (Some(leader), None) if whole => leader.end(&self.location),
                        _ => Ok(()),
                    };
                    let _nobody_waits = reply.send(ended);
                    return;
                }
                Ok(job) => self.work(job),
                Err(RecvTimeoutError::Timeout) => self.leader.as_mut().map_or(Ok(()), Leader::wake),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if let Err(error) = done {
                self.fail(error);
            }
        }
    }

    /// Does one thing in each turn, until the workers have ended. The time plays no part. Returns the job to end, where it has come before the last
    /// turn.
    fn take_turns(&mut self, turns: &dyn Turns) -> Option<Job<P>> {
        let mut end = None;
        turns.enter();
        loop {
            let done = match self.jobs.try_recv() {
                Ok(job @ Job::End { .. }) => {
                    end = Some(job);
                    None
                }
                Ok(job) => Some(self.work(job)),
                Err(_) => match &mut self.leader {
                    Some(leader) if leader.due().is_some() && turns.asks() => Some(leader.wake()),
                    _ => None,
                },
            };
            let found = done.is_some();
            if let Some(Err(error)) = done {
                self.fail(error);
            }
            if !turns.turn(found) {
                return end;
            }
        }
    }

    /// Ends the computation.
    fn fail(&mut self, error: Error) {
        let text = error.to_string();
        self.failed.get_or_insert_with(|| text.clone());
        let cluster = &self.shared.cluster;
        let error = EngineError::Host {
            cause: Box::new(error),
        };
        let worker = cluster.workers().start;
        cluster.ending().fail_because(worker, error, text);
    }

    fn work(&mut self, job: Job<P>) -> Result<(), Error> {
        match job {
            Job::Write(part) => self.write(&part),
            Job::GivenUp(given_up) => {
                if let Some(leader) = &mut self.leader {
                    leader.given_up(&given_up);
                }
                Ok(())
            }
            Job::Receive(from, word) => self
                .leader
                .as_mut()
                .map_or(Ok(()), |leader| leader.receive(from, word)),
            Job::Settled { number, rewrites } => self.settled(number, rewrites),
            Job::End { .. } => Ok(()),
        }
    }

    fn write(&mut self, part: &Part<P>) -> Result<(), Error> {
        let Some(begun) = self.shared.begun() else {
            return Ok(());
        };
        if let Some(leader) = &mut self.leader
            && !leader.takes(part.attempt)?
        {
            return Ok(()); // another worker's pack could not be written
        }
        let attempt = Attempt {
            turn: Turn {
                execution: begun.execution,
                attempt: part.attempt,
            },
            lineage: begun.lineage,
        };
        let worker = part.worker;
        if self.known.is_none() {
            let (known, reader) = self.shared.take_known();
            self.known = Some(known);
            self.reader = reader;
        }
        let known = self.known.as_ref().and_then(|known| known.get(&worker));
        let known = known.map(Arc::clone).unwrap_or_default();
        let number = u32::try_from(worker).unwrap_or(u32::MAX);
        let written = attempt.writer(self.location.store(), number);
        let written = written
            .map_err(Error::from)
            .and_then(|pack| part::write(pack, part, &known, self.reader.as_ref()));
        let word = match written {
            Ok(written) => {
                self.latest.insert(worker, Arc::new(written.pieces));
                Word::Packed {
                    attempt: part.attempt,
                    packed: written.packed,
                    outline: written.outline,
                }
            }
            // The next attempt may do better.
            Err(Error::Store(StoreError::Store(error))) => Word::Failed {
                attempt: part.attempt,
                why: error.to_string(),
            },
            Err(error) => return Err(error),
        };
        if let Some(leader) = &mut self.leader {
            return leader.receive(worker, word);
        }
        self.shared.cluster.say_to(worker, 0, word.to_bytes());
        Ok(())
    }

    /// Notes in the pieces that are new in the last checkpoint that it has them.
    fn settle_pieces(&self, before: &BTreeMap<usize, Arc<Known>>) {
        for (worker, pieces) in self.known.iter().flatten() {
            let before = before.get(worker);
            for (number, (piece, _)) in pieces.iter() {
                if before.is_none_or(|before| !before.contains_key(number)) {
                    piece.settle();
                }
            }
        }
    }

    /// Notes that the attempt has become a checkpoint, or come to nothing. Said by every worker of the process.
    fn settled(&mut self, number: Option<u64>, rewrites: bool) -> Result<(), Error> {
        let latest = std::mem::take(&mut self.latest);
        let Some(number) = number else {
            return Ok(());
        };
        if !latest.is_empty() {
            let before = self.known.replace(latest);
            self.settle_pieces(&before.unwrap_or_default());
            self.reader = None;
            if rewrites {
                self.reader = match self.location.read(Some(number)) {
                    Err(StoreError::Store(error)) => {
                        tracing::warn!(%error, "packs that are less than half needed stay for now");
                        None
                    }
                    read => read?,
                };
            }
        }
        Ok(())
    }
}
