//! The account of an operator.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use pointstamp_arrange::{Storage, StorageError, Writer};

use crate::budget::Budget;
use crate::file::Pages;

/// The state of one operator: what it takes, and where what is over goes. Closed when it is dropped.
pub struct Account {
    pub(crate) budget: Arc<Budget>,
    pub(crate) operator: String,
    bytes: AtomicUsize,
    on_disk: AtomicU64,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Account {
    pub(crate) fn new(
        budget: &Arc<Budget>,
        operator: &str,
        wake: Box<dyn Fn() + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Account {
            budget: Arc::clone(budget),
            operator: operator.to_owned(),
            bytes: AtomicUsize::new(0),
            on_disk: AtomicU64::new(0),
            wake,
        })
    }

    /// Says what the state takes now, in memory and on disk. Returns whether the operator is to store some of it:
    /// its state is the largest, and all state together is over its share. Where another operator's is, that is woken.
    pub fn set(self: &Arc<Self>, bytes: usize, on_disk: u64) -> bool {
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        self.on_disk.store(on_disk, Ordering::Relaxed);
        self.budget.changes(before, bytes);
        if !self.budget.is_over() {
            return false;
        }
        match self.budget.largest() {
            Some(largest) if !Arc::ptr_eq(&largest, self) => {
                (largest.wake)();
                false
            }
            _ => true,
        }
    }

    /// The bytes of state in memory.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The bytes of state on disk.
    pub fn on_disk(&self) -> u64 {
        self.on_disk.load(Ordering::Relaxed)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.budget.changes(self.bytes(), 0);
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Account");
        debug.field("operator", &self.operator);
        debug.field("bytes", &self.bytes()).finish_non_exhaustive()
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
        Ok(Box::new(Pages::create(self)?))
    }
}
