//! Position of an input of `main`, and the records that `main` sends again after a resumption.
//!
//! Owns [`Ledger`]: the number of records at the input's time, and a digest of all records. Invariant: while `main`
//! repeats the records from before the checkpoint, none of them is sent, and new checkpoints get the position of the
//! old one.

use std::cell::Cell;
use std::rc::Rc;

use pointstamp_columnar::hash::{hash_bytes, hash_none, hash_tuple, hash_utf8};
use pointstamp_engine::cut::State;
use pointstamp_engine::error::Error;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::operators::Standing;
use pointstamp_order::{PartialOrder, Point};
use pointstamp_rows::Row;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::batch::{Batch, MAX_BATCH};
use crate::errors::{CheckpointError, IntoException};
use crate::hash::route_hash;
use crate::tools::Tools;

/// The position up to which `main` repeats records.
struct Until {
    time: Point,
    standing: Standing,
    /// Compares the digests of all workers before the checkpoint and now, given this worker's shares.
    compare: Box<dyn Fn(u64, u64)>,
}

/// The records that were given to an input.
pub(crate) struct Ledger {
    time: Point,
    sent: u64,
    digest: u64,
    /// Whether the digest is that of this worker's records.
    is_own: bool,
    until: Option<Until>,
    /// Whether it was closed where the repetition ends.
    was_closed: bool,
    /// The standing for checkpoints.
    reported: Rc<Cell<Standing>>,
}

impl Ledger {
    /// Creates the ledger of an input whose times begin here.
    pub(crate) fn new(time: Point, reported: Rc<Cell<Standing>>) -> Self {
        Ledger {
            time,
            sent: 0,
            digest: 0,
            is_own: true,
            until: None,
            was_closed: false,
            reported,
        }
    }

    /// Resumes from a checkpoint: `main` repeats its records where there is a `compare`, or sends only the rest.
    pub(crate) fn resume(
        &mut self,
        time: Point,
        standing: Standing,
        compare: Option<Box<dyn Fn(u64, u64)>>,
    ) -> PyResult<()> {
        self.reported.set(standing);
        self.was_closed = standing.is_closed;
        if let Some(compare) = compare {
            self.until = Some(Until {
                time,
                standing,
                compare,
            });
            return self.look();
        }
        (self.time, self.sent) = (time, standing.sent);
        (self.digest, self.is_own) = (standing.digest, standing.is_own);
        Ok(())
    }

    /// The time at which `main` is, while it repeats.
    pub(crate) fn repeated(&self) -> Option<&Point> {
        self.until.is_some().then_some(&self.time)
    }

    /// The time and how many records were given at it.
    pub(crate) fn position(&self) -> (Point, u64) {
        match &self.until {
            Some(until) => (until.time.clone(), until.standing.sent),
            None => (self.time.clone(), self.sent),
        }
    }

    /// Notes a record by its hash; whether it is to be sent.
    pub(crate) fn note(&mut self, hash: u64) -> PyResult<bool> {
        let coords = self.time.coords();
        let count = coords.len() + 1;
        let parts = (0..count).map(|at| Ok::<_, PyErr>(coords.get(at).copied().unwrap_or(hash)));
        self.digest = self.digest.wrapping_add(mix(hash_tuple(parts)?));
        self.sent += 1;
        if self.until.is_some() {
            self.look()?;
            return Ok(false);
        }
        if self.was_closed {
            return Err(CheckpointError::new_err(format!(
                "was closed at the checkpoint, and main sends more than before at time {}",
                self.time
            )));
        }
        self.tell();
        Ok(true)
    }

    /// Moves to a later time; whether the input is to move, too.
    pub(crate) fn move_to(&mut self, time: &Point) -> PyResult<bool> {
        if !self.time.less_equal(time) {
            let (from, to) = (self.time.clone(), time.clone());
            return Err(Error::TimeGoesBack { from, to }.into_exception());
        }
        if *time == self.time {
            return Ok(self.until.is_none());
        }
        if let Some(until) = &self.until
            && !time.less_equal(&until.time)
        {
            return Err(CheckpointError::new_err(format!(
                "had been sent {} at time {}, and main goes on to time {time} after it has sent {} at time {}",
                records(until.standing.sent),
                until.time,
                records(self.sent),
                self.time
            )));
        }
        self.time = time.clone();
        self.sent = 0;
        if self.until.is_none() {
            self.tell();
            return Ok(true);
        }
        self.look()?;
        Ok(self.until.is_none())
    }

    /// Updates the standing for checkpoints.
    fn tell(&self) {
        self.reported.set(Standing {
            sent: self.sent,
            digest: self.digest,
            is_own: self.is_own,
            is_closed: self.was_closed,
        });
    }

    /// Ends the repetition where the position is reached.
    fn look(&mut self) -> PyResult<()> {
        let Some(until) = &self.until else {
            return Ok(());
        };
        let standing = until.standing;
        if until.time != self.time || standing.sent != self.sent {
            return Ok(());
        }
        if !standing.is_own {
            (until.compare)(standing.digest, self.digest);
        } else if standing.digest != self.digest {
            return Err(CheckpointError::new_err(format!(
                "was sent something else up to time {} than before the checkpoint, by as many records at that time",
                until.time
            )));
        }
        self.until = None;
        self.tell();
        Ok(())
    }
}

