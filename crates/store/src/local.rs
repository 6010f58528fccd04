//! A store in a folder.
//!
//! An object is a file. It is written under a temporary name beside its own (`.7.3f2a.tmp` for `log/7`), synced, and
//! then linked or renamed to its name; then the folder is synced. A link never replaces a file, so that of two
//! creations one fails. So an object that exists has all of its bytes after any power failure, and an object whose
//! creation was confirmed exists.
//!
//! A creation that finds the object present syncs the folder before it reports so: the link may be another's that is
//! not yet durable, or its own, whose sync failed.
//!
//! Two programs may use the folder at once. A network file system must have links, and list a name to everyone as soon as it exists: NFS does
//! with `noac`.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::disk::{Disk, Files, OpenFile};
use crate::error::StoreError;
use crate::store::{Creation, Listed, Store, Upload, cut};

/// The suffix of temporary names.
const TEMPORARY: &str = ".tmp";

/// The number of times that a write is repeated because its temporary file was swept.
const SWEPT: u32 = 20;

/// A store in a folder of a disk.
#[derive(Debug, Clone)]
pub struct Local(Arc<Folder>);

struct Folder {
    root: PathBuf,
    disk: Box<dyn Disk>,
    /// Distinguishes the temporary names of processes.
    process: u64,
    /// Distinguishes the temporary names of this process.
    count: AtomicU64,
    /// Folders that exist durably.
    made: Mutex<BTreeSet<PathBuf>>,
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {:?}", self.root.display(), self.disk)
    }
}

impl Local {
    /// Returns the store in a folder of this machine. The folder is made when something is written.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::on(Files, root)
    }

    /// Returns the store in a folder of a disk.
    ///
    /// # Panics
    ///
    /// If the system has no random numbers.
    pub fn on(disk: impl Disk + 'static, root: impl Into<PathBuf>) -> Self {
        Local(Arc::new(Folder {
            root: root.into(),
            disk: Box::new(disk),
            process: getrandom::u64().expect("random numbers from the system"),
            count: AtomicU64::new(0),
            made: Mutex::default(),
        }))
    }
}

impl Folder {
    fn path(&self, name: &str) -> PathBuf {
        let mut path = self.root.clone();
        path.extend(name.split('/'));
        path
    }

    fn error(&self, call: &'static str, name: &str) -> impl Fn(io::Error) -> StoreError {
        let (name, place) = (name.to_owned(), self.root.display().to_string());
        move |source| StoreError::new(call, &name, &place, source)
    }

    fn temporary(&self, path: &Path) -> PathBuf {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        path.with_file_name(format!(".{name}.{:x}-{count:x}{TEMPORARY}", self.process))
    }

    /// Creates a folder and its parents, durably.
    fn make(&self, folder: &Path) -> io::Result<()> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        self.make_below(folder, &mut made)
    }

    fn make_below(&self, folder: &Path, made: &mut BTreeSet<PathBuf>) -> io::Result<()> {
        if made.contains(folder) {
            return Ok(());
        }
        let parent = folder
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let there = self.disk.list(folder).is_ok();
        if !there {
            // A folder is made in a durable one, so an existing folder is as durable as its parent.
            if let Some(parent) = parent {
                self.make_below(parent, made)?;
            }
            match self.disk.make_folder(folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => other?,
            }
        }
        match self.disk.sync_folder(parent.unwrap_or(Path::new("."))) {
            Err(error) if there && cannot_be_synced(&error) => {}
            other => other?,
        }
        made.insert(folder.to_owned());
        Ok(())
    }

    /// Begins a file of a temporary name in the folder of an object.
    fn begin(&self, path: &Path) -> io::Result<(PathBuf, Box<dyn OpenFile>)> {
        let folder = path.parent().unwrap_or(&self.root);
        self.make(folder)?;
        let temporary = self.temporary(path);
        // A folder that was removed meanwhile is not made again: its contents are lost.
        let file = self.disk.create(&temporary)?;
        Ok((temporary, file))
    }

    /// Repeats a write whose temporary file another process removed: an execution that starts at the same time sweeps the folder.
    fn unless_swept<T>(
        &self,
        path: &Path,
        write: impl Fn() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let folder = path.parent().unwrap_or(&self.root);
        let mut left = SWEPT;
        loop {
            match write() {
                Err(error) if error.is_missing() && left > 0 && self.disk.list(folder).is_ok() => {
                    left -= 1;
                }
                other => return other,
            }
        }
    }

    fn create(&self, path: &Path, bytes: &[u8]) -> io::Result<Creation> {
        let (temporary, mut file) = self.begin(path)?;
        let linked = file
            .write(bytes)
            .and_then(|()| file.sync())
            .and_then(|()| self.disk.link(&temporary, path));
        drop(file);
        // A remaining file is swept later.
        let _ = self.disk.remove(&temporary);
        let creation = match linked {
            Ok(()) => Creation::Created,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Creation::Exists,
            Err(error) => return Err(error),
        };
        self.disk.sync_folder(path.parent().unwrap_or(&self.root))?;
        Ok(creation)
    }

    /// Lists the names in a folder, none where there is no such folder.
    fn names(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let path = if folder.is_empty() {
            self.root.clone()
        } else {
            self.path(folder)
        };
        match self.disk.list(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other.map_err(self.error("list", folder)),
        }
    }
}

