//! Shared arrangements: one writer, any number of readers.
//!
//! Owns [`TraceWriter`] and [`Trace`], over one spine behind a mutex that is held for the length of a call. A reader
//! has a frontier from which it reads exactly (`since`), and, if it follows the writer batch by batch, the number of
//! the last batch that it has seen; the spine merges and compacts as far as all readers allow. Without readers
//! nothing is kept. The trait [`Source`] is a reader as operators need it: a trace, or one seen from an inner scope
//! (`entered`).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pointstamp_order::Antichain;

use crate::batch::Batch;
use crate::checkpoint::{Contents, Numbers};
use crate::demands::Demands;
use crate::error::Error;
use crate::rows::Rows;
pub use crate::spine::Sealed;
use crate::spine::Spine;
use crate::storage::Storage;
use crate::time::{Time, join_frontiers, meet_frontiers};

#[derive(Debug)]
struct Shared<K, V, T> {
    spine: Spine<K, V, T>,
    readers: Vec<Option<Reader<T>>>,
    /// Updates came, or were kept, when there was no reader.
    lost: bool,
    /// The number of the last batch of the checkpoint from which the arrangement resumes; 0 where it is new.
    begins: u64,
    /// Notifies the writer that there is something to compact.
    wake: Wake,
}

/// The function that is called when readers have advanced and there is something to compact, if one was set.
#[derive(Clone, Default)]
struct Wake(Option<Arc<dyn Fn() + Send + Sync>>);

impl Wake {
    fn call(&self) {
        if let Some(wake) = &self.0 {
            wake();
        }
    }
}

impl fmt::Debug for Wake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Wake").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
struct Reader<T> {
    since: Antichain<T>,
    /// The number of the last batch seen; `u64::MAX` for a reader that does not follow.
    seen: u64,
}

impl<K: Rows, V: Rows, T: Time> Shared<K, V, T> {
    /// The joint demands of the readers; `None` without readers.
    fn demands(&self) -> Option<Demands<T>> {
        let mut readers = self.readers.iter().flatten();
        let first = readers.next()?;
        let mut demands = Demands {
            since: first.since.clone(),
            kept_apart: first.seen,
        };
        for reader in readers {
            if demands.since != reader.since {
                demands.since = meet_frontiers(&demands.since, &reader.since);
            }
            demands.kept_apart = demands.kept_apart.min(reader.seen);
        }
        Some(demands)
    }

    /// Returns the notification to call after readers have advanced, if updates that they cannot distinguish
    /// any more are to be compacted.
    fn moved_on(&mut self) -> Wake {
        if self.spine.may_compact()
            && let Some(demands) = self.demands()
            && self.spine.begins_compaction(&demands)
        {
            return self.wake.clone();
        }
        Wake::default()
    }

    fn register(&mut self, reader: Reader<T>) -> usize {
        if let Some(free) = self.readers.iter().position(Option::is_none) {
            self.readers[free] = Some(reader);
            free
        } else {
            self.readers.push(Some(reader));
            self.readers.len() - 1
        }
    }
}

type Handle<K, V, T> = Arc<Mutex<Shared<K, V, T>>>;

/// A spine is consistent between calls also when one of them panicked: it is only read or abandoned.
fn lock<K, V, T>(shared: &Mutex<Shared<K, V, T>>) -> MutexGuard<'_, Shared<K, V, T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of an arrangement at which batches are added.
///
/// ```
/// use pointstamp_arrange::{Batcher, Trace, TraceWriter, Words};
/// use pointstamp_order::Antichain;
///
/// let (mut writer, trace) = TraceWriter::<Words, Words, u64>::new(Antichain::from_elem(0));
/// let mut batcher = Batcher::new(Antichain::from_elem(0));
/// batcher.push(1, 10, &0, 1)?;
/// for (_, batch) in batcher.seal(&Antichain::from_elem(1))? {
///     writer.insert(batch)?;
/// }
/// writer.seal(Antichain::from_elem(1));
/// assert_eq!(trace.get(1, &0)?.iter().collect::<Vec<_>>(), [(10, 1)]);
/// # Ok::<(), pointstamp_arrange::Error>(())
/// ```
#[derive(Debug)]
pub struct TraceWriter<K, V, T> {
    shared: Handle<K, V, T>,
}

impl<K: Rows, V: Rows, T: Time> TraceWriter<K, V, T> {
    /// An empty arrangement of updates at or after `lower`, and its first reader, which reads from
    /// `lower` on and does not follow batch by batch.
    pub fn new(lower: Antichain<T>) -> (Self, Trace<K, V, T>) {
        let reader = Reader {
            since: lower.clone(),
            seen: u64::MAX,
        };
        let shared = Arc::new(Mutex::new(Shared {
            spine: Spine::new(lower),
            readers: vec![Some(reader)],
            lost: false,
            begins: 0,
            wake: Wake::default(),
        }));
        let trace = Trace {
            shared: shared.clone(),
            id: 0,
        };
        (Self { shared }, trace)
    }

