//! The activation of operators that have work to do.
//!
//! Operators form a tree: the worker, its dataflows, the scopes in them, the operators in those scopes. An
//! [`Activation`] is one node of that tree. Activating a node enqueues it with its parent, and the parent with its
//! own, up to the first one that is enqueued already: the cost is amortised constant, and a subtree in which nothing
//! happens is never visited.
//!
//! There are two reasons to visit an operator. It should *run* (messages, a new frontier, a request), or it
//! only has progress to *report*, because a capability of it moved while something else was running. The
//! second must not run its logic: an operator that drops a capability would wake itself for ever.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::{Rc, Weak};

const RUN: u8 = 1;
const REPORT: u8 = 2;
const QUEUED: u8 = 4;
const RUNNING: u8 = 8;
/// It should run because of messages, a frontier, or work in which it stopped: not only because somebody asked for it.
const WORK: u8 = 16;

/// A child's turn, and its index.
type Queued = (usize, usize);

struct Node {
    parent: Option<Activation>,
    index: usize,
    flags: Cell<u8>,
    /// Its turn among the children of its parent.
    turn: Cell<usize>,
    /// The turn of the child that is placed next.
    next_turn: Cell<usize>,
    /// Children with turns below this one have had them in the pass that is running.
    cursor: Cell<usize>,
    /// Turns and indices of children that are QUEUED: for this pass, and for the next.
    active: RefCell<BinaryHeap<Reverse<Queued>>>,
    later: RefCell<Vec<Queued>>,
    /// Children by index, to find an operator by its address.
    children: RefCell<BTreeMap<usize, WeakActivation>>,
}

/// A node of the tree of activations. Clones name the same node.
#[derive(Clone)]
pub struct Activation(Rc<Node>);

/// A weak reference to a node, for timers and for requests of other threads.
#[derive(Clone)]
pub(crate) struct WeakActivation(Weak<Node>);

impl WeakActivation {
    pub(crate) fn upgrade(&self) -> Option<Activation> {
        self.0.upgrade().map(Activation)
    }
}

/// The reason for a visit to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Visit {
    /// The node's logic should run; otherwise it only reports.
    pub(crate) run: bool,
}

impl Activation {
    /// The root: a worker.
    pub(crate) fn root() -> Self {
        Self::node(None, 0)
    }

    /// The child of this node with the given index.
    pub(crate) fn child(&self, index: usize) -> Self {
        let child = Self::node(Some(self.clone()), index);
        self.0
            .children
            .borrow_mut()
            .insert(index, child.downgrade());
        child
    }

    /// Has the node run after all its siblings that there are, and so its ancestors.
    ///
    /// An operator gets its index when it is reserved, which may be before its inputs exist. An operator that is
    /// placed when it is complete runs after them in the same pass.
    pub(crate) fn place_last(&self) {
        let mut node = self;
        while let Some(parent) = &node.0.parent {
            parent.place(node);
            node = parent;
        }
    }

    /// Gives a child the next turn, also where it waits already: data may come to an input before its operator is complete.
    fn place(&self, child: &Self) {
        let turn = self.take_turn();
        let former = (child.0.turn.replace(turn), child.0.index);
        if child.0.flags.get() & QUEUED == 0 {
            return;
        }
        let queued = |one: &Queued| *one == former;
        let mut active = self.0.active.borrow_mut();
        if active.iter().any(|Reverse(one)| queued(one)) {
            active.retain(|Reverse(one)| !queued(one));
            active.push(Reverse((turn, child.0.index)));
        }
        let mut later = self.0.later.borrow_mut();
        later
            .iter_mut()
            .filter(|one| queued(one))
            .for_each(|one| one.0 = turn);
    }

    fn take_turn(&self) -> usize {
        let turn = self.0.next_turn.get();
        self.0.next_turn.set(turn + 1);
        turn
    }

    /// Removes a child that no longer exists.
    pub(crate) fn forget(&self, index: usize) {
        self.0.children.borrow_mut().remove(&index);
    }

    /// The node at an address below this one, if it still exists.
    pub(crate) fn find(&self, address: &[usize]) -> Option<Activation> {
        address.iter().try_fold(self.clone(), |node, index| {
            let children = node.0.children.borrow();
            children.get(index).and_then(WeakActivation::upgrade)
        })
    }

