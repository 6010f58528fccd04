//! The settings of checkpoints, and the checkpoint from which an execution resumes.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pointstamp_engine::cut::Changes;
use pointstamp_store::Reader;
use pointstamp_store::failing::{Hook, Plan};

/// The settings of checkpoints.
#[derive(Debug, Clone)]
pub struct Options {
    /// The location.
    pub place: PathBuf,
    /// The interval of checkpoints; `None`: only on request.
    pub every: Option<Duration>,
    /// The number of checkpoints that are kept.
    pub keep: usize,
    /// The checkpoint to resume from; `None`: the newest.
    pub at: Option<u64>,
    /// The operators that the program has gained or lost since the checkpoint.
    pub changes: Changes,
    /// The maximum time in which an attempt may drain the computation.
    pub drain: Duration,
    /// The maximum number of consecutive failures.
    pub tolerate: u32,
    /// The hook before the calls of the location, for tests.
    pub faults: Option<Faults>,
}

/// A hook before each call of a location that changes something, for tests: it may fail, or end the process.
#[derive(Clone)]
pub struct Faults(pub(crate) Hook);

impl Faults {
    /// Has calls fail as a text says: see [`Plan`].
    ///
    /// # Errors
    ///
    /// An error of the text.
    pub fn planned(text: &str) -> Result<Self, String> {
        Ok(Faults(text.parse::<Plan>()?.hook()))
    }

    /// Creates faults by a function that says before each call whether it is made.
    pub fn asking(is_made: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Faults(Arc::new(move |_: _, _: &Path| {
            if is_made() {
                Ok(())
            } else {
                Err(io::Error::other("the process is killed"))
            }
        }))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

/// The turns that the thread of a process takes with the workers, where they are simulated.
pub trait Turns: Send {
    /// Waits for the first.
    fn enter(&self);

    /// Ends a turn, in which there was something to do or not, and waits for the next. `false` where there is none: the workers have ended.
    fn turn(&self, found: bool) -> bool;

    /// Whether a checkpoint is requested in this turn, where the schedule has one.
    fn asks(&self) -> bool;
}

/// The checkpoint from which an execution resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumed {
    /// Its number.
    pub number: u64,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: u64,
    /// The number of workers that made it.
    pub workers: u32,
}

impl Resumed {
    pub(crate) fn of(reader: &Reader) -> Self {
        let manifest = reader.manifest();
        Resumed {
            number: manifest.number,
            made_ms: manifest.checkpoint.made_ms,
            workers: manifest.checkpoint.workers,
        }
    }
}
