//! Scopes, while they are being built.
//!
//! A [`Scope`] collects operators, nested scopes and the edges between them. Nothing runs before the
//! dataflow is installed: then each scope becomes a subgraph, which is one operator to its parent.
//! Child 0 of a scope stands for the scope's boundary: its outputs are the scope's inputs and the other way round.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pointstamp_channels::ChannelId;
use pointstamp_progress::{Source, Target};
use rustc_hash::FxHashSet;

pub use super::downstream::Found;
use super::draft::Draft;
use crate::error::{BuildError, Completed, Error, ScopePath};
use crate::identity::Identities;
use crate::observe::{EdgeId, OperatorId};
use crate::payload::Payload;
use crate::run::activation::Activation;
use crate::run::boundary::MAX_APPENDED;
use crate::run::edge::{EdgeShape, Label};
use crate::run::progress::PortChanges;
use crate::run::tee::Tees;
use crate::worker::Worker;

/// The maximum depth of scopes. Functions on a scope and the scopes in it recurse, so that the deepest has to fit on
/// the stack of any thread on which a program steps a worker, with the calls of its operators on top of it.
pub const MAX_NESTED: usize = 64;

/// An action that runs when the dataflow is complete, with the scope in which it was registered.
pub(super) type Late<P> = Box<dyn FnOnce(&Scope<P>)>;

/// An operator or scope in a scope that is being built.
pub(super) enum ChildDraft<P: Payload> {
    Operator(Rc<RefCell<Draft<P>>>),
    Scope(Scope<P>),
}

/// A scope under construction; afterwards a name for where streams are. Clones are the same scope.
pub struct Scope<P: Payload>(pub(super) Rc<ScopeCore<P>>);

pub(super) struct ScopeCore<P: Payload> {
    pub(super) name: String,
    pub(super) identity: String,
    /// Identities of the scope's nodes, where checkpoints are made.
    pub(super) identities: Option<RefCell<Identities>>,
    /// The identities of its nodes, in order, where there are any.
    pub(super) nodes: RefCell<Vec<String>>,
    pub(super) address: Vec<usize>,
    pub(super) dims: usize,
    pub(super) parent: Option<Scope<P>>,
    pub(super) worker: Worker<P>,
    pub(super) activation: Activation,
    pub(super) id: OperatorId,
    /// The dataflow's, all scopes together.
    pub(super) numbers: Rc<Numbers>,
    /// The dataflow's, all scopes together.
    pub(super) tees: Rc<Tees<P>>,
    /// Child `i + 1`.
    pub(super) children: RefCell<Vec<ChildDraft<P>>>,
    /// Their numbers, which stay when they are installed.
    pub(super) ids: RefCell<Vec<OperatorId>>,
    pub(super) edges: RefCell<Vec<EdgeShape>>,
    pub(super) inputs: Cell<usize>,
    pub(super) outputs: Cell<usize>,
    pub(super) input_counts: Rc<RefCell<PortChanges>>,
    /// Outputs whose streams have left the scope.
    pub(super) left: RefCell<FxHashSet<Source>>,
    /// Actions that run when the dataflow is complete.
    pub(super) late: RefCell<Vec<Late<P>>>,
    pub(super) state: Cell<State>,
}

/// The next numbers in a dataflow, over all scopes.
#[derive(Default)]
pub(super) struct Numbers {
    channel: Cell<u32>,
    operator: Cell<u32>,
    edge: Cell<u32>,
    /// Whether a source of the dataflow acknowledges records.
    acknowledged: Cell<bool>,
}

