//! Watching all that is downstream of a stream, so that a source can bound what it has in flight.
//!
//! A time is in the dataflow while some record or capability of it is, anywhere that a stream leads to. Frontiers only
//! grow along paths that do not advance times, so it is enough to watch where such paths end: outputs that no operator
//! reads, operators without outputs, and the inputs of operators that advance times (loops). The watching operator
//! has an input for each end, connected by an edge that carries frontiers and no records: what is watched
//! costs nothing per record. An operator whose inputs are watched gets one more output, on which it never sends.
//!
//! The ends are known when the dataflow is complete, and are looked for when it is installed. The search visits
//! each operator downstream once.

use std::cell::RefCell;
use std::rc::Rc;

use pointstamp_order::Point;
use pointstamp_progress::{Source, Target};
use rustc_hash::{FxHashMap, FxHashSet};

use super::scope::{ChildDraft, Scope};
use super::stream::Stream;
use crate::error::Error;
use crate::payload::Payload;
use crate::run::port::InputPort;
use crate::run::probe::Probe;
use crate::run::wakeups::Activator;

impl<P: Payload> Scope<P> {
    /// Makes a probe report the times that are still anywhere downstream of a stream, in its scope and the scopes
    /// inside, and activates whom it may concern whenever they change.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the scope is no longer being built.
    pub fn watch_downstream(
        stream: &Stream<P>,
        probe: &Probe,
        reader: Activator,
    ) -> Result<(), Error> {
        let scope = stream.scope();
        let builder = scope.operator("watch")?;
        builder.notify();
        let inputs: Rc<RefCell<Vec<InputPort<P>>>> = Rc::default();
        let place = probe.place(Point::minimum(scope.dims()));
        let (ports, probe) = (Rc::clone(&inputs), probe.clone());
        builder.build(move || {
            let ports = ports.borrow();
            let frontiers = ports.iter().map(InputPort::frontier).collect::<Vec<_>>();
            let times = frontiers.iter().flat_map(|frontier| frontier.frontier());
            probe.set(place, times);
            reader.activate();
            Ok(false)
        });
        let from = stream.source;
        let connect = move |scope: &Scope<P>| {
            let mut inputs = inputs.borrow_mut();
            for end in Search::new(scope).ends(from) {
                inputs.push(builder.new_frontier_input(end));
            }
        };
        scope.0.late.borrow_mut().push(Box::new(connect));
        Ok(())
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

/// Where a scope's outputs lead.
type Readers = FxHashMap<Source, Vec<Target>>;

/// The search for the ends of paths from one output.
struct Search<'a, P: Payload> {
    top: &'a Scope<P>,
    /// By address of a scope.
    readers: FxHashMap<Vec<usize>, Rc<Readers>>,
    seen: FxHashSet<(Vec<usize>, Source)>,
    todo: Vec<(Scope<P>, Source)>,
    ends: Vec<Source>,
}

impl<'a, P: Payload> Search<'a, P> {
    fn new(top: &'a Scope<P>) -> Self {
        Search {
            top,
            readers: FxHashMap::default(),
            seen: FxHashSet::default(),
            todo: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Outputs in the top scope whose frontiers tell of all that is downstream of `from`.
    fn ends(mut self, from: Source) -> Vec<Source> {
        self.reach(self.top.clone(), from);
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
                self.ends.push(scope.surface(source, self.top));
            }
        }
        self.ends
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

    /// Notes an output to go on from; whether it is new.
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
                let node = target.node;
                // Port numbers are never this large: the mark of an operator that was visited.
                let mark = Source {
                    node,
                    port: usize::MAX,
                };
                if !self.seen.insert((scope.address().to_vec(), mark)) {
                    return false;
                }
                let outputs = draft.borrow().shape().1;
                for port in 0..outputs {
                    self.reach(scope.clone(), Source { node, port });
                }
                let mut draft = draft.borrow_mut();
                if outputs == 0 || draft.advances_times() {
                    let port = draft.new_silent_output();
                    drop(draft);
                    self.ends
                        .push(scope.surface(Source { node, port }, self.top));
                }
                true
            }
        }
    }
}
