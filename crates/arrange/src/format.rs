//! Batches as bytes.
//!
//! Owns [`Batch::write`] and [`Batch::read`], and [`Damaged`]. The format has a version and is that of
//! memory, column by column, little-endian. Reading trusts nothing: a batch that comes out has every
//! invariant that the kernel relies on.

use std::fmt;

use pointstamp_order::Antichain;

use crate::batch::Batch;
use crate::columns::{Columns, Diffs, Index};
use crate::offsets::Offsets;
use crate::rows::{Rows, read_length, read_offsets, read_words, write_words};
use crate::time::Time;

/// The first bytes of every batch: a name, and the version of the format.
const HEADER: [u8; 8] = *b"psbatch\x01";

/// Bytes that are not a batch, or not of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The part in which that was seen.
    pub part: &'static str,
}

impl fmt::Display for Damaged {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = self.part;
        write!(
            formatter,
            "these bytes are not a batch of this version (seen in its {part}): use a copy that is whole, \
             or build the arrangement again"
        )
    }
}

impl std::error::Error for Damaged {}

impl<K: Rows, V: Rows, T: Time> Batch<K, V, T> {
    /// Appends the batch to `into`. Nothing in it refers to anything outside.
    ///
    /// ```
    /// use pointstamp_arrange::{Batch, Batcher, Units, Words};
    /// use pointstamp_order::Antichain;
    ///
    /// let mut batcher = Batcher::<Words, Units, u64>::new(Antichain::from_elem(0));
    /// batcher.push(7, (), &0, 1)?;
    /// let (_, batch) = batcher.seal(&Antichain::from_elem(1))?.remove(0);
    /// let mut bytes = Vec::new();
    /// batch.write(&mut bytes);
    /// let read = Batch::<Words, Units, u64>::read(&mut &bytes[..]).expect("it is whole");
    /// assert!(read.iter().eq(batch.iter()));
    /// # Ok::<(), pointstamp_arrange::Overflow>(())
    /// ```
    pub fn write(&self, into: &mut Vec<u8>) {
        into.extend(HEADER);
        for frontier in [self.lower(), self.upper(), self.since()] {
            write_times(into, frontier.elements());
        }
        write_times(into, &self.times);
        let columns = &self.columns;
        columns.keys.write(into);
        write_offsets(into, &columns.key_ends);
        columns.vals.write(into);
        write_offsets(into, &columns.val_ends);
        let index = columns.index.stored().unwrap_or_default();
        write_words(into, index.iter().map(|time| u64::from(*time)));
        into.extend((columns.len() as u64).to_le_bytes());
        let diffs = columns.diffs.stored().unwrap_or_default();
        write_words(into, diffs.iter().map(|diff| diff.cast_unsigned()));
    }

    /// Takes a batch off the front of `from`.
    ///
    /// # Errors
    ///
    /// When the bytes do not have the format of [`write`](Self::write) for a batch of this type.
    pub fn read(from: &mut &[u8]) -> Result<Self, Damaged> {
        let damaged = |part| Damaged { part };
        if from.split_off(..HEADER.len()) != Some(&HEADER) {
            return Err(damaged("header"));
        }
        let mut frontier = || {
            let times: Vec<T> = read_times(from).ok_or(damaged("frontiers"))?;
            Ok(times.into_iter().collect::<Antichain<T>>())
        };
        let (lower, upper, since) = (frontier()?, frontier()?, frontier()?);
        let times: Vec<T> = read_times(from).ok_or(damaged("times"))?;
        let columns = read_columns(from).ok_or(damaged("columns"))?;
        if !times.is_sorted_by(|a, b| a < b) || !is_valid(&columns, times.len()) {
            return Err(damaged("order"));
        }
        Ok(Self::new((columns, times), lower, upper, since))
    }
}

fn write_times<T: Time>(into: &mut Vec<u8>, times: &[T]) {
    into.extend((times.len() as u64).to_le_bytes());
    let mut coords = Vec::new();
    for time in times {
        coords.clear();
        time.write(&mut coords);
        write_words(into, coords.iter().copied());
    }
}

fn read_times<T: Time>(from: &mut &[u8]) -> Option<Vec<T>> {
    let len = read_length(from)?;
    (0..len).map(|_| T::read(&read_words(from)?)).collect()
}

fn write_offsets(into: &mut Vec<u8>, offsets: &Offsets) {
    write_words(
        into,
        (0..offsets.len()).map(|row| offsets.start(row + 1) as u64),
    );
}

fn read_columns<K: Rows, V: Rows>(from: &mut &[u8]) -> Option<Columns<K, V>> {
    let keys = K::read(from)?;
    let key_ends = read_offsets(from)?;
    let vals = V::read(from)?;
    let val_ends = read_offsets(from)?;
    let stored = read_words(from)?;
    let len = read_length(from)?;
    let diffs = read_words(from)?;
    // A part that is not stored is equal in all updates. At one time, a value has one update.
    let of_one_time = stored.is_empty() && len == val_ends.len();
    if len != val_ends.start(val_ends.len())
        || !(of_one_time || stored.len() == len)
        || !(diffs.is_empty() || diffs.len() == len)
    {
        return None;
    }
    let mut columns = Columns {
        keys,
        key_ends,
        vals,
        val_ends,
        index: Index::default(),
        diffs: Diffs::default(),
    };
    for update in 0..len {
        let time = stored
            .get(update)
            .map_or(Some(0), |time| u32::try_from(*time).ok())?;
        columns.index.push(time);
        columns
            .diffs
            .push(diffs.get(update).map_or(1, |diff| diff.cast_signed()));
    }
    columns.shrink();
    Some(columns)
}

/// True when everything is in order, and nothing is empty or refers past its end.
fn is_valid<K: Rows, V: Rows>(columns: &Columns<K, V>, times: usize) -> bool {
    let (keys, vals) = (&columns.keys, &columns.vals);
    let whole = |rows: usize, ends: &Offsets, entries: usize| {
        rows == ends.len()
            && ends.start(rows) == entries
            && (0..rows).all(|row| !ends.range(row).is_empty())
    };
    let ascend =
        |column: &K, from: usize| K::compare(column.get(from), column.get(from + 1)).is_lt();
    whole(keys.len(), &columns.key_ends, vals.len())
        && whole(vals.len(), &columns.val_ends, columns.len())
        && (1..keys.len()).all(|key| ascend(keys, key - 1))
        && (0..keys.len()).all(|key| {
            let mut range = columns.key_ends.range(key);
            range.next();
            range.all(|val| V::compare(vals.get(val - 1), vals.get(val)).is_lt())
        })
        && (0..vals.len()).all(|val| {
            let updates = columns.val_ends.range(val);
            updates
                .clone()
                .all(|u| (columns.index.get(u) as usize) < times && columns.diffs.get(u) != 0)
                && updates.is_sorted_by(|a, b| columns.index.get(*a) < columns.index.get(*b))
        })
}
