//! The ports of an operator: where its logic receives and sends.
//!
//! Consuming a message is counted when it is taken, sending when it is sent; both go to the board that the
//! scope collects after the run. A message's capability ([`MessageCapability`]) may be used until the next
//! message is taken or the run ends, because up to then the count of the consumed message has not left
//! the operator.
//!
//! A send is complete, or it ends the computation. It is counted first, and then routed, encoded and pushed along
//! every edge; where one of these fails, the cluster fails at once with the user's own error, also where user code
//! catches it. The other order is not possible: a routing function may step the worker or give up the capability, and
//! the routed records must be counted by then; and records that were routed for one edge cannot be taken back when
//! the next one's function fails. Likewise, a message that cannot be read ends the computation: it has left its
//! queue, and was never counted as consumed.

use std::cell::{Ref, RefCell};
use std::rc::Rc;

use pointstamp_channels::Receiver;
use pointstamp_order::{MutableAntichain, Point, Summary};
use pointstamp_order::{PartialOrder, PathSummary};

use crate::cut::Queued;
use crate::error::{BoxError, BuildError, CapabilityError, Error, check_dims};
use crate::observe::{EdgeId, Observation};
use crate::payload::{Message, Payload};
use crate::run::arrival::Arrival;
use crate::run::capability::{Capability, OutputCore};
use crate::run::pact::PactKind;
use crate::run::queue::LocalQueue;
use crate::run::schedule::Waiting;
use crate::run::site::Site;
use crate::run::tee::Tee;

/// The summaries from one input to the outputs, in order of the outputs, as a shared list.
pub(crate) type OutputSummaries = Rc<RefCell<Vec<(usize, Vec<Summary>)>>>;

/// One input of an operator.
pub struct InputPort<P> {
    pub(crate) core: Rc<InputCore<P>>,
}

impl<P> Clone for InputPort<P> {
    fn clone(&self) -> Self {
        InputPort {
            core: Rc::clone(&self.core),
        }
    }
}

pub(crate) struct InputCore<P> {
    pub(crate) port: usize,
    pub(crate) queue: Rc<LocalQueue<P>>,
    pub(crate) remote: RefCell<Option<Receiver<Message<P>>>>,
    pub(crate) frontier: RefCell<MutableAntichain<Point>>,
    pub(crate) ticket: Rc<Ticket>,
    /// The edge that leads here.
    pub(crate) edge: EdgeId,
    pub(crate) pact: PactKind,
    /// The operator's name when the input was made.
    pub(crate) reader: Rc<str>,
}

impl<P: Payload> InputCore<P> {
    /// The counts of waiting batches.
    pub(crate) fn waiting(&self) -> Waiting {
        Waiting {
            here: self.queue.waiting(),
            remote: self.has_remote(),
        }
    }

    /// Takes in batches that wait from other workers, so that they can be inspected.
    pub(crate) fn pull(&self) -> Result<(), Error> {
        let pulled = match &*self.remote.borrow() {
            Some(remote) => remote.pull(),
            None => Ok(()),
        };
        pulled.map_err(|cause| {
            let operator = self.reader.to_string();
            self.site().failing.fail(Error::Decode { operator, cause })
        })
    }

    /// The waiting batches, in the order in which they would be taken.
    pub(crate) fn queued(&self) -> Vec<Queued<P>> {
        let mut messages = self.queue.messages();
        if let Some(remote) = &*self.remote.borrow() {
            messages.extend(remote.pulled());
        }
        let queued = messages.into_iter().map(|Message { time, data }| Queued {
            port: self.port,
            time,
            batch: data,
            pact: self.pact,
            reroutes: false,
        });
        queued.collect()
    }

    fn take_remote(&self) -> Result<Option<Message<P>>, Error> {
        let taken = match &*self.remote.borrow() {
            Some(remote) => remote.pop(),
            None => Ok(None),
        };
        taken.map_err(|cause| {
            let operator = self.reader.to_string();
            self.site().failing.fail(Error::Decode { operator, cause })
        })
    }
}

impl<P> InputCore<P> {
    pub(crate) fn site(&self) -> &Site {
        &self.queue.site
    }

    /// Whether messages from other workers wait.
    pub(crate) fn has_remote(&self) -> bool {
        self.remote
            .borrow()
            .as_ref()
            .is_some_and(|remote| !remote.is_empty())
    }
}

impl<P: Payload> Arrival for InputCore<P> {
    fn arrived(&self) {
        if let Some(remote) = &*self.remote.borrow() {
            remote.acknowledge();
            if !remote.is_empty() {
                self.queue.announce();
            }
        }
    }
}

/// The data for checks of a message's capability.
pub(crate) struct Ticket {
    pub(crate) site: Rc<Site>,
    pub(crate) outputs: RefCell<Vec<Rc<OutputCore>>>,
    pub(crate) summaries: OutputSummaries,
    pub(crate) dims: usize,
}

