//! A disk in memory that loses power, for tests.
//!
//! Programs see the cache: every call has its effect at once. After a power cut, the synced state is left, with any
//! choice of the rest: each unsynced write to a file is present or is zeros, and each unsynced change to a folder is
//! present or not, whatever came before or after it. A rename is atomic, as on file systems with a journal.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, OpenFile};

/// The number of a file or folder.
type Id = usize;

#[derive(Clone, Debug, Default)]
struct Content {
    cached: Vec<u8>,
    durable: Vec<u8>,
    /// Ranges that were written since the last sync.
    pending: Vec<Range<usize>>,
}

#[derive(Clone, Debug)]
enum Change {
    Add(String, Id),
    Remove(String),
    Rename(String, String, Id),
}

#[derive(Clone, Debug, Default)]
struct Entries {
    cached: BTreeMap<String, Id>,
    durable: BTreeMap<String, Id>,
    /// Changes since the last sync.
    pending: Vec<Change>,
}

fn apply(names: &mut BTreeMap<String, Id>, change: &Change) {
    match change {
        Change::Add(name, id) => {
            names.insert(name.clone(), *id);
        }
        Change::Remove(name) => {
            names.remove(name);
        }
        Change::Rename(from, to, id) => {
            names.remove(from);
            names.insert(to.clone(), *id);
        }
    }
}

#[derive(Clone, Debug)]
enum Node {
    File(Content),
    Folder(Entries),
}

#[derive(Clone, Debug)]
struct State {
    nodes: Vec<Node>,
    /// The number of power cuts: files that were open before are lost.
    cuts: u64,
    lies: Lies,
}

/// Flaws of a disk or of the code above it, planted to see tests fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lies {
    /// Fsync of a file does nothing.
    pub files: bool,
    /// Fsync of a folder does nothing.
    pub folders: bool,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimulatedDisk")
    }
}

impl Default for SimulatedDisk {
    fn default() -> Self {
        Self::new(Lies::default())
    }
}

const ROOT: Id = 0;

impl State {
    fn find(&self, path: &Path) -> io::Result<Id> {
        let mut id = ROOT;
        for part in path.components() {
            if let Component::Normal(part) = part {
                let part = part.to_string_lossy();
                let Node::Folder(entries) = &self.nodes[id] else {
                    return Err(io::ErrorKind::NotADirectory.into());
                };
                id = *entries.cached.get(&*part).ok_or(io::ErrorKind::NotFound)?;
            }
        }
        Ok(id)
    }

