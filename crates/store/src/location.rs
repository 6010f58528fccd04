//! A location: where the checkpoints of one computation are kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::entry::{Entry, Kept, Manifest};
use crate::error::Error;
use crate::execution::Execution;
use crate::garbage::Garbage;
use crate::log::{self, Log};
use crate::names::{self, LOG, Lineage, Turn};
use crate::planted::{self, Flaw};
use crate::reader::Reader;
use crate::store::{Creation, Store};

/// The attempts to make a fence while others make entries.
const STARTS: usize = 1000;

/// A place for the checkpoints of one computation.
#[derive(Debug, Clone)]
pub struct Location {
    store: Arc<dyn Store>,
}

/// A location that an execution has begun to use.
#[derive(Debug)]
pub struct Opened {
    /// The checkpoint to resume from; nothing, where there is none.
    pub from: Option<Reader>,
    /// The execution.
    pub execution: Execution,
}

/// A line of a list of checkpoints: a number, and the checkpoint or an error.
pub type Line = (u64, Result<Summary, Error>);

/// The description of a checkpoint in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The number.
    pub number: u64,
    /// The execution that made it.
    pub execution: u64,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: u64,
    /// The number of workers.
    pub workers: u32,
    /// The reason why another number of workers cannot resume from it; nothing, where it can.
    pub fixed_workers: Option<String>,
    /// The number of packs.
    pub packs: usize,
    /// The length of the packs, in bytes.
    pub bytes: u64,
    /// The length of the needed part of its packs, in bytes.
    pub live: u64,
}

impl Summary {
    fn of(manifest: &Manifest) -> Self {
        Summary {
            number: manifest.number,
            execution: manifest.turn.execution,
            made_ms: manifest.checkpoint.made_ms,
            workers: manifest.checkpoint.workers,
            fixed_workers: manifest.checkpoint.fixed_workers.clone(),
            packs: manifest.packs.len(),
            bytes: manifest.packs.iter().map(|pack| pack.size).sum(),
            live: manifest.packs.iter().map(|pack| pack.live).sum(),
        }
    }
}

/// The result of reading everything.
#[derive(Debug, Default)]
pub struct Verified {
    /// The checkpoints that were read.
    pub checkpoints: Vec<u64>,
    /// The number of packs that were read.
    pub packs: usize,
    /// The number of bytes of packs that were read.
    pub bytes: u64,
    /// The damage that was found. Empty where every byte is right.
    pub damage: Vec<Error>,
}

