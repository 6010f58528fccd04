//! The errors of this crate.

use pointstamp_engine::cut::{Objection, RescaleError};
use pointstamp_engine::error::BoxError;

/// A failure to make a checkpoint, or to resume from one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The location.
    #[error(transparent)]
    Store(#[from] pointstamp_store::Error),

    /// An operator's state would be lost.
    #[error("no checkpoint can be made: {0}")]
    Objection(Objection),

    /// Another number of workers.
    #[error("the computation cannot resume with another number of workers: {0}")]
    Rescale(#[from] RescaleError),

    /// The state or a waiting batch of an operator has no form as bytes, or its bytes cannot be read.
    #[error("operator '{operator}': {cause}")]
    Operator {
        /// The identity of the operator.
        operator: String,
        /// The cause.
        #[source]
        cause: BoxError,
    },

    /// A section of a checkpoint is malformed.
    #[error("{0}")]
    Malformed(String),

    /// An ended computation.
    #[error(
        "the computation has ended: checkpoint {number} of {place} is its last. Use another location to run it from the beginning, or at= to resume from an earlier checkpoint"
    )]
    Ended {
        /// The number of the checkpoint.
        number: u64,
        /// The location.
        place: String,
    },

    /// A bucket, in a build without a client of object stores.
    #[cfg(not(feature = "cloud"))]
    #[error(
        "checkpoints at {place} need a build of pointstamp with a client of object stores, and this one has none: build it with `make build FEATURES=cloud`, or give a folder that all processes reach"
    )]
    NoClouds {
        /// The URL.
        place: String,
    },

    /// An input of `main` was sent other records than before the checkpoint, by another number of workers.
    #[error(
        "input {input} was sent something else than before the checkpoint, by all workers together: after a resumption, main sends the same again, up to where the input stood, also on another number of workers. Let it not depend on a clock, random numbers, changed files or the number of workers; or take new_input(resume=\"continue\"), and send only what comes after its position"
    )]
    SentOtherwise {
        /// The input.
        input: String,
    },

    /// Failures in a row.
    #[error(
        "{count} checkpoints in a row have failed, the last one because {last}. Make room, or see to the store, and run the program again: it resumes from the last checkpoint. tolerate= is the number of failures in a row that are allowed"
    )]
    Failing {
        /// The number of failures.
        count: u32,
        /// Why the last one failed.
        last: String,
    },

    /// The thread of checkpoints cannot be started.
    #[error("the thread of checkpoints cannot be started: {0}")]
    Thread(#[source] std::io::Error),

    /// A message between workers that cannot be read.
    #[error("a message about checkpoints cannot be read: {0}")]
    Word(#[from] postcard::Error),
}
