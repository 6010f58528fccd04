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
use std::io::Write;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use pointstamp_arrange::{Batch as Sorted, Kept, Origin, Units, join_frontiers, merged};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::cut::{Content, Piece, State};
use pointstamp_engine::error::{Error as EngineError, UserResult};
use pointstamp_engine::operator::{Lends, OperatorBuilder, Restored};
use pointstamp_engine::scope::Scope;
use pointstamp_order::{Antichain, Point, worker_of_hash};
use pointstamp_rows::{Cells, Row};

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

/// Updates as a piece.
struct Written<V, T>(u8, Arc<Sorted<Cells, V, T>>);

impl<V: pointstamp_arrange::Rows, T: ScopeTime> Content for Written<V, T> {
    fn write(&self, out: &mut dyn Write) -> UserResult<()> {
        let mut bytes = vec![VERSION, self.0];
        self.1.write(&mut bytes);
        Ok(out.write_all(&bytes)?)
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
    pub(crate) arrangement: Option<Kept<Cells, Cells, T>>,
    /// The frontier before which all is complete.
    pub(crate) upper: Antichain<T>,
    /// Updates that are not complete, in sorted runs.
    pub(crate) staged: Vec<Arc<Run<T>>>,
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
    pub(crate) fn take_arrangement(&mut self) -> (Kept<Cells, Cells, T>, bool) {
        let is_read = self.arrangement.is_some();
        let kept = self.arrangement.take().unwrap_or_else(|| Kept {
            is_read: false,
            since: Antichain::new(),
            upper: self.upper.clone(),
            batches: Vec::new(),
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

/// Makes pieces of an operator's state, and reuses the pieces of the last checkpoint.
pub(crate) struct Keeper<T> {
    here: usize,
    peers: usize,
    known: Vec<(Arc<Run<T>>, Piece)>,
}

impl<T: ScopeTime> Keeper<T> {
    pub(crate) fn new(scope: &Scope<Batch>) -> Self {
        let worker = scope.worker();
        Keeper {
            here: worker.index(),
            peers: worker.peers(),
            known: Vec::new(),
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
        let (since, batches) =
            arrangement.map_or_else(Default::default, |kept| (kept.since, kept.batches));
        let header = Header {
            worker: self.here,
            peers: self.peers,
            has,
            since,
            upper,
        };
        let mut pieces = vec![header.piece()];
        let before = std::mem::take(&mut self.known);
        let batches = batches.into_iter().map(|batch| (part::BATCH, batch));
        let staged = staged.into_iter().map(|run| (part::STAGED, run));
        for (part, batch) in batches.chain(staged) {
            let known = before.iter().find(|(other, _)| Arc::ptr_eq(other, &batch));
            let piece = match known {
                Some((_, piece)) => piece.clone(),
                None => Piece::new(Written(part, Arc::clone(&batch))),
            };
            pieces.push(piece.clone());
            self.known.push((batch, piece));
        }
        if let Some(pending) = pending.filter(|pending| !pending.is_empty()) {
            pieces.push(Piece::new(Written(part::PENDING, Arc::new(pending))));
        }
        State::Groups(pieces)
    }

    /// Reads the pieces of this worker, or of all workers of the checkpoint.
    pub(crate) fn read(&mut self, state: State) -> Result<Parts<T>, Error> {
        let damaged = |_| Error::Checkpoint("its updates");
        let (mut headers, mut batches, mut staged, mut pending) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for piece in state.into_pieces() {
            let bytes = piece.to_bytes();
            let bytes = bytes.map_err(|cause| Error::Engine(EngineError::Host { cause }))?;
            let [VERSION, part, bytes @ ..] = &bytes[..] else {
                return Err(Error::Checkpoint("its version"));
            };
            let mut rest = bytes;
            match *part {
                part::HEADER => {
                    headers.push(Header::<T>::read(bytes).ok_or(Error::Checkpoint("its header"))?);
                    continue;
                }
                part::PENDING => {
                    pending.push(Arc::new(Keys::<T>::read(&mut rest).map_err(damaged)?));
                }
                part::BATCH | part::STAGED => {
                    let batch = Arc::new(Run::<T>::read(&mut rest).map_err(damaged)?);
                    let into = if *part == part::BATCH {
                        &mut batches
                    } else {
                        &mut staged
                    };
                    into.push((batch, piece.clone()));
                }
                _ => return Err(Error::Checkpoint("its parts")),
            }
            if !rest.is_empty() {
                return Err(Error::Checkpoint("what comes behind its updates"));
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
            self.known = batches.iter().chain(&staged).cloned().collect();
        }
        let mut batches: Vec<_> = batches.into_iter().map(|(batch, _)| batch).collect();
        let mut staged: Vec<_> = staged.into_iter().map(|(batch, _)| batch).collect();
        if !own {
            let (here, peers, mut term) = (self.here, self.peers, Vec::new());
            let mut is_own = |key: Row<'_>| worker_of_hash(hash_of(key, &mut term), peers) == here;
            staged = staged.iter().map(|run| run.of_keys(&mut is_own)).collect();
            pending = pending
                .iter()
                .map(|keys| keys.of_keys(&mut is_own))
                .collect();
            if let Some(since) = &since {
                batches = batches.iter().map(|it| it.of_keys(&mut is_own)).collect();
                let dims = upper.iter().chain(since.iter()).next();
                let dims = dims.map_or(1, |time| time.point().dims());
                let whole = merged(batches, &least(dims), &upper, since);
                let whole = whole.map_err(|_| Error::Checkpoint("its counts"))?;
                batches = whole.into_iter().collect();
            }
        }
        // Keys of several workers differ.
        let none = Antichain::new();
        let pending = merged(pending, &none, &none, &none);
        let pending = pending.map_err(|_| Error::Checkpoint("its keys"))?;
        let arrangement = since.map(|since| Kept {
            is_read,
            since,
            upper: upper.clone(),
            batches,
        });
        Ok(Parts {
            arrangement,
            upper,
            staged,
            pending: pending.map(Arc::unwrap_or_clone),
        })
    }
}

/// Declares that an operator's state is in the arrangements that it reads. It is not stateless: with a
/// checkpoint that does not have the operator, its earlier results would be missing.
pub(crate) fn keeps_nothing_of_its_own(builder: &OperatorBuilder<Batch>) {
    builder.keeps(|| Ok(State::Groups(Vec::new())));
}

/// Whether an operator had processed the contents of its arrangements at the checkpoint from which the
/// dataflow resumes. A new operator begins with later input.
pub(crate) fn is_restored(builder: &OperatorBuilder<Batch>) -> bool {
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
