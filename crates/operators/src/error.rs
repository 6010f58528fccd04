//! The errors of operators. They carry rows, which the host renders in its own notation.

use pointstamp_engine::error::BoxError;
use pointstamp_order::Point;
use pointstamp_rows::RowBuf;
use pointstamp_rows::expressions::Failure;

use crate::collections::columns::ColumnsError;
use crate::kind::Kind;

/// The reason why an operator cannot continue. A message says what was wrong and what to do; the host adds records to
/// it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A stream or a message is of another kind than its reader takes.
    #[error("{found} came where {expected} are read")]
    WrongKind {
        /// The kind that the reader takes.
        expected: Kind,
        /// The kind that came.
        found: Kind,
    },
    /// The batches of an arrangement have times of another number of coordinates than their reader's scope.
    #[error("a join needs arrangements of one scope")]
    OtherScope,
    /// An operator would nest tuples deeper than records may be.
    #[error("a record would nest tuples too deep")]
    TooDeep,
    /// An operator that reads pairs got a record that is none.
    #[error("{reader} reads records of the form (key, value)")]
    NotAPair {
        /// The operator that reads pairs.
        reader: String,
        /// The record.
        record: RowBuf,
    },
    /// An arrangement's batch was to be sent to another process.
    #[error("the batches of an arrangement stay on their worker")]
    Immovable,
    /// The engine refused a step of building the graph.
    #[error(transparent)]
    Engine(#[from] pointstamp_engine::error::Error),
    /// Columns do not exist or do not fit, or a kernel over columns failed.
    #[error(transparent)]
    Columns(#[from] pointstamp_columnar::Error),
    /// State could not be written to disk, or read back.
    #[error(transparent)]
    Spill(#[from] pointstamp_spill::Error),
    /// An expression has no result for a record.
    #[error("an expression has no result for a record")]
    Expression(Failure),
    /// Totals were requested of an arrangement whose times are not totally ordered.
    #[error("totals are for scopes whose times are numbers: reduce the arrangement")]
    NotTotal,
    /// A reader came when an arrangement without one had begun to run.
    #[error(
        "this arrangement kept nothing of what came before, because nothing reads it: take its trace while the dataflow is \
         being built"
    )]
    NothingKept,
    /// A trace was requested of an arrangement that entered from an outer scope.
    #[error(
        "this arrangement is of the scope around and only entered this one: take the trace of the arrangement there"
    )]
    EnteredTrace,
    /// A trace of a dataflow that was dropped before it was complete.
    #[error(
        "the dataflow of this trace was dropped before it was complete, so that nothing completes it: import the trace \
         before, and drop the dataflow that imports it first; or build it again, and import the trace of that"
    )]
    TraceDropped,
    /// A count leaves the range of 64 bits.
    #[error(
        "count: a key has {total} values, and counts have 64 bits: updates want smaller differences"
    )]
    CountTooLarge {
        /// The key.
        key: RowBuf,
        /// Its count.
        total: i128,
    },
    /// Bytes are no records of the host.
    #[error("{0}")]
    Unreadable(String),
    /// An update has a time before the time of its message: no operator of this crate sends such a message.
    #[error(
        "an update at {time} came in a message at {message}: no time of a message's updates is before its own"
    )]
    Early {
        /// The time of the update.
        time: Point,
        /// The time of the message.
        message: Point,
    },
    /// A record's own time is before the time of the message that carries it.
    #[error("a record would be sent at time {time}, before {from}")]
    BeforeMessage {
        /// The record's time.
        time: Point,
        /// The message's.
        from: Point,
    },
    /// Columns that hold the parts of the same records are not of one length.
    #[error("a column of {found} elements lies beside {expected} records")]
    UnevenColumns {
        /// The number of records.
        expected: usize,
        /// The length of the column.
        found: usize,
    },
    /// Columns are no collection, or an expression or a row has no place among them.
    #[error(transparent)]
    Collected(#[from] ColumnsError),
    /// The state of a checkpoint cannot be read.
    #[error("the state in the checkpoint cannot be read: {0}")]
    State(#[source] BoxError),
    /// An operator held no time that permits it to send its state in a checkpoint.
    #[error(
        "the operator held no time for {time} at the checkpoint: restore with the program that made the checkpoint"
    )]
    NotHeld {
        /// The time.
        time: Point,
    },
    /// The state in a checkpoint does not have the operator's format.
    #[error(
        "what the checkpoint has of this operator cannot be read ({0}): resume from an earlier checkpoint, or with the version \
         of the library that wrote it"
    )]
    Checkpoint(&'static str),
    /// An arrangement was read on some workers at a checkpoint, and not on others.
    #[error(
        "the arrangement was read on some workers at the checkpoint and not on others, so that it cannot be divided: resume with {0} \
         workers, as before, or have every worker take a trace"
    )]
    ReadBySome(usize),
    /// Bytes from another process are no batch.
    #[error("these bytes are not a batch of records")]
    NotABatch,
}

impl Error {
    /// Returns the operator that the error is about, where that is not the one that ran.
    pub fn operator(&self) -> Option<&str> {
        match self {
            Error::NotAPair { reader, .. } => Some(reader),
            _ => None,
        }
    }
}