fn records(count: u64) -> String {
    match count {
        1 => "1 record".to_owned(),
        count => format!("{count} records"),
    }
}

/// A hash of a record that depends on its contents only, as far as they are plain data: of other objects only the type counts.
pub(crate) fn digest_of(record: &Bound<'_, PyAny>) -> u64 {
    deep(record, 0)
}

fn deep(record: &Bound<'_, PyAny>, depth: usize) -> u64 {
    let inner = |item: Bound<'_, PyAny>| Ok::<_, PyErr>(deep(&item, depth + 1));
    if depth > 50 {
        return hash_none();
    }
    if let Ok(items) = record.cast_exact::<PyTuple>() {
        return hash_tuple(items.iter().map(inner)).unwrap_or_default();
    }
    if let Ok(items) = record.cast_exact::<PyList>() {
        let hashes: Vec<_> = items.iter().map(inner).collect();
        return mix(hash_tuple(hashes.into_iter()).unwrap_or_default());
    }
    if let Ok(items) = record.cast_exact::<PyDict>() {
        let hashes = items.iter().map(|(key, value)| {
            let pair = [inner(key), inner(value)];
            mix(hash_tuple(pair.into_iter()).unwrap_or_default())
        });
        return hashes.fold(1, u64::wrapping_add);
    }
    route_hash(record).unwrap_or_else(|_| {
        let name = record.get_type().fully_qualified_name();
        name.map_or_else(
            |_| hash_none(),
            |name| hash_utf8(name.to_string().as_bytes()),
        )
    })
}

/// The digest of some records at a time, to be added to others.
#[pyfunction]
pub(crate) fn digest(time: &Bound<'_, PyAny>, records: &Bound<'_, PyAny>) -> PyResult<u64> {
    let at = deep(time, 0);
    let mut total = 0_u64;
    for record in records.try_iter()? {
        let pair = [Ok::<_, PyErr>(at), Ok(deep(&record?, 0))];
        total = total.wrapping_add(mix(hash_tuple(pair.into_iter())?));
    }
    Ok(total)
}

/// Mixes the bits of a hash, so that sums of them differ.
fn mix(hash: u64) -> u64 {
    hash_tuple([Ok::<_, std::convert::Infallible>(hash)].into_iter()).unwrap_or_default()
}

/// The hash of an update of a collection, by its row.
pub(crate) fn digest_of_row(row: Row<'_>, diff: i64) -> u64 {
    let mut bytes = Vec::new();
    row.put(&mut bytes);
    bytes.extend_from_slice(&diff.to_le_bytes());
    hash_bytes(&bytes)
}

/// The items that an operator has taken of an iterable.
#[derive(Default)]
pub(crate) struct Given {
    /// The number of records and their digest; `None` where no checkpoints are made.
    taken: Option<Rc<Cell<(u64, u64)>>>,
    /// The items that were taken before the checkpoint, until they were skipped.
    before: Option<(u64, u64)>,
    name: String,
}

impl Given {
    /// Registers the count as state for checkpoints, and resumes from one.
    pub(crate) fn keep(builder: &OperatorBuilder<Batch>) -> Self {
        let taken = Rc::new(Cell::new((0_u64, 0_u64)));
        let before = builder.restored().and_then(|restored| {
            let [piece] = restored.state.pieces() else {
                return None;
            };
            let bytes = piece.to_bytes().ok()?;
            let (count, digest) = bytes.split_at_checked(8)?;
            let count = u64::from_le_bytes(count.try_into().ok()?);
            Some((count, u64::from_le_bytes(digest.try_into().ok()?)))
        });
        let kept = Rc::clone(&taken);
        taken.set(before.unwrap_or_default());
        builder.keeps(move || {
            let (count, digest) = kept.get();
            let bytes = [count.to_le_bytes(), digest.to_le_bytes()].concat();
            Ok(State::Workers(vec![bytes.into()]))
        });
        Given {
            taken: Some(taken),
            before,
            name: builder.name(),
        }
    }

    /// Skips the items that were taken before the checkpoint.
    pub(crate) fn skip(&mut self, items: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some((count, digest)) = self.before.take() else {
            return Ok(());
        };
        let tools = Tools::get(items.py())?;
        let (mut left, mut now) = (usize::try_from(count).unwrap_or(usize::MAX), 0_u64);
        while left > 0 {
            let list = tools.take(items, left.min(MAX_BATCH))?;
            if list.is_empty() {
                break;
            }
            left -= list.len();
            now = digest_all(&list).wrapping_add(now);
        }
        if left > 0 || now != digest {
            return Err(CheckpointError::new_err(format!(
                "the iterable of '{}' gave other records than before the checkpoint, which had {}: after a resumption it gives \
                 the same again. Let it not depend on a clock, random numbers or changed files",
                self.name,
                records(count)
            )));
        }
        Ok(())
    }

    /// Notes records that are taken.
    pub(crate) fn note(&self, list: &Bound<'_, PyList>) {
        if let Some(taken) = &self.taken {
            let (count, digest) = taken.get();
            let now = digest_all(list);
            taken.set((count + list.len() as u64, digest.wrapping_add(now)));
        }
    }
}

fn digest_all(list: &Bound<'_, PyList>) -> u64 {
    let hashes = list.iter().map(|record| mix(digest_of(&record)));
    hashes.fold(0, u64::wrapping_add)
}
