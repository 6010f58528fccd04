//! A scope that runs: operators, their progress, and the tracker that relates them.
//!
//! To its parent a subgraph is one operator. The parent's progress arrives as frontiers of its inputs; progress
//! inside is projected to its outputs, so that changes which cancel inside are never reported outside. Each worker
//! runs one instance of the subgraph and sends the others its operators' progress, in atomic batches; all instances
//! therefore report the same to their parents, and a subgraph's report is never broadcast again.
//!
//! A schedule is a list of verbs, see [`Subgraph::schedule`]. Its cost follows the operators that are active and the
//! frontiers that changed.

mod child;
mod inspect;
mod taking;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pointstamp_channels::{ChannelId, Combined, Receiver};
use pointstamp_order::{MutableAntichain, Point, Summary};
use pointstamp_progress::{Connectivity, Graph, GraphError, Location, Mode, Port, Source, Target};

use crate::error::{Disagreement, Error};
use crate::observe::{Change, Observation, Observers, OperatorId};
use crate::run::activation::Activation;
use crate::run::arrival::Arrival;
use crate::run::boundary::ZEROS;
use crate::run::brake::Brake;
use crate::run::changes::Changes;
use crate::run::edge::{EdgeShape, Inbox};
use crate::run::notify::Notify;
use crate::run::progress::{PortChanges, SharedProgress};
use crate::run::schedule::{Description, Inside, Schedule};
use crate::run::taking::Taking;
use crate::run::view::{View, view};

pub(crate) use child::Child;

/// The parts of which a subgraph is made.
pub(crate) struct Parts {
    pub(crate) id: OperatorId,
    pub(crate) observers: Rc<Observers>,
    pub(crate) name: String,
    pub(crate) outer_dims: usize,
    pub(crate) inner_dims: usize,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) children: Vec<Child>,
    pub(crate) edges: Vec<EdgeShape>,
    pub(crate) input_counts: Rc<RefCell<PortChanges>>,
    pub(crate) activation: Activation,
    pub(crate) mode: Mode,
    pub(crate) peers: usize,
    pub(crate) links: Option<(Combined<Changes>, Inbox<Changes>)>,
    pub(crate) brake: Rc<Brake>,
}

/// A scope that runs.
pub(crate) struct Subgraph {
    id: OperatorId,
    observers: Rc<Observers>,
    name: String,
    outer_dims: usize,
    appended: usize,
    inputs: usize,
    outputs: usize,
    /// Child `i + 1`.
    children: Vec<Child>,
    edges: Vec<EdgeShape>,
    /// For each input of the scope: its readers inside.
    input_readers: Vec<Vec<(Target, i64)>>,
    input_counts: Rc<RefCell<PortChanges>>,
    activation: Activation,
    view: Box<dyn View>,
    /// To the other workers and from them, where there are any.
    links: Option<(Combined<Changes>, Rc<ProgressInbox>)>,
    /// The frontier of each output, as last reported to the parent.
    output_frontiers: Vec<MutableAntichain<Point>>,
    progress: Rc<SharedProgress>,
    summary: Connectivity<Summary>,
    incomplete: usize,
    /// Children whose last open port has closed in this pass.
    finishing: Vec<usize>,
    changes: Vec<Change>,
    brake: Rc<Brake>,
}

/// Progress batches from the other workers.
struct ProgressInbox {
    receiver: Receiver<Changes>,
    activation: Activation,
    /// Cleared while nothing has arrived, so that an idle scope does not look.
    arrived: Cell<bool>,
}

impl Arrival for ProgressInbox {
    fn arrived(&self) {
        self.receiver.acknowledge();
        self.arrived.set(true);
        self.activation.run();
    }
}

/// A graph's error, with the operators of a cycle.
fn refused(error: GraphError, children: &[Child]) -> Error {
    match error {
        GraphError::Cycle { ref nodes, .. } => Error::Cycle {
            // Child `i` is node `i + 1`, and the boundary, node 0, is on no cycle.
            operators: nodes.iter().map(|node| children[node - 1].id).collect(),
            cycle: error,
        },
        error => error.into(),
    }
}

