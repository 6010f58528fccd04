//! The state that checkpoints have of operators that keep updates: pieces, of which unchanged ones are the same as at the checkpoint before.
//!
//! A piece begins with the version of the format and with its kind; the rest is little-endian:
//!
//! ```text
//! u8 version, 1 | u8 part
//! part 0, the header: u64 each: worker, workers, what there is of an arrangement (0 nothing, 1 all, 2 all for no reader), number of times in since, in upper;
//!                     for each time of both: number of coordinates, coordinates
//! part 1, a batch of the arrangement | 2, updates that are not complete | 3, keys to be reduced later: as `pointstamp_arrange` writes batches
//! ```
//!
//! Batches never change, so that one is written by the thread of the checkpoint, once. The pieces of several workers become one
//! batch: those of its keys that this worker has now, by [key group](pointstamp_order::group_of).

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use parking_lot::Mutex;
use pointstamp_arrange::{
    Batch as Sorted, BatchReader, Contents, Error as KernelError, Numbers, Origin, Rows, Storage,
    Units, join_frontiers, merged,
};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::cut::{Content, Piece, State};
use pointstamp_engine::error::{Error as EngineError, UserResult};
use pointstamp_engine::operator::{Lends, OperatorBuilder, Restored};
use pointstamp_engine::scope::Scope;
use pointstamp_order::{Antichain, Point, worker_of_hash};
use pointstamp_rows::{Cells, Row};

use super::memory::caused;
use super::route::hash_of;
use super::time::ScopeTime;
use crate::Error;
use crate::batch::Batch;

const VERSION: u8 = 1;

mod part {
    pub(super) const HEADER: u8 = 0;
    pub(super) const BATCH: u8 = 1;
    pub(super) const STAGED: u8 = 2;
    pub(super) const PENDING: u8 = 3;
}

/// Sorted updates of pairs of rows.
pub(crate) type Run<T> = Sorted<Cells, Cells, T>;

/// Keys, each with its times.
pub(crate) type Keys<T> = Sorted<Cells, Units, T>;

/// Updates as a piece. They are let go once a checkpoint has them: a batch may be merged, and its piece stays.
struct Written<V, T>(u8, Mutex<Option<Sorted<Cells, V, T>>>);

impl<V: Rows, T: ScopeTime> Written<V, T> {
    fn piece(part: u8, updates: Sorted<Cells, V, T>) -> Piece {
        Piece::new(Written(part, Mutex::new(Some(updates))))
    }
}

impl<V: Rows, T: ScopeTime> Content for Written<V, T> {
    fn write(&self, out: &mut dyn Write) -> UserResult<()> {
        let updates = self.1.lock().clone();
        let updates = updates.ok_or(Error::Checkpoint("the updates that it has written"))?;
        out.write_all(&[VERSION, self.0])?;
        updates.write(out)
    }

    fn settle(&self) {
        let updates = self.1.lock().take();
        drop(updates); // after the lock
    }
}

/// A piece that is being read, as its bytes come.
struct Reading<T> {
    storage: Option<Arc<dyn Storage>>,
    /// The version and the part, and the bytes of a header.
    bytes: Vec<u8>,
    updates: Option<BatchReader<Cells, Cells, T>>,
    keys: Option<BatchReader<Cells, Units, T>>,
    failed: Option<Error>,
}

/// A piece that was read.
enum Read<T> {
    Header(Header<T>),
    Batch(Run<T>),
    Staged(Run<T>),
    Pending(Keys<T>),
}