impl Location {
    /// Returns the location in a store. Nothing is read or written.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Location { store }
    }

    /// Returns the store.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Returns the store, to be shared.
    pub fn shared_store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// Begins an execution: makes its fence, which overtakes all earlier ones, and finds the checkpoint to resume
    /// from: number `at`, or the newest. `keep` checkpoints are kept, at least one.
    ///
    /// The store is tested: a store that does not refuse to create an existing object is refused.
    ///
    /// # Errors
    ///
    /// - [`Error::Damaged`], [`Error::Missing`], [`Error::Newer`], [`Error::Lineage`]: the checkpoint or the log is not as it should be.
    /// - [`Error::NoCheckpoint`]: `at` is not kept.
    /// - [`Error::Overtaken`]: another execution began at the same time.
    /// - [`Error::NotExclusive`]: the store is refused.
    /// - [`Error::Store`]: a call failed. It may be tried again.
    ///
    /// # Panics
    ///
    /// If the system has no random numbers.
    pub fn open(&self, keep: usize, at: Option<u64>) -> Result<Opened, Error> {
        let random = || getrandom::u64().expect("random numbers from the system");
        let nonce = random();
        let first = Lineage(u128::from(random()) << 64 | u128::from(random()));
        let mut seen = None;
        for _ in 0..STARTS {
            let log = Log::read(self.store(), at.is_some())?;
            if let Some(log) = &log {
                log.find(at)?;
            } else if let Some(number) = at {
                return Err(Error::NoCheckpoint {
                    number,
                    kept: Vec::new(),
                });
            }
            let number = log.as_ref().map_or(0, |log| log.highest) + 1;
            let lineage = log.as_ref().map_or(first, |log| log.lineage);
            let now = log.map_or_else(Vec::new, |log| log.kept);
            let first = seen.get_or_insert_with(|| now.clone());
            let kept = if planted::has(Flaw::StaleStart) {
                first.clone()
            } else {
                now
            };
            let fence = Entry::new(number, lineage, number, nonce, kept, None);
            if self.fence(&fence)? {
                return self.opened(&fence, keep.max(1), at);
            }
        }
        Err(Error::Overtaken {
            ours: 0,
            by: LOG.to_owned(),
        })
    }

    /// Makes a fence; returns whether it was made, and not another's entry of its number.
    fn fence(&self, fence: &Entry) -> Result<bool, Error> {
        let (name, bytes) = (names::log(fence.number), fence.write()?);
        if planted::has(Flaw::NoFence) {
            return Ok(true);
        }
        if !log::make(self.store(), &name, &bytes)? {
            return Ok(false);
        }
        // A store that does not refuse to create an existing object is detected here, and nothing is lost.
        let again = self.store.create(&name, &bytes)?;
        let last = log::numbers(self.store())?.last().copied();
        if let Some(last) = last.filter(|&last| last > fence.number) {
            return Err(Error::Overtaken {
                ours: fence.number,
                by: names::log(last),
            });
        }
        if again == Creation::Created {
            return Err(Error::NotExclusive {
                store: self.store.place(),
            });
        }
        Ok(true)
    }

    /// Reads the log and the checkpoint once no other execution can make entries.
    fn opened(&self, fence: &Entry, keep: usize, at: Option<u64>) -> Result<Opened, Error> {
        let mut execution = Execution::new(self.store.clone(), fence, keep);
        execution.note_head()?;
        let kept = match at {
            Some(number) => fence.kept.iter().find(|kept| kept.number == number),
            None => fence.kept.last(),
        };
        let by = names::log(fence.number);
        let read = kept.map(|kept| {
            let manifest = log::manifest(self.store(), kept, fence.lineage, &by)?;
            let reader = Reader::new(self.store.clone(), fence.lineage, manifest);
            reader.check()?;
            Ok(reader)
        });
        let from = match read.transpose() {
            Ok(from) => from,
            Err(error) => {
                execution.confirm()?;
                return Err(error);
            }
        };
        execution.go_on_from(from.as_ref().map(|from| from.manifest().clone()));
        Ok(Opened { from, execution })
    }

    /// Reads the checkpoint of a number, or the newest; nothing, where there is none. The location may be in use.
    ///
    /// # Errors
    ///
    /// The errors of [`Location::open`], except those of a start.
    pub fn read(&self, at: Option<u64>) -> Result<Option<Reader>, Error> {
        let Some(log) = Log::read(self.store(), at.is_some())? else {
            return match at {
                None => Ok(None),
                Some(number) => Err(Error::NoCheckpoint {
                    number,
                    kept: Vec::new(),
                }),
            };
        };
        let by = names::log(log.highest);
        let Some(kept) = log.find(at)? else {
            return Ok(None);
        };
        let manifest = log::manifest(self.store(), kept, log.lineage, &by)?;
        Ok(Some(Reader::new(self.store.clone(), log.lineage, manifest)))
    }

    /// Lists the kept checkpoints by number, in order; an error in place of one that cannot be read. The
    /// location may be in use.
    ///
    /// # Errors
    ///
    /// Errors of the store, and of a log without a readable entry.
    pub fn list(&self) -> Result<Vec<Line>, Error> {
        let Some(log) = Log::read(self.store(), true)? else {
            return Ok(Vec::new());
        };
        let by = names::log(log.highest);
        let summary = |kept: &Kept| {
            let manifest = log::manifest(self.store(), kept, log.lineage, &by)?;
            Ok(Summary::of(&manifest))
        };
        Ok(log
            .kept
            .iter()
            .map(|kept| (kept.number, summary(kept)))
            .collect())
    }

    /// Reads every byte of all checkpoints that are kept. The location may be in use.
    ///
    /// # Errors
    ///
    /// Errors of the store. Damaged or missing objects are no errors, but in [`Verified::damage`].
    pub fn verify(&self) -> Result<Verified, Error> {
        loop {
            let (newest, verified) = self.verify_once()?;
            // A missing object may have been pruned since.
            let moved = || Ok::<_, Error>(log::numbers(self.store())?.last().copied() > newest);
            if verified.damage.is_empty() || !moved()? {
                return Ok(verified);
            }
        }
    }

    fn verify_once(&self) -> Result<(Option<u64>, Verified), Error> {
        let mut verified = Verified::default();
        let last = log::numbers(self.store())?.last().copied();
        let read = match Log::read(self.store(), false) {
            Err(error @ Error::Store(_)) => return Err(error),
            Err(error) => {
                verified.damage.push(error);
                Log::read(self.store(), true)
            }
            other => other,
        };
        let mut log = match read {
            Ok(Some(log)) => log,
            Ok(None) => return Ok((None, verified)),
            Err(error @ Error::Store(_)) => return Err(error),
            Err(_) => return Ok((last, verified)),
        };
        if !verified.damage.is_empty() {
            // Lost entries have been named.
            log.kept.retain(|kept| !kept.packs.is_empty());
        }
        let by = names::log(log.highest);
        let mut seen = BTreeSet::new();
        for kept in &log.kept {
            let checked =
                log::manifest(self.store(), kept, log.lineage, &by).and_then(|manifest| {
                    verified.checkpoints.push(manifest.number);
                    let reader = Reader::new(self.store.clone(), log.lineage, manifest);
                    reader.check()?;
                    Ok(reader)
                });
            match checked {
                Ok(reader) => verify_packs(&reader, &mut seen, &mut verified)?,
                Err(error @ Error::Store(_)) => return Err(error),
                Err(error) => verified.damage.push(error),
            }
        }
        Ok((Some(log.highest), verified))
    }

    /// Removes objects that no kept checkpoint needs and no execution can be writing. The location may be in
    /// use.
    ///
    /// # Errors
    ///
    /// Errors of the store, and of a malformed log.
    pub fn prune(&self) -> Result<usize, Error> {
        let Some(log) = Log::read(self.store(), false)? else {
            return Ok(0);
        };
        let Some(newest) = &log.newest else {
            return Ok(0);
        };
        let attempt = newest
            .manifest
            .as_ref()
            .map_or(0, |manifest| manifest.turn.attempt);
        let garbage = Garbage {
            newest: log.highest,
            kept: &log.kept,
            until: Turn {
                execution: newest.execution,
                attempt,
            },
            open: None,
            own: false,
        };
        garbage.remove(self.store())
    }
}

