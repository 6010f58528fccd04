//! The messages of workers about checkpoints.

use pointstamp_store::{Lineage, Packed};
use serde::{Deserialize, Serialize};

/// A message about checkpoints. Messages of the leader go to every worker; the others go to the leader, the first
/// worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Word {
    /// From the leader: the execution has begun.
    Begun(Begun),
    /// A checkpoint is wanted. The request has a number of the worker's.
    Wanted(u64),
    /// `main` has repeated the records of an input. `before` and `now` are the worker's shares of the digests, which
    /// add up over workers. Inputs are numbered in the order in which they were connected.
    Repeated {
        number: u64,
        input: String,
        before: u64,
        now: u64,
    },
    /// The computation is to end after the next checkpoint; of the leader: it ends now.
    Stop,
    /// The pack of a worker is written, with this outline.
    Packed {
        attempt: u64,
        packed: Packed,
        outline: Vec<u8>,
    },
    /// The pack of a worker cannot be written.
    Failed { attempt: u64, why: String },
    /// From the leader: the checkpoint exists. Some packs may be worth writing again.
    Committed { number: u64, rewrites: bool },
    /// From the leader: the attempt has failed.
    Abandoned { why: String },
    /// The sinks of the worker have shown the results that the checkpoint covers.
    Shown { number: u64 },
    /// From the leader: all sinks have. Each worker gets the number of its last request that the checkpoint
    /// answers.
    Covered { number: u64, answers: u64 },
}

/// The facts that all processes need to take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// The number of the execution.
    pub(crate) execution: u64,
    pub(crate) lineage: Lineage,
    /// The checkpoint to resume from.
    pub(crate) from: Option<u64>,
}

impl Word {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("numbers and texts have a form as bytes")
    }
}
