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
use crate::cut::{Form, State};
use crate::error::{BuildError, Error, UserResult};
use crate::host::StateSize;
use crate::observe::OperatorId;
use crate::payload::{Message, Payload};
use crate::run::arrival::Arrival;
use crate::run::capability::{Capability, OutputCore};
use crate::run::edge::Inbox;
use crate::run::pact::{Connection, Pact, PactKind};
use crate::run::port::{InputCore, InputPort, OutputPort, ReadyInputs, Ticket};
use crate::run::queue::LocalQueue;
use crate::run::site::Site;
use crate::run::taking::Keeps;
pub use crate::run::taking::Lends;
use crate::run::wakeups::Activator;
use crate::worker::Beginning;

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

/// The contents of an operator at a checkpoint. Dropping this drops the capabilities that are left in it.
#[derive(Default)]
pub struct Restored {
    /// The state that it kept.
    pub state: State,
    /// The capabilities that it held, without those with which outputs begin, in order of outputs and times.
    pub held: Vec<Capability>,
    /// Whether it had ended while others read its state: see [`lends`](OperatorBuilder::lends). It does not
    /// run again.
    pub ended: bool,
    pub(crate) position: Option<u64>,
}

impl Restored {
    /// Takes a capability that it held on an output, or one at `time` by an earlier one. `None` where it held none
    /// that permits this.
    pub fn capability(&mut self, output: usize, time: &Point) -> Option<Capability> {
        let exact = |held: &Capability| held.port() == output && held.time() == time;
        if let Some(at) = self.held.iter().position(exact) {
            return Some(self.held.remove(at));
        }
        let mut of_output = self.held.iter().filter(|held| held.port() == output);
        of_output.find_map(|held| held.delayed(time).ok())
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
        let (failing, observers) = (Rc::clone(worker.failing()), Rc::clone(worker.observers()));
        let identity = scope.identify(&name);
        let (records, restores) = (worker.records(), worker.restores());
        let beginning = if restores {
            worker.beginning(scope.address()[0], &identity, &name, &scope.identities())
        } else {
            Beginning::Fresh
        };
        let described = (records || restores).then(|| worker.host().describes());
        let form = Form {
            kind: described.flatten().unwrap_or_default(),
            inputs: Vec::new(),
        };
        let draft = Rc::new(RefCell::new(Draft {
            name,
            identity,
            dataflow: scope.address()[0],
            dims: scope.dims(),
            site: Site::new(id, activation, failing, observers),
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
            keeps: Keeps::Unsaid,
            lends: None,
            position: None,
            tray: Rc::clone(worker.tray()),
            pauses: None,
            peers: worker.peers(),
            beginning,
            form,
            changed: false,
            purse: BTreeMap::new(),
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

    /// The operator's number, as observers see it.
    pub fn id(&self) -> OperatorId {
        self.draft.borrow().id()
    }

    /// The operator's address: the path from the worker's root.
    pub fn address(&self) -> Vec<usize> {
        let mut address = self.scope.address().to_vec();
        address.push(self.index);
        address
    }

    /// Returns an activator of this operator.
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
        let (copies, kind, moves) = (pact.copies(worker.peers()), pact.name(), pact.kind());
        let reader = Rc::<str>::from(draft.name.as_str());
        let id = self.scope.add_edge(stream.source, target, copies, kind);
        let (mut edge, inbox) = pact.connect(Connection {
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
            pact: moves,
            reader,
        });
        if let Some(Inbox { id, receiver }) = inbox {
            *core.remote.borrow_mut() = Some(receiver);
            let reader = Rc::clone(&core) as Rc<dyn Arrival>;
            worker.arrivals().expect(id, &reader);
        }
        let mut waited = Vec::new();
        if let Beginning::Goes(part, _) = &mut draft.beginning {
            let queued = part.queued.extract_if(.., |queued| queued.port == port);
            waited.extend(queued);
        }
        draft.inputs.push(Rc::clone(&core));
        draft
            .form
            .inputs
            .push(self.scope.source_text(stream.source));
        drop(draft); // to route is user code
        for queued in waited {
            let message = Message {
                time: queued.time,
                data: queued.batch,
            };
            if queued.reroutes {
                let routed = edge.push(message);
                routed.map_err(|cause| worker.failing().fail_by(cause))?;
            } else {
                core.queue.push(message);
            }
        }
        stream.tee.attach(edge);
        Ok(InputPort { core })
    }

    /// Adds an input that receives the frontier of an output in the same scope, and no records.
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
            pact: PactKind::Pipeline,
            reader: draft.name.as_str().into(),
        });
        draft.inputs.push(Rc::clone(&core));
        draft.form.inputs.push(self.scope.source_text(source));
        InputPort { core }
    }

    /// Adds an output that begins without a capability: it sends with the capabilities of its messages.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the dataflow is installed already.
    pub fn new_output(&self) -> Result<(OutputPort<P>, Stream<P>), Error> {
        self.scope.check_building()?;
        Ok(self.output(OutputCore::new))
    }

