//! Packs are written and read piece by piece.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use pointstamp_store::pack::READ;
use pointstamp_store::page::{HEADER, USUAL};
use pointstamp_store::{
    Checkpoint, Cloud, Creation, Label, Listed, Local, Location, Store, StoreError, Upload,
};

/// A store that notes the largest piece that was written or read.
#[derive(Debug)]
struct Measured {
    store: Arc<dyn Store>,
    largest: Arc<AtomicU64>,
}

struct MeasuredUpload(Box<dyn Upload>, Arc<AtomicU64>);

impl Upload for MeasuredUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.1.fetch_max(bytes.len() as u64, Ordering::Relaxed);
        self.0.write(bytes)
    }

    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        self.0.finish()
    }
}

impl Store for Measured {
    fn place(&self) -> String {
        self.store.place()
    }

    fn upload(&self, name: &str) -> Result<Box<dyn Upload>, StoreError> {
        let upload = self.store.upload(name)?;
        Ok(Box::new(MeasuredUpload(upload, self.largest.clone())))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, StoreError> {
        self.store.create(name, bytes)
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        self.store.get(name)
    }

    fn read(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        self.largest
            .fetch_max(range.end - range.start, Ordering::Relaxed);
        self.store.read(name, range)
    }

    fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError> {
        self.store.list(folder)
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.store.delete(name)
    }

    fn sweep(&self, dead: &dyn Fn(&str) -> bool) -> Result<(), StoreError> {
        self.store.sweep(dead)
    }
}

#[test]
fn a_large_section_passes_in_pieces() {
    let largest = Arc::new(AtomicU64::new(0));
    let store = Measured {
        store: Arc::new(Cloud::default().client()),
        largest: largest.clone(),
    };
    let location = Location::new(Arc::new(store));
    let mut execution = location.open(1, None).unwrap().execution;
    let mut writer = execution
        .begin()
        .unwrap()
        .writer(location.store(), 0)
        .unwrap();
    let label = Label {
        operator: "a".to_owned(),
        part: "state".to_owned(),
        codec: "test".to_owned(),
        version: 1,
        groups: None,
    };
    let mut piece = vec![0; 100_000];
    let mut random = fastrand::Rng::with_seed(7);
    let mut section = writer.section(label);
    for _ in 0..80 {
        random.fill(&mut piece);
        std::io::Write::write_all(&mut section, &piece).unwrap();
    }
    let section = section.finish().unwrap();
    assert_eq!(
        (section.len, writer.position()),
        (8_000_000, section.stored)
    );
    let packed = writer.finish().unwrap();
    assert_eq!(largest.swap(0, Ordering::Relaxed), (HEADER + USUAL) as u64);

    execution.commit(Checkpoint::default(), &[packed]).unwrap();
    let reader = location.read(None).unwrap().unwrap();
    let lengths = reader
        .pages(&section)
        .unwrap()
        .map(|page| page.unwrap().len());
    assert_eq!(lengths.sum::<usize>(), 8_000_000);
    assert_eq!(largest.load(Ordering::Relaxed), READ);
}

#[test]
fn what_an_object_does_not_have_is_not_allocated() {
    let folder = tempfile::tempdir().unwrap();
    let store = Local::new(folder.path());
    store.put("packs/1.1.0", b"short").unwrap();
    // An allocation of this length would end the process.
    assert!(store.read("packs/1.1.0", 0..1 << 60).unwrap_err().is_cut());
}
