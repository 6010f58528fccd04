//! Storage in memory, so that tests run with batches that are stored.

#![allow(dead_code)] // each test uses a part of it

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pointstamp_arrange::{
    Batch, Batcher, Decoded, File, Page, Rows, Storage, StorageError, Time, Writer,
};
use pointstamp_order::Antichain;

/// The storage of all arrangements of a test: where `POINTSTAMP_STORED` is set every batch that fills a page is stored.
pub(crate) fn storage() -> Option<Arc<dyn Storage>> {
    std::env::var_os("POINTSTAMP_STORED").map(|_| Arc::new(InMemory::default()) as _)
}

/// A batcher with this storage.
pub(crate) fn batcher<K: Rows, V: Rows, T: Time>(lower: Antichain<T>) -> Batcher<K, V, T> {
    let mut batcher = Batcher::new(lower);
    batcher.store_in(storage());
    batcher
}

/// The pages of a batch.
pub(crate) fn pages<K: Rows, V: Rows, T: Time>(batch: &Batch<K, V, T>) -> Vec<Page<K, V, T>> {
    let pages = (0..batch.pages()).map(|page| batch.page(page).unwrap());
    pages.collect()
}

/// Stores everything.
#[derive(Debug, Default)]
pub(crate) struct InMemory {
    /// The bytes that were read.
    pub(crate) read: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Pages {
    written: Vec<Vec<u8>>,
    read: Arc<AtomicUsize>,
    /// One page, so that others are read again.
    cached: Mutex<Option<(usize, Decoded)>>,
}

impl Storage for InMemory {
    fn stores(&self, _bytes: usize) -> bool {
        true
    }

    fn page_bytes(&self) -> usize {
        256
    }

    fn create(&self) -> Result<Box<dyn Writer>, StorageError> {
        Ok(Box::new(Pages {
            read: Arc::clone(&self.read),
            ..Pages::default()
        }))
    }
}

impl Writer for Pages {
    fn append(&mut self, page: &[u8]) -> Result<(), StorageError> {
        self.written.push(page.to_vec());
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Arc<dyn File>, StorageError> {
        Ok(Arc::new(*self))
    }
}

impl File for Pages {
    fn read(&self, page: usize) -> Result<Vec<u8>, StorageError> {
        let page = self.written[page].clone();
        self.read.fetch_add(page.len(), Ordering::Relaxed);
        Ok(page)
    }

    fn cached(&self, page: usize) -> Option<Decoded> {
        let cached = self.cached.lock().unwrap();
        let (of, contents) = cached.as_ref()?;
        (*of == page).then(|| Arc::clone(contents))
    }

    fn cache(&self, page: usize, contents: Decoded, _bytes: usize) {
        *self.cached.lock().unwrap() = Some((page, contents));
    }

    fn bytes(&self) -> u64 {
        self.written.iter().map(|page| page.len() as u64).sum()
    }
}
