//! Reading a checkpoint: which sections it has, and their contents.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::entry::{Manifest, Pack};
use crate::error::Error;
use crate::log;
use crate::names::{self, Lineage};
use crate::pack::{Contents, Label, PackReader, Pages, SectionRef};
use crate::store::Store;

/// A section of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The worker that had it.
    pub worker: u32,
    /// The label.
    pub label: Label,
    /// The position.
    pub section: SectionRef,
}

/// A checkpoint that is read. Packs are opened when they are needed, and once.
#[derive(Debug, Clone)]
pub struct Reader(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Arc<dyn Store>,
    lineage: Lineage,
    manifest: Manifest,
    packs: Mutex<HashMap<String, PackReader>>,
}

impl Reader {
    /// Returns the reader of a checkpoint of a location.
    pub fn new(store: Arc<dyn Store>, lineage: Lineage, manifest: Manifest) -> Self {
        Reader(Arc::new(Inner {
            store,
            lineage,
            manifest,
            packs: Mutex::default(),
        }))
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    fn by(&self) -> String {
        names::log(self.0.manifest.number)
    }

    /// Checks that the store has all packs, of the right lengths.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] or [`Error::Damaged`] for the first that it has not.
    pub fn check(&self) -> Result<(), Error> {
        let listed = log::packs(&*self.0.store)?;
        let sizes: HashMap<String, u64> = listed
            .into_iter()
            .map(|(name, _, size)| (name, size))
            .collect();
        for pack in &self.0.manifest.packs {
            let Some(&size) = sizes.get(&pack.name) else {
                return Err(Error::Missing {
                    object: pack.name.clone(),
                    by: self.by(),
                });
            };
            if size != pack.size {
                let what = format!("it has {size} bytes, and {} says {}", self.by(), pack.size);
                return Err(Error::damaged(&pack.name, size.min(pack.size), what));
            }
        }
        Ok(())
    }

    /// Opens a pack of this checkpoint.
    ///
    /// # Errors
    ///
    /// Errors of the store, and of a pack that differs from the manifest.
    pub fn pack(&self, name: &str) -> Result<PackReader, Error> {
        let mut packs = self.0.packs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pack) = packs.get(name) {
            return Ok(pack.clone());
        }
        let Some(named) = self.0.manifest.pack(name) else {
            let what = format!("{} needs {name}, which it does not name", self.by());
            return Err(Error::damaged(self.by(), 0, what));
        };
        let opened = self.open(named)?;
        packs.insert(name.to_owned(), opened.clone());
        Ok(opened)
    }

    fn open(&self, named: &Pack) -> Result<PackReader, Error> {
        let store = self.0.store.clone();
        let pack = PackReader::open(store, &named.name, named.size, self.0.lineage, &self.by())?;
        if pack.sum() != named.sum {
            let what = format!("it is not the pack that {} names", self.by());
            return Err(Error::damaged(&named.name, 0, what));
        }
        Ok(pack)
    }

    /// Returns all sections, in the order of workers and, for each, in which they were written.
    ///
    /// # Errors
    ///
    /// The errors of [`Reader::pack`].
    pub fn sections(&self) -> Result<Vec<Found>, Error> {
        let mut roots: Vec<(u32, &Pack)> = Vec::new();
        for pack in &self.0.manifest.packs {
            roots.extend(pack.worker.map(|worker| (worker, pack)));
        }
        roots.sort_unstable_by_key(|(worker, _)| *worker);
        let mut found = Vec::new();
        for (worker, named) in roots {
            let pack = self.pack(&named.name)?;
            for (index, section) in (0..).zip(pack.sections()) {
                let at = match &section.contents {
                    Contents::Referred(section) => Some(section.clone()),
                    Contents::Stored { .. } => pack.stored(index),
                };
                found.extend(at.map(|at| Found {
                    worker,
                    label: section.label.clone(),
                    section: at,
                }));
            }
        }
        Ok(found)
    }

    /// Reads a section.
    ///
    /// # Errors
    ///
    /// Errors of the store, and [`Error::Damaged`].
    pub fn read(&self, section: &SectionRef) -> Result<Bytes, Error> {
        self.pack(&section.pack)?.read(section)
    }

    /// Returns the pages of a section, which are read one [`READ`](crate::pack::READ) at a time.
    ///
    /// # Errors
    ///
    /// The errors of [`Reader::pack`].
    pub fn pages(&self, section: &SectionRef) -> Result<Pages, Error> {
        self.pack(&section.pack)?.pages(section)
    }
}