    fn node(parent: Option<Activation>, index: usize) -> Self {
        let turn = parent.as_ref().map_or(0, Activation::take_turn);
        Activation(Rc::new(Node {
            parent,
            index,
            flags: Cell::new(0),
            turn: Cell::new(turn),
            next_turn: Cell::new(0),
            cursor: Cell::new(0),
            active: RefCell::default(),
            later: RefCell::default(),
            children: RefCell::default(),
        }))
    }

    pub(crate) fn downgrade(&self) -> WeakActivation {
        WeakActivation(Rc::downgrade(&self.0))
    }

    /// Activates the node to run, because there is work for it.
    pub fn run(&self) {
        self.request(RUN | WORK);
    }

    /// Activates the node to run, because a timer, another thread or the node itself asks for it.
    pub(crate) fn run_as_asked(&self) {
        self.request(RUN);
    }

    /// Activates the node for its progress to be collected, without running it.
    pub(crate) fn report(&self) {
        if self.0.flags.get() & RUNNING == 0 {
            self.request(REPORT);
        } // else: progress is collected when the run ends, whatever happened in it
    }

    fn request(&self, why: u8) {
        let flags = self.0.flags.get();
        self.0.flags.set(flags | why | QUEUED);
        let enqueues = flags & QUEUED == 0;
        let work = why & !flags & WORK;
        if (enqueues || work != 0)
            && let Some(parent) = &self.0.parent
        {
            let queued = (self.0.turn.get(), self.0.index);
            if !enqueues {
                // It has its place already.
            } else if queued.0 >= parent.0.cursor.get() {
                parent.0.active.borrow_mut().push(Reverse(queued));
            } else {
                parent.0.later.borrow_mut().push(queued);
            }
            // A parent that is running looks at its queue again before it ends.
            if parent.0.flags.get() & RUNNING == 0 {
                parent.request(RUN | work);
            }
        }
    }

    /// Whether the node is to run.
    pub(crate) fn is_asked_to_run(&self) -> bool {
        self.0.flags.get() & RUN != 0
    }

    /// Whether the node is to run because there is work for it.
    pub(crate) fn has_work(&self) -> bool {
        self.0.flags.get() & WORK != 0
    }

    /// Whether the node is running now.
    pub(crate) fn is_running(&self) -> bool {
        self.0.flags.get() & RUNNING != 0
    }

    /// Whether a child waits to be visited.
    pub(crate) fn has_active(&self) -> bool {
        !self.0.active.borrow().is_empty() || !self.0.later.borrow().is_empty()
    }

    /// The indices of the children that wait to be visited.
    pub(crate) fn active(&self) -> impl Iterator<Item = usize> {
        let now = self.0.active.borrow();
        let now = now.iter().map(|Reverse((_, index))| *index);
        let later = self.0.later.borrow();
        let later = later.iter().map(|(_, index)| *index);
        now.chain(later).collect::<Vec<_>>().into_iter()
    }

    /// Takes the active child with the least turn for this pass, and returns its index. A child that becomes active after its turn
    /// waits for the next pass, so that a pass ends.
    pub(crate) fn next_active(&self) -> Option<usize> {
        let Reverse((turn, index)) = self.0.active.borrow_mut().pop()?;
        self.0.cursor.set(turn + 1);
        Some(index)
    }

    /// Ends a pass over the active children.
    pub(crate) fn end_pass(&self) {
        self.0.cursor.set(0);
        self.0
            .active
            .borrow_mut()
            .extend(self.0.later.borrow_mut().drain(..).map(Reverse));
    }

    /// Says that the node, which its parent took from the queue, was not visited: the next request enqueues it.
    pub(crate) fn forget_requests(&self) {
        self.0.flags.set(0);
    }

    /// Forgets what the children have asked for: nobody visits what was inside of an operator that has ended.
    pub(crate) fn forget_children(&self) {
        self.0.active.borrow_mut().clear();
        self.0.later.borrow_mut().clear();
    }

    /// Begins a visit of a node that its parent took from the queue.
    pub(crate) fn begin(&self) -> Visit {
        let flags = self.0.flags.get();
        self.0.flags.set(RUNNING);
        Visit {
            run: flags & RUN != 0,
        }
    }

