//! The account of an operator.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use pointstamp_arrange::{Storage, StorageError, Writer};

use crate::budget::Budget;
use crate::file::Pages;
use crate::site::Site;

/// The state of one operator: what it takes, and where what is over goes. Closed when it is dropped.
pub struct Account {
    site: Site,
    bytes: AtomicUsize,
    on_disk: AtomicU64,
}

impl Account {
    /// Opens the account of an operator.
    pub fn new(budget: &Arc<Budget>, operator: &str) -> Arc<Self> {
        Arc::new(Account {
            site: Site {
                budget: Arc::clone(budget),
                operator: operator.into(),
            },
            bytes: AtomicUsize::new(0),
            on_disk: AtomicU64::new(0),
        })
    }

    /// Says what the state takes now, in memory and on disk. Returns whether the operator is to store some of it, since
    /// all state together is over its share. Operators that do not run keep what they have.
    pub fn set(&self, bytes: usize, on_disk: u64) -> bool {
        // Differences may be negative: these numbers wrap.
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        let difference = bytes.wrapping_sub(before);
        self.site
            .budget
            .used
            .fetch_add(difference, Ordering::Relaxed);
        let before = self.on_disk.swap(on_disk, Ordering::Relaxed);
        let difference = on_disk.wrapping_sub(before);
        self.site
            .budget
            .on_disk
            .fetch_add(difference, Ordering::Relaxed);
        self.site.budget.is_over()
    }

    /// Returns the bytes by which all state together is over its share.
    pub fn excess(&self) -> usize {
        self.site.budget.excess()
    }

    /// Opens another account of the operator.
    pub fn another(&self) -> Arc<Self> {
        Self::new(&self.site.budget, &self.site.operator)
    }

    pub(crate) fn site(&self) -> &Site {
        &self.site
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.set(0, 0);
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Account");
        debug.field("operator", &self.site.operator);
        debug.field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Storage for Account {
    fn stores(&self, bytes: usize) -> bool {
        self.site.budget.stores(bytes)
    }

    fn page_bytes(&self) -> usize {
        self.site.budget.page_bytes()
    }

    fn create(&self) -> Result<Box<dyn Writer>, StorageError> {
        let made = Pages::create(&self.site).map_err(StorageError::new)?;
        Ok(Box::new(made))
    }
}

#[cfg(test)]
mod tests {
    use pointstamp_arrange::Storage;

    use super::*;

    #[test]
    fn batches_are_stored_where_state_would_be_over_its_share() {
        let folder = tempfile::tempdir().unwrap();
        let budget = Budget::new(64 << 20, folder.path()).unwrap();
        let account = Account::new(&budget, "a");
        assert!(!account.set(40 << 20, 0));
        assert!(!account.stores(8 << 20), "three quarters are for state");
        assert!(account.stores(9 << 20));
        assert!(!account.stores(1 << 10), "small batches stay");
        assert!(account.set(49 << 20, 5));
        assert_eq!((budget.used(), budget.on_disk()), (49 << 20, 5));
        drop(account);
        assert_eq!((budget.used(), budget.on_disk()), (0, 0));
    }
}