impl<T: ScopeTime> Reading<T> {
    /// Reads a piece, which it stores where the storage asks for it.
    fn read(piece: &Piece, storage: Option<&Arc<dyn Storage>>) -> Result<Read<T>, Error> {
        let mut reading = Reading {
            storage: storage.cloned(),
            bytes: Vec::new(),
            updates: None,
            keys: None,
            failed: None,
        };
        let written = piece.write(&mut reading);
        if let Some(failed) = reading.failed {
            return Err(failed);
        }
        written.map_err(|cause| Error::Engine(EngineError::Host { cause }))?;
        let [VERSION, part, bytes @ ..] = &reading.bytes[..] else {
            return Err(Error::Checkpoint("its version"));
        };
        let part = *part;
        if let Some(keys) = reading.keys {
            return Ok(Read::Pending(keys.finish().map_err(unreadable)?));
        }
        if let Some(updates) = reading.updates {
            let batch = updates.finish().map_err(unreadable)?;
            let is_staged = part == part::STAGED;
            return Ok(if is_staged {
                Read::Staged(batch)
            } else {
                Read::Batch(batch)
            });
        }
        let header = Header::read(bytes).ok_or(Error::Checkpoint("its header"))?;
        Ok(Read::Header(header))
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while let Some((first, rest)) = bytes.split_first()
            && self.bytes.len() < 2
        {
            self.bytes.push(*first);
            bytes = rest;
            if let [version, part] = self.bytes[..] {
                if version != VERSION {
                    return Err(Error::Checkpoint("its version"));
                }
                match part {
                    part::HEADER => {}
                    part::BATCH | part::STAGED => {
                        self.updates = Some(BatchReader::new(self.storage.clone()));
                    }
                    part::PENDING => self.keys = Some(BatchReader::new(None)),
                    _ => return Err(Error::Checkpoint("its parts")),
                }
            }
        }
        match (&mut self.updates, &mut self.keys) {
            (Some(updates), _) => updates.push(bytes).map_err(unreadable),
            (_, Some(keys)) => keys.push(bytes).map_err(unreadable),
            _ => {
                self.bytes.extend_from_slice(bytes);
                Ok(())
            }
        }
    }
}

