//! Operators made of a closure.
//!
//! An [`OperatorBuilder`] collects inputs, outputs and the path summaries between them, and ends with the logic:
//! a closure that runs whenever a message arrives, a frontier changes (if it asked for that), or the
//! operator is activated. Ports may be added until the dataflow is installed: a loop connects its
//! input after its output.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use pointstamp_order::{Point, Summary};
use pointstamp_progress::{Source, Target};

use super::draft::{Draft, MakeOutput};
use super::scope::Scope;
use crate::build::stream::Stream;
use crate::error::{BuildError, Error, UserResult};
use crate::observe::OperatorId;
use crate::payload::Payload;
use crate::run::arrival::Arrival;
use crate::run::capability::{Capability, OutputCore};
use crate::run::edge::Inbox;
use crate::run::pact::{Connection, Pact};
use crate::run::port::{InputCore, InputPort, OutputPort, ReadyInputs, Ticket};
use crate::run::queue::LocalQueue;
use crate::run::site::Site;
use crate::run::wakeups::Activator;

pub use crate::run::closure::Logic;
pub use crate::run::notify::Notify;

/// Builds an operator. Clones build the same one.
pub struct OperatorBuilder<P: Payload> {
    scope: Scope<P>,
    pub(super) index: usize,
    pub(super) draft: Rc<RefCell<Draft<P>>>,
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

impl<P: Payload> Scope<P> {
    /// Starts an operator in this scope.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the scope is no longer being built.
    pub fn operator(&self, name: &str) -> Result<OperatorBuilder<P>, Error> {
        OperatorBuilder::new(self, name)
    }
}

impl<P: Payload> OperatorBuilder<P> {
    pub(crate) fn new(scope: &Scope<P>, name: &str) -> Result<Self, Error> {
        let (index, id, activation) = scope.allocate_child()?;
        let worker = scope.worker();
        let name = worker
            .host()
            .renames(name)
            .unwrap_or_else(|| name.to_owned());
        let (failing, room) = (Rc::clone(worker.failing()), Rc::clone(worker.room()));
        let draft = Rc::new(RefCell::new(Draft {
            name,
            dims: scope.dims(),
            site: Site::new(id, activation, failing, room),
            inputs: Vec::new(),
            outputs: Vec::new(),
            summaries: BTreeMap::new(),
            notify_by_input: BTreeMap::new(),
            notify: Notify::Never,
            start: false,
            initial: Vec::new(),
            retentions: Vec::new(),
            silent: BTreeMap::new(),
            retains_forever: false,
            asked: Rc::default(),
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
        let (copies, kind) = (pact.copies(worker.peers()), pact.name());
        let reader = Rc::<str>::from(draft.name.as_str());
        let id = self.scope.add_edge(stream.source, target, copies, kind);
        let (edge, inbox) = pact.connect(Connection {
            label: self.scope.label(id),
            queue: Rc::clone(&queue),
            reader: Rc::clone(&reader),
            fabric: worker.fabric(),
            channel: &|| self.scope.next_channel(0),
        })?;
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
            let reader = Rc::clone(&core) as Rc<dyn Arrival>;
            worker.arrivals().expect(id, &reader);
        }
        stream.tee.attach(edge);
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
            return Err(BuildError::NoPath {
                operator: draft.name.clone(),
                inputs: draft.inputs.len(),
                outputs: draft.outputs.len(),
                input,
                output,
            }
            .into());
        }
        draft.summaries.insert((input, output), summaries);
        Ok(())
    }

    /// Runs the operator whenever the frontier of an input moves; but not for inputs of which
    /// [`notify_of`](Self::notify_of) says something else.
    pub fn notify(&self) {
        self.draft.borrow_mut().notify = Notify::Always;
    }

    /// Says when the operator runs because the frontier of one input has moved.
    pub fn notify_of(&self, input: usize, when: Notify) {
        self.draft.borrow_mut().notify_by_input.insert(input, when);
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

    /// Refuses the dataflow, with this error, unless [`fulfil`](Self::fulfil) is called before it is installed.
    pub fn require(&self, missing: BuildError) {
        self.draft.borrow_mut().missing = Some(missing);
    }

    /// Meets what was required.
    pub fn fulfil(&self) {
        self.draft.borrow_mut().missing = None;
    }

    /// Ends the construction with the operator's logic.
    pub fn build(&self, logic: impl FnMut() -> UserResult<bool> + 'static) {
        self.draft.borrow().site.activation.place_last();
        let before = self.draft.borrow_mut().logic.replace(Box::new(logic));
        drop(before); // after the borrow: dropping it may run user code
    }
}
