//! Scopes, while they are being built.
//!
//! A [`Scope`] collects operators, nested scopes and the edges between them. Nothing runs before the
//! dataflow is installed: then each scope becomes a subgraph, which is one operator to its parent.
//! Child 0 of a scope stands for the scope's boundary: its outputs are the scope's inputs and the other way round.

mod downstream;
mod install;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pointstamp_channels::{ChannelId, Receiver, Sender};
use pointstamp_progress::{Source, Target};
use rustc_hash::FxHashSet;

use crate::activation::Activation;
use crate::edge::{Edge, Label, MAX_APPENDED, Tees};
use crate::error::Error;
use crate::observe::{EdgeId, OperatorId};
use crate::operator::{Draft, OperatorBuilder};
use crate::payload::{Message, Payload};
use crate::progress::PortChanges;
use crate::stream::Stream;
use crate::worker::{Arrival, Worker};

/// An edge, as progress tracking sees it: each record from the source arrives `copies` times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeShape {
    pub(crate) id: EdgeId,
    pub(crate) source: Source,
    pub(crate) target: Target,
    pub(crate) copies: i64,
    pub(crate) pact: &'static str,
}

enum ChildDraft<P: Payload> {
    Operator(Rc<RefCell<Draft<P>>>),
    Scope(Scope<P>),
}

/// A scope under construction; afterwards a name for where streams are. Clones are the same scope.
pub struct Scope<P: Payload>(Rc<ScopeCore<P>>);

struct ScopeCore<P: Payload> {
    name: String,
    address: Vec<usize>,
    dims: usize,
    parent: Option<Scope<P>>,
    worker: Worker<P>,
    activation: Activation,
    id: OperatorId,
    /// The dataflow's, all scopes together.
    numbers: Rc<Numbers>,
    /// The dataflow's, all scopes together.
    tees: Rc<Tees<P>>,
    /// Child `i + 1`.
    children: RefCell<Vec<ChildDraft<P>>>,
    edges: RefCell<Vec<EdgeShape>>,
    inputs: Cell<usize>,
    outputs: Cell<usize>,
    input_counts: Rc<RefCell<PortChanges>>,
    /// Outputs whose streams have left.
    left: RefCell<FxHashSet<Source>>,
    watches: RefCell<Vec<downstream::Watch<P>>>,
    state: Cell<State>,
}

/// What comes next in a dataflow, all scopes together.
#[derive(Default)]
struct Numbers {
    channel: Cell<u32>,
    operator: Cell<u32>,
    edge: Cell<u32>,
}

/// Counts on.
fn next(number: &Cell<u32>) -> u32 {
    number.replace(number.get() + 1)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Building,
    /// A nested scope whose block has ended; the dataflow is not installed yet.
    Closed,
    Installed,
    Discarded,
}

impl<P: Payload> Clone for Scope<P> {
    fn clone(&self) -> Self {
        Scope(Rc::clone(&self.0))
    }
}

impl<P: Payload> PartialEq for Scope<P> {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl<P: Payload> Scope<P> {
    /// The root scope of a new dataflow.
    pub(crate) fn root(worker: &Worker<P>, dataflow: u32, name: &str, dims: usize) -> Self {
        let activation = worker.root_activation().child(dataflow as usize);
        let numbers = Rc::<Numbers>::default();
        let operator = next(&numbers.operator);
        let id = OperatorId { dataflow, operator };
        Self::new(
            name,
            vec![dataflow as usize],
            dims,
            None,
            worker.clone(),
            activation,
            id,
            numbers,
            Rc::default(),
        )
    }

    #[allow(clippy::too_many_arguments)] // the two ways to make a scope, side by side above and below
    fn new(
        name: &str,
        address: Vec<usize>,
        dims: usize,
        parent: Option<Scope<P>>,
        worker: Worker<P>,
        activation: Activation,
        id: OperatorId,
        numbers: Rc<Numbers>,
        tees: Rc<Tees<P>>,
    ) -> Self {
        Scope(Rc::new(ScopeCore {
            name: name.to_owned(),
            address,
            dims,
            parent,
            worker,
            activation,
            id,
            numbers,
            tees,
            children: RefCell::default(),
            edges: RefCell::default(),
            inputs: Cell::new(0),
            outputs: Cell::new(0),
            input_counts: Rc::default(),
            left: RefCell::default(),
            watches: RefCell::default(),
            state: Cell::new(State::Building),
        }))
    }

