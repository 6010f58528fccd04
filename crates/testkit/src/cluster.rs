//! A cluster of workers in one thread, driven by a seed.
//!
//! Owns [`SimulatedCluster`]. Workers run operators that do anything an operator may: consume messages, keep, copy,
//! downgrade and drop capabilities, send. Messages arrive in any order; progress batches arrive one after the other
//! from each worker to each other one, with any delay. The real [`Protocol`] is driven as the engine drives it. The
//! truly outstanding pointstamps are known here, and after every propagation on any worker no frontier may have
//! passed any of them.

use std::collections::{BTreeMap, VecDeque};

use pointstamp_order::{PartialOrder, PathSummary, Timestamp};
use pointstamp_progress::{Location, Mode, Port, ProgressBatch, Protocol, Source, Target};

use crate::{Domain, GraphSpec, Reach, Rng};

/// An error of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Reports that it has consumed a message before, and apart from, the capabilities that it kept or the
    /// messages that it sent for it.
    HalfFormed,
}

/// A worker has a wrong frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A frontier has passed an outstanding pointstamp, which no prefix of batches may cause.
    Passed(String),
    /// A frontier is not the exact one although everything has been delivered.
    Inexact(String),
}

/// Workers, the messages and the progress batches between them.
pub struct SimulatedCluster<D: Domain> {
    spec: GraphSpec<D>,
    reach: Reach<D>,
    universe: Vec<D::Time>,
    rng: Rng,
    fault: Fault,
    workers: Vec<Worker<D::Time>>,
    /// Messages on their way: the worker, the input, and the time.
    messages: Vec<(usize, Target, D::Time)>,
    /// Progress batches on their way, by sender and receiver.
    batches: BTreeMap<(usize, usize), VecDeque<ProgressBatch<D::Time>>>,
}

struct Worker<T: Timestamp> {
    protocol: Protocol<T>,
    capabilities: Vec<(Source, T)>,
}

impl<D: Domain> SimulatedCluster<D> {
    /// `peers` workers that hold an initial capability at some of the outputs.
    ///
    /// # Panics
    ///
    /// When the graph is not sound, which would be a mistake of the generator.
    pub fn new(spec: &GraphSpec<D>, peers: usize, mode: Mode, fault: Fault, seed: u64) -> Self {
        let spec = GraphSpec {
            boundary: false,
            ..spec.clone()
        };
        let graph = spec.graph();
        let mut rng = Rng::new(seed);
        let mut initial = Vec::new();
        for location in spec.locations() {
            if let Port::Source(port) = location.port
                && (spec.nodes[location.node].inputs == 0 || rng.one_in(5))
            {
                let source = Source::new(location.node, port);
                initial.push((source, D::universe()[0].clone()));
            }
        }
        let worker = |_| {
            let tracker = graph.build().expect("the generator makes sound graphs");
            let mut protocol = Protocol::new(tracker, mode, peers);
            for (source, time) in &initial {
                protocol.initial(*source, time.clone());
            }
            protocol.propagate(|_, _, _| ());
            Worker {
                protocol,
                capabilities: initial.clone(),
            }
        };
        Self {
            reach: Reach::new(&spec),
            universe: D::universe(),
            workers: (0..peers).map(worker).collect(),
            messages: Vec::new(),
            batches: BTreeMap::new(),
            spec,
            rng,
            fault,
        }
    }

