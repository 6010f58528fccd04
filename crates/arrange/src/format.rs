//! Batches as bytes.
//!
//! Owns [`Batch::write`] and [`BatchReader`]. A batch is a sequence of frames, each its length and its bytes:
//! a header with the version, pages, and an empty frame. A page is a range of keys, column by column as in memory,
//! little-endian. Both ways take the memory of a page. Reading trusts nothing: a batch that comes out has every
//! invariant that the kernel relies on.

use std::error::Error as StdError;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use pointstamp_order::Antichain;

use crate::batch::Batch;
use crate::builder::{Builder, TimeMap};
use crate::bytes::{read_length, read_words, write_length, write_words};
use crate::column_format::{read_columns, write_columns};
use crate::columns::Columns;
use crate::error::{Damaged, Error, Overflow};
use crate::offsets::Offsets;
use crate::rows::Rows;
use crate::storage::Storage;
use crate::time::Time;

/// The first bytes of every batch: a name, and the version of the format.
const HEADER: [u8; 8] = *b"psbatch\x03";

/// A batch in memory is written in pages of so many updates, or of one key; fewer where tests run.
const WRITTEN: usize = if cfg!(debug_assertions) { 8 } else { 1 << 14 };

impl<K: Rows, V: Rows, T: Time> Batch<K, V, T> {
    /// Writes the batch, a page at a time. Nothing in it refers to anything outside.
    ///
    /// ```
    /// use pointstamp_arrange::{Batch, BatchReader, Batcher, Units, Words};
    /// use pointstamp_order::Antichain;
    ///
    /// let mut batcher = Batcher::<Words, Units, u64>::new(Antichain::from_elem(0));
    /// batcher.push(7, (), &0, 1)?;
    /// let (_, batch) = batcher.seal(&Antichain::from_elem(1))?.remove(0);
    /// let mut bytes = Vec::new();
    /// batch.write(&mut bytes)?;
    /// let mut reader = BatchReader::<Words, Units, u64>::new(None);
    /// reader.push(&bytes)?;
    /// let read = reader.finish()?;
    /// assert!(read.page(0)?.iter().eq(batch.page(0)?.iter()));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of `out`, and of reading a batch that is on disk.
    pub fn write(&self, out: &mut dyn Write) -> Result<(), Box<dyn StdError + Send + Sync>> {
        let mut frame = HEADER.to_vec();
        let bounds = &self.bounds;
        for frontier in [&bounds.lower, &bounds.upper, &bounds.since] {
            write_times(&mut frame, frontier.elements());
        }
        write_times(&mut frame, &bounds.times);
        frame.extend((self.decoded_bytes() as u64).to_le_bytes());
        write_frame(out, &frame)?;
        for page in 0..self.pages() {
            let columns = self.page(page)?.columns;
            let mut key = 0;
            while key < columns.keys.len() {
                let end = end_of_part(&columns, key);
                frame.clear();
                write_part(&mut frame, &columns, key..end)?;
                write_frame(out, &frame)?;
                key = end;
            }
        }
        write_frame(out, &[])
    }
}

/// The end of the keys from `key` on that are written together.
fn end_of_part<K: Rows, V: Rows>(columns: &Columns<K, V>, key: usize) -> usize {
    let mut keys = key..columns.keys.len();
    while keys.len() > 1 && columns.updates_of_keys(&keys).len() > WRITTEN {
        keys.end = keys.start + keys.len() / 2;
    }
    keys.end
}

fn write_part<K: Rows, V: Rows>(
    into: &mut Vec<u8>,
    columns: &Columns<K, V>,
    keys: Range<usize>,
) -> Result<(), Overflow> {
    if keys == (0..columns.keys.len()) {
        write_columns(into, columns);
        return Ok(());
    }
    let most = columns.index.stored().map_or(0, |stored| {
        let updates = columns.updates_of_keys(&keys);
        stored[updates].iter().copied().max().unwrap_or(0)
    });
    let mut part = Builder::<K, V, u64>::new((0..=u64::from(most)).collect());
    part.copy_keys(columns, keys, &TimeMap::identity(most as usize + 1))?;
    write_columns(into, part.columns());
    Ok(())
}

fn write_frame(out: &mut dyn Write, frame: &[u8]) -> Result<(), Box<dyn StdError + Send + Sync>> {
    out.write_all(&(frame.len() as u64).to_le_bytes())?;
    Ok(out.write_all(frame)?)
}

