//! The execution that uses a location: its fence, its checkpoints, and the removal of objects.
//!
//! The argument is in `docs/design/checkpoints.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoint;
use crate::entry::{Entry, Head, Kept, Manifest, Pack};
use crate::error::Error;
use crate::garbage::Garbage;
use crate::log;
use crate::names::{self, HEAD, Lineage, Turn};
use crate::pack::{PackWriter, Packed};
use crate::planted::{self, Flaw};
use crate::store::Store;

/// The execution that uses a location. It belongs to the leader.
#[derive(Debug)]
pub struct Execution {
    store: Arc<dyn Store>,
    lineage: Lineage,
    nonce: u64,
    /// The number of the fence.
    number: u64,
    /// The manifests to keep.
    keep: usize,
    /// The number of the newest entry, which is of this execution.
    newest: u64,
    /// The number in the head.
    head: u64,
    /// The checkpoint that was last made, or from which the execution resumed.
    base: Option<Manifest>,
    /// The manifests that are kept.
    kept: Vec<Kept>,
    /// The number of attempts that were begun.
    attempts: u64,
    /// The attempt whose packs are being written, or whose manifest was not confirmed.
    open: Option<Turn>,
    pending: Option<Pending>,
    overtaken: Option<String>,
}

/// A manifest whose creation was not confirmed.
struct Pending {
    bytes: Vec<u8>,
    entry: Entry,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "log/{} of {} bytes", self.entry.number, self.bytes.len())
    }
}

/// An attempt to make a checkpoint. It crosses processes by its serde encoding; each worker makes its writer from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The turn of the attempt.
    pub turn: Turn,
    /// The lineage of the location.
    pub lineage: Lineage,
}

impl Attempt {
    /// Begins the pack of a worker.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn writer(&self, store: &dyn Store, worker: u32) -> Result<PackWriter, Error> {
        PackWriter::new(store, names::pack(self.turn, worker), self.lineage, worker)
    }
}

impl Execution {
    pub(crate) fn new(store: Arc<dyn Store>, fence: &Entry, keep: usize) -> Self {
        Execution {
            store,
            lineage: fence.lineage,
            nonce: fence.nonce,
            number: fence.number,
            keep,
            newest: fence.number,
            head: 0,
            base: None,
            kept: fence.kept.clone(),
            attempts: 0,
            open: None,
            pending: None,
            overtaken: None,
        }
    }

    pub(crate) fn go_on_from(&mut self, base: Option<Manifest>) {
        self.base = base;
    }

    /// Returns the number of the execution, which is also the number of its fence.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the lineage of the location.
    pub fn lineage(&self) -> Lineage {
        self.lineage
    }

    /// Returns the last checkpoint that was made, or else the one from which this execution resumes.
    pub fn base(&self) -> Option<&Manifest> {
        self.base.as_ref()
    }

    /// Returns whether a manifest was not answered: [`Execution::settle`] has to be called until it is.
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    fn in_force(&self) -> Result<(), Error> {
        match &self.overtaken {
            None => Ok(()),
            Some(by) => Err(Error::Overtaken {
                ours: self.number,
                by: by.clone(),
            }),
        }
    }

    fn overtaken(&mut self, by: String) -> Error {
        self.pending = None;
        self.overtaken = Some(by.clone());
        Error::Overtaken {
            ours: self.number,
            by,
        }
    }

    /// Checks in the log whether this execution was overtaken. Where reading the checkpoint at the start
    /// fails, this shows whether another execution has pruned it.
    ///
    /// # Errors
    ///
    /// [`Error::Overtaken`], and those of the store.
    pub fn confirm(&mut self) -> Result<(), Error> {
        self.in_force()?;
        let last = log::numbers(&*self.store)?.last().copied();
        let own = match &self.pending {
            Some(pending) => pending.entry.number,
            None => self.newest,
        };
        match last {
            Some(last) if last > own => Err(self.overtaken(names::log(last))),
            _ => Ok(()),
        }
    }