impl Subgraph {
    /// Builds the subgraph, and returns the reader that must be notified when progress arrives from other
    /// workers.
    #[allow(clippy::type_complexity)]
    pub(crate) fn new(parts: Parts) -> Result<(Self, Option<(ChannelId, Rc<dyn Arrival>)>), Error> {
        let Parts {
            name,
            outer_dims,
            inner_dims,
            inputs,
            outputs,
            mut children,
            ..
        } = parts;
        let mut graph = Graph::with_boundary(Summary::identity(inner_dims), inputs, outputs);
        let mut begins = Vec::with_capacity(children.len());
        for child in &mut children {
            let description = child.description.take().expect("a child is described once");
            graph.add_node(
                description.name,
                description.inputs,
                description.outputs,
                description.summary,
            );
            child.operator = Some(description.operator);
            begins.push((description.begins, description.start, description.finished));
        }
        let mut input_readers = vec![Vec::new(); inputs];
        for &EdgeShape {
            source,
            target,
            copies,
            ..
        } in &parts.edges
        {
            graph.add_edge(source, target)?;
            if copies == 0 {
                continue; // an edge for the frontier alone
            }
            let readers = match source.node.checked_sub(1) {
                Some(child) => &mut children[child].readers[source.port],
                None => &mut input_readers[source.port],
            };
            readers.push((target, copies));
        }
        let built = view(inner_dims, &graph, parts.mode, parts.peers);
        let (mut view, summary) = built.map_err(|error| refused(error, &children))?;
        let summary = summary.map(|summary| summary.truncate(outer_dims));
        for (i, (begins, start, finished)) in begins.into_iter().enumerate() {
            for (port, time, count) in begins {
                view.begin(Location { node: i + 1, port }, &time, count);
            }
            if finished {
                children[i].shut_down();
            } else if start {
                children[i].activation.run();
            }
        }
        let mut reader = None;
        let links = parts.links.map(|(links, Inbox { id, receiver })| {
            let inbox = Rc::new(ProgressInbox {
                receiver,
                activation: parts.activation.clone(),
                arrived: Cell::new(true),
            });
            reader = Some((id, Rc::clone(&inbox) as Rc<dyn Arrival>));
            (links, inbox)
        });
        parts.activation.run();
        let mut subgraph = Subgraph {
            id: parts.id,
            observers: parts.observers,
            name,
            outer_dims,
            appended: inner_dims - outer_dims,
            inputs,
            outputs,
            children,
            input_readers,
            edges: parts.edges,
            input_counts: parts.input_counts,
            activation: parts.activation,
            view,
            links,
            output_frontiers: (0..outputs).map(|_| MutableAntichain::new()).collect(),
            progress: SharedProgress::new(),
            summary,
            incomplete: 0,
            finishing: Vec::new(),
            changes: Vec::new(),
            brake: parts.brake,
        };
        subgraph.collect_initial();
        Ok((subgraph, reader))
    }

    pub(crate) fn id(&self) -> OperatorId {
        self.id
    }

    pub(crate) fn activation(&self) -> &Activation {
        &self.activation
    }

    /// The description of the subgraph for its parent.
    pub(crate) fn describe(mut self: Box<Self>) -> Description {
        Description {
            id: self.id,
            name: self.name.clone(),
            inputs: self.inputs,
            outputs: self.outputs,
            summary: std::mem::replace(&mut self.summary, Connectivity::empty()),
            // Its capabilities at the start are in its report already, summed over the workers.
            initial: Vec::new(),
            begins: Vec::new(),
            finished: false,
            pauses: false,
            local: false,
            notify: vec![Notify::Always; self.inputs],
            start: true,
            progress: Rc::clone(&self.progress),
            operator: self,
        }
    }

    /// Collects the initial counts of nested scopes, and the consequences of all initial counts.
    fn collect_initial(&mut self) {
        for i in 0..self.children.len() {
            if !self.children[i].local {
                self.collect(i);
            }
        }
        self.propagate();
    }

    /// Takes in the parent's changes to the times that may still enter.
    fn accept_frontier(&mut self) {
        let mut frontiers = self.progress.frontiers.borrow_mut();
        for ((port, time), diff) in frontiers.drain() {
            self.view
                .accept_frontier(port, &time.extend(&ZEROS[..self.appended]), diff);
        }
    }

    /// Counts the records that entered: they wait at the readers now, and the scope has consumed them.
    fn harvest_inputs(&mut self) {
        let mut counts = self.input_counts.borrow_mut();
        for ((port, time), records) in counts.drain() {
            for &(target, copies) in &self.input_readers[port] {
                self.view.local(target.into(), &time, records * copies);
            }
            self.view
                .local(Source { node: 0, port }.into(), &time, -records);
        }
    }

