//! The scenarios of an exploration: graphs, and bounds on the actions of workers.
//!
//! Owns [`Scenario`], the graphs that it comes with, and [`Flaw`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use pointstamp_order::{Point, Summary};
use pointstamp_progress::{Connectivity, Graph, Location, Mode, ProgressBatch, Source, Target};

use super::combine::frame;

/// An error of a worker, or of the combiner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing.
    None,
    /// A batch of changes is sent as two.
    Halves,
    /// A message is reported as consumed before the operator has done with it.
    Early,
    /// A capability is reported as dropped, and then used once more.
    UseAfterDrop,
    /// In demand mode, changes are held back until each that takes something back moves a frontier; one is not enough.
    Withholds,
    /// The later of two frames of the combiner arrives first.
    Reorders,
    /// A nested scope reports to the scope around it the messages that it consumed, and only with its next
    /// report the capabilities that it holds for them.
    TellsLate,
    /// The state is taken after one round of counting.
    OneRound,
    /// A worker continues to run after its second count.
    RunsOn,
    /// During the drain, progress is combined and held back as before.
    Combines,
    /// A relay adds the later of two frames of a process first.
    RelayReorders,
    /// A relay passes on the progress of a member twice.
    RelayRepeats,
    /// A relay sends a sum as two frames: first what it takes back, then the rest.
    RelaySplits,
    /// A relay sends its members a sum that has their own part.
    RelayEchoes,
    /// A relay counts messages as taken when it gets them, and as sent when it sends them.
    CountsHops,
}

/// An exploration.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The graph.
    pub shape: Shape,
    /// The number of processes. With one, workers are joined by queues; with more, by the combiner.
    pub processes: usize,
    /// The number of processes in a group; with more than one, the combiner's frames go by relays.
    pub group: usize,
    /// The number of workers of each process.
    pub workers: usize,
    /// When changes are sent.
    pub mode: Mode,
    /// The greatest coordinate of a time. Nothing is sent or held beyond.
    pub last: u64,
    /// The maximum number of downgrades of capabilities, if it is bounded apart from `last`.
    pub moves: Option<u8>,
    /// The maximum number of messages sent by capabilities, by all workers together.
    pub sends: u8,
    /// The maximum number of copies of capabilities.
    pub copies: u8,
    /// The maximum number of times that an operator keeps the capability of a message.
    pub keeps: u8,
    /// The maximum number of attempts at checkpoints, at any moment; each may be given up at any moment.
    pub cuts: u8,
    /// The error.
    pub flaw: Flaw,
}

/// The graph of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An input and this many nodes after it, the last of which only reads.
    Chain(usize),
    /// An input that two nodes read, and a node with an input from each of them.
    Diamond,
    /// An input before a loop of a node with two inputs and a feedback that adds one.
    Loop,
    /// An input, a nested scope with a node and a feedback in a loop inside, and a node after it.
    Nested,
}

impl Scenario {
    /// Two workers of one process in demand mode, which send one message, keep one capability, and use times up to 1.
    pub fn of(shape: Shape) -> Self {
        Self {
            shape,
            processes: 1,
            group: 1,
            workers: 2,
            mode: Mode::Demand,
            last: 1,
            moves: None,
            sends: 1,
            copies: 0,
            keeps: 1,
            cuts: 0,
            flaw: Flaw::None,
        }
    }

    pub(super) fn model(&self) -> Model {
        let mut builder = Builder::new(1, None);
        let mut inner = None;
        let input = builder.node(0, 1, 0);
        match self.shape {
            Shape::Chain(nodes) => {
                let mut before = input;
                for index in 1..=nodes {
                    let node = builder.node(1, usize::from(index < nodes), 0);
                    builder.edge((before, 0), (node, 0));
                    before = node;
                }
            }
            Shape::Diamond => {
                let (left, right) = (builder.node(1, 1, 0), builder.node(1, 1, 0));
                let join = builder.node(2, 0, 0);
                builder.edge((input, 0), (left, 0));
                builder.edge((input, 0), (right, 0));
                builder.edge((left, 0), (join, 0));
                builder.edge((right, 0), (join, 1));
            }
            Shape::Loop => {
                let (node, back) = (builder.node(2, 1, 0), builder.node(1, 1, 1));
                builder.edge((input, 0), (node, 0));
                builder.edge((node, 0), (back, 0));
                builder.edge((back, 0), (node, 1));
            }
            Shape::Nested => {
                let mut inside = Builder::new(2, Some((1, 1)));
                let (node, back) = (inside.node(2, 1, 0), inside.node(1, 1, 1));
                inside.edge((0, 0), (node, 0));
                inside.edge((node, 0), (back, 0));
                inside.edge((back, 0), (node, 1));
                inside.edge((node, 0), (0, 0));
                let scope = builder.node(1, 1, 0);
                let after = builder.node(1, 0, 0);
                builder.edge((input, 0), (scope, 0));
                builder.edge((scope, 0), (after, 0));
                inner = Some((scope, inside.scope));
            }
        }
        let (nested, scopes) = match inner {
            Some((node, inner)) => (Some(node), vec![builder.scope, inner]),
            None => (None, vec![builder.scope]),
        };
        Model {
            scopes,
            nested,
            input: Source::new(input, 0),
            scenario: self.clone(),
            renamings: {
                let mut names = renamings(self.processes, self.workers);
                names.retain(|old| self.keeps_groups(old));
                names
            },
            frames: RefCell::default(),
        }
    }
}

