//! The reason why a dataflow cannot resume from a checkpoint.

/// The program differs from the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The share is another worker's.
    #[error(
        "worker {} of {} cannot resume from the part of worker {worker} of {peers}: divide the checkpoint between the workers that there are",
        here.0,
        here.1
    )]
    OtherWorker {
        /// The worker that made the part.
        worker: usize,
        /// The number of workers.
        peers: usize,
        /// The worker, and how many there are.
        here: (usize, usize),
    },
    /// A dataflow was begun before.
    #[error("a dataflow was begun before the checkpoint was given: restore first")]
    Begun,
    /// An operator with state is new.
    #[error(
        "operator '{operator}' is not in the checkpoint, and keeps state. If the program has gained it, let it begin with none: \
         Checkpoint(..., new=[{identity:?}]). If it has another name or place than before, give it the name that it had"
    )]
    Unknown {
        /// The operator's name.
        operator: String,
        /// The operator's identity.
        identity: String,
    },
    /// A source is new in a dataflow of the checkpoint, in which the times at which it would begin have
    /// passed.
    #[error(
        "the source '{operator}' ({identity}) is not in the checkpoint: times at which it would begin are over. Read it in a dataflow \
         of its own, which is built after those of the checkpoint"
    )]
    NewSource {
        /// The operator's name.
        operator: String,
        /// The operator's identity.
        identity: String,
    },
    /// An operator of the checkpoint was not built.
    #[error(
        "the checkpoint has state of operator '{operator}' of dataflow {dataflow}, which was not built. If the program has lost it, \
         give the state up: Checkpoint(..., drop=[{identity:?}]). If it has another name or place than before, give it the name that \
         it had"
    )]
    Missing {
        /// The dataflow's number.
        dataflow: usize,
        /// The operator's name.
        operator: String,
        /// The operator's identity.
        identity: String,
    },
    /// An operator is of another kind, or has other types.
    #[error(
        "operator '{operator}' ({identity}) is {now}, and in the checkpoint {before}: give it another name"
    )]
    Kind {
        /// The operator's name.
        operator: String,
        /// The operator's identity.
        identity: String,
        /// The kind in the checkpoint.
        before: String,
        /// The kind in the program.
        now: String,
    },
    /// One of several operators of a name reads something else than in the checkpoint.
    #[error(
        "operator '{operator}' ({identity}) reads {now}, and in the checkpoint {before}: several operators have its name, so that \
         its state may be another's. Name it (name=) before the program changes"
    )]
    Reads {
        /// The operator's name.
        operator: String,
        /// The operator's identity.
        identity: String,
        /// The input that it read.
        before: String,
        /// The input that it reads.
        now: String,
    },
    /// An operator has other ports, or times of another number of coordinates, than in the checkpoint.
    #[error(
        "operator '{operator}' ({identity}) has other inputs, outputs or times than in the checkpoint"
    )]
    Shape {
        /// The operator's name.
        operator: String,
        /// The operator's identity.
        identity: String,
    },
    /// An operator did not take the state that the checkpoint has for it.
    #[error(
        "operator '{operator}' ({identity}) has a state in the checkpoint, and did not take it"
    )]
    Left {
        /// The operator's name.
        operator: String,
        /// The operator's identity.
        identity: String,
    },
    /// Main returned, and dataflows of the checkpoint were not built.
    #[error(
        "worker {worker} ends, and has not built dataflows {dataflows:?} of the checkpoint: build what was built before"
    )]
    NotBuilt {
        /// The worker.
        worker: usize,
        /// The dataflows' numbers.
        dataflows: Vec<usize>,
    },
}
