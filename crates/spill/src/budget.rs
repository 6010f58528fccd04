//! The budget of a process.
//!
//! Owns [`Budget`]: what state takes by operator, the cache of pages, the folder of files, and the counts of what was read
//! and written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pointstamp_arrange::Decoded;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::account::Account;

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
    used: AtomicUsize,
    accounts: Mutex<Vec<Weak<Account>>>,
    pub(crate) cache: Cache<PageId, Cached, Bytes>,
    files: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) read: AtomicU64,
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
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
            accounts: Mutex::default(),
            // Pages are of some 100 KiB.
            cache: Cache::with_weighter((limit / CACHE) >> 16, weight, Bytes),
            files: AtomicU64::new(0),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }))
    }

    /// Opens the account of an operator. `wake` has the operator run: it is called on any thread where the operator
    /// should store state.
    pub fn account(
        self: &Arc<Self>,
        operator: &str,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Account> {
        let account = Account::new(self, operator, Box::new(wake));
        let mut accounts = self.accounts.lock();
        accounts.retain(|account| account.strong_count() > 0);
        accounts.push(Arc::downgrade(&account));
        account
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
        let accounts = self.accounts.lock();
        let accounts = accounts.iter().filter_map(Weak::upgrade);
        accounts.map(|account| account.on_disk()).sum()
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

    /// Whether state is over its share, so that sources should wait until it is not.
    pub fn is_over(&self) -> bool {
        self.used() > self.share()
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
        (self.limit >> 10).clamp(256, 1 << 17)
    }

    /// Batches of fewer bytes stay in memory.
    pub(crate) fn small(&self) -> usize {
        SMALL.min(self.limit / PART)
    }

    /// Replaces the bytes of an account.
    pub(crate) fn changes(&self, before: usize, now: usize) {
        if now >= before {
            self.used.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.used.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    /// The account with most bytes in memory.
    pub(crate) fn largest(&self) -> Option<Arc<Account>> {
        let accounts = self.accounts.lock();
        let accounts = accounts.iter().filter_map(Weak::upgrade);
        accounts.max_by_key(|account| account.bytes())
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
    use std::sync::atomic::AtomicBool;

    use pointstamp_arrange::Storage;

    use super::*;

    #[test]
    fn batches_are_stored_where_state_would_be_over_its_share() {
        let folder = tempfile::tempdir().unwrap();
        let budget = Budget::new(64 << 20, folder.path()).unwrap();
        let account = budget.account("a", || ());
        assert!(!account.set(40 << 20, 0));
        assert!(!account.stores(8 << 20), "three quarters are for state");
        assert!(account.stores(9 << 20));
        assert!(!account.stores(1 << 10), "small batches stay");
        assert!(account.set(49 << 20, 5));
        assert_eq!((budget.used(), budget.on_disk()), (49 << 20, 5));
        drop(account);
        assert_eq!((budget.used(), budget.on_disk()), (0, 0));
    }

    #[test]
    fn the_operator_with_most_in_memory_stores() {
        let folder = tempfile::tempdir().unwrap();
        let budget = Budget::new(1 << 20, folder.path()).unwrap();
        let woken = Arc::new(AtomicBool::new(false));
        let wakes = Arc::clone(&woken);
        let large = budget.account("large", move || wakes.store(true, Ordering::Relaxed));
        let small = budget.account("small", || panic!("it is smaller"));
        assert!(!large.set(700 << 10, 0));
        assert!(!small.set(100 << 10, 0));
        assert!(woken.load(Ordering::Relaxed), "the other is woken");
        assert!(large.set(700 << 10, 0));
        assert!(!large.set(10 << 10, 0));
        assert!(!budget.is_over());
    }
}
