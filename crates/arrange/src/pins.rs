//! The pages that kernels read, of a list of batches.
//!
//! Owns [`Pins`]. A batch in memory is there as it is; of one on disk the page is there that has the key that was sought
//! last, and pages that were sought since the last [`release`](Pins::release): positions in them stay valid until then.
//! Batches own no pages, so that a page can be dropped while its batch is shared. Invariant: a batch on disk is read
//! forwards.

use std::ops::Index;

use crate::batch::{Batch, Page};
use crate::error::Error;
use crate::rows::Rows;
use crate::time::Time;

/// Batches, and the pages of them that are read now.
#[derive(Debug)]
pub(crate) struct Pins<K, V, T> {
    /// The page of each batch, and earlier pages behind them, which are referred to.
    pages: Vec<Page<K, V, T>>,
    /// The batches on disk: the number of each, and its next page.
    stored: Vec<OnDisk<K, V, T>>,
    /// The page of each batch among `pages`; empty where each has the number of its batch.
    slots: Vec<usize>,
    count: usize,
    /// For the hashes of keys.
    memory: Vec<u8>,
}

#[derive(Debug)]
struct OnDisk<K, V, T> {
    index: usize,
    batch: Batch<K, V, T>,
    /// The number of the page after the one that is read.
    next: usize,
}

impl<K: Rows, V: Rows, T: Time> OnDisk<K, V, T> {
    /// Makes a page the one that is read.
    fn read(
        &mut self,
        page: usize,
        pages: &mut Vec<Page<K, V, T>>,
        slots: &mut [usize],
    ) -> Result<(), Error> {
        slots[self.index] = pages.len();
        pages.push(self.batch.page_for_look_up(page)?);
        self.next = page + 1;
        Ok(())
    }
}

impl<K: Rows, V: Rows, T: Time> Pins<K, V, T> {
    /// The batches, each at its beginning.
    pub(crate) fn new(batches: Vec<Batch<K, V, T>>) -> Self {
        let pages = batches.iter().map(Batch::page_here).collect();
        let count = batches.len();
        let on_disk = |(index, batch): (usize, Batch<K, V, T>)| {
            batch.is_stored().then_some(OnDisk {
                index,
                batch,
                next: 0,
            })
        };
        let stored: Vec<_> = batches
            .into_iter()
            .enumerate()
            .filter_map(on_disk)
            .collect();
        let slots = if stored.is_empty() {
            Vec::new()
        } else {
            (0..count).collect()
        };
        Self {
            pages,
            stored,
            slots,
            count,
            memory: Vec::new(),
        }
    }

    /// The place of the current page of a batch.
    #[inline]
    pub(crate) fn slot(&self, batch: usize) -> usize {
        if self.slots.is_empty() {
            batch
        } else {
            self.slots[batch]
        }
    }

    /// The current page of a batch.
    #[inline]
    pub(crate) fn current(&self, batch: usize) -> &Page<K, V, T> {
        &self.pages[self.slot(batch)]
    }

    /// Goes to the pages in which `key` is, if it is there, at or after the positions `at`.
    #[inline]
    pub(crate) fn seek(&mut self, at: &mut [usize], key: K::Item<'_>) -> Result<(), Error> {
        if self.stored.is_empty() {
            return Ok(());
        }
        self.seek_stored(at, key)
    }

    /// Goes to the pages that may have `key`, as [`seek`](Self::seek), and leaves those out of which the filter says
    /// that they do not. Returns whether none was left out: only then the next keys are at or after `key`.
    #[inline]
    pub(crate) fn look_up(&mut self, at: &mut [usize], key: K::Item<'_>) -> Result<bool, Error> {
        if self.stored.is_empty() {
            return Ok(true);
        }
        let hash = K::hash(key, &mut self.memory);
        let mut is_exact = true;
        for on_disk in &mut self.stored {
            let now = on_disk.next.saturating_sub(1);
            let page = on_disk.batch.page_of(now, key);
            if page < on_disk.next {
                continue;
            }
            if on_disk.batch.may_have(page, hash)? {
                on_disk.read(page, &mut self.pages, &mut self.slots)?;
                at[on_disk.index] = 0;
            } else {
                is_exact = false;
            }
        }
        Ok(is_exact)
    }

    fn seek_stored(&mut self, at: &mut [usize], key: K::Item<'_>) -> Result<(), Error> {
        for on_disk in &mut self.stored {
            let now = on_disk.next.saturating_sub(1);
            let page = on_disk.batch.page_of(now, key);
            if page >= on_disk.next {
                on_disk.read(page, &mut self.pages, &mut self.slots)?;
                at[on_disk.index] = 0;
            }
        }
        Ok(())
    }

    /// Goes to the next page of each batch of which the position is at the end of one.
    #[inline]
    pub(crate) fn turn(&mut self, at: &mut [usize]) -> Result<(), Error> {
        for on_disk in &mut self.stored {
            let page = &self.pages[self.slots[on_disk.index]];
            if at[on_disk.index] == page.keys().len() && on_disk.next < on_disk.batch.pages() {
                on_disk.read(on_disk.next, &mut self.pages, &mut self.slots)?;
                at[on_disk.index] = 0;
            }
        }
        Ok(())
    }

    /// Lets go of all pages but the current ones: nothing refers to a position in them.
    #[inline]
    pub(crate) fn release(&mut self) {
        if self.pages.len() == self.count {
            return;
        }
        for on_disk in &self.stored {
            let slot = std::mem::replace(&mut self.slots[on_disk.index], on_disk.index);
            self.pages.swap(on_disk.index, slot);
        }
        self.pages.truncate(self.count);
    }
}

impl<K, V, T> Index<usize> for Pins<K, V, T> {
    type Output = Page<K, V, T>;

    /// The page at a place.
    #[inline]
    fn index(&self, slot: usize) -> &Page<K, V, T> {
        &self.pages[slot]
    }
}
