//! A state of an exploration, and the steps out of it.
//!
//! Owns [`State`]: workers with their views, their capabilities and waiting messages, and the batches between them.
//! Workers follow the engine: a report is one activation's, a view is propagated whenever something entered it, and a
//! nested scope meets the scope around it as the engine's subgraph does.

mod attempts;
mod check;
mod cut;
mod key;
mod relay_accumulators;
mod relays;

use std::collections::{BTreeMap, VecDeque};

use pointstamp_order::{MutableAntichain, Point};
use pointstamp_progress::{Location, Port, ProgressBatch, Protocol, Source, Target};

use super::scenario::{Flaw, Model};
use attempts::Cut;
use relay_accumulators::Relays;

/// A place: the scope, 0 for the outer one, and the port in it.
type At = (usize, Location);

/// Messages or capabilities, sorted.
type Bag = Vec<(At, Point)>;

type Batch = ProgressBatch<Point>;

#[derive(Clone)]
struct Worker {
    /// The protocol of each scope.
    views: Vec<Protocol<Point>>,
    /// The nested scope's reports about its output.
    reported: MutableAntichain<Point>,
    /// The report that the nested scope has delayed, under a flaw.
    late: Batch,
    held: Bag,
    inbox: Bag,
    /// Messages of other workers, where checkpoints are attempted; they may still be in flight.
    foreign: Bag,
    /// The work that a flawed worker has reported as done, and does next.
    begun: Bag,
}

/// A state.
#[derive(Clone)]
pub(super) struct State {
    workers: Vec<Worker>,
    /// Batches by scope, sender and receiver; the sender is a worker, or a process with a number beyond the
    /// workers. Each has a number of messages.
    links: BTreeMap<(usize, usize, usize), VecDeque<(u32, Batch)>>,
    /// By process and scope: the batches since the accumulator was emptied, each with the worker of the process.
    accumulators: BTreeMap<(usize, usize), Vec<(usize, Batch)>>,
    relays: Relays,
    moves: Option<u8>,
    sends: u8,
    copies: u8,
    keeps: u8,
    cut: Option<Cut>,
}

/// A step, named, and where it leads.
pub(super) type Step = (String, State);

/// The prefix of the names of steps in which workers send progress.
const SAYS: &str = "says";

impl State {
    /// The state in which each worker holds a capability for the input.
    pub(super) fn new(model: &Model) -> Self {
        let start = Point::minimum(model.scopes[0].dims);
        let worker = || {
            let view = |scope: &super::scenario::Scope| {
                let tracker = scope.graph.build().expect("a sound graph");
                Protocol::new(tracker, model.scenario.mode, model.peers())
            };
            let mut views: Vec<_> = model.scopes.iter().map(view).collect();
            views[0].initial(model.input, start.clone());
            Worker {
                views,
                reported: MutableAntichain::new(),
                late: Batch::new(),
                held: vec![((0, model.input.into()), start.clone())],
                inbox: Bag::new(),
                foreign: Bag::new(),
                begun: Bag::new(),
            }
        };
        let mut state = Self {
            workers: (0..model.peers()).map(|_| worker()).collect(),
            links: BTreeMap::new(),
            accumulators: BTreeMap::new(),
            relays: Relays::default(),
            moves: model.scenario.moves,
            sends: model.scenario.sends,
            copies: model.scenario.copies,
            keeps: model.scenario.keeps,
            cut: (model.scenario.cuts > 0).then(|| Cut::new(model)),
        };
        (0..model.peers()).for_each(|worker| state.settle(model, worker));
        state
    }

    /// Brings the views of a worker up to date, and the scopes to each other.
    fn settle(&mut self, model: &Model, worker: usize) {
        let Worker {
            views,
            reported,
            late,
            ..
        } = &mut self.workers[worker];
        let mut overdue = std::mem::take(late);
        loop {
            views[0].propagate(|_, _, _| unreachable!("the outer scope has no boundary"));
            let changes: Vec<_> = views[0].tracker_mut().drain_changes().collect();
            let Some(node) = model.nested else { return };
            let [outer, inner] = &mut views[..] else {
                return;
            };
            for ((location, time), diff) in changes {
                if let Port::Target(port) = location.port
                    && location.node == node
                {
                    inner.accept_frontier(port, time.extend(&[0]), diff);
                }
            }
            let (mut consumed, mut kept) = (Batch::new(), std::mem::take(&mut overdue));
            let mut new = Batch::new();
            inner.propagate(|location, time, diff| match location.port {
                Port::Source(port) => {
                    consumed.push(((Location::target(node, port), time.truncate(1)), diff));
                }
                Port::Target(port) => {
                    for target in model.scopes[0].readers(Source::new(node, port)) {
                        new.push(((target.into(), time.truncate(1)), diff));
                    }
                }
            });
            inner.tracker_mut().drain_changes().for_each(drop);
            for ((output, time), diff) in inner.tracker_mut().drain_boundary_changes() {
                for (time, diff) in reported.update(time.truncate(1), diff) {
                    new.push(((Location::source(node, output), time), diff));
                }
            }
            if model.scenario.flaw == Flaw::TellsLate && !consumed.is_empty() {
                late.append(&mut new);
            } else {
                kept.append(&mut new);
            }
            outer.shared().extend(consumed.into_iter().chain(kept));
            if !outer.has_pending() {
                return;
            }
        }
    }

