//! The state of operators in checkpoints: batches, and numbers that identify them.
//!
//! A piece of state is a list of [`Entry`]s. Its form, little-endian: the number of entries as a u32; of each the number of its numbers
//! as a u32 and these as u64, the number of its batches as a u32, and of each batch its length as a u64 and the bytes that it travels as.

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use pointstamp_channels::Encoder;
use pointstamp_columnar::partition::partition;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::cut::{Content as PieceContent, Piece, State};
use pointstamp_engine::error::{BoxError, UserResult};
use pointstamp_engine::operator::{OperatorBuilder, Restored as EngineRestored};
use pointstamp_engine::payload::Payload;
use pointstamp_order::Point;
use pointstamp_spill::Account;

use crate::Error;
use crate::batch::{Batch, Content};

/// Batches, and numbers that identify them: often the coordinates of a time.
#[derive(Clone)]
pub struct Entry {
    /// The numbers.
    pub numbers: Vec<u64>,
    /// The batches.
    pub batches: Vec<Batch>,
}

impl Entry {
    /// Makes an entry of batches of one kind.
    pub fn new<C: Content>(numbers: Vec<u64>, batches: impl IntoIterator<Item = C>) -> Self {
        let batches = batches.into_iter().map(Content::into_batch).collect();
        Entry { numbers, batches }
    }

    /// Makes an entry of batches of one kind at a time: its numbers are `first`, and the coordinates of the time.
    pub fn at<C: Content>(first: u64, time: &Point, batches: impl IntoIterator<Item = C>) -> Self {
        let coords = time.coords().iter().copied();
        Entry::new(std::iter::once(first).chain(coords).collect(), batches)
    }

    /// Returns the batches as contents of one kind.
    ///
    /// # Errors
    ///
    /// [`Error::WrongKind`] for a batch of another kind.
    pub fn contents<C: Content>(self) -> Result<Vec<C>, Error> {
        self.batches.into_iter().map(C::from_batch).collect()
    }

    /// Returns the time that the numbers from this one on are.
    pub fn time(&self, from: usize) -> Point {
        Point::new(self.numbers.get(from..).unwrap_or_default())
    }
}

/// The contents of a piece.
pub(crate) struct Entries(pub(crate) Vec<Entry>);

impl PieceContent for Entries {
    fn write(&self, out: &mut dyn Write) -> UserResult<()> {
        let count = |count: usize| u32::try_from(count).map(u32::to_le_bytes);
        out.write_all(&count(self.0.len())?)?;
        for Entry { numbers, batches } in &self.0 {
            out.write_all(&count(numbers.len())?)?;
            for number in numbers {
                out.write_all(&number.to_le_bytes())?;
            }
            out.write_all(&count(batches.len())?)?;
            for batch in batches {
                let mut encoder = Encoder::new();
                batch.encode(&mut encoder)?;
                out.write_all(&(encoder.len() as u64).to_le_bytes())?;
                for segment in encoder.finish() {
                    out.write_all(&segment)?;
                }
            }
        }
        Ok(())
    }
}

/// Entries of one checkpoint, which are freed when it has them. Where memory is bounded they count until then.
pub(crate) struct Taken {
    entries: Mutex<Vec<Entry>>,
    account: Option<Arc<Account>>,
}

impl Taken {
    /// Makes a piece of entries.
    pub(crate) fn piece(entries: Vec<Entry>) -> Piece {
        Piece::new(Taken {
            entries: Mutex::new(entries),
            account: None,
        })
    }

    /// Makes a piece of entries, which take so many bytes of memory beside an operator's state.
    pub(crate) fn counted(entries: Vec<Entry>, account: Arc<Account>, bytes: usize) -> Piece {
        account.set(bytes, 0);
        Piece::new(Taken {
            entries: Mutex::new(entries),
            account: Some(account),
        })
    }
}

impl PieceContent for Taken {
    fn write(&self, out: &mut dyn Write) -> UserResult<()> {
        let entries = self.entries.lock().clone();
        Entries(entries).write(out)
    }

    fn settle(&self) {
        self.entries.lock().clear();
        if let Some(account) = &self.account {
            account.set(0, 0);
        }
    }
}

/// Reads the entries of a piece.
pub(crate) fn entries_of(piece: &Piece) -> UserResult<Vec<Entry>> {
    read_entries(piece.to_bytes()?)
}

/// Reads entries from their form as bytes.
pub(crate) fn read_entries(mut bytes: Bytes) -> UserResult<Vec<Entry>> {
    let mut entries = Vec::new();
    for _ in 0..count(&mut bytes)? {
        let mut numbers = Vec::new();
        for _ in 0..count(&mut bytes)? {
            numbers.push(bytes.try_get_u64_le()?);
        }
        let mut batches = Vec::new();
        for _ in 0..count(&mut bytes)? {
            let len = usize::try_from(bytes.try_get_u64_le()?)?;
            if len > bytes.remaining() {
                return Err(Error::NotABatch.into());
            }
            batches.push(Batch::decode(bytes.split_to(len))?);
        }
        entries.push(Entry { numbers, batches });
    }
    Ok(entries)
}

fn count(bytes: &mut Bytes) -> Result<u32, BoxError> {
    Ok(bytes.try_get_u32_le()?)
}