    /// Restores an arrangement from a checkpoint, with its first reader, which follows it from there. An
    /// arrangement that was not read then has kept nothing, and gives no other readers.
    pub fn restored(kept: Contents<K, V, T>, was_read: bool) -> (Self, Trace<K, V, T>) {
        let Contents {
            is_read: _,
            since,
            upper,
            batches,
            numbers: _,
        } = kept;
        let spine = Spine::restored(batches, upper);
        let begins = spine.count();
        let reader = Reader {
            since,
            seen: begins,
        };
        let shared = Arc::new(Mutex::new(Shared {
            spine,
            readers: vec![Some(reader)],
            lost: !was_read,
            begins,
            wake: Wake::default(),
        }));
        let trace = Trace {
            shared: shared.clone(),
            id: 0,
        };
        (Self { shared }, trace)
    }

    /// Adds the next batch, and does its share of merging; the rest for a large batch is done by [`pay`](Self::pay).
    /// Returns it for the followers of the trace; `None` when it has no updates.
    ///
    /// # Errors
    ///
    /// When differences that add up while merging do not fit, or the storage fails.
    pub fn insert(&mut self, batch: Batch<K, V, T>) -> Result<Option<Sealed<K, V, T>>, Error> {
        let mut shared = lock(&self.shared);
        if batch.is_empty() {
            shared.spine.seal(batch.upper().clone());
            return Ok(None);
        }
        if let Some(demands) = shared.demands() {
            shared.spine.insert(batch.clone(), &demands)?;
        } else {
            shared.spine.skip(&batch);
            shared.lost = true;
        }
        let number = shared.spine.count();
        Ok(Some(Sealed { batch, number }))
    }

    /// Says that everything before `upper` has been added.
    pub fn seal(&mut self, upper: Antichain<T>) {
        lock(&self.shared).spine.seal(upper);
    }

    /// Continues merges that large batches began and [`insert`](Self::insert) did not finish, until `fuel`,
    /// in updates, is used up; true when nothing is owed. To be called until then before much else is
    /// inserted.
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit, or the storage fails.
    pub fn pay(&mut self, fuel: &mut usize) -> Result<bool, Error> {
        let mut shared = lock(&self.shared);
        if shared.spine.owes()
            && let Some(demands) = shared.demands()
        {
            shared.spine.pay(fuel, &demands)?;
            return Ok(!shared.spine.owes());
        }
        Ok(true)
    }

    /// True when [`pay`](Self::pay) has something to do.
    pub fn owes(&self) -> bool {
        let shared = lock(&self.shared);
        shared.spine.owes() && shared.readers.iter().any(Option::is_some)
    }

    /// Has `wake` called when readers moved on and a good part of all updates can be compacted: [`compact`](Self::compact)
    /// does it. It is called on the reader's thread and must not touch the trace.
    pub fn when_stale(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        lock(&self.shared).wake = Wake(Some(Arc::new(wake)));
    }

    /// Compacts updates that readers cannot distinguish any more, if they are a good part of all, and frees
    /// merged batches, until `fuel`, in updates, is used up; true when nothing is left to do.
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit, or the storage fails.
    pub fn compact(&mut self, fuel: &mut usize) -> Result<bool, Error> {
        let mut shared = lock(&self.shared);
        loop {
            shared.moved_on();
            if shared.spine.is_compact() {
                return Ok(true);
            }
            let Some(demands) = shared.demands() else {
                return Ok(true);
            };
            if !shared.spine.compact(fuel, demands)? {
                return Ok(false);
            }
        }
    }

    /// Merges all batches until `fuel`, in updates, is used up; true when nothing is left to merge. It costs as much as the
    /// collection is long, however little has changed.
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit, or the storage fails.
    pub fn exert(&mut self, fuel: &mut usize) -> Result<bool, Error> {
        let mut shared = lock(&self.shared);
        match shared.demands() {
            Some(demands) => shared.spine.exert(fuel, &demands),
            None => Ok(true),
        }
    }

    /// Has batches stored where the storage asks for it.
    pub fn store_in(&mut self, storage: Option<Arc<dyn Storage>>) {
        lock(&self.shared).spine.store_in(storage);
    }

    /// Begins to store the largest batch in memory, if the storage asks for it: [`pay`](Self::pay) does it.
    pub fn store(&mut self) {
        lock(&self.shared).spine.store();
    }