impl<T: ScopeTime> Write for Reading<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take(bytes).map_err(|error| {
            self.failed = Some(error);
            io::Error::other("the piece cannot be read")
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The error of restoring batches.
pub(crate) fn unreadable(error: KernelError) -> Error {
    match error {
        KernelError::Damaged(_) => Error::Checkpoint("its updates"),
        KernelError::Overflow => Error::Checkpoint("its counts"),
        error => Error::Engine(EngineError::Host {
            cause: caused(error),
        }),
    }
}

/// The origin of the pieces, and the frontiers of their contents.
struct Header<T> {
    worker: usize,
    peers: usize,
    has: Has,
    since: Antichain<T>,
    upper: Antichain<T>,
}

/// The extent of an arrangement's contents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    /// Nothing: updates came, and nobody reads it.
    Lost = 0,
    /// All, and somebody reads it.
    Read = 1,
    /// All, which is nothing: nobody reads it.
    Unread = 2,
}

impl Has {
    fn read(word: usize) -> Option<Self> {
        let all = [Has::Lost, Has::Read, Has::Unread];
        all.into_iter().find(|has| *has as usize == word)
    }
}

impl<T: ScopeTime> Header<T> {
    fn piece(&self) -> Piece {
        let count = |of: &Antichain<T>| of.iter().count() as u64;
        let mut words = vec![
            self.worker as u64,
            self.peers as u64,
            self.has as u64,
            count(&self.since),
            count(&self.upper),
        ];
        for time in self.since.iter().chain(self.upper.iter()) {
            let mut coords = Vec::new();
            time.write(&mut coords);
            words.push(coords.len() as u64);
            words.extend(coords);
        }
        let bytes = words.into_iter().flat_map(u64::to_le_bytes);
        let bytes: Vec<u8> = [VERSION, part::HEADER].into_iter().chain(bytes).collect();
        Piece::from(bytes)
    }

    fn read(mut bytes: &[u8]) -> Option<Self> {
        let mut word = || Some(u64::from_le_bytes(bytes.split_off(..8)?.try_into().ok()?));
        let mut size = || usize::try_from(word()?).ok();
        let (worker, peers, has) = (size()?, size()?, Has::read(size()?)?);
        let counts = [size()?, size()?];
        let mut frontier = |count: usize| {
            let mut times = Antichain::new();
            for _ in 0..count {
                let coords: Option<Vec<u64>> = (0..size()?).map(|_| Some(size()? as u64)).collect();
                times.insert(T::read(&coords?)?);
            }
            Some(times)
        };
        let (since, upper) = (frontier(counts[0])?, frontier(counts[1])?);
        bytes.is_empty().then_some(Header {
            worker,
            peers,
            has,
            since,
            upper,
        })
    }
}

/// The state of an operator, as a checkpoint takes it.
pub(crate) struct Parts<T> {
    /// An arrangement that is read.
    pub(crate) arrangement: Option<Contents<Cells, Cells, T>>,
    /// The frontier before which all is complete.
    pub(crate) upper: Antichain<T>,
    /// Updates that are not complete, in sorted runs.
    pub(crate) staged: Vec<Run<T>>,
    /// Keys to be reduced later.
    pub(crate) pending: Option<Keys<T>>,
}

impl<T: ScopeTime> Parts<T> {
    /// No updates before a frontier, and none after.
    fn none(upper: Antichain<T>) -> Self {
        Parts {
            arrangement: None,
            upper,
            staged: Vec::new(),
            pending: None,
        }
    }

    /// Takes the arrangement, and whether it was read; one that was not is empty, and has no readers.
    pub(crate) fn take_arrangement(&mut self) -> (Contents<Cells, Cells, T>, bool) {
        let is_read = self.arrangement.is_some();
        let kept = self.arrangement.take().unwrap_or_else(|| Contents {
            is_read: false,
            since: Antichain::new(),
            upper: self.upper.clone(),
            batches: Vec::new(),
            numbers: Numbers::default(),
        });
        (kept, is_read)
    }
}

/// The state of an operator at the checkpoint from which its dataflow resumes.
pub(crate) struct Beginning<T> {
    pub(crate) parts: Parts<T>,
    /// The capabilities that it held.
    pub(crate) held: Restored,
    /// Whether it had ended: it does not run, and `parts` is state that others read.
    pub(crate) has_ended: bool,
}

impl<T: ScopeTime> Beginning<T> {
    /// Returns the state of an operator; `None` where it is new.
    pub(crate) fn of(
        builder: &OperatorBuilder<Batch>,
        keeper: &mut Keeper<T>,
    ) -> Result<Option<Self>, Error> {
        let has_ended = builder.has_ended();
        let Some(mut held) = builder.restored() else {
            // It may have ended with nothing that others read.
            return Ok(has_ended.then(|| Beginning {
                parts: Parts::none(Antichain::new()),
                held: Restored::default(),
                has_ended,
            }));
        };
        let parts = match std::mem::replace(&mut held.state, State::None) {
            State::None => return Ok(None), // the program says that it is new
            state => keeper.read(state)?,
        };
        Ok(Some(Beginning {
            parts,
            held,
            has_ended,
        }))
    }
}

/// The frontier at which times of so many coordinates begin.
pub(crate) fn least<T: ScopeTime>(dims: usize) -> Antichain<T> {
    Antichain::from_elem(T::of(&Point::minimum(dims)))
}

/// The maximum number of parts of a batch.
const MANY: usize = 32;

/// A piece that the last checkpoint has of a batch, or of a part of one.
struct KnownBatch {
    /// The last number of the batch.
    end: u64,
    /// The number of updates.
    len: usize,
    piece: Piece,
}

/// Makes pieces of an operator's state, and reuses the pieces of the last checkpoint.
pub(crate) struct Keeper<T> {
    here: usize,
    peers: usize,
    /// The pieces of the batches of the last checkpoint, oldest first.
    batches: Vec<KnownBatch>,
    /// The number of the last batch of the arrangement then.
    through: u64,
    /// The pieces of its updates that were not complete.
    staged: Vec<(Run<T>, Piece)>,
    /// The place for batches of a checkpoint that memory has no room for.
    storage: Option<Arc<dyn Storage>>,
}

impl<T: ScopeTime> Keeper<T> {
    pub(crate) fn new(scope: &Scope<Batch>, storage: Option<Arc<dyn Storage>>) -> Self {
        let worker = scope.worker();
        Keeper {
            here: worker.index(),
            peers: worker.peers(),
            batches: Vec::new(),
            through: 0,
            staged: Vec::new(),
            storage,
        }
    }

    /// Makes pieces.
    pub(crate) fn take(&mut self, parts: Parts<T>) -> State {
        let Parts {
            arrangement,
            upper,
            staged,
            pending,
        } = parts;
        let has = match &arrangement {
            None => Has::Lost,
            Some(kept) if kept.is_read => Has::Read,
            Some(_) => Has::Unread,
        };
        let (since, batches, numbers) = arrangement.map_or_else(Default::default, |kept| {
            (kept.since, kept.batches, kept.numbers)
        });
        let header = Header {
            worker: self.here,
            peers: self.peers,
            has,
            since,
            upper,
        };
        let mut pieces = vec![header.piece()];
        self.take_batches(batches, &numbers);
        pieces.extend(self.batches.iter().map(|batch| batch.piece.clone()));
        let before = std::mem::take(&mut self.staged);
        for run in staged {
            let known = before.iter().find(|(other, _)| other.is_same(&run));
            let piece = match known {
                Some((_, piece)) => piece.clone(),
                None => Written::piece(part::STAGED, run.clone()),
            };
            pieces.push(piece.clone());
            self.staged.push((run, piece));
        }
        if let Some(pending) = pending.filter(|pending| !pending.is_empty()) {
            pieces.push(Written::piece(part::PENDING, pending));
        }
        State::Groups(pieces)
    }

    /// Makes pieces of batches. One whose parts the last checkpoint has is named by these, unless they are many, or have twice its updates: so what
    /// is merged is not written again.
    fn take_batches(&mut self, batches: Vec<Run<T>>, numbers: &Numbers) {
        let through = std::mem::replace(&mut self.through, numbers.last);
        let mut known = std::mem::take(&mut self.batches).into_iter().peekable();
        for (batch, &end) in batches.into_iter().zip(&numbers.ends) {
            let parts = std::iter::from_fn(|| known.next_if(|part| part.end <= end));
            let parts: Vec<_> = parts.collect();
            let len: usize = parts.iter().map(|part| part.len).sum();
            // A later number means updates that no piece has.
            let is_known = end <= through && !parts.is_empty();
            if is_known && parts.len() <= MANY && len <= 2 * batch.len() {
                self.batches.extend(parts);
            } else {
                self.batches.push(KnownBatch {
                    end,
                    len: batch.len(),
                    piece: Written::piece(part::BATCH, batch),
                });
            }
        }
    }

    /// Reads the pieces of this worker, or of all workers of the checkpoint.
    pub(crate) fn read(&mut self, state: State) -> Result<Parts<T>, Error> {
        let (mut headers, mut batches, mut staged, mut pending) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for piece in state.into_pieces() {
            match Reading::<T>::read(&piece, self.storage.as_ref())? {
                Read::Header(header) => headers.push(header),
                Read::Batch(batch) => batches.push((batch, piece)),
                Read::Staged(batch) => staged.push((batch, piece)),
                Read::Pending(keys) => pending.push(keys),
            }
        }
        let Some(first) = headers.first() else {
            return Err(Error::Checkpoint("its header is missing"));
        };
        let upper = first.upper.clone();
        if headers.iter().any(|header| header.upper != upper) {
            return Err(Error::Checkpoint("its workers are at different times"));
        }
        let any = |has| headers.iter().any(|header| header.has == has);
        if any(Has::Lost) && any(Has::Read) {
            return Err(Error::ReadBySome(first.peers));
        }
        let is_read = any(Has::Read);
        let readers = headers
            .iter()
            .filter(|header| is_read == (header.has == Has::Read));
        let since = readers.map(|header| header.since.clone());
        let since = since.reduce(|a, b| join_frontiers(&a, &b));
        let since = since.filter(|_| !any(Has::Lost));
        let own =
            matches!(&headers[..], [only] if (only.worker, only.peers) == (self.here, self.peers));
        if own {
            // The arrangement numbers the batches that have updates, from 1.
            let batches = batches.iter().filter(|(batch, _)| !batch.is_empty());
            let known = (1..).zip(batches).map(|(end, (batch, piece))| KnownBatch {
                end,
                len: batch.len(),
                piece: piece.clone(),
            });
            self.batches = known.collect();
            self.through = self.batches.len() as u64;
            self.staged.clone_from(&staged);
        }
        let mut batches: Vec<_> = batches.into_iter().map(|(batch, _)| batch).collect();
        let mut staged: Vec<_> = staged.into_iter().map(|(batch, _)| batch).collect();
        if !own {
            let (here, peers, mut term) = (self.here, self.peers, Vec::new());
            let mut is_own = |key: Row<'_>| worker_of_hash(hash_of(key, &mut term), peers) == here;
            let storage = self.storage.as_ref();
            let own = staged.iter().map(|run| run.of_keys(&mut is_own, storage));
            staged = own.collect::<Result<_, _>>().map_err(unreadable)?;
            let own = pending.iter().map(|keys| keys.of_keys(&mut is_own, None));
            pending = own.collect::<Result<_, _>>().map_err(unreadable)?;
            if let Some(since) = &since {
                let own = batches.iter().map(|it| it.of_keys(&mut is_own, storage));
                batches = own.collect::<Result<_, _>>().map_err(unreadable)?;
                let dims = upper.iter().chain(since.iter()).next();
                let dims = dims.map_or(1, |time| time.point().dims());
                let whole = merged(batches, &least(dims), &upper, since, storage);
                batches = whole.map_err(unreadable)?.into_iter().collect();
            }
        }
        // Keys of several workers differ.
        let none = Antichain::new();
        let pending = merged(pending, &none, &none, &none, None);
        let pending = pending.map_err(unreadable)?;
        let arrangement = since.map(|since| Contents {
            is_read,
            since,
            upper: upper.clone(),
            batches,
            numbers: Numbers::default(),
        });
        Ok(Parts {
            arrangement,
            upper,
            staged,
            pending,
        })
    }
}

/// Declares that an operator's state is in the arrangements that it reads. It is not stateless: with a
/// checkpoint that does not have the operator, its earlier results would be missing.
///
/// Returns whether it had processed the contents of its arrangements at the checkpoint from which the dataflow
/// resumes. A new operator begins with later input.
pub(crate) fn keeps_nothing_of_its_own(builder: &OperatorBuilder<Batch>) -> bool {
    builder.keeps(|| Ok(State::Groups(Vec::new())));
    builder.restored().is_some()
}

/// Returns the capabilities for the least times, from those that an operator held.
pub(crate) fn capabilities<T: ScopeTime>(
    restored: &mut Restored,
    times: &Antichain<T>,
) -> Result<Vec<Capability>, Error> {
    let held = times
        .iter()
        .map(|time| restored.capability(0, &time.point()));
    let held: Option<Vec<_>> = held.collect();
    held.ok_or(Error::Checkpoint("the times that it held"))
}

/// The arrangement of an operator, which others read when it has ended.
pub(crate) struct LentArrangement<T: ScopeTime, O> {
    pub(crate) origin: Origin<Cells, Cells, T>,
    pub(crate) keeper: Rc<RefCell<Keeper<T>>>,
    /// A reference to the operator's own state: while it exists, readers may come.
    pub(crate) operator: Weak<O>,
}

impl<T: ScopeTime, O> Lends for LentArrangement<T, O> {
    fn is_read(&self) -> bool {
        self.operator.strong_count() > 0 || self.origin.is_read()
    }

    fn take(&mut self) -> UserResult<State> {
        let arrangement = self.origin.kept();
        let upper = arrangement.as_ref();
        Ok(self.keeper.borrow_mut().take(Parts {
            upper: upper.map_or_else(Antichain::new, |kept| kept.upper.clone()),
            arrangement,
            staged: Vec::new(),
            pending: None,
        }))
    }
}