/// Counts on.
fn next(number: &Cell<u32>) -> u32 {
    number.replace(number.get() + 1)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
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
        worker.host().begins(id);
        Self::new(
            name,
            String::new(),
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
        identity: String,
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
            identity,
            identities: (worker.restores() || worker.records()).then(RefCell::default),
            nodes: RefCell::default(),
            address,
            dims,
            parent,
            worker,
            activation,
            id,
            numbers,
            tees,
            children: RefCell::default(),
            ids: RefCell::default(),
            edges: RefCell::default(),
            inputs: Cell::new(0),
            outputs: Cell::new(0),
            input_counts: Rc::default(),
            left: RefCell::default(),
            late: RefCell::default(),
            state: Cell::new(State::Building),
        }))
    }

    /// Creates a scope inside this one, whose timestamps have `appended` more coordinates. It must be closed
    /// with [`close`](Self::close) before the dataflow is installed.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when this scope is no longer being built, for more than 16 coordinates at once, and for a scope that
    /// is nested more than [`MAX_NESTED`] deep.
    pub fn nested(&self, name: &str, appended: usize) -> Result<Scope<P>, Error> {
        if appended > MAX_APPENDED {
            let (scope, most) = (name.to_owned(), MAX_APPENDED);
            return Err(BuildError::Coordinates {
                scope,
                appended,
                most,
            }
            .into());
        }
        // A dataflow's root has an address of one number.
        if self.0.address.len() > MAX_NESTED {
            let (scope, most) = (name.to_owned(), MAX_NESTED);
            return Err(BuildError::Nested { scope, most }.into());
        }
        let (index, id, activation) = self.allocate_child()?;
        let mut address = self.0.address.clone();
        address.push(index);
        let identity = self.identify(name);
        let scope = Self::new(
            name,
            identity,
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

    /// Declares that a source of the dataflow acknowledges the records that have left it, so that they are
    /// not delivered again. Operators that are added afterwards report the records that they have taken and
    /// still need.
    pub fn acknowledges(&self) {
        self.0.numbers.acknowledged.set(true);
    }

    /// Whether a source of the dataflow [acknowledges](Self::acknowledges).
    pub fn is_acknowledged(&self) -> bool {
        self.0.numbers.acknowledged.get()
    }

    /// Gives up a scope that will not be installed, and frees the contents of its operators.
    pub fn discard(&self) {
        self.0.state.set(State::Discarded);
        for child in self.0.children.take() {
            child.give_up();
        }
        drop(self.0.late.take());
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

    /// The scope's number, as observers see it.
    pub fn id(&self) -> OperatorId {
        self.0.id
    }

    /// The scope's identity, where checkpoints are made; empty otherwise, and for the dataflow.
    pub(crate) fn identity(&self) -> &str {
        &self.0.identity
    }

    /// The identity of the node that is begun next here, where checkpoints are made; empty otherwise.
    pub(crate) fn identify(&self, name: &str) -> String {
        let identities = self.0.identities.as_ref();
        let Some(identities) = identities else {
            return String::new();
        };
        let mut identities = identities.borrow_mut();
        let identity = identities.next(&self.0.identity, name);
        self.0.nodes.borrow_mut().push(identity.clone());
        identity
    }

    /// Whether the program has several nodes here of the name that this identity has.
    pub(crate) fn has_namesakes(&self, identity: &str) -> bool {
        let identities = self.0.identities.as_ref();
        identities.is_some_and(|it| it.borrow().have_namesakes(identity))
    }

    /// An output of a node, for comparison with a checkpoint.
    pub(crate) fn source_text(&self, source: Source) -> String {
        let nodes = self.0.nodes.borrow();
        let node = source.node.checked_sub(1).and_then(|at| nodes.get(at));
        format!("{}:{}", node.map_or("", String::as_str), source.port)
    }

    /// The identities of the scope and the scopes around it, without the identity of the dataflow.
    pub(crate) fn identities(&self) -> Vec<&str> {
        let mut identities = Vec::new();
        let mut scope = Some(self);
        while let Some(inner) = scope {
            if inner.0.parent.is_some() {
                identities.push(inner.identity());
            }
            scope = inner.0.parent.as_ref();
        }
        identities
    }

    /// The scope, as errors name it.
    pub(crate) fn path(&self) -> ScopePath {
        ScopePath {
            name: self.0.name.clone(),
            address: self.0.address.clone(),
        }
    }

    /// The path from the worker's root to the scope.
    pub fn address(&self) -> &[usize] {
        &self.0.address
    }

    /// The number of coordinates of timestamps in the scope.
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

    /// The number of the operator that is a node here; node 0 is the scope.
    pub(crate) fn operator_at(&self, node: usize) -> OperatorId {
        let Some(child) = node.checked_sub(1) else {
            return self.0.id;
        };
        self.0.ids.borrow()[child]
    }

    pub(super) fn index(&self) -> usize {
        *self.0.address.last().expect("an address is never empty")
    }

    pub(crate) fn allocate_child(&self) -> Result<(usize, OperatorId, Activation), Error> {
        self.check_building()?;
        let index = self.0.children.borrow().len() + 1;
        let id = OperatorId {
            dataflow: self.0.id.dataflow,
            operator: next(&self.0.numbers.operator),
        };
        self.0.worker.host().begins(id);
        self.0.ids.borrow_mut().push(id);
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

    /// The label of an edge of this dataflow.
    pub(crate) fn label(&self, id: EdgeId) -> Label {
        let worker = &self.0.worker;
        let (here, observers) = (worker.index(), Rc::clone(worker.observers()));
        Label {
            id,
            here,
            observers,
        }
    }

    pub(super) fn next_channel(&self, kind: u32) -> ChannelId {
        ChannelId {
            dataflow: self.0.id.dataflow,
            channel: kind | next(&self.0.numbers.channel),
        }
    }

    /// Runs the actions that waited for the dataflow to be complete, here and in nested scopes.
    pub(crate) fn finish(&self) {
        for late in self.0.late.take() {
            late(self);
        }
        for scope in self.nested_scopes() {
            scope.finish();
        }
    }

    fn nested_scopes(&self) -> Vec<Scope<P>> {
        let children = self.0.children.borrow();
        let scopes = children.iter().filter_map(|child| match child {
            ChildDraft::Scope(scope) => Some(scope.clone()),
            ChildDraft::Operator(_) => None,
        });
        scopes.collect()
    }

    /// Checks that operators may still be added.
    pub(crate) fn check_building(&self) -> Result<(), Error> {
        let why = match self.0.state.get() {
            State::Building => return Ok(()),
            State::Closed => Completed::Closed,
            State::Installed => Completed::Installed,
            State::Discarded => Completed::Discarded,
        };
        let scope = self.0.name.clone();
        Err(BuildError::Complete { scope, why }.into())
    }

    /// An activator for an operator of this dataflow, by its address.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when nothing has the address.
    pub fn activator_for(
        &self,
        address: &[usize],
    ) -> Result<crate::run::wakeups::Activator, Error> {
        let found = self.0.worker.root_activation().find(address);
        let found = found.filter(|_| !address.is_empty()).ok_or_else(|| {
            let (address, worker) = (address.to_vec(), self.0.worker.index());
            BuildError::NoOperator { address, worker }
        })?;
        Ok(Rc::clone(self.0.worker.wakeups()).activator(&found))
    }
}
