//! The settings of checkpoints, and the checkpoint that an execution goes on from.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pointstamp_engine::cut::Changes;
use pointstamp_store::Reader;
use pointstamp_store::failing::{Hook, Plan};

/// How checkpoints are made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where they are kept.
    pub place: PathBuf,
    /// The time between two; `None`: only when one is asked for.
    pub every: Option<Duration>,
    /// How many are kept.
    pub keep: usize,
    /// The checkpoint to go on from; `None`: the newest.
    pub at: Option<u64>,
    /// What the program has gained or lost since then.
    pub changes: Changes,
    /// How long an attempt may take to drain the computation.
    pub drain: Duration,
    /// How many failures in a row there may be.
    pub tolerate: u32,
    /// For tests: what comes before the calls of the location.
    pub faults: Option<Faults>,
}

/// What comes before each call of a location that changes something, for tests: it may fail, or end the process.
#[derive(Clone)]
pub struct Faults(pub(crate) Hook);

impl Faults {
    /// Has calls fail as a text says: see [`Plan`].
    ///
    /// # Errors
    ///
    /// What is wrong with the text.
    pub fn planned(text: &str) -> Result<Self, String> {
        Ok(Faults(text.parse::<Plan>()?.hook()))
    }

    /// Asks before each call whether it is made.
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

    /// Whether a checkpoint is asked for in this turn, where one is due at some time.
    fn asks(&self) -> bool;
}

/// The checkpoint that an execution goes on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumed {
    /// Its number.
    pub number: u64,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: u64,
    /// How many workers made it.
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
