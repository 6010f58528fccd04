//! The way from an output to one reader.
//!
//! Owns [`Edge`], which the contracts in `pact` and the boundaries of scopes implement. Progress counts records, not
//! batches, so an edge is free to split a batch; an edge that delivers a record several times declares it in its
//! [`EdgeShape`].

use std::rc::Rc;

use pointstamp_channels::encode::CodecError;
use pointstamp_channels::{ChannelId, Receiver};
use pointstamp_order::Point;
use pointstamp_progress::{Source, Target};

use crate::error::{BoxError, Error, UserResult};
use crate::observe::{EdgeId, Observation, Observers};
use crate::payload::{Message, Payload};

/// The way from an output to one reader.
pub(crate) trait Edge<P> {
    /// Sends a message on.
    fn push(&mut self, message: Message<P>) -> UserResult<()>;
}

/// An edge, as progress tracking sees it: each record from the source arrives `copies` times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeShape {
    pub(crate) id: EdgeId,
    pub(crate) source: Source,
    pub(crate) target: Target,
    pub(crate) copies: i64,
    pub(crate) pact: &'static str,
}

/// The receiving end of a channel from other workers, with its name.
pub(crate) struct Inbox<T> {
    pub(crate) id: ChannelId,
    pub(crate) receiver: Receiver<T>,
}

/// The description of an edge for observers.
pub(crate) struct Label {
    pub(crate) id: EdgeId,
    /// The worker that sends.
    pub(crate) here: usize,
    pub(crate) observers: Rc<Observers>,
}

impl Label {
    /// A batch is sent to a worker.
    #[inline]
    pub(crate) fn sent<P: Payload>(&self, time: &Point, data: &P, worker: usize) {
        self.observers.report(|| Observation::MessageSent {
            edge: self.id,
            time,
            records: data.len(),
            worker,
        });
    }
}

/// Why a batch cannot be sent to another process, as the error of the operator that would read it.
pub(crate) fn unsendable(reader: &str, cause: CodecError) -> BoxError {
    let operator = reader.to_owned();
    Error::Encode { operator, cause }.into()
}