impl Ticket {
    pub(crate) fn new(dims: usize, site: Rc<Site>) -> Rc<Self> {
        Rc::new(Ticket {
            site,
            outputs: RefCell::default(),
            summaries: Rc::default(),
            dims,
        })
    }
}

impl<P: Payload> InputPort<P> {
    /// Takes the next message: its capability and its batch.
    ///
    /// # Errors
    ///
    /// [`Error::Capability`] when the operator is not running: the consumption could not be counted together with the
    /// operator's reaction. [`Error::Decode`] for an unreadable message of another process.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&self) -> Result<Option<(MessageCapability, P)>, Error> {
        let core = &*self.core;
        let site = core.site();
        if !site.activation.is_running() {
            return Err(CapabilityError::NotRunning.into());
        }
        site.expire();
        let (message, remote) = match core.queue.pop() {
            Some(message) => (message, false),
            None => match core.take_remote()? {
                Some(message) => (message, true),
                None => return Ok(None),
            },
        };
        site.observers.report(|| Observation::MessageReceived {
            edge: core.edge,
            time: &message.time,
            records: message.data.len(),
            remote,
        });
        site.progress
            .consumed
            .borrow_mut()
            .update((core.port, message.time.clone()), message.data.len() as i64);
        let generation = site.generation.get();
        let capability = MessageCapability {
            time: message.time,
            generation,
            ticket: Rc::clone(&core.ticket),
        };
        Ok(Some((capability, message.data)))
    }

    /// Ends the computation: a message that was taken is lost.
    pub fn fail(&self, cause: BoxError) -> Error {
        self.core.site().failing.fail_by(cause)
    }

    /// The times that may still arrive, as the operator knew them when this run began.
    pub fn frontier(&self) -> Ref<'_, MutableAntichain<Point>> {
        self.core.frontier.borrow()
    }

    /// The input's number.
    pub fn port(&self) -> usize {
        self.core.port
    }

    /// Whether messages wait.
    pub fn has_messages(&self) -> bool {
        !self.core.queue.is_empty() || self.core.has_remote()
    }
}

/// The inputs of an operator that have messages.
pub struct ReadyInputs(pub(crate) Rc<Site>);

impl ReadyInputs {
    /// The next input, out of the operator's `inputs`, that has messages.
    pub fn next<'a, P>(&self, inputs: &'a [InputPort<P>]) -> Option<&'a InputPort<P>> {
        let port = self.0.ready.borrow_mut().as_mut()?.pop_front()?;
        inputs[port].core.queue.listed.set(false);
        Some(&inputs[port])
    }
}

/// The capability that comes with a message.
#[derive(Clone)]
pub struct MessageCapability {
    time: Point,
    generation: u64,
    ticket: Rc<Ticket>,
}

impl MessageCapability {
    /// The message's time.
    pub fn time(&self) -> &Point {
        &self.time
    }

    /// Whether it can still be used.
    pub fn is_valid(&self) -> bool {
        self.ticket.site.generation.get() == self.generation
    }

    /// A capability to keep, at the message's time, on an output.
    ///
    /// # Errors
    ///
    /// As [`delayed`](Self::delayed).
    pub fn retain(&self, output: usize) -> Result<Capability, Error> {
        self.delayed(&self.time, output)
    }

    /// A capability to keep, at `time`, on an output.
    ///
    /// # Errors
    ///
    /// [`Error::Capability`] when it has expired, when there is no such output, or no path from the input to it; a
    /// time error when `time` is before the message's time under the path's summary.
    pub fn delayed(&self, time: &Point, output: usize) -> Result<Capability, Error> {
        let core = self.authorise(time, output)?;
        Ok(Capability::mint(time.clone(), core))
    }

    /// Checks that messages at `time` may be sent on `output` now.
    fn authorise(&self, time: &Point, output: usize) -> Result<Rc<OutputCore>, Error> {
        if !self.is_valid() {
            let time = self.time.clone();
            return Err(CapabilityError::Expired { time }.into());
        }
        check_dims(time, self.ticket.dims)?;
        let outputs = self.ticket.outputs.borrow();
        let Some(core) = outputs.get(output) else {
            let outputs = outputs.len();
            return Err(CapabilityError::NoOutput { output, outputs }.into());
        };
        let summaries = self.ticket.summaries.borrow();
        let Ok(at) = summaries.binary_search_by_key(&output, |(port, _)| *port) else {
            return Err(CapabilityError::NoPath { output }.into());
        };
        let results = || {
            summaries[at]
                .1
                .iter()
                .filter_map(|summary| summary.results_in(&self.time))
        };
        if results().any(|least| least.less_equal(time)) {
            Ok(Rc::clone(core))
        } else {
            let from = results().next().unwrap_or_else(|| self.time.clone());
            Err(Error::TimeGoesBack {
                from,
                to: time.clone(),
            })
        }
    }
}

