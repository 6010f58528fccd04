//! Operators made of a closure.
//!
//! An [`OperatorBuilder`] collects inputs, outputs and the path summaries between them, and ends with the logic:
//! a closure that runs whenever a message arrives, a frontier changes (if it asked for that), or somebody
//! activates the operator. Ports may be added until the dataflow is installed: a loop connects its
//! input after its output, and a chain of record functions grows an output for each branch.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use pointstamp_order::{Antichain, Point, Summary};
use pointstamp_progress::{Connectivity, Source, Target};

use crate::activation::Activation;
use crate::capability::{Capability, OutputCore};
use crate::edge::{Edge, Exchange, LocalQueue, Site};
use crate::error::{Error, UserResult};
use crate::observe::OperatorId;
use crate::operate::{Description, Schedule};
use crate::pact::Pact;
use crate::payload::Payload;
use crate::port::{InputCore, InputPort, OutputPort, ReadyInputs, Ticket};
use crate::scope::{Inbox, Scope};
use crate::stream::Stream;
use crate::wakeups::Activator;
use crate::worker::Arrival;

/// An operator's logic. `Ok(true)` keeps the dataflow from ending although no frontier shows why.
pub type Logic = Box<dyn FnMut() -> UserResult<bool>>;

/// How the shared part of an output is made.
type MakeOutput = fn(usize, Rc<Site>) -> Rc<OutputCore>;

/// Builds an operator. Clones build the same one.
pub struct OperatorBuilder<P: Payload> {
    scope: Scope<P>,
    index: usize,
    draft: Rc<RefCell<Draft<P>>>,
}

impl<P: Payload> Clone for OperatorBuilder<P> {
    fn clone(&self) -> Self {
        OperatorBuilder {
            scope: self.scope.clone(),
            index: self.index,
            draft: Rc::clone(&self.draft),
        }
    }
}

/// An operator under construction.
pub(crate) struct Draft<P> {
    name: String,
    dims: usize,
    site: Rc<Site>,
    inputs: Vec<Rc<InputCore<P>>>,
    outputs: Vec<Rc<OutputCore>>,
    /// Summaries that differ from the identity; an empty list is no path.
    summaries: BTreeMap<(usize, usize), Vec<Summary>>,
    notify: bool,
    start: bool,
    /// Outputs that begin with a capability.
    initial: Vec<usize>,
    /// What is still missing, in words.
    missing: Option<String>,
    logic: Option<Logic>,
}

impl<P: Payload> OperatorBuilder<P> {
    pub(crate) fn new(scope: &Scope<P>, name: &str) -> Result<Self, Error> {
        let (index, id, activation) = scope.allocate_child()?;
        let worker = scope.worker();
        let (failing, room) = (Rc::clone(worker.failing()), Rc::clone(worker.room()));
        let draft = Rc::new(RefCell::new(Draft {
            name: name.to_owned(),
            dims: scope.dims(),
            site: Site::new(id, activation, failing, room),
            inputs: Vec::new(),
            outputs: Vec::new(),
            summaries: BTreeMap::new(),
            notify: false,
            start: false,
            initial: Vec::new(),
            missing: None,
            logic: None,
        }));
        scope.add_operator(index, Rc::clone(&draft));
        Ok(OperatorBuilder {
            scope: scope.clone(),
            index,
            draft,
        })
    }

    /// The scope that the operator is in.
    pub fn scope(&self) -> &Scope<P> {
        &self.scope
    }

    /// The operator's name.
    pub fn name(&self) -> String {
        self.draft.borrow().name.clone()
    }

    /// Checks that the operator may still change.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the scope is no longer being built.
    pub fn check_building(&self) -> Result<(), Error> {
        self.scope.check_building()
    }

    /// Names the operator anew.
    pub fn rename(&self, name: &str) {
        name.clone_into(&mut self.draft.borrow_mut().name);
    }

    /// The operator's number, as observers are told it.
    pub fn id(&self) -> OperatorId {
        self.draft.borrow().id()
    }

