//! The leader of checkpoints: requests cuts, commits, and announces committed checkpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pointstamp_engine::cluster::Cluster;
use pointstamp_engine::cut::GivenUp;
use pointstamp_store::{Checkpoint, Error as StoreError, Execution, Location, Packed};

use crate::error::Error;
use crate::options::Options;
use crate::part;
use crate::word::Word;

/// The wait after the first failure; twice as long after each further one.
const BACK_OFF: Duration = Duration::from_millis(100);

/// The longest wait after a failure.
const LONGEST: Duration = Duration::from_secs(10);

/// The event that the leader waits for.
enum Phase {
    /// The next checkpoint to be due, or requested.
    Idle,
    /// The engine's cut.
    Cutting,
    /// Packs.
    Writing {
        attempt: u64,
        /// By worker, the pack and its outline.
        packed: BTreeMap<usize, (Packed, Vec<u8>)>,
    },
    /// The answer of the store to a manifest.
    Committing { attempt: u64, again: Instant },
    /// Sinks.
    Showing { number: u64, left: BTreeSet<usize> },
}

/// The plan to end the computation after a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopping {
    No,
    /// After the next checkpoint whose cut has not been requested.
    Wanted,
    /// After the checkpoint that is being made.
    Now,
}

pub(crate) struct Leader {
    cluster: Arc<Cluster>,
    execution: Execution,
    every: Option<Duration>,
    drain: Duration,
    tolerate: u32,
    phase: Phase,
    /// When the next attempt is due.
    due: Option<Instant>,
    /// By worker, the last request that came before the cut was requested, and the last request of all.
    requests: BTreeMap<usize, (u64, u64)>,
    /// By input: the number of workers that have repeated its records, and the sums of their shares of the digests
    /// before the checkpoint and now.
    repeated: BTreeMap<u64, (usize, u64, u64)>,
    stopping: Stopping,
    /// Failures in a row.
    failures: u32,
    /// When the last cut was requested.
    begun: Instant,
    /// Attempts in a row that were given up.
    given_up: u32,
    /// Since when attempts have been given up, and whether that was reported.
    delayed: Option<(Instant, bool)>,
    /// The last attempt with a pack that could not be written: later messages of this attempt are ignored.
    abandoned: u64,
}

impl Leader {
    pub(crate) fn new(cluster: &Arc<Cluster>, options: &Options, execution: Execution) -> Self {
        Leader {
            cluster: Arc::clone(cluster),
            execution,
            every: options.every,
            drain: options.drain,
            tolerate: options.tolerate,
            phase: Phase::Idle,
            due: options.every.map(|every| Instant::now() + every),
            requests: BTreeMap::new(),
            repeated: BTreeMap::new(),
            stopping: Stopping::No,
            failures: 0,
            begun: Instant::now(),
            given_up: 0,
            delayed: None,
            abandoned: 0,
        }
    }