/// Reads a batch from the bytes of [`Batch::write`], as they come; it trusts nothing.
#[derive(Debug)]
pub struct BatchReader<K, V, T> {
    storage: Option<Arc<dyn Storage>>,
    /// Bytes of a frame that is not complete.
    buffer: Vec<u8>,
    begun: Option<Begun<K, V, T>>,
    has_ended: bool,
}

/// A batch of which the header was read.
#[derive(Debug)]
struct Begun<K, V, T> {
    builder: Builder<K, V, T>,
    /// The last key so far, if there is one.
    last: K,
    map: TimeMap,
    bounds: [Antichain<T>; 3],
}

impl<K: Rows, V: Rows, T: Time> BatchReader<K, V, T> {
    /// A reader of a batch, which it stores where the storage asks for it.
    pub fn new(storage: Option<Arc<dyn Storage>>) -> Self {
        Self {
            storage,
            buffer: Vec::new(),
            begun: None,
            has_ended: false,
        }
    }

    /// Reads the next bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] when the bytes do not have the format of [`Batch::write`] for a batch of this type;
    /// [`Error::Storage`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.buffer.extend_from_slice(bytes);
        let buffer = std::mem::take(&mut self.buffer);
        let mut rest = &buffer[..];
        while let Some((length, after)) = rest.split_first_chunk::<8>()
            && let Ok(length) = usize::try_from(u64::from_le_bytes(*length))
            && let Some((frame, after)) = after.split_at_checked(length)
        {
            self.frame(frame)?;
            rest = after;
        }
        self.buffer.extend_from_slice(rest);
        Ok(())
    }

    fn frame(&mut self, mut frame: &[u8]) -> Result<(), Error> {
        let damaged = |part| Error::Damaged(Damaged { part });
        if self.has_ended {
            return Err(damaged("end"));
        }
        let Some(begun) = &mut self.begun else {
            self.begun = Some(self.begin(frame)?);
            return Ok(());
        };
        if frame.is_empty() {
            self.has_ended = true;
            return Ok(());
        }
        let columns = read_columns::<K, V>(&mut frame, None).ok_or(damaged("columns"))?;
        let in_order = columns.len() > 0
            && (begun.last.is_empty()
                || K::compare(begun.last.get(0), columns.keys.get(0)).is_lt());
        if !frame.is_empty() || !in_order || !is_valid(&columns, begun.map.len()) {
            return Err(damaged("order"));
        }
        begun.last.clear();
        begun.last.push(columns.keys.get(columns.keys.len() - 1));
        let keys = 0..columns.keys.len();
        begun.builder.copy_keys(&columns, keys, &begun.map)?;
        begun.builder.store_full_page()
    }

    fn begin(&self, mut frame: &[u8]) -> Result<Begun<K, V, T>, Error> {
        let damaged = |part| Error::Damaged(Damaged { part });
        if frame.split_off(..HEADER.len()) != Some(&HEADER) {
            return Err(damaged("header"));
        }
        let mut frontier = || {
            let times: Vec<T> = read_times(&mut frame).ok_or(damaged("frontiers"))?;
            Ok::<_, Error>(times.into_iter().collect::<Antichain<T>>())
        };
        let bounds = [frontier()?, frontier()?, frontier()?];
        let times: Vec<T> = read_times(&mut frame).ok_or(damaged("times"))?;
        let bytes = read_length(&mut frame).ok_or(damaged("size"))?;
        if !frame.is_empty() || !times.is_sorted_by(|a, b| a < b) {
            return Err(damaged("times"));
        }
        Ok(Begun {
            map: TimeMap::identity(times.len()),
            builder: Builder::stored_in(times, self.storage.as_ref(), bytes),
            last: K::default(),
            bounds,
        })
    }

    /// Returns the batch, when all of its bytes were read.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn finish(self) -> Result<Batch<K, V, T>, Error> {
        let begun = self
            .begun
            .filter(|_| self.has_ended && self.buffer.is_empty());
        let begun = begun.ok_or(Error::Damaged(Damaged { part: "end" }))?;
        let [lower, upper, since] = begun.bounds;
        Ok(Batch::new(begun.builder.finish()?, lower, upper, since))
    }
}

fn write_times<T: Time>(into: &mut Vec<u8>, times: &[T]) {
    write_length(into, times.len());
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

/// True when everything is in order, and nothing is empty or refers past its end.
fn is_valid<K: Rows, V: Rows>(columns: &Columns<K, V>, times: usize) -> bool {
    let (keys, vals) = (&columns.keys, &columns.vals);
    let whole = |rows: usize, ends: &Offsets, entries: usize| {
        rows == ends.len()
            && ends.start(rows) == entries
            && (ends.is_each() || (0..rows).all(|row| !ends.range(row).is_empty()))
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
