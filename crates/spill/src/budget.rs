//! The budget of a process.
//!
//! Owns [`Budget`]: what state takes by operator, the cache of pages, the folder of files, and the counts of what was read
//! and written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use pointstamp_arrange::Decoded;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// The part of the budget that is for the cache: one of so many.
const CACHE: usize = 4;

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

    /// Whether state is over its share.
    pub fn is_over(&self) -> bool {
        self.used() > self.share()
    }

    /// The bytes by which state is over its share.
    pub(crate) fn excess(&self) -> usize {
        self.used().saturating_sub(self.share())
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
        bytes >= self.small() && self.used().saturating_add(bytes) > self.share()
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