    /// A scope inside this one, whose timestamps have `appended` more coordinates. It must be closed with
    /// [`close`](Self::close) before the dataflow is installed.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when this scope is no longer being built, or for more than 16 coordinates at once.
    pub fn nested(&self, name: &str, appended: usize) -> Result<Scope<P>, Error> {
        if appended > MAX_APPENDED {
            return Err(Error::Build(format!(
                "scope '{name}' appends {appended} coordinates: a scope appends at most {MAX_APPENDED}; nest two"
            )));
        }
        let (index, id, activation) = self.allocate_child()?;
        let mut address = self.0.address.clone();
        address.push(index);
        let scope = Self::new(
            name,
            address,
            self.0.dims + appended,
            Some(self.clone()),
            self.0.worker.clone(),
            activation,
            id,
            Rc::clone(&self.0.numbers),
            Rc::clone(&self.0.tees),
        );
        self.0
            .children
            .borrow_mut()
            .push(ChildDraft::Scope(scope.clone()));
        Ok(scope)
    }

    /// Ends the building of a nested scope.
    pub fn close(&self) {
        if self.0.state.get() == State::Building {
            self.0.state.set(State::Closed);
        }
    }

    /// Gives up a scope that will not be installed: what its operators hold is freed.
    pub fn discard(&self) {
        self.0.state.set(State::Discarded);
        for child in self.0.children.take() {
            child.give_up();
        }
        self.0.watches.take();
        self.0.tees.clear();
    }

    /// The edges of the whole dataflow.
    pub(crate) fn tees(&self) -> &Rc<Tees<P>> {
        &self.0.tees
    }

    /// The scope's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The scope's number, as observers are told it.
    pub fn id(&self) -> OperatorId {
        self.0.id
    }

    /// The path from the worker's root to the scope.
    pub fn address(&self) -> &[usize] {
        &self.0.address
    }

    /// How many coordinates timestamps have here.
    pub fn dims(&self) -> usize {
        self.0.dims
    }

    /// The scope around this one.
    pub fn parent(&self) -> Option<&Scope<P>> {
        self.0.parent.as_ref()
    }

    /// The worker that builds the dataflow.
    pub fn worker(&self) -> &Worker<P> {
        &self.0.worker
    }

    /// Starts an operator in this scope.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the scope is no longer being built.
    pub fn operator(&self, name: &str) -> Result<OperatorBuilder<P>, Error> {
        OperatorBuilder::new(self, name)
    }

    /// Brings a stream of the parent scope into this one.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the stream is not of the parent scope, or either is no longer being built.
    pub fn enter(&self, stream: &Stream<P>) -> Result<Stream<P>, Error> {
        self.check_building()?;
        let Some(parent) = &self.0.parent else {
            return Err(Error::Build(format!(
                "scope '{}' is a root scope: no stream enters it",
                self.0.name
            )));
        };
        parent.check_stream(stream, &self.0.name)?;
        let port = self.0.inputs.get();
        self.0.inputs.set(port + 1);
        let inside = self.0.tees.make();
        let node = self.index();
        let edge = parent.add_edge(stream.source, Target { node, port }, 1, "enter");
        stream.tee.attach(
            self.label(edge),
            Edge::Enter {
                port,
                dims: self.0.dims - parent.0.dims,
                counts: Rc::clone(&self.0.input_counts),
                scope: self.0.activation.clone(),
                inside: inside.clone(),
            },
        );
        Ok(Stream::new(
            self.clone(),
            Source { node: 0, port },
            inside,
            &stream.producer,
        ))
    }

    /// Brings a stream of this scope out to the parent.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the stream is not of this scope, has left it already, or there is no scope around it.
    pub fn leave(&self, stream: &Stream<P>) -> Result<Stream<P>, Error> {
        let Some(parent) = &self.0.parent else {
            return Err(Error::Build(format!(
                "the stream of '{}' is in the root scope '{}': there is no scope to leave to",
                stream.producer, self.0.name
            )));
        };
        parent.check_building()?;
        self.check_not_installed()?;
        if stream.scope != *self {
            return Err(self.wrong_scope(stream, "leave"));
        }
        if !self.0.left.borrow_mut().insert(stream.source) {
            return Err(Error::Build(format!(
                "the stream of '{}' has left scope '{}' {:?} for scope '{}' {:?} already: a stream leaves once; use the \
                 stream that the first leave() returned",
                stream.producer, self.0.name, self.0.address, parent.0.name, parent.0.address
            )));
        }
        let port = self.0.outputs.get();
        self.0.outputs.set(port + 1);
        let outside = self.0.tees.make();
        let edge = self.add_edge(stream.source, Target { node: 0, port }, 1, "leave");
        stream.tee.attach(
            self.label(edge),
            Edge::Leave {
                dims: parent.0.dims,
                outside: outside.clone(),
            },
        );
        Ok(Stream::new(
            parent.clone(),
            Source {
                node: self.index(),
                port,
            },
            outside,
            &stream.producer,
        ))
    }

    pub(crate) fn activation(&self) -> &Activation {
        &self.0.activation
    }

    fn index(&self) -> usize {
        *self.0.address.last().expect("an address is never empty")
    }