    /// The origin of later readers.
    pub fn origin(&self) -> Origin<K, V, T> {
        Origin {
            shared: self.shared.clone(),
        }
    }
}

/// The origin of later readers of an arrangement. It is not a reader, and prevents no compaction.
#[derive(Debug)]
pub struct Origin<K, V, T> {
    shared: Handle<K, V, T>,
}

impl<K, V, T> Clone for Origin<K, V, T> {
    fn clone(&self) -> Self {
        Origin {
            shared: self.shared.clone(),
        }
    }
}

impl<K: Rows, V: Rows, T: Time> Origin<K, V, T> {
    /// Creates a reader of the current contents and of later updates; earlier times are distinguished as far
    /// as other readers have required it. `None` where there was no reader when updates came, or none that
    /// still reads at any time: these updates were not kept.
    pub fn reader(&self) -> Option<Trace<K, V, T>> {
        let mut shared = lock(&self.shared);
        if shared.lost {
            return None;
        }
        let upper = shared.spine.upper().clone();
        let since = match shared.demands() {
            None => upper,
            Some(demands) if upper.is_empty() => demands.since,
            Some(demands) => join_frontiers(&upper, &demands.since),
        };
        if since.is_empty() {
            return None;
        }
        let id = shared.register(Reader {
            since,
            seen: u64::MAX,
        });
        Some(Trace {
            shared: self.shared.clone(),
            id,
        })
    }

    /// The contents of the arrangement for a checkpoint; `None` where updates came and nobody reads it.
    pub fn kept(&self) -> Option<Contents<K, V, T>> {
        let shared = lock(&self.shared);
        let upper = shared.spine.upper().clone();
        let demands = shared.demands();
        let is_read = demands.is_some();
        let since = match demands {
            Some(demands) => demands.since,
            None if shared.lost => return None,
            None => upper.clone(),
        };
        let sealed = shared.spine.batches_after(0).into_iter();
        let (batches, ends) = sealed.map(|one| (one.batch, one.number)).unzip();
        let last = shared.spine.count();
        Some(Contents {
            is_read,
            since,
            upper,
            batches,
            numbers: Numbers { ends, last },
        })
    }

    /// True while somebody reads the arrangement.
    pub fn is_read(&self) -> bool {
        lock(&self.shared).readers.iter().any(Option::is_some)
    }

    /// The number of updates held; the updates of a merge in progress are counted once.
    pub fn len(&self) -> usize {
        lock(&self.shared).spine.len()
    }

    /// True when no updates are held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of memory held.
    pub fn bytes(&self) -> usize {
        lock(&self.shared).spine.bytes()
    }

    /// The bytes on disk.
    pub fn bytes_on_disk(&self) -> u64 {
        lock(&self.shared).spine.bytes_on_disk()
    }
}

/// A reader of an arrangement. It prevents the merging of history; dropping it permits it.
pub struct Trace<K: Rows, V: Rows, T: Time> {
    shared: Handle<K, V, T>,
    id: usize,
}

impl<K: Rows, V: Rows, T: Time> Trace<K, V, T> {
    fn with<R>(&self, f: impl FnOnce(&mut Reader<T>) -> R) -> R {
        let mut shared = lock(&self.shared);
        f(shared.readers[self.id]
            .as_mut()
            .expect("a reader is registered until it is dropped"))
    }

    /// Advances the reader, and notifies the writer if there is something to compact then.
    fn moves(&self, f: impl FnOnce(&mut Reader<T>)) {
        self.with(f);
        let wake = lock(&self.shared).moved_on();
        wake.call();
    }

    /// The origin of later readers of the same arrangement.
    pub fn origin(&self) -> Origin<K, V, T> {
        Origin {
            shared: self.shared.clone(),
        }
    }

    /// The frontier from which on reads are exact.
    pub fn since(&self) -> Antichain<T> {
        self.with(|reader| reader.since.clone())
    }

    /// The frontier before which the arrangement is complete.
    pub fn upper(&self) -> Antichain<T> {
        lock(&self.shared).spine.upper().clone()
    }

    /// Permits times before `since` to be merged with it: this reader reads at none of them any more. The
    /// frontier only moves forward; one that is not after the reader's own is ignored.
    pub fn allow_compaction(&mut self, since: &Antichain<T>) {
        self.moves(|reader| {
            if pointstamp_order::PartialOrder::less_equal(&reader.since, since) {
                reader.since.clone_from(since);
            }
        });
    }

    /// Follows the arrangement: batches that are added later are kept apart until they are
    /// [acknowledged](Self::acknowledge). Returns the current batches, all with the number of the last: the
    /// caller passes them on without another operator's batches in between.
    pub fn follow(&mut self) -> Vec<Sealed<K, V, T>> {
        let mut shared = lock(&self.shared);
        let number = shared.spine.count();
        if let Some(reader) = &mut shared.readers[self.id] {
            reader.seen = number;
        }
        let batches = shared.spine.batches_through(number).into_iter();
        batches.map(|batch| Sealed { batch, number }).collect()
    }

