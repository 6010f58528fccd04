//! Watching everything downstream of a stream, so that a source can bound its records in flight.
//!
//! A time is in the dataflow while some record or capability of it is, anywhere downstream of a stream. Frontiers
//! only grow along paths that do not advance times, so it is enough to watch the ends of such paths: outputs that no
//! operator reads, operators from whose input no path leads to an output, and the inputs of operators that advance
//! times (loops). The watching operator has an input for each end, connected by an edge that carries frontiers and no
//! records: watching costs nothing per record. An operator whose inputs are watched gets one more output, on which it
//! never sends.
//!
//! The ends are known when the dataflow is complete, and are looked for when it is installed. The search visits
//! each operator downstream once.

use std::cell::RefCell;
use std::rc::Rc;

use pointstamp_order::Point;
use pointstamp_progress::{Source, Target};
use rustc_hash::{FxHashMap, FxHashSet};

use super::draft::Draft;
use super::scope::{ChildDraft, Scope};
use super::stream::Stream;
use crate::error::Error;
use crate::observe::OperatorId;
use crate::payload::Payload;
use crate::run::port::InputPort;
use crate::run::probe::Probe;

/// Operators that a search has found, with their names. They are known once the dataflow is installed.
#[derive(Clone, Default)]
pub struct Found(Rc<RefCell<Vec<(OperatorId, String)>>>);

impl Found {
    /// The operators.
    pub fn operators(&self) -> Vec<(OperatorId, String)> {
        self.0.borrow().clone()
    }
}

impl<P: Payload> Scope<P> {
    /// Makes a probe report the times that are still anywhere downstream of a stream, in its scope and the scopes
    /// inside, and calls a function whenever they change.
    ///
    /// With `retained`, times of which an operator still needs records are downstream, too.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the scope is no longer being built.
    pub fn watch_downstream(
        stream: &Stream<P>,
        probe: &Probe,
        retained: bool,
        changed: impl Fn() + 'static,
    ) -> Result<(), Error> {
        let scope = stream.scope();
        let builder = scope.operator("watch")?;
        builder.notify();
        builder.stateless();
        builder.start(); // an operator is not notified of frontiers that are empty from the beginning
        let inputs: Rc<RefCell<Vec<InputPort<P>>>> = Rc::default();
        let place = probe.place(Point::minimum(scope.dims()));
        let (ports, probe) = (Rc::clone(&inputs), probe.clone());
        builder.build(move || {
            let ports = ports.borrow();
            let frontiers = ports.iter().map(InputPort::frontier).collect::<Vec<_>>();
            let times = frontiers.iter().flat_map(|frontier| frontier.frontier());
            probe.set(place, times);
            drop(frontiers);
            changed();
            Ok(false)
        });
        let from = stream.source;
        let connect = move |scope: &Scope<P>| {
            let mut inputs = inputs.borrow_mut();
            for end in Search::new(scope, Sought::Ends { retained }).ends(from) {
                inputs.push(builder.new_frontier_input(end));
            }
        };
        scope.0.late.borrow_mut().push(Box::new(connect));
        Ok(())
    }

    /// The operators downstream of a stream, in any scope, that may need any of its records for as long as they run.
    ///
    /// A source that acknowledges asks this: retentions downstream [are asked](super::retention::Retention::is_asked) from then on.
    pub fn retaining_forever(stream: &Stream<P>) -> Found {
        let found = Found::default();
        let (from, into) = (stream.source, found.clone());
        let look = move |scope: &Scope<P>| {
            let mut top = scope.clone();
            while let Some(parent) = top.parent().cloned() {
                top = parent;
            }
            let mut search = Search::new(&top, Sought::Retaining);
            search.reach(scope.clone(), from);
            search.run();
            into.0.replace(search.retaining);
        };
        stream.scope().0.late.borrow_mut().push(Box::new(look));
        found
    }

    /// Whether a path leads from one of some outputs in this scope to an operator of it, by its node.
    pub(super) fn leads_to(&self, from: &[Source], node: usize) -> bool {
        let mut search = Search::new(self, Sought::Paths);
        for &source in from {
            search.reach(self.clone(), source);
        }
        search.run();
        let entered =
            |(scope, target): &(Vec<usize>, Target)| target.node == node && scope == self.address();
        search.entered.iter().any(entered)
    }

    /// Brings the frontier of an output in this scope, without its records, out to an enclosing scope.
    fn surface(&self, source: Source, top: &Scope<P>) -> Source {
        let (mut scope, mut source) = (self.clone(), source);
        while scope != *top {
            let port = scope.0.outputs.get();
            scope.0.outputs.set(port + 1);
            scope.add_edge(source, Target { node: 0, port }, 0, "watch");
            let node = scope.index();
            source = Source { node, port };
            let Some(parent) = scope.0.parent.clone() else {
                break;
            };
            scope = parent;
        }
        source
    }
}

/// The readers of a scope's outputs.
type Readers = FxHashMap<Source, Vec<Target>>;