    /// Ends a visit. The node is enqueued again if it asked to run, or if a child of it became active.
    pub(crate) fn end(&self) {
        let flags = self.0.flags.get();
        let again = flags & RUN != 0 || self.has_active();
        // A request during the visit has enqueued the node with its parent already (QUEUED is set).
        self.0.flags.set(flags & !(RUNNING | REPORT));
        if again {
            let has_work =
                flags & WORK != 0 || self.active().any(|child| self.child_has_work(child));
            self.request(if has_work { RUN | WORK } else { RUN });
        }
    }

    fn child_has_work(&self, index: usize) -> bool {
        let children = self.0.children.borrow();
        let child = children.get(&index).and_then(WeakActivation::upgrade);
        child.is_some_and(|child| child.has_work())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reaches_the_root_once() {
        let root = Activation::root();
        let scope = root.child(3);
        let (a, b) = (scope.child(1), scope.child(2));
        b.run();
        a.report();
        a.run();
        assert_eq!(root.next_active(), Some(3));
        assert_eq!(root.next_active(), None);
        root.end_pass();
        scope.begin();
        assert_eq!(scope.next_active(), Some(1));
        assert!(a.begin().run);
        a.end();
        assert_eq!(scope.next_active(), Some(2));
        b.begin();
        b.end();
        scope.end();
        assert!(!root.has_active());
    }

    #[test]
    fn an_operator_that_was_reserved_early_runs_after_those_that_were_there_when_it_was_placed() {
        let root = Activation::root();
        let (outer, other) = (root.child(0), root.child(1));
        let (reserved, source) = (outer.child(1), outer.child(2));
        reserved.place_last();
        for one in [&reserved, &source, &other] {
            one.run();
        }
        assert_eq!(outer.next_active(), Some(2));
        assert_eq!(outer.next_active(), Some(1));
        assert_eq!(root.next_active(), Some(1));
        assert_eq!(root.next_active(), Some(0));
    }

    #[test]
    fn what_was_asked_to_run_before_it_was_placed_runs_once_in_a_pass() {
        let root = Activation::root();
        let (early, behind) = (root.child(1), root.child(2));
        early.run();
        early.place_last();
        behind.place_last();
        assert_eq!(root.next_active(), Some(1));
        early.begin();
        early.run();
        behind.run();
        early.end();
        assert_eq!(root.next_active(), Some(2));
        assert_eq!(root.next_active(), None);
        root.end_pass();
        assert_eq!(root.next_active(), Some(1));
    }

    #[test]
    fn what_is_only_asked_for_is_no_work() {
        let root = Activation::root();
        let scope = root.child(1);
        let (a, b) = (scope.child(1), scope.child(2));
        a.run_as_asked();
        assert!(a.is_asked_to_run() && !a.has_work() && !scope.has_work());
        b.run_as_asked();
        b.run();
        assert!(b.has_work() && scope.has_work());
        root.next_active();
        scope.begin();
        for child in [&a, &b] {
            scope.next_active();
            child.begin();
            child.run_as_asked();
            child.end();
        }
        scope.end_pass();
        scope.end();
        assert!(scope.is_asked_to_run() && !scope.has_work());
        assert_eq!(scope.active().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn reporting_while_running_does_not_wake_the_operator_again() {
        let root = Activation::root();
        let op = root.child(1);
        op.run();
        root.next_active();
        op.begin();
        op.report();
        op.end();
        root.end_pass();
        assert!(!root.has_active());
        op.report();
        assert_eq!(root.next_active(), Some(1));
        assert!(!op.begin().run);
    }

    #[test]
    fn an_operator_that_asks_for_itself_runs_in_the_next_pass() {
        let root = Activation::root();
        let scope = root.child(0);
        let (a, b) = (scope.child(1), scope.child(2));
        b.run();
        root.next_active();
        scope.begin();
        assert_eq!(scope.next_active(), Some(2));
        b.begin();
        b.run();
        a.run();
        b.end();
        assert_eq!(scope.next_active(), None);
        assert!(scope.has_active());
        scope.end_pass();
        scope.end();
        root.end_pass();
        assert_eq!(root.next_active(), Some(0));
        scope.begin();
        assert_eq!(scope.next_active(), Some(1));
        assert_eq!(scope.next_active(), Some(2));
    }
}