    /// Every step that can be taken.
    pub(super) fn successors(&self, model: &Model) -> Vec<Step> {
        let mut steps = Vec::new();
        for worker in 0..self.workers.len() {
            if self.is_frozen(model, worker) {
                continue;
            }
            if !self.is_held(model, worker) {
                for item in distinct(&self.workers[worker].held) {
                    self.use_capability(model, worker, item, &mut steps);
                }
            }
            for item in distinct(&self.workers[worker].inbox) {
                self.take_message(model, worker, item, &mut steps);
            }
            for item in distinct(&self.workers[worker].foreign) {
                let mut next = self.clone();
                remove(&mut next.workers[worker].foreign, item);
                insert(&mut next.workers[worker].inbox, item.clone());
                next.counts(worker, 0, 1);
                next.take_message(model, worker, item, &mut steps);
            }
            for item in distinct(&self.workers[worker].begun) {
                let mut next = self.clone();
                remove(&mut next.workers[worker].begun, item);
                next.finish(model, worker, item, &[], &mut steps);
            }
            for scope in 0..model.scopes.len() {
                self.say(model, worker, scope, &mut steps);
            }
        }
        for &(scope, from, to) in self.links.keys() {
            if self.is_frozen(model, to) {
                continue;
            }
            let mut next = self.clone();
            let (count, batch) = next.take(scope, from, to);
            next.counts(to, 0, count.into());
            next.workers[to].views[scope].receive(batch);
            next.settle(model, to);
            steps.push((
                format!("says: {to} receives of scope {scope} from {from}"),
                next,
            ));
        }
        for &(process, scope) in self.accumulators.keys() {
            let mut next = self.clone();
            next.empty_pot(model, process, scope);
            steps.push((format!("{SAYS}: process {process} of scope {scope}"), next));
        }
        self.relay(model, &mut steps);
        self.attend(model, &mut steps);
        steps
    }

    /// Sends the combined messages of an accumulator. They count for the first worker of the process.
    fn empty_pot(&mut self, model: &Model, process: usize, scope: usize) {
        let said = self.accumulators.remove(&(process, scope));
        if let Some(batch) = said.and_then(|said| model.frame(&said)) {
            self.send_frame(
                model,
                process,
                scope,
                &batch,
                process * model.scenario.workers,
                false,
            );
        }
    }

    /// Sends a batch to every worker of other processes, which counts for a worker.
    fn send_frame(
        &mut self,
        model: &Model,
        process: usize,
        scope: usize,
        batch: &Batch,
        by: usize,
        at_once: bool,
    ) {
        if model.scenario.group > 1 {
            self.counts(by, (model.peers() - model.scenario.workers) as u64, 0);
            return self.send_by_relays(model, process, scope, batch, at_once);
        }
        for to in (0..model.peers()).filter(|to| model.process(*to) != process) {
            let queue = self.links.entry((scope, model.peers() + process, to));
            let queue = queue.or_default();
            let reorders = model.scenario.flaw == Flaw::Reorders;
            let place = queue.len() - usize::from(reorders && !queue.is_empty());
            queue.insert(place, (1, batch.clone()));
            self.counts(by, 1, 0);
        }
    }

