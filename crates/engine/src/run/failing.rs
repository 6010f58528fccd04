//! Failing: the way in which one worker ends the computation, with an error that user code sees, too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use crate::error::{BoxError, Disagreement, Error};
use crate::host::Host;
use crate::panics;

/// Stops all workers.
pub(crate) trait Stops {
    /// Stops every worker of this process.
    fn stop(&self);

    /// Ends the computation because workers built different graphs, with the difference.
    fn disagree(&self, why: &Disagreement);

    /// Ends the computation with the failure of a worker, and says so to the other processes.
    fn fail(&self, worker: usize, error: Error, reason: String);
}

/// Ends the computation because of an error on a worker. Everything on the worker that can fail it shares
/// this.
pub(crate) struct Failing {
    cluster: Arc<dyn Stops>,
    worker: usize,
    host: Rc<dyn Host>,
}

impl Failing {
    pub(crate) fn new(cluster: Arc<dyn Stops>, worker: usize, host: Rc<dyn Host>) -> Rc<Self> {
        Rc::new(Failing {
            cluster,
            worker,
            host,
        })
    }

    /// Ends the computation with this error, which the cluster keeps if it is the first; returns the same error for
    /// the caller.
    pub(crate) fn fail(&self, error: Error) -> Error {
        match error {
            Error::Fatal(_) => error,
            // The worker that stopped this one has failed, or will report it in a moment.
            Error::Stopped => {
                self.cluster.stop();
                error
            }
            error => {
                if let Error::Disagreement(why) = &error {
                    self.cluster.disagree(why);
                }
                let (error, reason) = self.host.describe_error(self.worker, error);
                let error = Arc::new(error);
                let kept = Error::Fatal(Arc::clone(&error));
                self.cluster.fail(self.worker, kept, reason);
                Error::Fatal(error)
            }
        }
    }

    /// Runs a function of the engine's. A panic in it ends the computation, also where a caller further out catches
    /// it: the engine's state is then inconsistent.
    ///
    /// # Errors
    ///
    /// The failure, as [`fail`](Self::fail) returns it.
    pub(crate) fn contain<R>(&self, run: impl FnOnce() -> R) -> Result<R, Error> {
        catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
            let mut message = message_of(&*payload);
            if let Some(place) = panics::place() {
                message = format!("{message} (at {place})");
            }
            std::mem::forget(payload); // it may be anything, and its drop may panic in turn
            let worker = self.worker;
            self.fail(Error::Panic { worker, message })
        })
    }

    /// Fails as [`fail`](Self::fail) does, with an error that a push along an edge returned.
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

/// The message of a panic.
fn message_of(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it said nothing".to_owned())
}