    /// Begins an attempt to make the next checkpoint.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] during another attempt or with an unconfirmed manifest; [`Error::Overtaken`].
    pub fn begin(&mut self) -> Result<Attempt, Error> {
        self.begin_as(self.attempts + 1)
    }

    /// Begins an attempt with a number that all workers know already.
    ///
    /// # Errors
    ///
    /// As [`Execution::begin`]; [`Error::Misuse`] where there was an attempt of this or a later number.
    pub fn begin_as(&mut self, attempt: u64) -> Result<Attempt, Error> {
        self.in_force()?;
        if let Some(open) = self.open {
            let what = format!(
                "attempt {} is under way: commit, settle or abandon it first",
                open.attempt
            );
            return Err(Error::Misuse(what));
        }
        if attempt <= self.attempts {
            let last = self.attempts;
            let what = format!("attempt {attempt} is not after attempt {last}");
            return Err(Error::Misuse(what));
        }
        self.attempts = attempt;
        let turn = Turn {
            execution: self.number,
            attempt: self.attempts,
        };
        self.open = Some(turn);
        Ok(Attempt {
            turn,
            lineage: self.lineage,
        })
    }

    /// Gives up the current attempt. The next [`Execution::prune`] removes its packs.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] where a manifest was not answered: it may exist.
    pub fn abandon(&mut self) -> Result<(), Error> {
        if self.pending.is_some() {
            let what = "a manifest was not answered: settle it first".to_owned();
            return Err(Error::Misuse(what));
        }
        self.open = None;
        Ok(())
    }

    /// Makes the manifest of the current attempt, from the packs of all workers. When this returns a manifest, the
    /// checkpoint exists, and the results that it covers may be shown.
    ///
    /// # Errors
    ///
    /// - [`Error::Store`]: whether the manifest exists is not known. Call [`Execution::settle`] until it returns something else.
    /// - [`Error::Overtaken`]: end, and show nothing.
    /// - [`Error::Missing`]: the previous entry does not exist: someone has removed it. End, and show nothing.
    /// - [`Error::Misuse`]: the packs are not of this attempt, or refer to packs that the last checkpoint does not name.
    pub fn commit(&mut self, checkpoint: Checkpoint, packs: &[Packed]) -> Result<&Manifest, Error> {
        self.in_force()?;
        let turn = match self.open {
            Some(turn) if self.pending.is_none() => turn,
            _ => {
                return Err(Error::Misuse(
                    "no attempt is under way: begin one".to_owned(),
                ));
            }
        };
        let number = self.newest + 1;
        let manifest = Manifest {
            number,
            turn,
            packs: self.collect(turn, packs)?,
            checkpoint,
        };
        // Entries later than the resumed one (`at=`) belong to a branch that is given up.
        let base = self.base.as_ref().map_or(0, |base| base.number);
        let mut kept: Vec<Kept> = self
            .kept
            .iter()
            .filter(|kept| kept.number <= base)
            .cloned()
            .collect();
        let room = self.keep.saturating_sub(1);
        kept.drain(..kept.len().saturating_sub(room));
        let entry = Entry::new(
            number,
            self.lineage,
            self.number,
            self.nonce,
            kept,
            Some(manifest),
        );
        let bytes = entry.write()?;
        self.pending = Some(Pending { bytes, entry });
        self.settle()
    }