    fn use_capability(
        &self,
        model: &Model,
        worker: usize,
        item: &(At, Point),
        steps: &mut Vec<Step>,
    ) {
        let ((scope, location), time) = item;
        let name = |what: &str| format!("{worker} {what} {location} of scope {scope} at {time}");
        let minus = ((*location, time.clone()), -1);

        let mut next = self.clone();
        remove(&mut next.workers[worker].held, item);
        if model.scenario.flaw == Flaw::UseAfterDrop {
            insert(&mut next.workers[worker].begun, item.clone());
        }
        next.report(worker, *scope, [minus.clone()]);
        steps.push((name("drops"), next));

        for index in 0..time.dims() {
            let mut coords = time.coords().to_vec();
            coords[index] += 1;
            if coords[index] <= model.scenario.last && self.moves != Some(0) {
                let later = Point::from(coords);
                let mut next = self.clone();
                next.moves = self.moves.map(|moves| moves - 1);
                remove(&mut next.workers[worker].held, item);
                insert(&mut next.workers[worker].held, (item.0, later.clone()));
                next.report(worker, *scope, [((*location, later), 1), minus.clone()]);
                steps.push((name("downgrades"), next));
            }
        }
        if self.copies > 0 {
            let mut next = self.clone();
            next.copies -= 1;
            insert(&mut next.workers[worker].held, item.clone());
            next.report(worker, *scope, [((*location, time.clone()), 1)]);
            steps.push((name("copies"), next));
        }
        for to in 0..model.peers() {
            if self.sends > 0 {
                let mut next = self.clone();
                next.sends -= 1;
                let sent = next.send(model, worker, item, to);
                next.report(worker, *scope, sent);
                steps.push((name(&format!("sends to {to} by")), next));
            }
        }
    }

    fn take_message(
        &self,
        model: &Model,
        worker: usize,
        item: &(At, Point),
        steps: &mut Vec<Step>,
    ) {
        let ((scope, location), time) = item;
        let mut next = self.clone();
        remove(&mut next.workers[worker].inbox, item);
        if let Port::Target(port) = location.port
            && *scope == 0
            && model.nested == Some(location.node)
        {
            let inside = time.extend(&[0]);
            let mut report = vec![((Location::source(0, port), inside.clone()), -1)];
            for target in model.scopes[1].readers(Source::new(0, port)) {
                insert(
                    &mut next.workers[worker].inbox,
                    ((1, target.into()), inside.clone()),
                );
                report.push(((target.into(), inside.clone()), 1));
            }
            next.report(worker, 1, report);
            steps.push((format!("{worker} enters scope 1 at {time}"), next));
            return;
        }
        let minus = ((*location, time.clone()), -1);
        if model.scenario.flaw == Flaw::Early {
            insert(&mut next.workers[worker].begun, item.clone());
            next.report(worker, *scope, [minus]);
            steps.push((
                format!("{worker} begins {location} of scope {scope} at {time}"),
                next,
            ));
        } else {
            next.finish(model, worker, item, &[minus], steps);
        }
    }

    /// The steps that an operator may take with a message that it has taken, or a flawed one with a
    /// capability that it has dropped.
    fn finish(
        &self,
        model: &Model,
        worker: usize,
        item: &(At, Point),
        done: &[((Location, Point), i64)],
        steps: &mut Vec<Step>,
    ) {
        let ((scope, location), time) = item;
        let name = |what: &str| format!("{worker} {what} {location} of scope {scope} at {time}");
        let mut next = self.clone();
        next.report(worker, *scope, done.iter().cloned());
        steps.push((name("consumes"), next));

        let outputs = match location.port {
            Port::Target(_) => {
                model.scopes[*scope]
                    .graph
                    .shape(location.node)
                    .unwrap_or_default()
                    .1
            }
            Port::Source(_) => 1,
        };
        let last = time.last().unwrap_or(0) + model.scopes[*scope].steps[location.node];
        if last > model.scenario.last {
            return;
        }
        for port in 0..outputs {
            let (source, time) = match location.port {
                Port::Target(_) => (Location::source(location.node, port), time.with_last(last)),
                Port::Source(_) => (*location, time.clone()),
            };
            let item = ((*scope, source), time.clone());
            if self.keeps > 0 && matches!(location.port, Port::Target(_)) {
                let mut next = self.clone();
                next.keeps -= 1;
                insert(&mut next.workers[worker].held, item.clone());
                next.report(
                    worker,
                    *scope,
                    done.iter().cloned().chain([((source, time), 1)]),
                );
                steps.push((name("keeps"), next));
            }
            for to in 0..model.peers() {
                let mut next = self.clone();
                let sent = next.send(model, worker, &item, to);
                next.report(worker, *scope, done.iter().cloned().chain(sent));
                steps.push((name(&format!("passes on to {to}")), next));
            }
        }
    }