/// Reads the entries of an operator's state.
///
/// # Errors
///
/// For a piece that no operator of this crate wrote.
pub(crate) fn entries_of_state(state: &State) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    for piece in state.pieces() {
        entries.extend(entries_of(piece).map_err(Error::State)?);
    }
    Ok(entries)
}

/// The division of state among workers. See [`State`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// Each worker has its own: there must be as many as before.
    Workers,
    /// By the key of a router: every worker takes the records that the router would send to it.
    Groups,
    /// Any worker can have any entry.
    Parts,
}

/// Has checkpoints take the state of an operator, as a list of entries.
pub fn keep(
    builder: &OperatorBuilder<Batch>,
    division: Division,
    mut take: impl FnMut() -> UserResult<Vec<Entry>> + 'static,
) {
    keep_pieces(builder, division, move || Ok(vec![Taken::piece(take()?)]));
}

/// Has checkpoints take the state of an operator, as pieces with lists of entries.
pub(crate) fn keep_pieces(
    builder: &OperatorBuilder<Batch>,
    division: Division,
    mut take: impl FnMut() -> UserResult<Vec<Piece>> + 'static,
) {
    builder.keeps(move || {
        let pieces = take()?;
        Ok(match division {
            Division::Workers => State::Workers(pieces),
            Division::Groups => State::Groups(pieces),
            Division::Parts => State::Parts(pieces),
        })
    });
}

/// The state of an operator in the checkpoint from which the computation resumes.
pub struct Restored {
    engine: EngineRestored,
    index: usize,
    peers: usize,
}

impl Restored {
    /// Returns the state of an operator, and its entries: those of all workers where state is by key and
    /// their number has changed. To be called once, after the outputs were added.
    ///
    /// # Errors
    ///
    /// For a piece that no operator of this crate wrote.
    pub fn of(builder: &OperatorBuilder<Batch>) -> Result<Option<(Self, Vec<Entry>)>, Error> {
        let Some(restored) = Restored::begin(builder) else {
            return Ok(None);
        };
        let entries = entries_of_state(&restored.engine.state)?;
        Ok(Some((restored, entries)))
    }

    /// Calls a function with each entry of an operator's state, of which one piece is in memory at a time. To be called once, after the
    /// outputs were added.
    ///
    /// # Errors
    ///
    /// For a piece that no operator of this crate wrote, and the errors of the function.
    pub(crate) fn each(
        builder: &OperatorBuilder<Batch>,
        mut put: impl FnMut(&mut Self, Entry) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(mut restored) = Restored::begin(builder) else {
            return Ok(());
        };
        for piece in restored.engine.state.pieces().to_vec() {
            for entry in entries_of(&piece).map_err(Error::State)? {
                put(&mut restored, entry)?;
            }
        }
        Ok(())
    }

    fn begin(builder: &OperatorBuilder<Batch>) -> Option<Self> {
        let worker = builder.scope().worker();
        let (index, peers) = (worker.index(), worker.peers());
        let engine = builder.restored()?;
        Some(Restored {
            engine,
            index,
            peers,
        })
    }

    /// Returns a capability of an output that the operator held for this time.
    ///
    /// # Errors
    ///
    /// [`Error::NotHeld`] where it held none.
    pub fn capability(&mut self, output: usize, time: &Point) -> Result<Capability, Error> {
        let held = self.engine.capability(output, time);
        held.ok_or_else(|| Error::NotHeld { time: time.clone() })
    }

    /// Returns the rows that an exchange by the columns of these numbers brings to this worker.
    ///
    /// # Errors
    ///
    /// As [`partition`].
    pub fn mine(&self, rows: &RecordBatch, key: &[usize]) -> Result<Option<RecordBatch>, Error> {
        let mut parts = Vec::new();
        partition(rows, key, self.peers, |worker, part| {
            if worker == self.index {
                parts.push(part);
            }
        })?;
        if parts.len() > 1 {
            let mine = arrow_select::concat::concat_batches(&rows.schema(), &parts)
                .map_err(pointstamp_columnar::Error::from)?;
            return Ok(Some(mine));
        }
        Ok(parts.pop())
    }

    /// Returns the worker's number, and how many there are.
    pub fn place(&self) -> (usize, usize) {
        (self.index, self.peers)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    fn rows(values: Vec<i64>) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from(values));
        RecordBatch::try_from_iter([("n", column)]).unwrap()
    }

    #[test]
    fn entries_are_read_as_they_were_written_and_not_where_something_is_missing() {
        let written = vec![
            Entry::at(
                3,
                &Point::from([u64::MAX]),
                [rows(vec![1, 2]), rows(Vec::new())],
            ),
            Entry::new::<RecordBatch>(Vec::new(), []),
        ];
        let piece = Piece::new(Entries(written));
        let read = entries_of(&piece).unwrap();
        assert_eq!(read[0].numbers, [3, u64::MAX]);
        assert_eq!(read[0].time(1).coords(), [u64::MAX]);
        assert!(read[1].numbers.is_empty() && read[1].batches.is_empty());
        let batches: Vec<RecordBatch> = read[0].clone().contents().unwrap();
        assert_eq!(batches, [rows(vec![1, 2]), rows(Vec::new())]);
        let bytes = piece.to_bytes().unwrap();
        for len in 0..bytes.len() {
            assert!(entries_of(&Piece::from(bytes[..len].to_vec())).is_err());
        }
    }
}
