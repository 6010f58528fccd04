//! Everything that can go wrong in the engine.
//!
//! Each error is a variant with fields, and a text in the engine's own terms. The names of the program around the
//! engine, and the remedy, are added where the error crosses into that program.

mod build;
mod capability;
mod disagreement;
mod restore;

use std::sync::Arc;

use pointstamp_channels::{ChannelError, Reason};
use pointstamp_order::{Point, Summary};
use pointstamp_progress::GraphError;

use crate::observe::OperatorId;

pub use build::{BuildError, Completed, Crossing, ScopePath};
pub use capability::CapabilityError;
pub use disagreement::Disagreement;
pub use restore::RestoreError;

/// An error from user code: an operator's logic, a router, `main`.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// A result of user code.
pub type UserResult<T> = Result<T, BoxError>;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operator's logic failed.
    #[error("operator '{operator}' failed: {cause}")]
    Operator {
        /// The operator's name.
        operator: String,
        /// The error that its logic returned.
        #[source]
        cause: BoxError,
    },
    /// A routing function failed.
    #[error("a batch for operator '{operator}' cannot be routed: {cause}")]
    Route {
        /// The operator that would read it.
        operator: String,
        /// The error that the routing function returned.
        #[source]
        cause: BoxError,
    },
    /// A batch could not be made into bytes for another process.
    #[error("a batch for operator '{operator}' cannot be sent to another process: {cause}")]
    Encode {
        /// The operator that would read it.
        operator: String,
        /// The error that the payload's encoding returned.
        #[source]
        cause: BoxError,
    },
    /// A batch of another process could not be read.
    #[error("operator '{operator}' cannot read a batch of another process: {cause}")]
    Decode {
        /// The operator, or the scope, that reads it.
        operator: String,
        /// The error that the payload's decoding returned.
        #[source]
        cause: BoxError,
    },
    /// Another process of the cluster failed, or was lost.
    #[error("process {process} ({address}) failed: {reason}")]
    Peer {
        /// The process where it began.
        process: usize,
        /// Its address.
        address: String,
        /// The reason that it gave, or for which it is considered lost.
        reason: Reason,
    },
    /// The dataflow graph cannot run.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A cycle of the dataflow graph on which timestamps do not advance.
    #[error("{cycle}")]
    Cycle {
        /// The cycle, with the operators' names.
        cycle: GraphError,
        /// The operators and scopes that the cycle visits.
        operators: Vec<OperatorId>,
    },
    /// A scope, stream or operator was used in a way that makes no graph.
    #[error(transparent)]
    Build(Box<BuildError>),
    /// Workers built different dataflows.
    #[error(transparent)]
    Disagreement(Box<Disagreement>),
    /// The program does not match the checkpoint.
    #[error(transparent)]
    Restore(Box<RestoreError>),
    /// A time that goes back.
    #[error("the time {to} is not at or after {from}: times only move forward")]
    TimeGoesBack {
        /// The time held.
        from: Point,
        /// The requested time.
        to: Point,
    },
    /// A time with another number of coordinates than the scope has.
    #[error("the time {time} has {got} coordinates where this scope has {expected}")]
    TimeDims {
        /// The time.
        time: Point,
        /// Its coordinates.
        got: usize,
        /// The scope's.
        expected: usize,
    },
    /// A loop would advance a time beyond the range of its coordinates.
    #[error(
        "records at the time {time} come round a loop that advances times by {:?}, which passes 2^64 - 1: end the loop before that",
        .summary.increments()
    )]
    TimeOverflow {
        /// The time.
        time: Point,
        /// The effect of the loop on times.
        summary: Summary,
    },
    /// A capability for another operator's or output's use.
    #[error(transparent)]
    Capability(#[from] CapabilityError),
    /// An input that is closed was used.
    #[error("the input is closed: nothing can be sent any more")]
    Closed,
    /// The host of the worker's loop raised an error: an interruption, or a failure before a step.
    #[error("{cause}")]
    Host {
        /// The error that it returned.
        #[source]
        cause: BoxError,
    },
    /// An error that has already ended the computation, shared by its observers and the cluster.
    #[error("{0}")]
    Fatal(Arc<Error>),
    /// A worker panicked.
    #[error(
        "worker {worker} panicked: {message}. This is a bug of pointstamp: please report it, with a program that shows it"
    )]
    Panic {
        /// The worker whose thread panicked.
        worker: usize,
        /// The message of the panic.
        message: String,
    },
    /// A worker was used when its main had returned and its dataflows had ended.
    #[error(
        "worker {worker} has ended: its main has returned, or its session has ended, and nothing runs on it any more; use it before"
    )]
    Ended {
        /// The worker's number.
        worker: usize,
    },
    /// Another worker failed, or the run was interrupted.
    #[error("the computation was stopped")]
    Stopped,
    /// The worker was stepped from inside an operator that it is running.
    #[error(
        "a worker cannot step from inside one of its operators: return from the operator first"
    )]
    Reentrant,
    /// A channel could not be opened.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        Error::Build(error.into())
    }
}

impl From<RestoreError> for Error {
    fn from(error: RestoreError) -> Self {
        Error::Restore(error.into())
    }
}

impl From<Disagreement> for Error {
    fn from(error: Disagreement) -> Self {
        Error::Disagreement(error.into())
    }
}

impl Error {
    /// The error itself, where it is shared with the cluster.
    pub fn shared(&self) -> &Error {
        match self {
            Error::Fatal(error) => error.shared(),
            error => error,
        }
    }
}

/// Checks that `to` is a time of `from`'s scope and not before it.
pub(crate) fn check_advance(from: &Point, to: &Point) -> Result<(), Error> {
    use pointstamp_order::PartialOrder;
    check_dims(to, from.dims())?;
    if from.less_equal(to) {
        Ok(())
    } else {
        Err(Error::TimeGoesBack {
            from: from.clone(),
            to: to.clone(),
        })
    }
}

/// Checks the number of coordinates of a time.
pub(crate) fn check_dims(time: &Point, expected: usize) -> Result<(), Error> {
    if time.dims() == expected {
        Ok(())
    } else {
        Err(Error::TimeDims {
            time: time.clone(),
            got: time.dims(),
            expected,
        })
    }
}