/// Reads all packs of a checkpoint that were not seen, and checks its references.
fn verify_packs(
    reader: &Reader,
    seen: &mut BTreeSet<String>,
    verified: &mut Verified,
) -> Result<(), Error> {
    for pack in &reader.manifest().packs {
        let new = seen.insert(pack.name.clone());
        let checked = reader.pack(&pack.name).and_then(|opened| {
            if !new {
                return Ok(());
            }
            verified.packs += 1;
            verified.bytes += pack.size;
            for index in 0.. {
                if index as usize == opened.sections().len() {
                    break;
                }
                if let Some(section) = opened.stored(index) {
                    opened
                        .pages(&section)?
                        .try_for_each(|page| page.map(|_| ()))?;
                }
            }
            Ok(())
        });
        match checked {
            Err(error @ Error::Store(_)) => return Err(error),
            Err(error) => verified.damage.push(error),
            Ok(()) => {}
        }
    }
    let references = reader.sections().and_then(|sections| {
        sections
            .iter()
            .try_for_each(|found| reader.pages(&found.section).map(|_| ()))
    });
    match references {
        Err(error @ Error::Store(_)) => Err(error),
        Err(error) if verified.damage.is_empty() => {
            verified.damage.push(error);
            Ok(())
        }
        _ => Ok(()),
    }
}