    pub(crate) fn allocate_child(&self) -> Result<(usize, OperatorId, Activation), Error> {
        self.check_building()?;
        let index = self.0.children.borrow().len() + 1;
        let id = OperatorId {
            dataflow: self.0.id.dataflow,
            operator: next(&self.0.numbers.operator),
        };
        Ok((index, id, self.0.activation.child(index)))
    }

    pub(crate) fn add_operator(&self, index: usize, draft: Rc<RefCell<Draft<P>>>) {
        let mut children = self.0.children.borrow_mut();
        debug_assert_eq!(children.len() + 1, index);
        children.push(ChildDraft::Operator(draft));
    }

    pub(crate) fn add_edge(
        &self,
        source: Source,
        target: Target,
        copies: i64,
        pact: &'static str,
    ) -> EdgeId {
        let id = EdgeId {
            dataflow: self.0.id.dataflow,
            edge: next(&self.0.numbers.edge),
        };
        self.0.edges.borrow_mut().push(EdgeShape {
            id,
            source,
            target,
            copies,
            pact,
        });
        id
    }

    /// What an edge of this dataflow says of itself.
    pub(crate) fn label(&self, id: EdgeId) -> Label {
        let worker = &self.0.worker;
        let (here, room) = (worker.index(), Rc::clone(worker.room()));
        Label { id, here, room }
    }

    /// Opens a channel to each worker.
    pub(crate) fn open_channel(&self) -> Result<Opened<P>, Error> {
        let id = self.next_channel(0);
        let worker = &self.0.worker;
        let (senders, receiver) = worker.fabric().open(worker.index(), id)?;
        Ok((senders, Inbox { id, receiver }))
    }

    /// Opens a channel to all other workers.
    pub(crate) fn open_broadcast_channel(&self) -> Result<Opened<P>, Error> {
        let id = self.next_channel(0);
        let worker = &self.0.worker;
        let (senders, receiver) = worker.fabric().open_broadcast(worker.index(), id)?;
        Ok((senders, Inbox { id, receiver }))
    }

    fn next_channel(&self, kind: u32) -> ChannelId {
        ChannelId {
            dataflow: self.0.id.dataflow,
            channel: kind | next(&self.0.numbers.channel),
        }
    }

    pub(crate) fn expect_arrivals(&self, id: ChannelId, reader: &Rc<dyn Arrival>) {
        self.0.worker.expect_arrivals(id, reader);
    }

    /// Checks that operators may still be added.
    pub(crate) fn check_building(&self) -> Result<(), Error> {
        let what = match self.0.state.get() {
            State::Building => return Ok(()),
            State::Closed => "its block has ended",
            State::Installed => "its dataflow is installed already",
            State::Discarded => "its dataflow was given up",
        };
        Err(Error::Build(format!(
            "nothing can be added to scope '{}' any more: {what}; build inside the `with` block",
            self.0.name
        )))
    }

    /// Checks that the dataflow is being built, if not this scope of it.
    pub(crate) fn check_not_installed(&self) -> Result<(), Error> {
        match self.0.state.get() {
            State::Closed => Ok(()),
            _ => self.check_building(),
        }
    }

    /// Checks that a stream can be read in this scope.
    pub(crate) fn check_stream(&self, stream: &Stream<P>, reader: &str) -> Result<(), Error> {
        if stream.scope == *self {
            Ok(())
        } else {
            Err(self.wrong_scope(stream, reader))
        }
    }

    fn wrong_scope(&self, stream: &Stream<P>, reader: &str) -> Error {
        let (from, to) = (&stream.scope, self);
        let way = if to.0.parent.as_ref() == Some(from) {
            "call .enter(scope) on it first".to_owned()
        } else if from.0.parent.as_ref() == Some(to) {
            "call .leave() on it first".to_owned()
        } else {
            "streams cross one scope boundary at a time, with .enter(scope) and .leave()".to_owned()
        };
        Error::Build(format!(
            "'{reader}' in scope '{}' {:?} cannot read the stream of '{}', which is in scope '{}' {:?}: {way}",
            to.0.name, to.0.address, stream.producer, from.0.name, from.0.address
        ))
    }

    /// An activator for an operator of this dataflow, by its address.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when nothing has the address.
    pub fn activator_for(&self, address: &[usize]) -> Result<crate::wakeups::Activator, Error> {
        let found = self.0.worker.root_activation().find(address);
        let found = found.filter(|_| !address.is_empty()).ok_or_else(|| {
            Error::Build(format!(
                "no operator has the address {address:?} on worker {}",
                self.0.worker.index()
            ))
        })?;
        Ok(Rc::clone(self.0.worker.wakeups()).activator(&found))
    }
}

/// A channel of batches: the way to other workers, and what arrives here.
pub(crate) type Opened<P> = (Vec<Sender<Message<P>>>, Inbox<Message<P>>);

/// The receiving end of a channel, with its name.
pub(crate) struct Inbox<T> {
    pub(crate) id: ChannelId,
    pub(crate) receiver: Receiver<T>,
}
