//! The account of an operator.

use std::fmt;
use std::sync::Arc;

use pointstamp_arrange::{Storage, StorageError, Writer};

use crate::budget::{Budget, Holding};
use crate::file::Pages;

/// The state of one operator: what it takes, and where what is over goes. Closed when it is dropped.
pub struct Account {
    budget: Arc<Budget>,
    operator: String,
    holding: Arc<Holding>,
}

impl Account {
    /// Opens the account of an operator.
    pub fn new(budget: &Arc<Budget>, operator: &str) -> Arc<Self> {
        Arc::new(Account {
            budget: Arc::clone(budget),
            operator: operator.to_owned(),
            holding: budget.holding(),
        })
    }

    /// Says what the state takes now, in memory and on disk. Returns whether the operator is to store some of it, since
    /// all state together is over its share. Operators that do not run keep what they have.
    pub fn set(&self, bytes: usize, on_disk: u64) -> bool {
        self.budget.set(&self.holding, bytes, on_disk);
        self.budget.is_over()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.budget.set(&self.holding, 0, 0);
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Account");
        debug.field("operator", &self.operator);
        debug
            .field("bytes", &self.holding.bytes())
            .finish_non_exhaustive()
    }
}

impl Storage for Account {
    fn stores(&self, bytes: usize) -> bool {
        self.budget.stores(bytes)
    }

    fn page_bytes(&self) -> usize {
        self.budget.page_bytes()
    }

    fn create(&self) -> Result<Box<dyn Writer>, StorageError> {
        Ok(Box::new(Pages::create(&self.budget, &self.operator)?))
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
