//! Immutable batches of updates.
//!
//! Owns [`Batch`]: all updates at times at or after `lower` and not at or after `upper`, with times that are exact for
//! readers at or after `since`; and [`Page`], a part of one in memory, which is what kernels read. A batch in memory is
//! one page; one on disk has many, each a range of keys. Both are a few references: clones share everything, and columns
//! are shared with the same batch seen from an inner scope.

use std::ops::Range;
use std::sync::Arc;

use pointstamp_order::Antichain;

use crate::columns::Columns;
use crate::error::Error;
use crate::rows::Rows;
use crate::stored::Stored;
use crate::time::Time;

/// The interval of a batch, and its times.
#[derive(Debug)]
pub(crate) struct Bounds<T> {
    /// The distinct times, ascending in their linear order.
    pub(crate) times: Vec<T>,
    pub(crate) lower: Antichain<T>,
    pub(crate) upper: Antichain<T>,
    pub(crate) since: Antichain<T>,
}

/// The updates of a batch, without their times.
#[derive(Debug)]
pub(crate) enum Body<K, V> {
    Here(Arc<Columns<K, V>>),
    Stored(Arc<Stored<K, V>>),
}

impl<K, V> Clone for Body<K, V> {
    fn clone(&self) -> Self {
        match self {
            Body::Here(columns) => Body::Here(Arc::clone(columns)),
            Body::Stored(stored) => Body::Stored(Arc::clone(stored)),
        }
    }
}

/// Sorted columns, and the times that their indices refer to.
pub(crate) type Sorted<K, V, T> = (Body<K, V>, Vec<T>);

/// Sorted, consolidated updates of an interval of times.
#[derive(Debug)]
pub struct Batch<K, V, T> {
    pub(crate) body: Body<K, V>,
    pub(crate) bounds: Arc<Bounds<T>>,
}

impl<K, V, T> Clone for Batch<K, V, T> {
    fn clone(&self) -> Self {
        Self {
            body: self.body.clone(),
            bounds: Arc::clone(&self.bounds),
        }
    }
}

impl<K: Rows, V: Rows> From<Columns<K, V>> for Body<K, V> {
    fn from(columns: Columns<K, V>) -> Self {
        Body::Here(Arc::new(columns))
    }
}

impl<K: Rows, V: Rows, T: Time> Batch<K, V, T> {
    pub(crate) fn new(
        (body, times): Sorted<K, V, T>,
        lower: Antichain<T>,
        upper: Antichain<T>,
        since: Antichain<T>,
    ) -> Self {
        Self {
            body,
            bounds: Arc::new(Bounds {
                times,
                lower,
                upper,
                since,
            }),
        }
    }

    /// A batch of updates whose interval has no meaning.
    pub(crate) fn unbounded(sorted: Sorted<K, V, T>) -> Self {
        let none = Antichain::new;
        Self::new(sorted, none(), none(), none())
    }

    /// A batch without updates.
    pub(crate) fn empty(upper: Antichain<T>, since: Antichain<T>) -> Self {
        let nothing = (Columns::default().into(), Vec::new());
        Self::new(nothing, upper.clone(), upper, since)
    }

    /// The same updates as a batch of another interval.
    pub(crate) fn between(
        &self,
        lower: &Antichain<T>,
        upper: &Antichain<T>,
        since: &Antichain<T>,
    ) -> Self {
        let sorted = (self.body.clone(), self.bounds.times.clone());
        Self::new(sorted, lower.clone(), upper.clone(), since.clone())
    }