impl Scenario {
    /// Whether a renaming of the workers keeps groups together, and their relays.
    fn keeps_groups(&self, old: &[usize]) -> bool {
        let place = |process: usize| {
            let before = old[process * self.workers] / self.workers;
            (before / self.group, before.is_multiple_of(self.group))
        };
        (0..self.processes).all(|process| {
            let relay = process - process % self.group;
            let (group, relays) = place(process);
            relays == (process == relay) && group == place(relay).0
        })
    }
}

/// A scope: its graph, and the effect of its nodes.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) graph: Graph<Point>,
    pub(super) edges: Vec<(Source, Target)>,
    /// By node, the increment of times on the way through it.
    pub(super) steps: Vec<u64>,
    pub(super) dims: usize,
}

impl Scope {
    pub(super) fn readers(&self, source: Source) -> impl Iterator<Item = Target> {
        let edges = self.edges.iter().filter(move |(from, _)| *from == source);
        edges.map(|(_, target)| *target)
    }

    pub(super) fn locations(&self) -> impl Iterator<Item = Location> {
        (0..self.graph.nodes()).flat_map(|node| {
            let (inputs, outputs) = self.graph.shape(node).unwrap_or_default();
            let targets = (0..inputs).map(move |port| Location::target(node, port));
            targets.chain((0..outputs).map(move |port| Location::source(node, port)))
        })
    }
}

/// A scenario with its graphs.
pub(super) struct Model {
    /// The outer scope, and the one in it, if there is one.
    pub(super) scopes: Vec<Scope>,
    /// The node of the outer scope that is the inner one.
    pub(super) nested: Option<usize>,
    /// The output at which every worker begins with a capability at the least time.
    pub(super) input: Source,
    pub(super) scenario: Scenario,
    renamings: Vec<Vec<usize>>,
    frames: RefCell<Frames>,
}

type Batch = ProgressBatch<Point>;

/// The combiner's frames for the batches that were put into an accumulator.
type Frames = HashMap<Vec<(usize, Batch)>, Option<Batch>>;

/// Returns every renaming of the workers that keeps the workers of a process together.
fn renamings(processes: usize, workers: usize) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    extend(&mut Vec::new(), processes, workers, &mut found);
    found
}

fn extend(names: &mut Vec<usize>, processes: usize, workers: usize, found: &mut Vec<Vec<usize>>) {
    if names.len() == processes * workers {
        found.push(names.clone());
        return;
    }
    let begins = names.len().is_multiple_of(workers);
    for old in 0..processes * workers {
        let together = begins
            || names
                .last()
                .is_some_and(|last| last / workers == old / workers);
        let fresh = !names.contains(&old);
        let new_process = !begins || !names.iter().any(|name| name / workers == old / workers);
        if together && fresh && new_process {
            names.push(old);
            extend(names, processes, workers, found);
            names.pop();
        }
    }
}

impl Model {
    pub(super) fn peers(&self) -> usize {
        self.scenario.processes * self.scenario.workers
    }

    /// Every renaming of the workers that keeps the workers of a process together: by new name, the old one.
    pub(super) fn renamings(&self) -> &[Vec<usize>] {
        &self.renamings
    }

    /// The combiner's frame for batches that the workers of a process put into one accumulator; computed once for
    /// each.
    pub(super) fn frame(&self, said: &[(usize, Batch)]) -> Option<Batch> {
        let mut frames = self.frames.borrow_mut();
        if let Some(known) = frames.get(said) {
            return known.clone();
        }
        let made = frame(self.scenario.workers, said);
        frames.insert(said.to_vec(), made.clone());
        made
    }

    pub(super) fn process(&self, worker: usize) -> usize {
        worker / self.scenario.workers
    }

    /// The workers of a process.
    pub(super) fn workers(&self, process: usize) -> Range<usize> {
        process * self.scenario.workers..(process + 1) * self.scenario.workers
    }

    /// The relay of a process's group.
    pub(super) fn relay(&self, process: usize) -> usize {
        process - process % self.scenario.group
    }

    /// The other processes of a relay's group.
    pub(super) fn members(&self, relay: usize) -> Range<usize> {
        relay + 1..(relay + self.scenario.group).min(self.scenario.processes)
    }

    /// The relays of the other groups.
    pub(super) fn relays(&self, relay: usize) -> impl Iterator<Item = usize> + use<> {
        let all = (0..self.scenario.processes).step_by(self.scenario.group);
        all.filter(move |&other| other != relay)
    }
}

struct Builder {
    scope: Scope,
}

impl Builder {
    fn new(dims: usize, boundary: Option<(usize, usize)>) -> Self {
        let identity = Summary::identity(dims);
        let graph = match boundary {
            Some((inputs, outputs)) => Graph::with_boundary(identity, inputs, outputs),
            None => Graph::new(identity),
        };
        let steps = vec![0; graph.nodes()];
        let edges = Vec::new();
        Self {
            scope: Scope {
                graph,
                edges,
                steps,
                dims,
            },
        }
    }

    fn node(&mut self, inputs: usize, outputs: usize, step: u64) -> usize {
        let summary = Summary::step(self.scope.dims, step);
        let connectivity = Connectivity::identity(inputs, outputs, summary);
        self.scope.steps.push(step);
        self.scope
            .graph
            .add_node("node", inputs, outputs, connectivity)
    }

    fn edge(&mut self, from: (usize, usize), to: (usize, usize)) {
        let (source, target) = (Source::new(from.0, from.1), Target::new(to.0, to.1));
        self.scope
            .graph
            .add_edge(source, target)
            .expect("ports of the scenario's nodes");
        self.scope.edges.push((source, target));
    }
}