    /// The operator's address: the path from the worker's root.
    pub fn address(&self) -> Vec<usize> {
        let mut address = self.scope.address().to_vec();
        address.push(self.index);
        address
    }

    /// Something that asks for this operator to run.
    pub fn activator(&self) -> Activator {
        Rc::clone(self.scope.worker().wakeups()).activator(&self.draft.borrow().site.activation)
    }

    /// Connects an input to a stream.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the stream is of another scope or the dataflow is installed already.
    pub fn new_input(&self, stream: &Stream<P>, pact: Pact<P>) -> Result<InputPort<P>, Error> {
        self.scope.check_building()?;
        self.scope.check_stream(stream, &self.draft.borrow().name)?;
        let mut draft = self.draft.borrow_mut();
        let port = draft.inputs.len();
        let queue = LocalQueue::new(port, Rc::clone(&draft.site));
        let target = Target {
            node: self.index,
            port,
        };
        let worker = self.scope.worker();
        let (copies, kind) = match pact {
            Pact::Broadcast => (worker.peers() as i64, pact.name()),
            _ => (1, pact.name()),
        };
        let mut inbox = None;
        let reader = Rc::<str>::from(draft.name.as_str());
        let edge = match pact {
            Pact::Pipeline => Edge::Local(Rc::clone(&queue)),
            Pact::Exchange(router) => {
                let mut remote = vec![None];
                if worker.peers() > 1 {
                    let (senders, opened) = self.scope.open_channel()?;
                    remote = senders.into_iter().map(Some).collect();
                    remote[worker.index()] = None;
                    inbox = Some(opened);
                }
                let parts = remote.iter().map(|_| Vec::new()).collect();
                Edge::Exchange(Exchange {
                    router,
                    local: Rc::clone(&queue),
                    remote,
                    parts,
                    reader: Rc::clone(&reader),
                })
            }
            Pact::Broadcast => {
                let mut remote = Vec::new();
                if worker.peers() > 1 {
                    let (senders, opened) = self.scope.open_broadcast_channel()?;
                    remote = senders;
                    inbox = Some(opened);
                }
                Edge::Broadcast {
                    local: Rc::clone(&queue),
                    remote,
                    reader: Rc::clone(&reader),
                    peers: worker.peers(),
                }
            }
        };
        let id = self.scope.add_edge(stream.source, target, copies, kind);
        let core = Rc::new(InputCore {
            port,
            queue,
            remote: RefCell::new(None),
            frontier: RefCell::default(),
            ticket: Ticket::new(draft.dims, Rc::clone(&draft.site)),
            edge: id,
            reader,
        });
        if let Some(Inbox { id, receiver }) = inbox {
            *core.remote.borrow_mut() = Some(receiver);
            self.scope
                .expect_arrivals(id, &(Rc::clone(&core) as Rc<dyn Arrival>));
        }
        stream.tee.attach(self.scope.label(id), edge);
        draft.inputs.push(Rc::clone(&core));
        Ok(InputPort { core })
    }

    /// Adds an input that is told the frontier of an output in the same scope, and gets no records.
    pub(crate) fn new_frontier_input(&self, source: Source) -> InputPort<P> {
        let mut draft = self.draft.borrow_mut();
        let port = draft.inputs.len();
        let node = self.index;
        let edge = self
            .scope
            .add_edge(source, Target { node, port }, 0, "watch");
        let core = Rc::new(InputCore {
            port,
            queue: LocalQueue::new(port, Rc::clone(&draft.site)),
            remote: RefCell::new(None),
            frontier: RefCell::default(),
            ticket: Ticket::new(draft.dims, Rc::clone(&draft.site)),
            edge,
            reader: draft.name.as_str().into(),
        });
        draft.inputs.push(Rc::clone(&core));
        InputPort { core }
    }

    /// Adds an output that begins without a capability: it sends what its messages entitle it to.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the dataflow is installed already.
    pub fn new_output(&self) -> Result<(OutputPort<P>, Stream<P>), Error> {
        self.scope.check_building()?;
        Ok(self.output(OutputCore::new))
    }