/// The purpose of a search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sought {
    /// The outputs whose frontiers together cover everything downstream; with `retained`, also the records
    /// that operators still need.
    Ends { retained: bool },
    /// Operators that may need records for as long as they run.
    Retaining,
    /// Inputs, whatever summaries say.
    Paths,
}

/// A search of everything downstream of one output.
struct Search<'a, P: Payload> {
    top: &'a Scope<P>,
    sought: Sought,
    /// By address of a scope.
    readers: FxHashMap<Vec<usize>, Rc<Readers>>,
    seen: FxHashSet<(Vec<usize>, Source)>,
    /// Inputs that were searched.
    entered: FxHashSet<(Vec<usize>, Target)>,
    todo: Vec<(Scope<P>, Source)>,
    ends: Vec<Source>,
    retaining: Vec<(OperatorId, String)>,
}

impl<'a, P: Payload> Search<'a, P> {
    fn new(top: &'a Scope<P>, sought: Sought) -> Self {
        Search {
            top,
            sought,
            readers: FxHashMap::default(),
            seen: FxHashSet::default(),
            entered: FxHashSet::default(),
            todo: Vec::new(),
            ends: Vec::new(),
            retaining: Vec::new(),
        }
    }

    /// The outputs in the top scope whose frontiers cover everything downstream of `from`.
    fn ends(mut self, from: Source) -> Vec<Source> {
        self.reach(self.top.clone(), from);
        self.run();
        self.ends
    }

    fn run(&mut self) {
        while let Some((scope, source)) = self.todo.pop() {
            let targets = self
                .readers(&scope)
                .get(&source)
                .cloned()
                .unwrap_or_default();
            let mut leads_on = false;
            for target in targets {
                leads_on |= self.follow(&scope, target);
            }
            if !leads_on {
                self.end(&scope, source);
            }
        }
    }

    /// Notes that paths end at an output.
    fn end(&mut self, scope: &Scope<P>, source: Source) {
        if matches!(self.sought, Sought::Ends { .. }) {
            self.ends.push(scope.surface(source, self.top));
        }
    }

    fn readers(&mut self, scope: &Scope<P>) -> Rc<Readers> {
        if let Some(readers) = self.readers.get(scope.address()) {
            return Rc::clone(readers);
        }
        let mut readers = Readers::default();
        // Other watches' edges carry no records.
        for edge in scope.0.edges.borrow().iter().filter(|edge| edge.copies > 0) {
            readers.entry(edge.source).or_default().push(edge.target);
        }
        let readers = Rc::new(readers);
        self.readers
            .insert(scope.address().to_vec(), Rc::clone(&readers));
        readers
    }

    /// Notes an output that is still to be followed; returns whether it is new.
    fn reach(&mut self, scope: Scope<P>, source: Source) -> bool {
        let new = self.seen.insert((scope.address().to_vec(), source));
        if new {
            self.todo.push((scope, source));
        }
        new
    }

    /// Goes through an input to the outputs behind it; whether that leads to something new.
    fn follow(&mut self, scope: &Scope<P>, target: Target) -> bool {
        let Some(index) = target.node.checked_sub(1) else {
            return match &scope.0.parent {
                Some(parent) if scope != self.top => {
                    let (node, port) = (scope.index(), target.port);
                    self.reach(parent.clone(), Source { node, port })
                }
                _ => false, // out of the scope that is watched
            };
        };
        let children = scope.0.children.borrow();
        match &children[index] {
            ChildDraft::Scope(inner) => {
                let port = target.port;
                self.reach(inner.clone(), Source { node: 0, port })
            }
            ChildDraft::Operator(draft) => {
                if !self.entered.insert((scope.address().to_vec(), target)) {
                    return false;
                }
                self.enter(scope, target, draft);
                true
            }
        }
    }

    /// Goes through an operator, from one of its inputs.
    ///
    /// Where no path leads to an output, as through an operator whose results have times of another kind, the input
    /// of the operator is the last place where the frontiers show its records.
    fn enter(&mut self, scope: &Scope<P>, target: Target, draft: &RefCell<Draft<P>>) {
        let Target { node, port: input } = target;
        let Sought::Ends { retained } = self.sought else {
            let draft = draft.borrow();
            if self.sought == Sought::Retaining {
                draft.asked.set(true);
                let known = self.retaining.iter().any(|(known, _)| *known == draft.id());
                if draft.retains_forever() && !known {
                    self.retaining.push((draft.id(), draft.name().to_owned()));
                }
            }
            for port in 0..draft.shape().1 {
                self.reach(scope.clone(), Source { node, port });
            }
            return;
        };
        let outputs = draft.borrow().outputs_of(input, retained);
        let ends = outputs.is_empty() || draft.borrow().advances_times();
        for port in outputs {
            self.reach(scope.clone(), Source { node, port });
        }
        if ends {
            let port = draft.borrow_mut().silent_output(input);
            self.end(scope, Source { node, port });
        }
    }
}