    /// Takes in the progress of the other workers.
    fn receive_progress(&mut self) -> Result<(), Error> {
        let Some((links, inbox)) = &self.links else {
            return Ok(());
        };
        if !inbox.arrived.replace(false) {
            return Ok(());
        }
        let operator = &self.name;
        let received = || {
            let message = inbox.receiver.pop();
            message.map_err(|cause| Error::Decode {
                operator: operator.clone(),
                cause,
            })
        };
        while let Some(Changes(batch)) = received()? {
            if links.is_remote()
                && !batch
                    .iter()
                    .all(|((place, time), _)| self.has(*place, time))
            {
                let scope = self.name.clone();
                return Err(Disagreement::Places { scope }.into());
            }
            self.observers.report(|| Observation::ProgressReceived {
                scope: self.id,
                changes: &batch,
            });
            self.view.receive(batch);
        }
        Ok(())
    }

    /// Whether there may be progress at a place: a message of another process may belong to a different
    /// graph, in the moment before this is detected.
    fn has(&self, place: Location, time: &Point) -> bool {
        self.view.contains(place) && time.dims() == self.outer_dims + self.appended
    }

    /// Propagates changes, passes the operators their frontiers and the parent the frontiers of its outputs.
    fn propagate(&mut self) {
        let outer = self.outer_dims;
        let board = &self.progress;
        self.view
            .propagate(&mut |location, time, diff| match location.port {
                // A record that left the boundary inwards was consumed; a record that reached it outwards was
                // produced.
                Port::Source(port) => board
                    .consumed
                    .borrow_mut()
                    .update((port, time.truncate(outer)), -diff),
                Port::Target(port) => board
                    .produced
                    .borrow_mut()
                    .update((port, time.truncate(outer)), diff),
            });
        self.view.drain_changes(&mut self.changes);
        if !self.changes.is_empty() {
            self.observers.report(|| Observation::FrontierMoved {
                scope: self.id,
                changes: &self.changes,
            });
        }
        for ((location, time), diff) in self.changes.drain(..) {
            let Some(index) = location.node.checked_sub(1) else {
                continue;
            };
            let child = &mut self.children[index];
            let port = child.port_index(location.port);
            let before = child.frontiers[port];
            let after = before + diff;
            child.frontiers[port] = after;
            if (before > 0) != (after > 0) {
                if after > 0 {
                    child.open_count += 1;
                } else {
                    child.open_count -= 1;
                    if child.open_count == 0 {
                        self.finishing.push(index);
                    }
                }
            }
            if let Port::Target(port) = location.port {
                child.frontier_changed(port, time, diff);
            }
        }
        self.view.drain_boundary_changes(&mut |output, time, diff| {
            let mut internal = board.internal.borrow_mut();
            let time = time.truncate(outer);
            for (time, diff) in self.output_frontiers[output].update(time, diff) {
                internal.update((output, time), diff);
            }
        });
        for index in self.finishing.drain(..) {
            let child = &mut self.children[index];
            if child.open_count == 0 && !child.incomplete {
                if child.hears_the_end() {
                    child.activation.run(); // to see its empty frontiers, once; dropped after that
                } else {
                    child.shut_down();
                }
            }
        }
    }

    /// Runs the operators that have something to do, upstream ones first.
    fn run_children(&mut self) -> Result<(), Error> {
        let mut outcome = Ok(());
        while outcome.is_ok()
            && let Some(index) = self.activation.next_active()
        {
            outcome = self.visit(index - 1);
        }
        self.activation.end_pass();
        outcome
    }

    /// Whether operators other than sources have work.
    fn has_work(&self) -> bool {
        self.activation.active().any(|index| {
            let child = &self.children[index - 1];
            child.gate.is_none() && child.activation.has_work()
        })
    }

