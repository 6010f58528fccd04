//! Checkpoints of a running computation: from the engine's cut to a store, and back.
//!
//! A [`Recorder`] belongs to a process. Its thread writes the packs of the process's workers; in the process of the
//! leading worker it also requests cuts, and commits. A [`Recording`] belongs to a worker: the engine gives it the
//! worker's part of a cut, and operators learn from it which checkpoint exists.
//!
//! One checkpoint is made at a time:
//!
//! 1. *Cut.* The leader requests one; the engine drains the computation and takes each worker's part
//!    ([`pointstamp_engine::cut`]).
//! 2. *Write.* Each process writes a pack for each of its workers (`part`), and says so to the leader.
//! 3. *Commit.* The leader makes the manifest: the checkpoint exists. It says so to all workers.
//! 4. *Show.* The sinks of a worker show the results that the checkpoint covers; then the worker reports it to the
//!    leader.
//! 5. *Cover.* Once all workers have, the leader announces it: sources acknowledge offsets, and unneeded objects are
//!    removed.
//!
//! `docs/design/checkpoints.md` has the argument.

#![forbid(unsafe_code)]

mod error;
mod leader;
mod listing;
mod options;
mod part;
mod place;
mod recorder;
mod recording;
mod shared;
mod word;

pub use error::Error;
pub use listing::{Listed, Verified, list, prune, sections, verify};
pub use options::{Faults, Options, Resumed, Turns};
pub use recorder::{Opened, Recorder, open};
pub use recording::{Recording, Sink};
