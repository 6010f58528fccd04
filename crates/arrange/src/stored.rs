//! The columns of a batch on disk.
//!
//! Owns [`Storing`], which writes pages as a builder fills them, and [`Stored`], which finds and reads them. In memory
//! are the first key of each page and the place of each; the cache may have decoded pages. A page is a range of keys with
//! their values and updates, in the format of [`column_format`](crate::column_format): a key is never in two. Behind each
//! page is the filter of its keys: in a file, page `n` of a batch is number `2 n`, and its filter the next.

use std::sync::Arc;

use crate::column_format::{read_columns, write_columns};
use crate::columns::Columns;
use crate::error::Error;
use crate::key_filter::KeyFilter;
use crate::rows::Rows;
use crate::storage::{File, Storage, StorageError, Writer};

/// Pages that are being written.
#[derive(Debug)]
pub(crate) struct Storing<K> {
    storage: Arc<dyn Storage>,
    writer: Option<Box<dyn Writer>>,
    first_keys: K,
    /// The number of updates in the pages so far, after each.
    ends: Vec<usize>,
    bytes: usize,
    buffer: Vec<u8>,
}

impl<K: Rows> Storing<K> {
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Self {
        Self {
            storage,
            writer: None,
            first_keys: K::default(),
            ends: Vec::new(),
            bytes: 0,
            buffer: Vec::new(),
        }
    }

    /// The bytes from which on columns become a page.
    pub(crate) fn page_bytes(&self) -> usize {
        self.storage.page_bytes()
    }

    /// The number of updates that are put into a page at most before its size is looked at.
    pub(crate) fn step(&self) -> usize {
        (self.page_bytes() / 64).max(1)
    }

    /// The number of updates written.
    pub(crate) fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether nothing was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Takes the columns, and writes them as the next page, if there are enough for one.
    pub(crate) fn append_if_full<V: Rows>(
        &mut self,
        columns: &mut Columns<K, V>,
    ) -> Result<(), Error> {
        if columns.bytes() >= self.page_bytes() {
            let columns = std::mem::take(columns);
            if columns.len() > 0 {
                self.append(&columns)?;
            }
        }
        Ok(())
    }

    /// Writes columns that have a key as the next page.
    pub(crate) fn append<V: Rows>(&mut self, columns: &Columns<K, V>) -> Result<(), StorageError> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(self.storage.create()?),
        };
        self.buffer.clear();
        write_columns(&mut self.buffer, columns);
        writer.append(&self.buffer)?;
        self.bytes += self.buffer.len();
        self.buffer.clear();
        KeyFilter::of(&columns.keys).write(&mut self.buffer);
        writer.append(&self.buffer)?;
        self.first_keys.push(columns.keys.get(0));
        self.ends.push(self.len() + columns.len());
        Ok(())
    }

    /// Ends the file; the indices of times in it are to be read through `map`, where it is given.
    pub(crate) fn finish<V>(mut self, map: Option<Vec<u32>>) -> Result<Stored<K, V>, StorageError> {
        let writer = self.writer.take().expect("a page was written");
        self.first_keys.shrink();
        Ok(Stored {
            segments: vec![Segment {
                file: writer.finish()?,
                start: 0,
                map,
            }],
            first_keys: self.first_keys,
            ends: self.ends,
            bytes: self.bytes,
            vals: std::marker::PhantomData,
        })
    }
}

/// Columns in files, which have a range of keys each.
#[derive(Debug)]
pub(crate) struct Stored<K, V> {
    segments: Vec<Segment>,
    /// The first key of each page.
    first_keys: K,
    /// The number of updates up to the end of each page.
    ends: Vec<usize>,
    /// The bytes of all pages, decoded.
    bytes: usize,
    vals: std::marker::PhantomData<fn() -> V>,
}

#[derive(Clone, Debug)]
struct Segment {
    file: Arc<dyn File>,
    /// The number of its first page.
    start: usize,
    /// The indices of times as they are, by those that the pages have; `None` where these are right.
    map: Option<Vec<u32>>,
}