    /// Follows the arrangement from the checkpoint from which it resumes: returns the batches that came after
    /// it, each with its own number.
    ///
    /// # Panics
    ///
    /// When a batch of the checkpoint has been merged with a later one: another reader, such as the first, must keep
    /// them apart until then.
    pub fn follow_restored(&mut self) -> Vec<Sealed<K, V, T>> {
        let mut shared = lock(&self.shared);
        let begins = shared.begins;
        if let Some(reader) = &mut shared.readers[self.id] {
            reader.seen = begins;
        }
        shared.spine.batches_after(begins)
    }

    /// Ends following: batches may be merged freely.
    pub fn stop_following(&mut self) {
        self.acknowledge(u64::MAX);
    }

    /// Acknowledges the batch of this number, and the batches before it.
    pub fn acknowledge(&mut self, number: u64) {
        self.moves(|reader| reader.seen = number);
    }

    /// All batches that are there now, oldest first.
    pub fn batches(&self) -> Vec<Batch<K, V, T>> {
        lock(&self.shared).spine.batches_through(u64::MAX)
    }

    /// The batches up to the number, oldest first.
    ///
    /// # Panics
    ///
    /// When the number is before the last acknowledged one.
    pub fn batches_through(&self, number: u64) -> Vec<Batch<K, V, T>> {
        lock(&self.shared).spine.batches_through(number)
    }

    /// The number of updates held; the updates of a merge in progress are counted once.
    pub fn len(&self) -> usize {
        lock(&self.shared).spine.len()
    }

    /// True when no updates are held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of memory held.
    pub fn bytes(&self) -> usize {
        lock(&self.shared).spine.bytes()
    }

    /// The bytes on disk.
    pub fn bytes_on_disk(&self) -> u64 {
        lock(&self.shared).spine.bytes_on_disk()
    }
}

impl<K: Rows, V: Rows, T: Time> Clone for Trace<K, V, T> {
    fn clone(&self) -> Self {
        let mut shared = lock(&self.shared);
        let reader = shared.readers[self.id].clone();
        let id = shared.register(reader.expect("a reader is registered until it is dropped"));
        Self {
            shared: self.shared.clone(),
            id,
        }
    }
}

impl<K: Rows, V: Rows, T: Time> Drop for Trace<K, V, T> {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.readers[self.id] = None;
        if shared.readers.iter().all(Option::is_none) {
            shared.lost |= shared.spine.len() > 0;
            shared.spine.clear();
        }
        let wake = shared.moved_on();
        drop(shared);
        wake.call();
    }
}

impl<K: Rows, V: Rows, T: Time> fmt::Debug for Trace<K, V, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (since, upper) = (self.since(), self.upper());
        let mut debug = formatter.debug_struct("Trace");
        debug
            .field("since", &since)
            .field("upper", &upper)
            .finish_non_exhaustive()
    }
}

/// A reader of an arrangement, as operators use it.
pub trait Source<K: Rows, V: Rows, T: Time>: Send {
    /// The batches up to the number, oldest first; see [`Trace::batches_through`].
    fn batches_through(&self, number: u64) -> Vec<Batch<K, V, T>>;

    /// See [`Trace::allow_compaction`].
    fn allow_compaction(&mut self, since: &Antichain<T>);

    /// Keeps batches that are added later apart until they are acknowledged; starts from the reader's
    /// position, if it follows already.
    fn follow(&mut self);

    /// The number of the batch that was seen last, where it follows.
    fn seen(&self) -> u64;

    /// See [`Trace::acknowledge`].
    fn acknowledge(&mut self, number: u64);

    /// See [`Trace::since`].
    fn since(&self) -> Antichain<T>;
}

impl<K: Rows, V: Rows, T: Time> Source<K, V, T> for Trace<K, V, T> {
    fn batches_through(&self, number: u64) -> Vec<Batch<K, V, T>> {
        Trace::batches_through(self, number)
    }

    fn allow_compaction(&mut self, since: &Antichain<T>) {
        Trace::allow_compaction(self, since);
    }

    fn follow(&mut self) {
        let follows = self.with(|reader| reader.seen != u64::MAX);
        if !follows {
            Trace::follow(self);
        }
    }

    fn seen(&self) -> u64 {
        self.with(|reader| reader.seen)
    }

    fn acknowledge(&mut self, number: u64) {
        Trace::acknowledge(self, number);
    }

    fn since(&self) -> Antichain<T> {
        Trace::since(self)
    }
}
