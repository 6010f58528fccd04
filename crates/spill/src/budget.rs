//! The budget of a process.
//!
//! Owns [`Budget`]: what state takes by operator, the cache of pages, the folder of files, and the counts of what was read
//! and written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use pointstamp_arrange::Decoded;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// The part of the budget that is for the cache: one of so many.
const CACHE: usize = 4;

/// The part of the budget that messages on their way may take, and the bytes that they may take at least.
const IN_FLIGHT: usize = 8;
const LEAST_IN_FLIGHT: usize = 1 << 20;

/// A batch of fewer bytes is never stored, nor one of fewer than this part of the budget.
const SMALL: usize = 1 << 20;
const PART: usize = 64;

/// A page: the number of its file, and its own.
pub(crate) type PageId = (u64, usize);

/// A decoded page, and its bytes.
#[derive(Clone)]
pub(crate) struct Cached {
    pub(crate) contents: Decoded,
    pub(crate) bytes: usize,
}

#[derive(Clone)]
pub(crate) struct Bytes;

impl Weighter<PageId, Cached> for Bytes {
    fn weight(&self, _: &PageId, page: &Cached) -> u64 {
        page.bytes.max(1) as u64
    }
}

/// The counts of reads and writes since the budget was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes written to files.
    pub written: u64,
    /// Bytes read from files.
    pub read: u64,
    /// Pages that the cache had.
    pub hits: u64,
    /// Pages that it had not.
    pub misses: u64,
}

/// Memory for the state of a process's operators.
pub struct Budget {
    limit: usize,
    folder: PathBuf,
    /// The bytes of state in memory, of all accounts.
    pub(crate) used: AtomicUsize,
    /// Their bytes on disk.
    pub(crate) on_disk: AtomicU64,
    /// Counts the bytes of messages on their way.
    in_flight: OnceLock<Box<dyn Fn() -> usize + Send + Sync>>,
    pub(crate) cache: Cache<PageId, Cached, Bytes>,
    files: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) read: AtomicU64,
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    /// The number of calls of the disk that succeed before one fails, for tests; less than 0 for all.
    faults: AtomicI64,
}

impl Budget {
    /// A budget of so many bytes; files are made in `folder`, which is made where it is missing.
    ///
    /// # Errors
    ///
    /// When no file can be made there.
    pub fn new(limit: usize, folder: &Path) -> io::Result<Arc<Self>> {
        std::fs::create_dir_all(folder)?;
        drop(tempfile::tempfile_in(folder)?);
        let weight = (limit / CACHE) as u64;
        Ok(Arc::new(Budget {
            limit,
            folder: folder.to_owned(),
            used: AtomicUsize::new(0),
            on_disk: AtomicU64::new(0),
            in_flight: OnceLock::new(),
            // Pages are of some 100 KiB.
            cache: Cache::with_weighter((limit / CACHE) >> 16, weight, Bytes),
            files: AtomicU64::new(0),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            faults: AtomicI64::new(-1),
        }))
    }

    /// The bytes of the budget.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The folder of the files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The bytes of state in memory.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The bytes of pages in the cache.
    pub fn cached(&self) -> usize {
        usize::try_from(self.cache.weight()).unwrap_or(usize::MAX)
    }

    /// The bytes of state on disk.
    pub fn on_disk(&self) -> u64 {
        self.on_disk.load(Ordering::Relaxed)
    }

    /// The counts of reads and writes.
    pub fn traffic(&self) -> Traffic {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        Traffic {
            written: count(&self.written),
            read: count(&self.read),
            hits: count(&self.hits),
            misses: count(&self.misses),
        }
    }

    /// The bytes that messages on their way may take.
    pub fn most_in_flight(&self) -> usize {
        (self.limit / IN_FLIGHT).max(LEAST_IN_FLIGHT)
    }

    /// Counts messages on their way beside state, from the first call on.
    pub fn count_in_flight(&self, in_flight: impl Fn() -> usize + Send + Sync + 'static) {
        self.in_flight.get_or_init(|| Box::new(in_flight));
    }

    /// The bytes of state in memory, and of messages on their way.
    fn taken(&self) -> usize {
        let in_flight = self.in_flight.get().map_or(0, |in_flight| in_flight());
        self.used().saturating_add(in_flight)
    }

    /// Whether state is over its share.
    pub fn is_over(&self) -> bool {
        self.taken() > self.share()
    }

    /// The bytes by which state is over its share.
    pub(crate) fn excess(&self) -> usize {
        self.taken().saturating_sub(self.share())
    }

    /// Has one call of the disk fail, after so many that do not; for tests.
    pub fn fail_after(&self, calls: u32) {
        self.faults.store(calls.into(), Ordering::Relaxed);
    }

    /// Returns the error of a call of the disk that is to fail.
    pub(crate) fn attempt(&self) -> io::Result<()> {
        if self.faults.load(Ordering::Relaxed) < 0
            || self.faults.fetch_sub(1, Ordering::Relaxed) != 0
        {
            return Ok(());
        }
        Err(io::Error::other("a test has this call fail"))
    }

    /// The bytes that state may take in memory.
    fn share(&self) -> usize {
        self.limit - self.limit / CACHE
    }

    /// Whether a new batch of so many bytes is to be stored.
    pub(crate) fn stores(&self, bytes: usize) -> bool {
        bytes >= self.small() && self.taken().saturating_add(bytes) > self.share()
    }

    /// Pages have at least so many bytes in memory; small budgets, for tests, have small pages.
    pub(crate) fn page_bytes(&self) -> usize {
        (self.limit >> 10).clamp(32, 1 << 17)
    }

    /// Batches of fewer bytes stay in memory: none that is stored is less than a page, which would be in memory again.
    fn small(&self) -> usize {
        SMALL.min(self.limit / PART).max(self.page_bytes())
    }

    pub(crate) fn next_file(&self) -> u64 {
        self.files.fetch_add(1, Ordering::Relaxed)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Budget");
        debug
            .field("limit", &self.limit)
            .field("used", &self.used());
        debug.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_on_their_way_count() {
        let folder = tempfile::tempdir().unwrap();
        let budget = Budget::new(64 << 20, folder.path()).unwrap();
        assert_eq!(budget.most_in_flight(), 8 << 20);
        budget.used.store(40 << 20, Ordering::Relaxed);
        assert!(!budget.is_over() && !budget.stores(8 << 20));
        let in_flight = Arc::new(AtomicUsize::new(4 << 20));
        let counted = Arc::clone(&in_flight);
        budget.count_in_flight(move || counted.load(Ordering::Relaxed));
        assert!(!budget.is_over() && budget.stores(8 << 20));
        in_flight.store(9 << 20, Ordering::Relaxed);
        assert!(budget.is_over());
        assert_eq!((budget.excess(), budget.used()), (1 << 20, 40 << 20));
    }
}