impl<K: Rows, V: Rows> Stored<K, V> {
    /// Puts columns one after the other: the keys of each come after those of the one before. Indices of times
    /// become those that its `map` has.
    pub(crate) fn concatenated<'a>(parts: impl IntoIterator<Item = (&'a Self, Vec<u32>)>) -> Self {
        let mut whole = Stored {
            segments: Vec::new(),
            first_keys: K::default(),
            ends: Vec::new(),
            bytes: 0,
            vals: std::marker::PhantomData,
        };
        for (part, map) in parts {
            let (start, len) = (whole.pages(), whole.len());
            for segment in &part.segments {
                let own = segment.map.as_ref();
                let map = match own {
                    None => map.clone(),
                    Some(own) => own.iter().map(|index| map[*index as usize]).collect(),
                };
                whole.segments.push(Segment {
                    file: Arc::clone(&segment.file),
                    start: start + segment.start,
                    map: Some(map),
                });
            }
            whole.first_keys.extend(&part.first_keys, 0..part.pages());
            whole.ends.extend(part.ends.iter().map(|end| len + end));
            whole.bytes += part.bytes;
        }
        whole
    }

    /// The number of updates.
    pub(crate) fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The number of pages.
    pub(crate) fn pages(&self) -> usize {
        self.ends.len()
    }

    /// The bytes that its columns would take in memory.
    pub(crate) fn decoded_bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        self.first_keys.bytes() + self.ends.capacity() * size_of::<usize>()
    }

    /// The bytes on disk.
    pub(crate) fn bytes_on_disk(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.file.bytes())
            .sum()
    }

    /// The last page, from `page` on, that may have `key`: the one before the first that begins after it.
    pub(crate) fn page_of(&self, page: usize, key: K::Item<'_>) -> usize {
        let keys = &self.first_keys;
        let next = keys.seek(page..keys.len(), key);
        if next < keys.len() && K::compare(keys.get(next), key).is_eq() {
            next
        } else {
            next.saturating_sub(1).max(page)
        }
    }

    fn segment_of(&self, page: usize) -> &Segment {
        let after = |segment: &Segment| segment.start <= page;
        &self.segments[self.segments.partition_point(after) - 1]
    }

    /// Whether a page may have a key of this hash.
    pub(crate) fn may_have(&self, page: usize, hash: u64) -> Result<bool, Error> {
        let Segment { file, start, .. } = self.segment_of(page);
        let number = 2 * (page - start) + 1;
        if let Some(cached) = file.cached(number)
            && let Ok(filter) = cached.downcast::<KeyFilter>()
        {
            return Ok(filter.may_have(hash));
        }
        let bytes = file.read(number)?;
        let filter = KeyFilter::read(&mut &bytes[..]).ok_or(Error::Page(page))?;
        let may_have = filter.may_have(hash);
        let bytes = filter.bytes();
        file.cache(number, Arc::new(filter), bytes);
        Ok(may_have)
    }

    /// Reads a page; `keeps` is whether the cache is to have it, since it may be read again soon.
    pub(crate) fn read(&self, page: usize, keeps: bool) -> Result<Arc<Columns<K, V>>, Error> {
        let Segment { file, start, map } = self.segment_of(page);
        let number = 2 * (page - start);
        if let Some(cached) = file.cached(number)
            && let Ok(columns) = cached.downcast::<Columns<K, V>>()
        {
            return Ok(columns);
        }
        let bytes = file.read(number)?;
        let before = if page == 0 { 0 } else { self.ends[page - 1] };
        let columns = read_columns::<K, V>(&mut &bytes[..], map.as_deref());
        let columns = columns.filter(|columns| columns.len() == self.ends[page] - before);
        let columns = Arc::new(columns.ok_or(Error::Page(page))?);
        if keeps {
            file.cache(number, Arc::clone(&columns) as _, columns.bytes());
        }
        Ok(columns)
    }
}