    /// Puts a message along each edge from an output into the inbox of a worker, and returns the changes to
    /// report.
    fn send(
        &mut self,
        model: &Model,
        from: usize,
        ((scope, location), time): &(At, Point),
        to: usize,
    ) -> Batch {
        let Port::Source(port) = location.port else {
            return Batch::new();
        };
        let mut report = Batch::new();
        for target in model.scopes[*scope].readers(Source::new(location.node, port)) {
            report.push(((target.into(), time.clone()), 1));
            let Some(node) = model.nested.filter(|_| *scope == 1 && target.node == 0) else {
                self.deliver(from, to, ((*scope, target.into()), time.clone()));
                continue;
            };
            let outside: Vec<Target> = model.scopes[0]
                .readers(Source::new(node, target.port))
                .collect();
            for target in outside {
                self.deliver(from, to, ((0, target.into()), time.truncate(1)));
            }
        }
        report
    }

    fn deliver(&mut self, from: usize, to: usize, item: (At, Point)) {
        if self.cut.is_some() && from != to {
            self.counts(from, 1, 0);
            insert(&mut self.workers[to].foreign, item);
        } else {
            insert(&mut self.workers[to].inbox, item);
        }
    }

    fn report(
        &mut self,
        worker: usize,
        scope: usize,
        changes: impl IntoIterator<Item = ((Location, Point), i64)>,
    ) {
        self.workers[worker].views[scope].local().extend(changes);
    }

    /// Adds the step in which the worker sends its progress, if there is any to send now.
    fn say(&self, model: &Model, worker: usize, scope: usize, steps: &mut Vec<Step>) {
        if !self.workers[worker].views[scope].has_local() {
            return;
        }
        let mut next = self.clone();
        let view = &mut next.workers[worker].views[scope];
        if model.scenario.flaw == Flaw::Withholds {
            let local: Batch = view.local().iter().cloned().collect();
            let mut less = local.iter().filter(|(_, diff)| *diff < 0);
            if !less.all(|((at, time), _)| view.tracker().is_global(*at, time)) {
                return;
            }
        }
        let drains = self.drains(model, worker);
        let outgoing = if drains {
            view.flush_outgoing()
        } else {
            view.take_outgoing()
        };
        let Some(batch) = outgoing else {
            return;
        };
        let parts = if model.scenario.flaw == Flaw::Halves {
            batch
                .chunks(batch.len().div_ceil(2))
                .map(<[_]>::to_vec)
                .collect()
        } else {
            vec![batch]
        };
        let process = model.process(worker);
        for part in parts {
            for to in (0..model.peers()).filter(|to| *to != worker && model.process(*to) == process)
            {
                let queue = next.links.entry((scope, worker, to)).or_default();
                queue.push_back((1, part.clone()));
                next.counts(worker, 1, 0);
            }
            if model.scenario.processes > 1 && drains {
                next.empty_pots(model, process);
                next.send_frame(model, process, scope, &part, worker, true);
            } else if model.scenario.processes > 1 {
                let said = next.accumulators.entry((process, scope)).or_default();
                said.push((worker % model.scenario.workers, part));
            }
        }
        next.settle(model, worker);
        steps.push((format!("{SAYS}: {worker} of scope {scope}"), next));
    }

    fn take(&mut self, scope: usize, from: usize, to: usize) -> (u32, Batch) {
        let Some(queue) = self.links.get_mut(&(scope, from, to)) else {
            return (0, Batch::new());
        };
        let batch = queue.pop_front().unwrap_or_default();
        if queue.is_empty() {
            self.links.remove(&(scope, from, to));
        }
        batch
    }

    fn outstanding(&self) -> impl Iterator<Item = &(At, Point)> {
        self.workers.iter().flat_map(|worker| {
            let held = worker.held.iter().chain(&worker.begun);
            held.chain(&worker.inbox).chain(&worker.foreign)
        })
    }
}

fn sorted(times: &[Point]) -> Vec<Point> {
    let mut times = times.to_vec();
    times.sort();
    times
}

fn distinct(bag: &Bag) -> impl Iterator<Item = &(At, Point)> {
    bag.chunk_by(|a, b| a == b).map(|same| &same[0])
}

fn insert(bag: &mut Bag, item: (At, Point)) {
    let index = bag.partition_point(|other| *other < item);
    bag.insert(index, item);
}

fn remove(bag: &mut Bag, item: &(At, Point)) {
    if let Some(index) = bag.iter().position(|other| other == item) {
        bag.remove(index);
    }
}
