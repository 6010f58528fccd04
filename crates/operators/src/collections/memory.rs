//! The memory of an operator's state, where the process has a budget.
//!
//! Owns [`Memory`]. An operator says after each run what its state takes, and stores some of it when it is asked to.

use std::sync::Arc;

use pointstamp_arrange::{Error as KernelError, Storage};
use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_spill::{Account, Budget};

use crate::batch::Batch;

/// The account of an operator; none without a budget.
pub(crate) struct Memory(Option<Arc<Account>>);

impl Memory {
    /// Opens the account of an operator that is being built.
    pub(crate) fn of(builder: &OperatorBuilder<Batch>, name: &str) -> Self {
        let budget = builder.scope().worker().resource::<Budget>();
        Memory(budget.map(|budget| Account::new(&budget, name)))
    }

    /// The storage of its batches.
    pub(crate) fn storage(&self) -> Option<Arc<dyn Storage>> {
        let account = self.0.clone();
        account.map(|account| account as Arc<dyn Storage>)
    }

    /// Says what the state takes, as `size` returns it: bytes in memory, and on disk. Returns whether some of it is to be
    /// stored.
    pub(crate) fn is_to_store(&self, size: impl FnOnce() -> (usize, u64)) -> bool {
        let Some(account) = &self.0 else {
            return false;
        };
        let (bytes, on_disk) = size();
        account.set(bytes, on_disk)
    }
}

/// The error of an operator whose kernel failed: the cause itself, where there is one.
pub(crate) fn caused(error: KernelError) -> BoxError {
    match error {
        KernelError::Overflow => pointstamp_arrange::Overflow.into(),
        KernelError::Caller(cause) => cause,
        KernelError::Storage(error) => error.into(),
        KernelError::Page(_) | KernelError::Damaged(_) => error.into(),
    }
}