    /// The number of updates.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.body {
            Body::Here(columns) => columns.len(),
            Body::Stored(stored) => stored.len(),
        }
    }

    /// True without updates.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frontier at which the batch starts.
    pub fn lower(&self) -> &Antichain<T> {
        &self.bounds.lower
    }

    /// The frontier before which this batch and the batches before it are complete.
    pub fn upper(&self) -> &Antichain<T> {
        &self.bounds.upper
    }

    /// Times are exact for readers at or after this frontier.
    pub fn since(&self) -> &Antichain<T> {
        &self.bounds.since
    }

    /// The distinct times of the updates, ascending in their linear order.
    pub fn times(&self) -> &[T] {
        &self.bounds.times
    }

    /// True for clones of one batch.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.bounds, &other.bounds)
    }

    /// True for a batch on disk.
    pub fn is_stored(&self) -> bool {
        matches!(self.body, Body::Stored(_))
    }

    /// The number of pages.
    pub fn pages(&self) -> usize {
        match &self.body {
            Body::Here(_) => 1,
            Body::Stored(stored) => stored.pages(),
        }
    }

    /// Reads a page: ranges of keys ascend from page to page.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] and [`Error::Page`], where it is on disk.
    pub fn page(&self, page: usize) -> Result<Page<K, V, T>, Error> {
        self.read(page, false)
    }

    /// Reads a page for a look-up; the cache has it then.
    pub(crate) fn page_for_look_up(&self, page: usize) -> Result<Page<K, V, T>, Error> {
        self.read(page, true)
    }

    fn read(&self, page: usize, keeps: bool) -> Result<Page<K, V, T>, Error> {
        let columns = match &self.body {
            Body::Here(columns) => Arc::clone(columns),
            Body::Stored(stored) => stored.read(page, keeps)?,
        };
        Ok(Page {
            columns,
            bounds: Arc::clone(&self.bounds),
        })
    }

    /// The page of a batch in memory; one without updates for a batch on disk.
    pub(crate) fn page_here(&self) -> Page<K, V, T> {
        let columns = match &self.body {
            Body::Here(columns) => Arc::clone(columns),
            Body::Stored(_) => Arc::default(),
        };
        Page {
            columns,
            bounds: Arc::clone(&self.bounds),
        }
    }

    /// The last page, from `page` on, that may have `key`.
    pub(crate) fn page_of(&self, page: usize, key: K::Item<'_>) -> usize {
        match &self.body {
            Body::Here(_) => 0,
            Body::Stored(stored) => stored.page_of(page, key),
        }
    }

    /// Whether a page may have a key of this hash.
    pub(crate) fn may_have(&self, page: usize, hash: u64) -> Result<bool, Error> {
        match &self.body {
            Body::Here(_) => Ok(true),
            Body::Stored(stored) => stored.may_have(page, hash),
        }
    }

    /// The bytes of memory held, both the batch's own and shared ones.
    pub fn bytes(&self) -> usize {
        let columns = match &self.body {
            Body::Here(columns) => columns.bytes(),
            Body::Stored(stored) => stored.bytes(),
        };
        columns + self.bounds.times.capacity() * size_of::<T>()
    }

    /// The bytes that the batch has or would have in memory.
    pub(crate) fn decoded_bytes(&self) -> usize {
        match &self.body {
            Body::Here(columns) => columns.bytes(),
            Body::Stored(stored) => stored.decoded_bytes(),
        }
    }

    /// The bytes on disk.
    pub fn bytes_on_disk(&self) -> u64 {
        match &self.body {
            Body::Here(_) => 0,
            Body::Stored(stored) => stored.bytes_on_disk(),
        }
    }

    /// The same updates at other times, such as times of an inner scope; the columns are shared.
    ///
    /// `map` has to keep the linear order of times strictly.
    pub fn map_times<T2: Time>(&self, map: impl Fn(&T) -> T2) -> Batch<K, V, T2> {
        let frontier = |times: &Antichain<T>| times.iter().map(&map).collect();
        let times: Vec<T2> = self.bounds.times.iter().map(&map).collect();
        debug_assert!(times.is_sorted_by(|a, b| a < b));
        Batch {
            body: self.body.clone(),
            bounds: Arc::new(Bounds {
                times,
                lower: frontier(&self.bounds.lower),
                upper: frontier(&self.bounds.upper),
                since: frontier(&self.bounds.since),
            }),
        }
    }
}

/// A part of a batch, in memory: the updates of a range of keys.
#[derive(Debug)]
pub struct Page<K, V, T> {
    pub(crate) columns: Arc<Columns<K, V>>,
    pub(crate) bounds: Arc<Bounds<T>>,
}

impl<K, V, T> Clone for Page<K, V, T> {
    fn clone(&self) -> Self {
        Self {
            columns: Arc::clone(&self.columns),
            bounds: Arc::clone(&self.bounds),
        }
    }
}

impl<K: Rows, V: Rows, T: Time> Page<K, V, T> {
    /// The distinct times of the batch, ascending in their linear order.
    pub fn times(&self) -> &[T] {
        &self.bounds.times
    }

    /// The keys, distinct and in order.
    #[inline]
    pub fn keys(&self) -> &K {
        &self.columns.keys
    }

    /// The values of all keys, one after another.
    #[inline]
    pub fn vals(&self) -> &V {
        &self.columns.vals
    }

    /// The range in [`vals`](Self::vals) of the values of the key at `key`, distinct and in order.
    #[inline]
    pub fn vals_of(&self, key: usize) -> Range<usize> {
        self.columns.key_ends.range(key)
    }

    /// The updates of the value at `val`: each time once, in order, none with a difference of zero.
    #[inline]
    pub fn updates_of(&self, val: usize) -> impl ExactSizeIterator<Item = (&T, i64)> {
        self.columns
            .val_ends
            .range(val)
            .map(|update| self.update(update))
    }

    #[inline]
    pub(crate) fn update(&self, update: usize) -> (&T, i64) {
        let time = self.columns.index.get(update);
        (
            &self.bounds.times[time as usize],
            self.columns.diffs.get(update),
        )
    }

    /// Every update, in order of key, value and time.
    pub fn iter(&self) -> impl Iterator<Item = (K::Item<'_>, V::Item<'_>, &T, i64)> {
        (0..self.keys().len()).flat_map(move |key| self.iter_key(key))
    }

    /// The updates of a key, in order of value and time.
    pub fn iter_key(
        &self,
        key: usize,
    ) -> impl Iterator<Item = (K::Item<'_>, V::Item<'_>, &T, i64)> {
        self.vals_of(key).flat_map(move |val| {
            let row = (self.keys().get(key), self.vals().get(val));
            self.updates_of(val)
                .map(move |(time, diff)| (row.0, row.1, time, diff))
        })
    }
}