    fn visit(&mut self, index: usize) -> Result<(), Error> {
        let gives_way = self.children[index].gate.is_some()
            && self.brake.holding().has_sources_give_way()
            && self.has_work();
        let child = &mut self.children[index];
        let mut visit = child.activation.begin();
        let holding = self.brake.holding();
        let is_held = holding.is_on();
        if visit.run && is_held && child.pauses {
            visit.run = false;
            holding.set_aside(&child.activation);
        }
        if visit.run
            && let Some(gate) = &child.gate
        {
            if gives_way && gate.gives_way() {
                visit.run = false;
                child.activation.run_as_asked();
            } else {
                gate.has_the_way();
            }
        }
        if visit.run
            && let Some(gate) = &child.gate
        {
            let held = gate.is_held();
            visit.run = !self.brake.holds(&child.activation, gate);
            if !visit.run {
                if !held {
                    let (dataflow, operator) = (child.id.dataflow, child.id.operator);
                    tracing::debug!(dataflow, operator, "a source is put aside");
                }
                self.observers
                    .report(|| Observation::SourceHeld { id: child.id });
            }
        }
        let result = match &mut child.operator {
            Some(operator) if visit.run => {
                if is_held && child.local {
                    holding.runs(child.id, &child.name);
                }
                self.observers
                    .report(|| Observation::ScheduleBegins { id: child.id });
                let result = operator.schedule();
                self.observers
                    .report(|| Observation::ScheduleEnds { id: child.id });
                result
            }
            _ => Ok(child.incomplete),
        };
        let incomplete = match result {
            Ok(incomplete) => incomplete,
            Err(error) => {
                child.activation.end();
                return Err(error);
            }
        };
        if incomplete != child.incomplete {
            child.incomplete = incomplete;
            if incomplete {
                self.incomplete += 1;
            } else {
                self.incomplete -= 1;
            }
        }
        if visit.run
            && !incomplete
            && child.open_count == 0
            && child.operator.is_some()
            && self.may_drop(index)
        {
            self.children[index].shut_down();
        }
        self.collect(index);
        let child = &self.children[index];
        if child.operator.is_none() {
            // A scope that had ended at the checkpoint never runs; the scopes inside ask to run when they are made.
            child.activation.forget_children();
        }
        child.activation.end();
        Ok(())
    }

    /// Whether an operator without open ports is done: it has been notified, and has nothing more to report.
    fn may_drop(&self, index: usize) -> bool {
        let board = &self.children[index].progress;
        board.frontiers.borrow_mut().is_empty()
            && board.internal.borrow_mut().is_empty()
            && board.consumed.borrow_mut().is_empty()
    }

    /// Collects everything that an operator reports, at once.
    fn collect(&mut self, index: usize) {
        let child = &mut self.children[index];
        let node = index + 1;
        let local = child.local;
        let mut count = |location: Location, time: &Point, diff: i64| {
            if local {
                self.view.local(location, time, diff);
            } else {
                self.view.shared(location, time, diff);
            }
        };
        for ((port, time), records) in child.progress.consumed.borrow_mut().drain() {
            count(Target { node, port }.into(), &time, -records);
        }
        for ((port, time), diff) in child.progress.internal.borrow_mut().drain() {
            count(Source { node, port }.into(), &time, diff);
            child.holding += diff;
            if local && let Some(held) = &mut child.held {
                held.update((port, time), diff);
            }
        }
        for ((port, time), records) in child.progress.produced.borrow_mut().drain() {
            for &(target, copies) in &child.readers[port] {
                count(target.into(), &time, records * copies);
            }
        }
    }

    /// Sends this worker's progress to the others, unless it can wait.
    fn send_progress(&mut self) {
        let drains = self.brake.holding().drains();
        let outgoing = match &self.links {
            Some(_) if !drains => self.view.take_outgoing(),
            // In a drain all that is known is to be known everywhere; alone there is no peer to hold anything back from.
            _ => self.view.flush_outgoing(),
        };
        if let Some(batch) = outgoing
            && let Some((links, _)) = &self.links
        {
            self.observers.report(|| Observation::ProgressSent {
                scope: self.id,
                changes: &batch,
            });
            if drains {
                links.push_at_once(Changes(batch));
            } else {
                links.push(Changes(batch));
            }
        }
    }
}

impl Schedule for Subgraph {
    fn schedule(&mut self) -> Result<bool, Error> {
        self.accept_frontier();
        self.harvest_inputs();
        self.receive_progress()?;
        self.propagate();
        self.run_children()?;
        self.send_progress();
        if self.view.has_pending() {
            self.activation.run();
        }
        Ok(self.incomplete > 0 || self.view.has_pending() || self.view.tracking_anything())
    }

    fn inspect(&mut self, address: &[usize]) -> Inside {
        Inside::Scope(Box::new(Subgraph::inspect(self, address)))
    }

    fn flush(&mut self) {
        self.flush_scopes();
    }

    fn pull(&mut self) -> Result<(), Error> {
        self.pull_inputs()
    }

    fn take(&mut self, taking: &mut Taking) -> Result<(), Error> {
        self.take_operators(taking)
    }

    fn busy(&self, busy: &mut Vec<(OperatorId, String)>) {
        self.busy_operators(busy);
    }
}