    /// Returns the packs that a manifest of these names.
    fn collect(&self, turn: Turn, packs: &[Packed]) -> Result<Vec<Pack>, Error> {
        if packs.is_empty() {
            return Err(Error::Misuse(
                "a checkpoint has the pack of at least one worker".to_owned(),
            ));
        }
        let mut workers = BTreeSet::new();
        let mut references: BTreeMap<&str, BTreeMap<u32, u64>> = BTreeMap::new();
        for pack in packs {
            if pack.name != names::pack(turn, pack.worker) || !workers.insert(pack.worker) {
                let what = format!("{} is no pack of this attempt, or comes twice", pack.name);
                return Err(Error::Misuse(what));
            }
            for (name, sections) in &pack.references {
                references.entry(name).or_default().extend(sections);
            }
        }
        let pack = |(name, sections): (&str, BTreeMap<u32, u64>)| {
            let live = sections.values().sum();
            if let Some(own) = packs.iter().find(|pack| pack.name == name) {
                return Ok(Pack {
                    name: own.name.clone(),
                    size: own.size,
                    sum: own.sum,
                    stored: own.stored,
                    live,
                    worker: Some(own.worker),
                });
            }
            let earlier = self.base.as_ref().and_then(|base| base.pack(name));
            let earlier = earlier.cloned().ok_or_else(|| {
                Error::Misuse(format!(
                    "a section of {name} is referred to, which the last checkpoint does not name"
                ))
            })?;
            Ok(Pack {
                live,
                worker: None,
                ..earlier
            })
        };
        references.into_iter().map(pack).collect()
    }

    /// Tries again to create the manifest whose creation was not confirmed.
    ///
    /// # Errors
    ///
    /// As [`Execution::commit`].
    pub fn settle(&mut self) -> Result<&Manifest, Error> {
        self.in_force()?;
        let Some(Pending { bytes, entry }) = &self.pending else {
            return Err(Error::Misuse("no manifest waits for its answer".to_owned()));
        };
        let (number, name) = (entry.number, names::log(entry.number));
        match log::make(&*self.store, &name, bytes) {
            Ok(true) => {}
            Ok(false) => return Err(self.overtaken(name)),
            Err(error) => {
                if planted::has(Flaw::GivesUp) {
                    self.pending = None;
                    self.open = None;
                }
                return Err(error);
            }
        }
        let numbers = log::numbers(&*self.store)?;
        let last = numbers.last().copied();
        if let Some(last) = last.filter(|&last| last > number)
            && !planted::has(Flaw::NoList)
        {
            return Err(self.overtaken(names::log(last)));
        }
        if !numbers.contains(&self.newest) && !planted::has(Flaw::NoList) {
            // Only this execution could have removed it.
            return Err(Error::Missing {
                object: names::log(self.newest),
                by: name,
            });
        }
        let made = self.pending.take();
        if let Some(Pending { bytes, entry }) = made {
            self.kept.clone_from(&entry.kept);
            self.kept.extend(entry.as_kept(&bytes));
            self.base = entry.manifest;
            self.newest = number;
            self.open = None;
        }
        let none = || Error::Misuse("no manifest waits for its answer".to_owned());
        self.base.as_ref().ok_or_else(none)
    }

    /// Notes the newest number and removes objects that no kept manifest needs. To be called at the start,
    /// once the checkpoint was read, and after sinks have shown the results that a checkpoint covers. A
    /// failure leaves the checkpoint intact; the next call removes the rest.
    ///
    /// # Errors
    ///
    /// Errors of the store; [`Error::Overtaken`] where that is known.
    pub fn prune(&mut self) -> Result<usize, Error> {
        self.in_force()?;
        self.note_head()?;
        let mut garbage = Garbage {
            newest: self.newest,
            kept: &self.kept,
            until: Turn {
                execution: self.number,
                attempt: self.attempts,
            },
            open: self.open,
            own: true,
        };
        if planted::has(Flaw::PrunesAll) {
            garbage.newest = u64::MAX;
            garbage.until.execution = u64::MAX;
        }
        if planted::has(Flaw::PrunesPending) && self.pending.is_some() {
            garbage.open = None;
        }
        garbage.remove(&*self.store)
    }

    /// Puts the number of the newest entry into the head.
    pub(crate) fn note_head(&mut self) -> Result<(), Error> {
        if self.head < self.newest {
            let head = Head::new(self.lineage, self.newest).write()?;
            self.store.put(HEAD, &head)?;
            self.head = self.newest;
        }
        Ok(())
    }
}
