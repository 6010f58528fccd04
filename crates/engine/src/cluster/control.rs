//! Control messages between the processes of a cluster.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::blueprint::Blueprint;
use crate::cut::CutMessage;

/// A message to every other process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Control {
    /// A worker installs a dataflow.
    Posted {
        worker: usize,
        dataflow: usize,
        name: String,
        /// The blueprint, where the worker is the first of its process.
        blueprint: Option<Blueprint>,
    },
    /// A worker builds no more.
    Finished { worker: usize },
    /// A worker dropped a dataflow.
    Dropped { worker: usize, dataflow: usize },
    /// A worker is done with a dataflow.
    Ended { worker: usize, dataflow: usize },
    /// Something about a checkpoint, for one worker of the process that gets it.
    Cut {
        worker: usize,
        to: usize,
        message: CutMessage,
    },
    /// A message of the program around the engine; it counts as sent by the first worker of the process.
    Said { worker: usize, what: Vec<u8> },
}

impl Control {
    pub(crate) fn to_bytes(&self) -> Bytes {
        postcard::to_stdvec(self)
            .expect("numbers and texts have a form as bytes")
            .into()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, postcard::Error> {
        postcard::from_bytes(bytes)
    }

    /// Whether the workers that it names exist in a process.
    pub(crate) fn is_from(&self, workers: &std::ops::Range<usize>) -> bool {
        match self {
            Control::Posted { worker, .. }
            | Control::Finished { worker }
            | Control::Dropped { worker, .. }
            | Control::Ended { worker, .. }
            | Control::Cut { worker, .. }
            | Control::Said { worker, .. } => workers.contains(worker),
        }
    }
}
