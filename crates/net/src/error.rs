//! Why a cluster did not form.

use std::io;
use std::time::Duration;

/// Settings that no cluster can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A process has a number that is not among the addresses.
    #[error("there is no process {process} among {processes} addresses")]
    NoSuchProcess {
        /// Its number.
        process: usize,
        /// The number of addresses.
        processes: usize,
    },
    /// The secret is empty.
    #[error("a cluster needs a secret")]
    NoSecret,
    /// The stall timeout is shorter than a heartbeat can be.
    #[error("the stall timeout must be at least 10 milliseconds")]
    StallTimeout,
    /// The facts that the processes compare do not fit into an introduction.
    #[error("the facts that processes compare are too long")]
    Facts,
    /// TLS cannot work with these files, and why.
    #[error("{0}")]
    Tls(String),
}

/// A cluster could not be formed.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// Some processes did not come in time.
    #[error("the cluster did not form within {:.1} seconds: missing {}", .after.as_secs_f64(), .missing.join(", "))]
    Timeout {
        /// The time that this process waited.
        after: Duration,
        /// Each as `process 2 (host:port)`, with the reason if it is known.
        missing: Vec<String>,
    },
    /// This process cannot listen at its own address.
    #[error("process {process} cannot listen at its address {address}: {source}")]
    Bind {
        /// This process.
        process: usize,
        /// Its address.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// Another process and this one may not be in one cluster.
    #[error("process {process} ({address}) and this one cannot form a cluster: {reason}")]
    Refused {
        /// The other process.
        process: usize,
        /// Its address.
        address: String,
        /// The difference.
        reason: String,
    },
    /// Another process gave up.
    #[error("process {process} ({address}) gave up while the cluster formed: {reason}")]
    Abandoned {
        /// The other process.
        process: usize,
        /// Its address.
        address: String,
        /// Why, as far as it said.
        reason: String,
    },
    /// This process was configured in a way that no cluster can have.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The operating system refuses a resource that the connections need.
    #[error("{what}: {source}")]
    Resources {
        /// The resource that was refused.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The caller cancelled.
    #[error("forming the cluster was cancelled")]
    Cancelled,
}
