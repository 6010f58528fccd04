//! Differences between the dataflows of workers.

/// Workers built different dataflows, or dropped one on some workers only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// A dataflow has two names.
    #[error(
        "the workers built different dataflows: of dataflow {dataflow}, it is '{}' on worker {} and '{}' on worker {}; build \
         the same graph on every worker", .here.1, .here.0, .there.1, .there.0
    )]
    Names {
        /// The dataflow's number.
        dataflow: usize,
        /// A worker, and the name there.
        here: (usize, String),
        /// Another, and the name there.
        there: (usize, String),
    },
    /// A dataflow's graphs differ; the first difference.
    #[error(
        "the workers built different dataflows: of dataflow {dataflow}, worker {} has {}, where worker {} has {}; build the \
         same graph on every worker", .here.0, part(.here.1.as_deref()), .there.0, part(.there.1.as_deref())
    )]
    Graphs {
        /// The dataflow's number.
        dataflow: usize,
        /// A worker, and the description of its scope, operator or edge there; none where it has no more of them.
        here: (usize, Option<String>),
        /// Another worker, and the operator that it has in this place.
        there: (usize, Option<String>),
    },
    /// A worker ended without building a dataflow that another one built.
    #[error(
        "the workers built different dataflows: worker {builder} built dataflow {dataflow} '{name}', and worker {other} ended \
         without building it; build the same dataflows on every worker"
    )]
    NotBuilt {
        /// The dataflow's number.
        dataflow: usize,
        /// Its name.
        name: String,
        /// The worker that built it.
        builder: usize,
        /// The worker that did not build it.
        other: usize,
    },
    /// Another process reports progress at a place that a scope does not have here.
    #[error(
        "the workers built different dataflows: of scope '{scope}', another process reports progress at a place that is not \
         in it here; build the same graph on every worker"
    )]
    Places {
        /// The scope's name.
        scope: String,
    },
    /// A dataflow was dropped on one worker and not on another.
    #[error(
        "dataflow {dataflow} '{name}' was dropped on worker {dropped} but not on worker {kept}, where it cannot end any \
         more: drop it on every worker"
    )]
    Dropped {
        /// The dataflow's number.
        dataflow: usize,
        /// Its name.
        name: String,
        /// The worker that dropped it.
        dropped: usize,
        /// The worker that kept it.
        kept: usize,
    },
    /// A difference that another process found, in its words.
    #[error("{0}")]
    Reported(String),
}

fn part(line: Option<&str>) -> &str {
    line.unwrap_or("nothing more")
}
