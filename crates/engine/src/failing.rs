//! How one worker ends the computation: with an error that user code sees, too.

use std::rc::Rc;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::error::{BoxError, Error};
use crate::host::Host;

/// Ends the computation because of what a worker ran into. Everything on the worker that can fail it shares this.
pub(crate) struct Failing {
    cluster: Arc<Cluster>,
    worker: usize,
    host: Rc<dyn Host>,
}

impl Failing {
    pub(crate) fn new(cluster: Arc<Cluster>, worker: usize, host: Rc<dyn Host>) -> Rc<Self> {
        Rc::new(Failing {
            cluster,
            worker,
            host,
        })
    }

    /// Ends the computation with this error, which the cluster keeps if it is the first; the same error, for whom it struck.
    pub(crate) fn fail(&self, error: Error) -> Error {
        match error {
            Error::Fatal(_) => error,
            // Who stopped this worker has failed, or will say so in a moment.
            Error::Stopped => {
                self.cluster.stop();
                error
            }
            error => {
                if let Error::Disagreement(why) = &error {
                    let _known = self.cluster.disagreement(why);
                }
                let (error, reason) = self.host.told(self.worker, error);
                let error = Arc::new(error);
                let kept = Error::Fatal(Arc::clone(&error));
                self.cluster.fail_because(self.worker, kept, reason);
                Error::Fatal(error)
            }
        }
    }

    /// As [`fail`](Self::fail), with what a push along an edge returned.
    pub(crate) fn fail_by(&self, cause: BoxError) -> Error {
        self.fail(match cause.downcast::<Error>() {
            Ok(error) => *error,
            Err(cause) => Error::Operator {
                operator: String::new(),
                cause,
            },
        })
    }
}
