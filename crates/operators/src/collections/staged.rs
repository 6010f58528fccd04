//! Updates that wait for their times to be complete, and the right to send them then.
//!
//! Owns the kernel's batcher, and the capabilities of its updates.
//!
//! Invariant: while updates are held, capabilities are held whose times are at or before each of theirs: first the
//! messages' own, and, once something was sealed, the least times of the rest.
//!
//! Cost: `O(n log n)` for `n` updates; the number of capabilities is that of incomparable least times.

use std::sync::Arc;

use pointstamp_arrange::{Batcher, Rows, Storage};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::Restored;
use pointstamp_engine::port::MessageCapability;
use pointstamp_order::{Antichain, PartialOrder, Point};

pub(crate) use super::checkpoint::Run;
use super::checkpoint::{Parts as StateParts, capabilities};
use super::memory::caused;
use super::time::ScopeTime;
use crate::Error;
use pointstamp_rows::{Cells, Layout, Row};

/// Updates in sorted runs, and the frontier before which there are none.
pub(crate) type Waiting<T> = (Vec<Run<T>>, Antichain<T>);

/// The complete updates, each part with the capability to send it.
pub(crate) type Parts<T> = Vec<(Capability, Run<T>)>;

/// The updates, and the capabilities for them.
pub(crate) struct Staged<T> {
    batcher: Batcher<Cells, Cells, T>,
    capabilities: Vec<Capability>,
}

impl<T: ScopeTime> Staged<T> {
    pub(crate) fn new(dims: usize) -> Self {
        let least = T::of(&Point::minimum(dims));
        Staged {
            batcher: Batcher::new(Antichain::from_elem(least)),
            capabilities: Vec::new(),
        }
    }

    /// Restores the updates of a checkpoint.
    pub(crate) fn restored(
        restored: &mut Restored,
        parts: &mut StateParts<T>,
    ) -> Result<Self, Error> {
        let batcher = Batcher::restored(parts.upper.clone(), std::mem::take(&mut parts.staged));
        Ok(Staged {
            capabilities: capabilities(restored, batcher.frontier())?,
            batcher,
        })
    }

    /// The updates, and the frontier before which they were sealed.
    pub(crate) fn kept(&mut self) -> Result<Waiting<T>, BoxError> {
        let runs = self.batcher.runs().map_err(caused)?;
        Ok((runs, self.batcher.lower().clone()))
    }

    /// Has updates stored where the storage asks for it.
    pub(crate) fn store_in(&mut self, storage: Option<Arc<dyn Storage>>) {
        self.batcher.store_in(storage);
    }

    /// The bytes that the updates take, in memory and on disk.
    pub(crate) fn size(&self) -> (usize, u64) {
        self.batcher.size()
    }

    /// Stores some of the updates, where the storage asks for it.
    pub(crate) fn store(&mut self) -> Result<(), BoxError> {
        self.batcher.store().map_err(caused)
    }

    /// Keeps the right to send at a message's time or later.
    pub(crate) fn hold(&mut self, message: &MessageCapability) -> Result<(), BoxError> {
        hold(&mut self.capabilities, message)
    }

    /// Whether there are updates.
    pub(crate) fn is_holding(&self) -> bool {
        !self.capabilities.is_empty()
    }

    /// Adds an update of a message that is held.
    #[inline]
    pub(crate) fn push(
        &mut self,
        key: Row<'_>,
        value: Row<'_>,
        time: &T,
        diff: i64,
    ) -> Result<(), BoxError> {
        self.batcher.push(key, value, time, diff).map_err(caused)
    }

    /// Adds updates of a message that is held, all at one time, of rows that are keys.
    pub(crate) fn extend_at(
        &mut self,
        keys: &Cells,
        time: &T,
        diffs: &[i64],
    ) -> Result<(), BoxError> {
        let vals = Cells::of_ints(Layout::NONE, keys.len(), Vec::new());
        self.batcher
            .extend_at(keys, &vals, time, diffs)
            .map_err(caused)
    }

    /// Begins to take out the updates before a frontier.
    pub(crate) fn begin(&mut self, frontier: &Antichain<T>) -> Result<(), BoxError> {
        self.batcher.begin_seal(frontier).map_err(caused)
    }

    /// True during a seal.
    pub(crate) fn is_sealing(&self) -> bool {
        self.batcher.is_sealing()
    }

    /// Continues a seal until the fuel is used up; when it is complete, returns the parts, each with the
    /// capability to send it.
    pub(crate) fn seal(&mut self, fuel: &mut usize) -> Result<Option<Parts<T>>, BoxError> {
        let Some(sealed) = self.batcher.work(fuel).map_err(caused)? else {
            return Ok(None);
        };
        let mut parts = Vec::with_capacity(sealed.len());
        for (time, run) in sealed {
            parts.push((delayed(&self.capabilities, &time.point())?, run));
        }
        let least = self.batcher.frontier().iter();
        let kept = least.map(|time| delayed(&self.capabilities, &time.point()));
        self.capabilities = kept.collect::<Result<_, _>>()?;
        Ok(Some(parts))
    }
}

/// Adds a message's capability to a list in which none is before another.
pub(crate) fn hold(
    capabilities: &mut Vec<Capability>,
    message: &MessageCapability,
) -> Result<(), BoxError> {
    let time = message.time();
    if !capabilities.iter().any(|held| held.time().less_equal(time)) {
        let held = message.retain(0)?;
        capabilities.retain(|other| !time.less_equal(other.time()));
        capabilities.push(held);
    }
    Ok(())
}

/// Returns a capability for a time at or after one of the held ones.
pub(crate) fn delayed(capabilities: &[Capability], time: &Point) -> Result<Capability, BoxError> {
    match capabilities
        .iter()
        .find(|held| held.time().less_equal(time))
    {
        Some(held) => Ok(held.delayed(time)?),
        None => Err(format!("no capability is held for the updates at {time}").into()),
    }
}