/// Anything that gives the right to send at a time on an output.
pub trait Authority {
    /// The time of the messages.
    fn time(&self) -> &Point;
    /// Checks the right to send on this output.
    ///
    /// # Errors
    ///
    /// [`Error::Capability`] when it is for another output or can no longer be used.
    fn check(&self, output: &OutputCore) -> Result<(), Error>;
}

impl Authority for Capability {
    fn time(&self) -> &Point {
        self.time()
    }

    fn check(&self, output: &OutputCore) -> Result<(), Error> {
        if !std::ptr::eq(Rc::as_ptr(self.output()), output) {
            let output = output.port;
            return Err(CapabilityError::OtherOutput { output }.into());
        }
        if self.is_revoked() {
            return Err(Error::Closed);
        }
        Ok(())
    }
}

impl Authority for MessageCapability {
    fn time(&self) -> &Point {
        &self.time
    }

    fn check(&self, output: &OutputCore) -> Result<(), Error> {
        let core = self.authorise(&self.time, output.port)?;
        if std::ptr::eq(Rc::as_ptr(&core), output) {
            Ok(())
        } else {
            Err(CapabilityError::OtherOperator.into())
        }
    }
}

/// One output of an operator.
pub struct OutputPort<P> {
    pub(crate) core: Rc<OutputCore>,
    pub(crate) tee: Tee<P>,
}

impl<P> Clone for OutputPort<P> {
    fn clone(&self) -> Self {
        OutputPort {
            core: Rc::clone(&self.core),
            tee: self.tee.clone(),
        }
    }
}

impl<P: Payload> OutputPort<P> {
    /// Sends a batch at the authority's time.
    ///
    /// # Errors
    ///
    /// [`Error::Capability`] when the authority is not for this output or has expired, [`Error::Build`] when called by the
    /// function that routes this output (nothing is sent), and whatever a routing function downstream raises, which ends the
    /// computation.
    pub fn send(&self, authority: &impl Authority, data: P) -> Result<(), SendError> {
        authority.check(&self.core)?;
        self.tee.check()?;
        if self.tee.leads_nowhere() {
            return Ok(()); // as behind a probe at the end of a dataflow: there is nothing to count
        }
        self.count(authority.time(), data.len());
        self.push(authority.time(), data).map_err(SendError::Route)
    }

    /// Checks an authority without sending.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send); and [`Error::Build`] where the dataflow was given up while it was built.
    pub fn check(&self, authority: &impl Authority) -> Result<(), Error> {
        authority.check(&self.core)?;
        if self.tee.is_unbuilt() {
            return Err(BuildError::Unbuilt.into());
        }
        Ok(())
    }

    /// Checks that the output is not being routed now.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] inside a function that routes it.
    pub fn check_idle(&self) -> Result<(), Error> {
        self.tee.check()
    }

    /// The greatest last coordinate of all times at which something was sent; 0 where nothing was.
    pub fn latest(&self) -> u64 {
        self.core.latest()
    }

    /// Whether the operator was dropped with its dataflow.
    pub(crate) fn is_gone(&self) -> bool {
        self.core.site.progress.is_closed()
    }

    /// Counts records that are sent next, at a time for which the caller holds a capability of this output.
    pub(crate) fn count(&self, time: &Point, records: usize) {
        if records > 0 && !self.is_gone() {
            self.core.sends(time);
            self.core
                .site
                .progress
                .produced
                .borrow_mut()
                .update((self.core.port, time.clone()), records as i64);
            self.core.site.activation.report();
        }
    }

    /// Sends a batch that was counted. A failure ends the computation.
    pub(crate) fn push(&self, time: &Point, data: P) -> Result<(), BoxError> {
        if data.is_empty() {
            return Ok(());
        }
        if self.is_gone() {
            return Ok(()); // no operator is left to read it, and its functions are being dropped
        }
        let time = time.clone();
        let pushed = self.tee.push(Message { time, data });
        pushed.map_err(|cause| self.core.site.failing.fail_by(cause).into())
    }

    /// Ends the computation because a batch for this output is lost.
    pub fn fail(&self, cause: BoxError) -> Error {
        self.core.site.failing.fail_by(cause)
    }

    /// The output's number.
    pub fn port(&self) -> usize {
        self.core.port
    }
}

/// Why a batch was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The right to send was missing.
    #[error(transparent)]
    Denied(#[from] Error),
    /// A routing function downstream failed.
    #[error("routing failed: {0}")]
    Route(#[source] BoxError),
}

impl SendError {
    /// The error to report as the operator's: a routing function's own, unchanged.
    pub fn into_cause(self) -> BoxError {
        match self {
            SendError::Denied(error) => error.into(),
            SendError::Route(cause) => cause,
        }
    }
}