    /// Adds an output for which every worker begins with a capability at the minimum time.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the dataflow is installed already.
    pub fn new_held_output(&self) -> Result<(OutputPort<P>, Stream<P>, Capability), Error> {
        self.held(OutputCore::new)
    }

    /// An output that begins with a capability which the worker may take back.
    pub(crate) fn new_revocable_output(
        &self,
    ) -> Result<(OutputPort<P>, Stream<P>, Capability), Error> {
        self.held(OutputCore::revocable)
    }

    /// As [`new_output`](Self::new_output), also when the block of the operator's scope has ended: a stream that is to
    /// leave the scope may get its output then.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the dataflow is installed already.
    pub fn new_late_output(&self) -> Result<(OutputPort<P>, Stream<P>), Error> {
        self.scope.check_not_installed()?;
        Ok(self.output(OutputCore::new))
    }

    fn held(&self, make: MakeOutput) -> Result<(OutputPort<P>, Stream<P>, Capability), Error> {
        self.scope.check_building()?;
        let (output, stream) = self.output(make);
        let mut draft = self.draft.borrow_mut();
        draft.initial.push(output.port());
        let capability = Capability::initial(Point::minimum(draft.dims), Rc::clone(&output.core));
        Ok((output, stream, capability))
    }

    fn output(&self, make: MakeOutput) -> (OutputPort<P>, Stream<P>) {
        let mut draft = self.draft.borrow_mut();
        let core = draft.add_output(make);
        let port = core.port;
        let tee = self.scope.tees().make();
        let source = Source {
            node: self.index,
            port,
        };
        let stream = Stream::new(self.scope.clone(), source, tee.clone(), &draft.name);
        (OutputPort { core, tee }, stream)
    }

    /// Says what happens to a timestamp between an input and an output: the least of `summaries`, or, when there is
    /// none, no path. Pairs that are not named have the identity.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] for a port that does not exist, or a summary of another scope's coordinates.
    pub fn set_summary(
        &self,
        input: usize,
        output: usize,
        summaries: Vec<Summary>,
    ) -> Result<(), Error> {
        self.scope.check_building()?;
        let mut draft = self.draft.borrow_mut();
        if input >= draft.inputs.len() || output >= draft.outputs.len() {
            return Err(Error::Build(format!(
                "operator '{}' has {} inputs and {} outputs: there is no path from input {input} to output {output} to \
                 summarise",
                draft.name,
                draft.inputs.len(),
                draft.outputs.len()
            )));
        }
        draft.summaries.insert((input, output), summaries);
        Ok(())
    }

    /// Delivers input frontiers: the operator runs whenever one changes.
    pub fn notify(&self) {
        self.draft.borrow_mut().notify = true;
    }

    /// Runs the operator once at the start, with nothing received.
    pub fn start(&self) {
        self.draft.borrow_mut().start = true;
    }

    /// Keeps a list of the inputs that have messages, for logic over many inputs.
    pub fn ready_inputs(&self) -> ReadyInputs {
        let site = Rc::clone(&self.draft.borrow().site);
        site.ready.borrow_mut().get_or_insert_with(VecDeque::new);
        ReadyInputs(site)
    }

    /// Refuses the dataflow, with this sentence, unless [`fulfil`](Self::fulfil) is called before it is installed.
    pub fn require(&self, missing: String) {
        self.draft.borrow_mut().missing = Some(missing);
    }

    /// Meets what was required.
    pub fn fulfil(&self) {
        self.draft.borrow_mut().missing = None;
    }

    /// Ends the construction with the operator's logic.
    pub fn build(&self, logic: impl FnMut() -> UserResult<bool> + 'static) {
        let before = self.draft.borrow_mut().logic.replace(Box::new(logic));
        drop(before); // after the borrow: dropping it may run user code
    }
}

/// Runs the logic of an operator.
struct ClosureOperator<P> {
    name: String,
    inputs: Vec<Rc<InputCore<P>>>,
    /// The inputs that other workers send to.
    remote: Vec<Rc<InputCore<P>>>,
    site: Rc<Site>,
    notify: bool,
    logic: Option<Logic>,
}