    fn folder(&mut self, path: &Path) -> io::Result<&mut Entries> {
        let id = self.find(path)?;
        match &mut self.nodes[id] {
            Node::Folder(entries) => Ok(entries),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn file(&mut self, id: Id) -> io::Result<&mut Content> {
        match &mut self.nodes[id] {
            Node::File(content) => Ok(content),
            Node::Folder(_) => Err(io::Error::other("this is no file")),
        }
    }

    fn change(&mut self, folder: &Path, change: Change) -> io::Result<()> {
        let entries = self.folder(folder)?;
        apply(&mut entries.cached, &change);
        entries.pending.push(change);
        Ok(())
    }

    fn add(&mut self, path: &Path, node: Node) -> io::Result<Id> {
        let (folder, name) = split(path);
        if self.folder(&folder)?.cached.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = self.nodes.len();
        self.nodes.push(node);
        self.change(&folder, Change::Add(name, id))?;
        Ok(id)
    }
}

fn split(path: &Path) -> (PathBuf, String) {
    let name = path.file_name().unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new(""));
    (folder.to_owned(), name.to_string_lossy().into_owned())
}

impl SimulatedDisk {
    /// Returns an empty disk with planted flaws.
    pub fn new(lies: Lies) -> Self {
        SimulatedDisk(Arc::new(Mutex::new(State {
            nodes: vec![Node::Folder(Entries::default())],
            cuts: 0,
            lies,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns another disk as it is now.
    #[must_use]
    pub fn copy(&self) -> Self {
        SimulatedDisk(Arc::new(Mutex::new(self.state().clone())))
    }

    /// Cuts the power. `keep` says of each change that was not synced whether it is there afterwards. Files that are open are lost.
    pub fn cut_power(&self, mut keep: impl FnMut() -> bool) {
        let mut state = self.state();
        state.cuts += 1;
        for node in &mut state.nodes {
            match node {
                Node::File(content) => {
                    let mut left = content.durable.clone();
                    for range in std::mem::take(&mut content.pending) {
                        if keep() {
                            left.resize(left.len().max(range.end), 0);
                            left[range.clone()].copy_from_slice(&content.cached[range]);
                        }
                    }
                    content.cached.clone_from(&left);
                    content.durable = left;
                }
                Node::Folder(entries) => {
                    for change in std::mem::take(&mut entries.pending) {
                        if keep() {
                            apply(&mut entries.durable, &change);
                        }
                    }
                    entries.cached.clone_from(&entries.durable);
                }
            }
        }
    }
}

struct Opened {
    disk: SimulatedDisk,
    id: Id,
    cuts: u64,
}

impl Disk for SimulatedDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let mut state = self.state();
        let id = state.add(path, Node::File(Content::default()))?;
        Ok(Box::new(Opened {
            disk: self.clone(),
            id,
            cuts: state.cuts,
        }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let id = state.find(from)?;
        let (folder, name) = split(to);
        if state.folder(&folder)?.cached.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.change(&folder, Change::Add(name, id))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let id = state.find(from)?;
        let ((folder, from), (other, to)) = (split(from), split(to));
        if folder != other {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        state.change(&folder, Change::Rename(from, to, id))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.find(path)?;
        let (folder, name) = split(path);
        state.change(&folder, Change::Remove(name))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state
            .add(path, Node::Folder(Entries::default()))
            .map(|_| ())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.lies.folders {
            return Ok(());
        }
        let entries = state.folder(path)?;
        entries.durable.clone_from(&entries.cached);
        entries.pending.clear();
        Ok(())
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        let mut state = self.state();
        let id = state.find(path)?;
        Ok(state.file(id)?.cached.len() as u64)
    }

    fn read(&self, path: &Path, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut state = self.state();
        let id = state.find(path)?;
        let range = usize::try_from(range.start).map_err(io::Error::other)?
            ..usize::try_from(range.end).map_err(io::Error::other)?;
        let bytes = state.file(id)?.cached.get(range);
        Ok(bytes.ok_or(io::ErrorKind::UnexpectedEof)?.to_vec())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut state = self.state();
        Ok(state.folder(path)?.cached.keys().cloned().collect())
    }
}

impl OpenFile for Opened {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.cuts != self.cuts {
            return Err(io::Error::other("the power was cut"));
        }
        let content = state.file(self.id)?;
        let start = content.cached.len();
        content.cached.extend_from_slice(bytes);
        let end = content.cached.len();
        content.pending.push(start..end);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.cuts != self.cuts {
            return Err(io::Error::other("the power was cut"));
        }
        if !state.lies.files {
            let content = state.file(self.id)?;
            content.durable.clone_from(&content.cached);
            content.pending.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_synced_may_be_lost() {
        let disk = SimulatedDisk::default();
        let (folder, path) = (Path::new("/a"), Path::new("/a/b"));
        disk.make_folder(folder).unwrap();
        let mut file = disk.create(path).unwrap();
        file.write(b"one").unwrap();
        file.sync().unwrap();
        disk.sync_folder(folder).unwrap();
        let lost = disk.copy();
        lost.cut_power(|| false);
        assert!(
            lost.size(path).is_err(),
            "the folder's own name was not synced"
        );

        disk.sync_folder(Path::new("/")).unwrap();
        file.write(b"two").unwrap();
        file.write(b"six").unwrap();
        disk.rename(path, Path::new("/a/c")).unwrap();
        for (keep, content, name) in [
            ([false, false, false], &b"one"[..], path),
            ([true, true, true], b"onetwosix", Path::new("/a/c")),
            ([false, false, true], b"one\0\0\0six", path),
        ] {
            let cut = disk.copy();
            let mut keep = keep.into_iter();
            // Folders come before files here: the root has nothing to keep.
            cut.cut_power(|| keep.next().unwrap());
            let size = cut.size(name).unwrap();
            assert_eq!(cut.read(name, 0..size).unwrap(), content);
        }
        disk.cut_power(|| true);
        assert!(file.write(b"late").is_err());
    }
}