    /// Adds an output for which every worker begins with a capability at the minimum time. Where the dataflow resumes
    /// from a checkpoint, the capability is one of those that the operator held; where it held none, the capability
    /// [is revoked](Capability::is_revoked), and sends nothing.
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
        let (port, minimum) = (output.port(), Point::minimum(draft.dims));
        if let Beginning::Fresh = draft.beginning {
            draft.initial.push(port);
            let capability = Capability::initial(minimum, Rc::clone(&output.core));
            return Ok((output, stream, capability));
        }
        let purse = draft.purse.get_mut(&port);
        let held = purse.filter(|held| !held.is_empty());
        let capability = held.map(|held| held.remove(0));
        let capability =
            capability.unwrap_or_else(|| Capability::spent(minimum, Rc::clone(&output.core)));
        Ok((output, stream, capability))
    }

    fn output(&self, make: MakeOutput) -> (OutputPort<P>, Stream<P>) {
        let mut draft = self.draft.borrow_mut();
        let core = draft.add_output(make);
        let port = core.port;
        let mut held = Vec::new();
        if let Beginning::Goes(part, _) = &draft.beginning {
            core.set_latest(part.latest.get(port).copied().unwrap_or(0));
            for one in part.held.iter().filter(|held| held.port == port) {
                let capability = || Capability::initial(one.time.clone(), Rc::clone(&core));
                held.extend((0..one.count).map(|_| capability()));
            }
        }
        draft.purse.insert(port, held);
        let tee = self.scope.tees().make();
        let source = Source {
            node: self.index,
            port,
        };
        let stream = Stream::new(self.scope.clone(), source, tee.clone(), &draft.name);
        (OutputPort { core, tee }, stream)
    }

    /// Sets the summary between an input and an output: the effect on a timestamp is the least of
    /// `summaries`; when there is none, no path exists. Pairs that are not named have the identity.
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

    /// Says how the host learns what the operator's state takes.
    pub fn sized(&self, size: StateSize) {
        self.scope().worker().host().keeps(self.id(), size);
    }

    /// Declares that the operator keeps nothing: it sends all results of a batch before its run ends.
    pub fn stateless(&self) {
        self.set_keeps(Keeps::Nothing);
    }

    /// Says how the operator's state is taken for a checkpoint. `take` is called between two runs, when nothing is in flight. The times that
    /// the operator holds, and the batches at its inputs that it has not taken, are in the checkpoint by themselves.
    pub fn keeps(&self, take: impl FnMut() -> UserResult<State> + 'static) {
        self.set_keeps(Keeps::State(Box::new(take)));
    }

    /// Says how state is taken that others read and that outlives the operator: it is in checkpoints also when the operator, its scope or its
    /// dataflow has ended. While the operator runs, [`keeps`](Self::keeps) has it.
    pub fn lends(&self, lends: impl Lends + 'static) {
        let before = self.draft.borrow_mut().lends.replace(Box::new(lends));
        drop(before); // after the borrow: dropping it may run user code
    }

    /// Whether the operator had ended at the checkpoint from which the dataflow resumes: it does not run
    /// again.
    pub fn has_ended(&self) -> bool {
        matches!(self.draft.borrow().beginning, Beginning::Ended(_))
    }

    /// Adds the digest of the operator's functions, and the maker of digests, to its description: where they
    /// differ from those of a checkpoint, [`Worker::changed`](crate::worker::Worker::changed) has the operator.
    pub fn functions(&self, maker: &str, digest: &str) {
        self.draft.borrow_mut().form.add_functions(maker, digest);
    }

    fn set_keeps(&self, keeps: Keeps) {
        let before = std::mem::replace(&mut self.draft.borrow_mut().keeps, keeps);
        drop(before); // after the borrow: dropping it may run user code
    }

    /// The operator's contents at the checkpoint from which the dataflow resumes. `None` where it had ended
    /// and nobody reads its state; and where it was of another kind or had other types, so that it could not
    /// read them: then its dataflow is refused. To be called once, after its outputs were added.
    pub fn restored(&self) -> Option<Restored> {
        let mut draft = self.draft.borrow_mut();
        if let Beginning::Goes(part, _) = &draft.beginning
            && draft.form.types_differ(&part.form)
        {
            return None;
        }
        let part = match &mut draft.beginning {
            Beginning::Fresh => return None,
            Beginning::Ended(lent) => {
                return lent.take().map(|(state, position)| Restored {
                    state,
                    held: Vec::new(),
                    ended: true,
                    position,
                });
            }
            Beginning::Goes(part, _) | Beginning::New(part, _) => part,
        };
        let (state, position) = (part.state.take(), part.position);
        let held = std::mem::take(&mut draft.purse);
        Some(Restored {
            state: state.unwrap_or(State::None),
            held: held.into_values().flatten().collect(),
            ended: false,
            position,
        })
    }

    /// Sets whether the operator pauses while sources are held for a checkpoint. By default, operators without inputs
    /// do.
    pub fn pauses(&self, pauses: bool) {
        self.draft.borrow_mut().pauses = Some(pauses);
    }

    /// Says how many records were sent at the time that the operator holds, for an input of main.
    pub(crate) fn set_position(&self, position: impl Fn() -> u64 + 'static) {
        self.draft.borrow_mut().position = Some(Box::new(position));
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

    /// Marks the requirement as met.
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
