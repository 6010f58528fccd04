//! The description of the computation in a checkpoint: the part of a manifest that the engine and the connectors fill in.
//!
//! Everything large is in sections of packs. Times are lists of coordinates.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// The computation at a moment when nothing was in flight.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// When it was taken, in milliseconds since 1970: for people, not for the protocol.
    pub made_ms: u64,
    /// The program and the version of the library that made it: for people.
    pub made_by: String,
    /// The number of workers.
    pub workers: u32,
    /// The reason why another number of workers cannot resume from here; nothing, where it can.
    pub fixed_workers: Option<String>,
    /// Whether the computation has ended: its sources have.
    pub ended: bool,
    /// The dataflows in the order in which they were built, finished and dropped ones included.
    pub dataflows: Vec<Dataflow>,
}

/// A dataflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dataflow {
    /// The identity by which the dataflow is found again.
    pub identity: String,
    /// The state of its life cycle.
    pub life: Life,
    /// The operators.
    pub operators: Vec<Operator>,
    /// The times held at outputs, for each output that holds any.
    pub held: Vec<Held>,
    /// The sources' partitions.
    pub sources: Vec<Source>,
    /// The inputs of main.
    pub inputs: Vec<Input>,
    /// The outboxes of sinks.
    pub outboxes: Vec<Outbox>,
}

/// The life cycle state of a dataflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Life {
    /// It runs.
    Running,
    /// Its work is done.
    Finished,
    /// The program dropped it.
    Dropped,
}

/// An operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operator {
    /// The identity, from the plan. Unique in the dataflow.
    pub identity: String,
    /// The kind of the operator.
    pub kind: String,
    /// The identities of the operators that it reads.
    pub inputs: Vec<String>,
    /// The schema of its state or output, as text; nothing, where it has none.
    pub schema: Option<String>,
    /// The type of the keys of its state; nothing, where it has no keys.
    pub key: Option<String>,
    /// The division of its state among workers; `None`, where it has no state.
    pub division: Option<Division>,
    /// The digest of its functions, by which a changed function is noticed.
    pub functions: Option<String>,
}

/// The division of state among workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Division {
    /// By key group.
    Groups,
    /// Its parts may go to any workers.
    Parts,
    /// Each worker's state is its own: the same number of workers must resume.
    Workers,
}

/// The times that an output holds, summed over all workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// The identity of the operator.
    pub operator: String,
    /// The index of its output.
    pub port: u32,
    /// Times and how often each is held.
    pub times: Vec<(Vec<u64>, i64)>,
}

/// A partition of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The identity of the operator.
    pub operator: String,
    /// The partition.
    pub partition: String,
    /// The offset of the first record that was not read.
    pub offset: Json,
    /// The clock of the source, where it has one: its watermark, its last time.
    pub clock: Option<Json>,
}

/// An input that main sends to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The identity of the operator.
    pub operator: String,
    /// The worker.
    pub worker: u32,
    /// The time at which the input stood; nothing, where it was closed.
    pub time: Option<Vec<u64>>,
    /// The numbers of records that were sent, by time.
    pub sent: Vec<Sent>,
}

/// The records that main has sent at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sent {
    /// The time.
    pub time: Vec<u64>,
    /// The number of records.
    pub count: u64,
    /// Their digest, which adds up over workers.
    pub digest: u64,
}

/// Rows of complete times that a sink shows once the checkpoint exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outbox {
    /// The identity of the sink.
    pub operator: String,
    /// The part: the worker that wrote it.
    pub part: u32,
    /// The number of the part's last outbox, this one included.
    pub number: u64,
    /// The length in bytes.
    pub bytes: u64,
}