    /// When the leader has something to do, if nobody says anything.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Idle => self.due,
            Phase::Committing { again, .. } => Some(again),
            _ => None,
        }
    }

    /// Performs the steps that are due.
    pub(crate) fn wake(&mut self) -> Result<(), Error> {
        match self.phase {
            Phase::Idle => {
                self.cut();
                Ok(())
            }
            Phase::Committing { attempt, .. } => {
                let settled = self.execution.settle().map(drop);
                self.committed(attempt, settled)
            }
            _ => Ok(()),
        }
    }

    fn cut(&mut self) {
        self.phase = Phase::Cutting;
        for (asked, last) in self.requests.values_mut() {
            *asked = *last;
        }
        if self.stopping == Stopping::Wanted {
            self.stopping = Stopping::Now;
        }
        self.begun = Instant::now();
        self.cluster.request_cut();
    }

    fn tell_all(&self, word: &Word) {
        let bytes = word.to_bytes();
        for worker in 0..self.cluster.peers() {
            self.cluster.say_to(0, worker, bytes.clone());
        }
    }

    /// A process has a part of an attempt. Whether the attempt is still to become a checkpoint.
    pub(crate) fn takes(&mut self, attempt: u64) -> Result<bool, Error> {
        match self.phase {
            Phase::Writing { attempt: now, .. } if now == attempt => return Ok(true),
            _ if attempt <= self.abandoned => return Ok(false),
            Phase::Cutting => {}
            // Results that sinks have yet to show would be lost.
            _ => {
                let text = format!("attempt {attempt} was not asked for");
                return Err(Error::Malformed(text));
            }
        }
        self.execution.begin_as(attempt)?;
        self.phase = Phase::Writing {
            attempt,
            packed: BTreeMap::new(),
        };
        Ok(true)
    }

    /// An attempt did not drain, which is no failure.
    pub(crate) fn given_up(&mut self, given_up: &GivenUp) {
        if matches!(self.phase, Phase::Cutting) {
            tracing::debug!(?given_up, "a checkpoint is tried again");
            self.report(given_up);
            self.given_up += 1;
            self.again(self.given_up);
        }
    }

    /// Warns, once until there is a checkpoint, of attempts that come to nothing.
    fn report(&mut self, given_up: &GivenUp) {
        let (since, reported) = self.delayed.get_or_insert((self.begun, false));
        if since.elapsed() < self.drain {
            return; // `main`, or a step, may take a while
        }
        let why = if given_up.held {
            undrained(given_up, self.drain)
        } else if given_up.unlike {
            "workers have built, or dropped, different dataflows".to_owned()
        } else {
            format!(
                "{} did not step, or has yet to build a dataflow: `main` is busy, or waits for a checkpoint before it has built all \
                 dataflows of the one that it resumes from",
                workers(&given_up.missing)
            )
        };
        if !std::mem::replace(reported, true) {
            tracing::warn!("no checkpoint could be made, and another attempt follows: {why}");
        }
    }

    /// Waits for the next attempt, after so many that came to nothing.
    fn again(&mut self, count: u32) {
        self.due = Some(Instant::now() + back_off(count));
        self.phase = Phase::Idle;
    }

    pub(crate) fn receive(&mut self, from: usize, word: Word) -> Result<(), Error> {
        match word {
            Word::Wanted(request) => {
                self.requests.entry(from).or_default().1 = request;
                if let Phase::Idle = self.phase {
                    self.due = Some(Instant::now());
                }
                Ok(())
            }
            Word::Stop => {
                if self.stopping == Stopping::No {
                    self.stopping = Stopping::Wanted;
                }
                if let Phase::Idle = self.phase {
                    self.due = Some(Instant::now());
                }
                Ok(())
            }
            Word::Packed {
                attempt,
                packed,
                outline,
            } => {
                if !self.takes(attempt)? {
                    return Ok(());
                }
                let Phase::Writing { packed: all, .. } = &mut self.phase else {
                    return Ok(());
                };
                all.insert(from, (packed, outline));
                if all.len() < self.cluster.peers() {
                    return Ok(());
                }
                let all = std::mem::take(all).into_values();
                let (packs, outlines): (Vec<_>, Vec<_>) = all.unzip();
                let checkpoint = Checkpoint {
                    fixed_workers: part::fixed_workers(&outlines)?,
                    ..self.checkpoint(false)
                };
                let settled = self.execution.commit(checkpoint, &packs).map(drop);
                self.committed(attempt, settled)
            }
            Word::Failed { attempt, why } => {
                // It may be the first message about the attempt.
                if !self.takes(attempt)? {
                    return Ok(());
                }
                self.execution.abandon()?;
                self.abandoned = attempt;
                self.tell_all(&Word::Abandoned { why: why.clone() });
                self.failed(why)?;
                self.again(self.failures);
                Ok(())
            }
            Word::Shown { number } => {
                if let Phase::Showing { number: now, left } = &mut self.phase
                    && *now == number
                {
                    left.remove(&from);
                    if left.is_empty() {
                        self.covered(number);
                    }
                }
                Ok(())
            }
            Word::Repeated {
                number,
                input,
                before,
                now,
            } => {
                let (count, all_before, all_now) = self.repeated.entry(number).or_default();
                *count += 1;
                *all_before = all_before.wrapping_add(before);
                *all_now = all_now.wrapping_add(now);
                if *count == self.cluster.peers() && all_before != all_now {
                    return Err(Error::SentOtherwise { input });
                }
                Ok(())
            }
            Word::Begun(_)
            | Word::Committed { .. }
            | Word::Abandoned { .. }
            | Word::Covered { .. } => Ok(()),
        }
    }

    fn checkpoint(&self, ended: bool) -> Checkpoint {
        let made = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Checkpoint {
            made_ms: u64::try_from(made.as_millis()).unwrap_or(u64::MAX),
            made_by: concat!("pointstamp ", env!("CARGO_PKG_VERSION")).to_owned(),
            workers: u32::try_from(self.cluster.peers()).unwrap_or(u32::MAX),
            ended,
            ..Checkpoint::default()
        }
    }

    /// Notes a failure after which another attempt is made.
    fn failed(&mut self, why: String) -> Result<(), Error> {
        self.failures += 1;
        if self.failures > self.tolerate {
            return Err(Error::Failing {
                count: self.failures,
                last: why,
            });
        }
        tracing::warn!(%why, "a checkpoint failed, and is tried again");
        Ok(())
    }

    fn committed(&mut self, attempt: u64, settled: Result<(), StoreError>) -> Result<(), Error> {
        match settled {
            Ok(()) => {}
            Err(StoreError::Store(error)) if self.execution.is_pending() => {
                let again = Instant::now() + back_off(self.failures + 1);
                self.phase = Phase::Committing { attempt, again };
                return self.failed(error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
        (self.failures, self.given_up, self.delayed) = (0, 0, None);
        let Some(manifest) = self.execution.base() else {
            return Ok(());
        };
        let rewrites = manifest
            .packs
            .iter()
            .any(|pack| manifest.rewrites(&pack.name));
        let number = manifest.number;
        tracing::debug!(number, attempt, "a checkpoint exists");
        self.phase = Phase::Showing {
            number,
            left: (0..self.cluster.peers()).collect(),
        };
        self.tell_all(&Word::Committed { number, rewrites });
        Ok(())
    }

    fn covered(&mut self, number: u64) {
        for worker in 0..self.cluster.peers() {
            let (answers, _) = self.requests.get(&worker).copied().unwrap_or_default();
            let word = Word::Covered { number, answers };
            self.cluster.say_to(0, worker, word.to_bytes());
        }
        self.prune();
        self.phase = Phase::Idle;
        if self.stopping == Stopping::Now {
            self.due = None;
            self.tell_all(&Word::Stop);
            return;
        }
        let asked = self.stopping == Stopping::Wanted;
        let asked = asked || self.requests.values().any(|(asked, last)| asked < last);
        self.due = match self.every {
            _ if asked => Some(Instant::now()),
            every => every.map(|every| Instant::now() + every),
        };
    }

    /// Removes objects that no checkpoint needs.
    fn prune(&mut self) {
        if let Err(error) = self.execution.prune() {
            tracing::warn!(%error, "what checkpoints do not need any more stays for now");
        }
    }

    /// Makes the last checkpoint of a computation that has come to its end. Failures are borne as before.
    pub(crate) fn end(&mut self, location: &Location) -> Result<(), Error> {
        let mut made = false;
        while let Err(error) = self.make_last(location, &mut made) {
            let Error::Store(StoreError::Store(error)) = error else {
                return Err(error);
            };
            self.failed(error.to_string())?;
            std::thread::sleep(back_off(self.failures));
        }
        self.prune();
        Ok(())
    }

    /// Makes the last checkpoint, or continues it once its manifest is `made` and was not confirmed.
    fn make_last(&mut self, location: &Location, made: &mut bool) -> Result<(), Error> {
        if self.execution.is_pending() {
            self.execution.settle()?;
            if *made {
                return Ok(());
            }
        }
        self.execution.abandon()?;
        let attempt = self.execution.begin()?;
        let pack = attempt.writer(location.store(), 0)?.finish()?;
        let checkpoint = self.checkpoint(true);
        *made = true;
        self.execution.commit(checkpoint, &[pack])?;
        Ok(())
    }
}

/// The number of operators that a report names.
const NAMED: usize = 5;

/// The reason why an attempt was given up whose sources were held.
fn undrained(given_up: &GivenUp, drain: Duration) -> String {
    let mut names: Vec<_> = given_up.busy.iter().map(|(_, name)| name).collect();
    names.sort();
    names.dedup();
    let left = match &names[..] {
        [] => workers(&given_up.missing),
        [first @ .., _] if first.len() >= NAMED => {
            format!("{:?} and {} more", &names[..NAMED], names.len() - NAMED)
        }
        all => format!("{all:?}"),
    };
    format!(
        "{} s after sources were held there was still work for {left}. Where that stays so, send less at a time, or give \
         Checkpoint a longer drain=",
        drain.as_secs_f64()
    )
}

fn workers(numbers: &[usize]) -> String {
    match numbers {
        [one] => format!("worker {one}"),
        several => format!("workers {several:?}"),
    }
}

/// The wait after so many failures in a row.
fn back_off(failures: u32) -> Duration {
    let wait = BACK_OFF * 2_u32.saturating_pow(failures.saturating_sub(1).min(10));
    wait.min(LONGEST)
}