/// Returns whether a folder above the location was not made by us and cannot be synced by us.
fn cannot_be_synced(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    matches!(
        error.kind(),
        PermissionDenied | ReadOnlyFilesystem | InvalidInput | Unsupported
    )
}

fn inside(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

impl Store for Local {
    fn place(&self) -> String {
        self.0.root.display().to_string()
    }

    fn upload(&self, name: &str) -> Result<Box<dyn Upload>, StoreError> {
        let path = self.0.path(name);
        let begun = self.0.begin(&path);
        let (temporary, file) = begun.map_err(self.0.error("creation", name))?;
        Ok(Box::new(Writing {
            name: name.to_owned(),
            path,
            temporary: Some(temporary),
            file: Some(file),
            failed: false,
            folder: self.0.clone(),
        }))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.0.unless_swept(&self.0.path(name), || {
            let mut upload = self.upload(name)?;
            upload.write(bytes)?;
            upload.finish()
        })
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, StoreError> {
        let path = self.0.path(name);
        self.0.unless_swept(&path, || {
            let created = self.0.create(&path, bytes);
            created.map_err(self.0.error("creation", name))
        })
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        let path = self.0.path(name);
        let size = self.0.disk.size(&path);
        let bytes = size.and_then(|size| self.0.disk.read(&path, 0..size));
        bytes.map(Bytes::from).map_err(self.0.error("read", name))
    }

    fn read(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        let path = self.0.path(name);
        let size = self
            .0
            .disk
            .size(&path)
            .map_err(self.0.error("read", name))?;
        if size < range.end {
            return Err(self.0.error("read", name)(cut(&range, size)));
        }
        let bytes = self.0.disk.read(&path, range);
        bytes.map(Bytes::from).map_err(self.0.error("read", name))
    }

    fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError> {
        let mut listed = Vec::new();
        for name in self.0.names(folder)? {
            if name.starts_with('.') {
                continue;
            }
            let name = inside(folder, &name);
            match self.0.disk.size(&self.0.path(&name)) {
                Ok(size) => listed.push(Listed { name, size }),
                // Deleted since; or a folder, or something else that is not ours.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::Other) => {}
                Err(error) => return Err(self.0.error("list", &name)(error)),
            }
        }
        Ok(listed)
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        match self.0.disk.remove(&self.0.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(self.0.error("deletion", name)),
        }
    }

    fn sweep(&self, dead: &dyn Fn(&str) -> bool) -> Result<(), StoreError> {
        for folder in ["", crate::names::LOG, crate::names::PACKS] {
            for name in self.0.names(folder)? {
                let object = name
                    .strip_prefix('.')
                    .and_then(|rest| rest.strip_suffix(TEMPORARY))
                    .and_then(|rest| rest.rsplit_once('.'));
                if object.is_some_and(|(object, _)| dead(&inside(folder, object))) {
                    self.delete(&inside(folder, &name))?;
                }
            }
        }
        Ok(())
    }
}

/// An object that is being written.
struct Writing {
    name: String,
    path: PathBuf,
    temporary: Option<PathBuf>,
    file: Option<Box<dyn OpenFile>>,
    failed: bool,
    folder: Arc<Folder>,
}

impl Upload for Writing {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let Some(file) = self.file.as_mut().filter(|_| !self.failed) else {
            return Err(self.folder.error("write", &self.name)(io::Error::other(
                "an earlier write failed",
            )));
        };
        file.write(bytes).map_err(|error| {
            self.failed = true;
            self.folder.error("write", &self.name)(error)
        })
    }

    fn finish(mut self: Box<Self>) -> Result<(), StoreError> {
        let error = self.folder.error("write", &self.name);
        if self.failed {
            return Err(error(io::Error::other("an earlier write failed")));
        }
        if let Some(file) = self.file.as_mut() {
            file.sync().map_err(&error)?;
        }
        self.file = None;
        if let Some(temporary) = &self.temporary {
            self.folder
                .disk
                .rename(temporary, &self.path)
                .map_err(&error)?;
        }
        self.temporary = None;
        let folder = self.path.parent().unwrap_or(&self.folder.root);
        self.folder.disk.sync_folder(folder).map_err(&error)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.file = None;
        if let Some(temporary) = &self.temporary {
            // A remaining file is swept later.
            let _ = self.folder.disk.remove(temporary);
        }
    }
}
