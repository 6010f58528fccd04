//! Errors of a dataflow under construction.

use std::fmt;

/// A scope, by its name and its path from the worker's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopePath {
    /// Its name.
    pub name: String,
    /// Its path.
    pub address: Vec<usize>,
}

impl fmt::Display for ScopePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' {:?}", self.name, self.address)
    }
}

/// Why nothing can be added to a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Completed {
    /// The scope was closed.
    #[error("its block has ended")]
    Closed,
    /// The dataflow runs.
    #[error("its dataflow is installed already")]
    Installed,
    /// The dataflow was discarded.
    #[error("its dataflow was given up")]
    Discarded,
}

/// The way in which a stream passes from one scope to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crossing {
    /// The other scope is inside the stream's.
    Enter,
    /// The other scope is around the stream's.
    Leave,
    /// Neither: there is more than one boundary between them.
    Several,
}

/// A scope, stream or operator was used in a way that makes no graph. The text describes the error; the program
/// around the engine knows the names of the calls to use instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Something was added to a scope that is complete.
    #[error("nothing can be added to scope '{scope}' any more: {why}")]
    Complete {
        /// The scope's name.
        scope: String,
        /// Why not.
        why: Completed,
    },
    /// A nested scope was not closed.
    #[error("the scope {0} is still open")]
    StillOpen(ScopePath),
    /// A scope appends too many coordinates.
    #[error(
        "scope '{scope}' appends {appended} coordinates: a scope appends at most {most}; nest two"
    )]
    Coordinates {
        /// The scope's name.
        scope: String,
        /// The number of coordinates that it appends.
        appended: usize,
        /// The maximum number of coordinates.
        most: usize,
    },
    /// A scope is nested too deep.
    #[error(
        "scope '{scope}' would be nested more than {most} deep: end the blocks of scopes around it first, as a loop that \
         follows another need not be inside of it"
    )]
    Nested {
        /// The scope's name.
        scope: String,
        /// The maximum depth.
        most: usize,
    },
    /// A stream cannot enter a scope that has none around it.
    #[error("scope '{0}' is a root scope: no stream enters it")]
    EntersRoot(String),
    /// A stream cannot leave a scope that has none around it.
    #[error(
        "the stream of '{stream}' is in the root scope '{scope}': there is no scope to leave to"
    )]
    LeavesRoot {
        /// The operator that sends.
        stream: String,
        /// The scope's name.
        scope: String,
    },
    /// A stream left its scope before.
    #[error(
        "the stream of '{stream}' has left scope {from} for scope {to} already: a stream leaves once"
    )]
    LeftBefore {
        /// The operator that sends.
        stream: String,
        /// The stream's scope.
        from: ScopePath,
        /// The scope around it.
        to: ScopePath,
    },
    /// A stream was read in another scope than its own.
    #[error(
        "'{reader}' in scope {to} cannot read the stream of '{stream}', which is in scope {from}"
    )]
    OtherScope {
        /// The operator that reads the stream.
        reader: String,
        /// The reader's scope.
        to: ScopePath,
        /// The operator that sends.
        stream: String,
        /// The stream's scope.
        from: ScopePath,
        /// The way in which the stream gets there.
        crossing: Crossing,
    },
    /// An operator has inputs and no logic.
    #[error(
        "operator '{0}' was never built: it has inputs and nothing that would read them, so that the dataflow could not end"
    )]
    NeverBuilt(String),
    /// A loop was begun and not closed.
    #[error("a loop variable of scope {0} is never connected")]
    NeverConnected(ScopePath),
    /// A requirement of the program around the engine on an operator was not met; its own sentence.
    #[error("{0}")]
    Missing(String),
    /// A loop's summary is not of its scope's coordinates.
    #[error("a loop in scope '{scope}' needs a summary of {expected} increments, not {got}")]
    LoopSummary {
        /// The scope's name.
        scope: String,
        /// Its coordinates.
        expected: usize,
        /// The summary's.
        got: usize,
    },
    /// A summary for ports that an operator does not have.
    #[error(
        "operator '{operator}' has {inputs} inputs and {outputs} outputs: there is no path from input {input} to output \
         {output} to summarise"
    )]
    NoPath {
        /// The operator's name.
        operator: String,
        /// The number of inputs that it has.
        inputs: usize,
        /// The number of outputs that it has.
        outputs: usize,
        /// The input named.
        input: usize,
        /// The output named.
        output: usize,
    },
    /// An input was connected on two workers.
    #[error("the input is connected to worker {worker}: an input feeds dataflows of one worker")]
    OtherWorker {
        /// The worker on which it is connected.
        worker: usize,
    },
    /// An input was used before it was connected.
    #[error("the input is connected to no dataflow: connect it before sending")]
    Unconnected,
    /// An input was used whose dataflow was given up during construction.
    #[error("the dataflow of this input was never built, and what is sent would be lost")]
    Unbuilt,
    /// A routing function sent to the output that it routes.
    #[error("a routing function sent to the output that it routes")]
    RoutesItself,
    /// No operator has an address.
    #[error("no operator has the address {address:?} on worker {worker}")]
    NoOperator {
        /// The address.
        address: Vec<usize>,
        /// The worker.
        worker: usize,
    },
    /// A dataflow went that another one still reads.
    #[error(
        "the dataflow of an imported trace was dropped before it was complete: drop the dataflow that imports it first"
    )]
    TraceDropped,
}
