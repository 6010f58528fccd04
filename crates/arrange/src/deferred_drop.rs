//! Memory that is not used any more, freed in parts.
//!
//! Owns [`DeferredDrop`]. To free a batch of tens of millions of updates at once takes as long as merging many small ones, since
//! its pages go back one by one. Small batches are freed at once; of large ones a column at a time.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::batch::{Batch, Body};
use crate::rows::Rows;
use crate::time::Time;

/// A batch of fewer bytes is freed at once.
const SMALL: usize = 1 << 16;
/// So many bytes are freed for a unit of fuel.
const FREED: usize = 1 << 8;

/// Columns that wait, and the bytes of each.
#[derive(Default)]
pub(crate) struct DeferredDrop {
    parts: VecDeque<(usize, Box<dyn Send + Sync>)>,
}

impl DeferredDrop {
    /// Takes a batch over, unless another owner holds it, which frees it then.
    pub(crate) fn add<K: Rows, V: Rows, T: Time>(&mut self, batch: Batch<K, V, T>) {
        if let Body::Here(columns) = batch.body
            && columns.bytes() >= SMALL
            && let Some(columns) = Arc::into_inner(columns)
        {
            let large = columns.into_parts().into_iter();
            self.parts.extend(large.filter(|(bytes, _)| *bytes > 0));
        }
    }

    /// Frees a column, and others while the fuel lasts.
    pub(crate) fn release(&mut self, fuel: &mut usize) {
        while *fuel > 0
            && let Some((bytes, _)) = self.parts.pop_front()
        {
            *fuel = fuel.saturating_sub(1 + bytes / FREED);
        }
    }

    /// True when nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(|(bytes, _)| bytes).sum()
    }
}

impl fmt::Debug for DeferredDrop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DeferredDrop")
            .field("bytes", &self.bytes())
            .finish()
    }
}