    /// Takes `steps` random steps, checking safety all along, then delivers everything and checks
    /// that every frontier is exact.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn run(&mut self, steps: usize) -> Result<(), Violation> {
        for _ in 0..steps {
            let worker = self.rng.below(self.workers.len());
            match self.rng.below(6) {
                0 | 1 => self.act(worker),
                2 => self.send_progress(worker),
                3 | 4 => self.deliver_some(worker),
                _ => self.propagate(worker)?,
            }
        }
        self.settle()
    }

    /// Lets the operators finish: they drop their capabilities and consume arriving messages. Then nothing
    /// may be left anywhere.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn finish(&mut self) -> Result<(), Violation> {
        while let Some((worker, target, time)) = self.messages.pop() {
            self.workers[worker]
                .protocol
                .local()
                .update((target.into(), time), -1);
        }
        for worker in &mut self.workers {
            for (source, time) in worker.capabilities.drain(..) {
                worker.protocol.local().update((source.into(), time), -1);
            }
        }
        self.settle()?;
        for (index, worker) in self.workers.iter().enumerate() {
            if worker.protocol.tracker().tracking_anything() || worker.protocol.has_pending() {
                let text = format!("worker {index} still tracks something after the end");
                return Err(Violation::Inexact(text));
            }
        }
        Ok(())
    }

    /// The pointstamps that are actually outstanding.
    pub fn outstanding(&self) -> Vec<(Location, D::Time)> {
        let messages = self
            .messages
            .iter()
            .map(|(_, target, time)| ((*target).into(), time));
        let held = self
            .workers
            .iter()
            .flat_map(|worker| worker.capabilities.iter());
        let held = held.map(|(source, time)| ((*source).into(), time));
        messages
            .chain(held)
            .map(|(location, time)| (location, time.clone()))
            .collect()
    }

    /// One activation: some actions, reported together.
    fn act(&mut self, worker: usize) {
        let mut report = ProgressBatch::new();
        for _ in 0..=self.rng.below(5) {
            if self.rng.one_in(2) {
                self.consume(worker, &mut report);
            } else {
                self.use_capability(worker, &mut report);
            }
        }
        self.workers[worker].protocol.local().extend(report);
    }

    fn consume(&mut self, worker: usize, report: &mut ProgressBatch<D::Time>) {
        let mine: Vec<usize> = (0..self.messages.len())
            .filter(|index| self.messages[*index].0 == worker)
            .collect();
        let Some(index) = self.rng.pick(&mine) else {
            return;
        };
        let (_, target, time) = self.messages.swap_remove(*index);
        report.push(((target.into(), time.clone()), -1));
        let paths: Vec<_> = self.spec.hops(target.into());
        for (output, summary) in paths {
            let Some(earliest) = summary.and_then(|summary| summary.results_in(&time)) else {
                continue;
            };
            if let Port::Source(port) = output.port
                && self.rng.one_in(2)
                && let Some(later) = self.later(&earliest)
            {
                if self.fault == Fault::HalfFormed {
                    let report = std::mem::take(report);
                    self.workers[worker].protocol.local().extend(report);
                    let batch = self.workers[worker].protocol.flush_outgoing();
                    self.post(worker, batch);
                }
                let source = Source::new(output.node, port);
                if self.rng.one_in(2) {
                    self.send(source, &later, report);
                } else {
                    report.push(((output, later.clone()), 1));
                    self.workers[worker].capabilities.push((source, later));
                }
            }
        }
    }

    fn use_capability(&mut self, worker: usize, report: &mut ProgressBatch<D::Time>) {
        let held = self.workers[worker].capabilities.len();
        if held == 0 {
            return;
        }
        let index = self.rng.below(held);
        let (source, time) = self.workers[worker].capabilities[index].clone();
        match self.rng.below(8) {
            0 => {
                self.workers[worker].capabilities.swap_remove(index);
                report.push(((source.into(), time), -1));
            }
            2 if held < 20 => {
                self.workers[worker]
                    .capabilities
                    .push((source, time.clone()));
                report.push(((source.into(), time), 1));
            }
            3..6 => {
                if let Some(later) = self.later(&time) {
                    self.workers[worker].capabilities[index].1 = later.clone();
                    report.push(((source.into(), later), 1));
                    report.push(((source.into(), time), -1));
                }
            }
            _ => {
                if let Some(later) = self.later(&time) {
                    self.send(source, &later, report);
                }
            }
        }
    }

    /// One message along each edge, to any worker.
    fn send(&mut self, source: Source, time: &D::Time, report: &mut ProgressBatch<D::Time>) {
        if self.messages.len() > 40 {
            return;
        }
        let edges = self.spec.edges.iter().filter(|(from, _)| *from == source);
        for target in edges.map(|(_, target)| *target).collect::<Vec<_>>() {
            let receiver = self.rng.below(self.workers.len());
            self.messages.push((receiver, target, time.clone()));
            report.push(((target.into(), time.clone()), 1));
        }
    }

    /// A time of the universe at or after `time`, if it is not beyond.
    fn later(&mut self, time: &D::Time) -> Option<D::Time> {
        let later: Vec<_> = self
            .universe
            .iter()
            .filter(|other| time.less_equal(other))
            .collect();
        // Often one of the earliest: the operator neither delays nor skips much.
        let near = if self.rng.one_in(4) { later.len() } else { 2 };
        self.rng
            .pick(&later[..near.min(later.len())])
            .map(|time| (*time).clone())
    }

    fn send_progress(&mut self, worker: usize) {
        let batch = self.workers[worker].protocol.take_outgoing();
        self.post(worker, batch);
    }

    fn post(&mut self, from: usize, batch: Option<ProgressBatch<D::Time>>) {
        let Some(batch) = batch else {
            return;
        };
        for to in (0..self.workers.len()).filter(|to| *to != from) {
            self.batches
                .entry((from, to))
                .or_default()
                .push_back(batch.clone());
        }
    }

    /// Delivers a prefix of the messages from one worker to another.
    fn deliver_some(&mut self, to: usize) {
        let from = self.rng.below(self.workers.len());
        if let Some(queue) = self.batches.get_mut(&(from, to)) {
            for _ in 0..=self.rng.below(3) {
                if let Some(batch) = queue.pop_front() {
                    self.workers[to].protocol.receive(batch);
                }
            }
        }
    }

    fn propagate(&mut self, worker: usize) -> Result<(), Violation> {
        self.workers[worker].protocol.propagate(|_, _, _| ());
        let tracker = self.workers[worker].protocol.tracker();
        for (location, time) in self.outstanding() {
            if !tracker.less_equal(location, &time) {
                return Err(Violation::Passed(format!(
                    "worker {worker} has {:?} at {location}, where {time:?} is outstanding",
                    tracker.frontier(location)
                )));
            }
        }
        Ok(())
    }

    /// Delivers everything until no worker has anything to say, while the operators do nothing; then
    /// every frontier has to be exact.
    fn settle(&mut self) -> Result<(), Violation> {
        loop {
            for worker in 0..self.workers.len() {
                self.propagate(worker)?;
                self.send_progress(worker);
            }
            let mut quiet = true;
            for (&(_, to), queue) in &mut self.batches {
                for batch in queue.drain(..) {
                    self.workers[to].protocol.receive(batch);
                    quiet = false;
                }
            }
            if quiet
                && self
                    .workers
                    .iter()
                    .all(|worker| !worker.protocol.has_pending())
            {
                break;
            }
        }
        let exact = self.reach.frontiers(self.outstanding());
        for (index, worker) in self.workers.iter().enumerate() {
            for location in self.spec.locations() {
                let frontier = worker.protocol.tracker().frontier(location);
                // A path may lead out of the universe, where the oracle does not look.
                let within = frontier.iter().filter(|time| self.universe.contains(time));
                let within: std::collections::BTreeSet<_> = within.cloned().collect();
                let expected = exact.get(&location).cloned().unwrap_or_default();
                if within != expected {
                    return Err(Violation::Inexact(format!(
                        "worker {index} has {within:?} at {location} instead of {expected:?}"
                    )));
                }
            }
        }
        Ok(())
    }
}
