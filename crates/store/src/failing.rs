//! A disk on which chosen calls fail or end the process, for tests.
//!
//! Every call that changes the disk is a point. A write is two: before it, and when half of it is written. Points are numbered from 1
//! in the order in which they are reached.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::{Disk, OpenFile};

/// A kind of call that changes a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// Creation of a file.
    Create,
    /// Half of a write.
    Write,
    /// Fsync of a file.
    Sync,
    /// A second name of a file.
    Link,
    /// Another name of a file.
    Rename,
    /// Removal of a name.
    Remove,
    /// Creation of a folder.
    MakeFolder,
    /// Fsync of a folder.
    SyncFolder,
}

/// The effect of a failpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Ends the process at once: nothing is unwound or flushed.
    Kill,
    /// The call fails with `ENOSPC`, without an effect.
    Full,
    /// The call fails with `EIO`, without an effect.
    Broken,
}

impl Fault {
    /// Does it.
    ///
    /// # Errors
    ///
    /// The wrapped disk.
    pub fn strike(self) -> io::Result<()> {
        match self {
            Fault::Kill => std::process::abort(),
            Fault::Full => Err(io::ErrorKind::StorageFull.into()),
            Fault::Broken => Err(io::Error::other("input/output error")),
        }
    }
}

/// Faults at the point of a number, or from that point on, as text: `kill@17`, `full@3`, `broken@3+`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The fault.
    pub fault: Fault,
    /// The number of the first point at which it happens.
    pub at: u64,
    /// Whether it happens at all later points, too.
    pub on: bool,
}

impl Plan {
    /// Returns the fault at the point of a number.
    pub fn fault(&self, point: u64) -> Option<Fault> {
        (point == self.at || self.on && point > self.at).then_some(self.fault)
    }

    /// Returns a hook that counts the points, from 1, and causes the planned faults.
    pub fn hook(self) -> Hook {
        let points = AtomicU64::new(0);
        Arc::new(move |_: Call, _: &Path| {
            let point = points.fetch_add(1, Ordering::Relaxed) + 1;
            self.fault(point).map_or(Ok(()), Fault::strike)
        })
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no plan of faults: kill@N, full@N or broken@N, and N+ for all from N on"
            )
        };
        let (fault, at) = text.split_once('@').ok_or_else(wrong)?;
        let fault = match fault {
            "kill" => Fault::Kill,
            "full" => Fault::Full,
            "broken" => Fault::Broken,
            _ => return Err(wrong()),
        };
        let on = at.ends_with('+');
        let at = at.trim_end_matches('+').parse().map_err(|_| wrong())?;
        Ok(Plan { fault, at, on })
    }
}

/// The hook that is called before each call: its error is returned instead of making the call.
pub type Hook = Arc<dyn Fn(Call, &Path) -> io::Result<()> + Send + Sync>;

/// A disk whose calls run a hook first.
pub struct Failing<D> {
    disk: D,
    hook: Hook,
}

impl<D: Disk> Failing<D> {
    /// Puts a hook before the calls of a disk.
    pub fn new(disk: D, hook: Hook) -> Self {
        Failing { disk, hook }
    }
}

impl<D: fmt::Debug> fmt::Debug for Failing<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Failing").field(&self.disk).finish()
    }
}

struct FailingFile {
    file: Box<dyn OpenFile>,
    path: Box<Path>,
    hook: Hook,
}

impl<D: Disk> Disk for Failing<D> {
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        (self.hook)(Call::Create, path)?;
        Ok(Box::new(FailingFile {
            file: self.disk.create(path)?,
            path: path.into(),
            hook: self.hook.clone(),
        }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        (self.hook)(Call::Link, to)?;
        self.disk.link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        (self.hook)(Call::Rename, to)?;
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        (self.hook)(Call::Remove, path)?;
        self.disk.remove(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        (self.hook)(Call::MakeFolder, path)?;
        self.disk.make_folder(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        (self.hook)(Call::SyncFolder, path)?;
        self.disk.sync_folder(path)
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        self.disk.size(path)
    }

    fn read(&self, path: &Path, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.disk.read(path, range)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }
}

impl OpenFile for FailingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        (self.hook)(Call::Write, &self.path)?;
        let (front, back) = bytes.split_at(bytes.len() / 2);
        self.file.write(front)?;
        (self.hook)(Call::Write, &self.path)?;
        self.file.write(back)
    }

    fn sync(&mut self) -> io::Result<()> {
        (self.hook)(Call::Sync, &self.path)?;
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read() {
        let plan: Plan = "full@3+".parse().unwrap();
        let faults: Vec<_> = (1..6).map(|point| plan.fault(point)).collect();
        assert_eq!(
            faults,
            [
                None,
                None,
                Some(Fault::Full),
                Some(Fault::Full),
                Some(Fault::Full)
            ]
        );
        let plan: Plan = "kill@2".parse().unwrap();
        assert_eq!(
            [1, 2, 3].map(|point| plan.fault(point)),
            [None, Some(Fault::Kill), None]
        );
        for wrong in ["", "kill", "kill@", "kill@-1", "other@3", "@3"] {
            assert!(wrong.parse::<Plan>().is_err(), "{wrong}");
        }
    }
}