impl<P: Payload> Draft<P> {
    /// What the operator tells its scope; ends the construction.
    pub(crate) fn describe(&mut self) -> Result<Description, Error> {
        if let Some(missing) = self.missing.take() {
            return Err(Error::Build(missing));
        }
        if self.logic.is_none() && !self.inputs.is_empty() {
            return Err(Error::Build(format!(
                "operator '{}' was never built: it has inputs and nothing that would read them, so that the dataflow \
                 could not end; call build(), and let errors of building it end the dataflow's block",
                self.name
            )));
        }
        let (inputs, outputs) = (self.inputs.len(), self.outputs.len());
        let identity = Summary::identity(self.dims);
        let mut summary = Connectivity::empty();
        for (port, input) in self.inputs.iter().enumerate() {
            let mut row = Vec::new();
            for output in 0..outputs {
                let named = self.summaries.get(&(port, output));
                row.push((
                    output,
                    named.cloned().unwrap_or_else(|| vec![identity.clone()]),
                ));
            }
            row.retain(|(_, list)| !list.is_empty());
            for (output, list) in &row {
                summary.set(
                    port,
                    *output,
                    list.iter().cloned().collect::<Antichain<_>>(),
                );
            }
            *input.ticket.summaries.borrow_mut() = row;
            input.ticket.outputs.borrow_mut().clone_from(&self.outputs);
        }
        let minimum = Point::minimum(self.dims);
        Ok(Description {
            name: self.name.clone(),
            inputs,
            outputs,
            summary,
            initial: self
                .initial
                .iter()
                .map(|&port| (port, minimum.clone()))
                .collect(),
            local: true,
            notify: self.notify,
            start: self.start,
            id: self.site.id,
            progress: Rc::clone(&self.site.progress),
            operator: Box::new(ClosureOperator {
                name: self.name.clone(),
                remote: self
                    .inputs
                    .iter()
                    .filter(|input| input.remote.borrow().is_some())
                    .cloned()
                    .collect(),
                inputs: std::mem::take(&mut self.inputs),
                site: Rc::clone(&self.site),
                notify: self.notify,
                logic: self.logic.take(),
            }),
        })
    }

    /// Hands out what the operator would have run: it will not be installed.
    pub(crate) fn give_up(&mut self) -> Option<Logic> {
        self.site.progress.close();
        self.logic.take()
    }

    /// Adds an output on which nothing is ever sent: its frontier tells of the inputs'.
    pub(crate) fn new_silent_output(&mut self) -> usize {
        self.add_output(OutputCore::new).port
    }

    fn add_output(&mut self, make: MakeOutput) -> Rc<OutputCore> {
        let core = make(self.outputs.len(), Rc::clone(&self.site));
        self.outputs.push(Rc::clone(&core));
        core
    }

    /// Whether times do not simply pass from every input to every output.
    pub(crate) fn advances_times(&self) -> bool {
        !self.summaries.is_empty()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn id(&self) -> OperatorId {
        self.site.id
    }

    pub(crate) fn activation(&self) -> &Activation {
        &self.site.activation
    }

    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.inputs.len(), self.outputs.len())
    }
}

impl<P: Payload> Schedule for ClosureOperator<P> {
    fn schedule(&mut self) -> Result<bool, Error> {
        if self.notify {
            let mut changes = self.site.progress.frontiers.borrow_mut();
            for ((port, time), diff) in changes.drain() {
                self.inputs[port].frontier.borrow_mut().update(time, diff);
            }
        }
        let Some(logic) = &mut self.logic else {
            return Ok(false);
        };
        let result = logic();
        self.site.expire();
        let incomplete = result.map_err(|cause| Error::Operator {
            operator: self.name.clone(),
            cause,
        })?;
        // Logic that takes one message at a time is called again; logic that took none waits for something else.
        let took = !self.site.progress.consumed.borrow_mut().is_empty();
        if took
            && (self.site.backlog.get() > 0 || self.remote.iter().any(|input| input.has_remote()))
        {
            self.site.activation.run();
        }
        Ok(incomplete)
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
