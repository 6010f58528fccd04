//! Finding where a stream's records come from, while its dataflow is being built.
//!
//! The search goes back along edges that carry records, through operators from every output to every input, and in and
//! out of scopes. It ends at the streams that it is asked about, and visits each output once.

use std::rc::Rc;

use pointstamp_progress::Source;
use rustc_hash::{FxHashMap, FxHashSet};

use super::scope::{ChildDraft, Scope};
use super::stream::Stream;
use crate::payload::Payload;

/// By a node of a scope, what its inputs read: the port, and from where.
type Writers = FxHashMap<usize, Vec<(usize, Source)>>;

impl<P: Payload> Stream<P> {
    /// Which of some streams of the dataflow this one's records come from: those from which they come through no other
    /// of them, by their indices, in order.
    pub fn comes_from(&self, streams: &[Stream<P>]) -> Vec<usize> {
        let mut search = Search {
            writers: FxHashMap::default(),
            seen: FxHashSet::default(),
            todo: Vec::new(),
        };
        let mut found = vec![false; streams.len()];
        search.reach(&self.scope, self.source);
        while let Some((scope, source)) = search.todo.pop() {
            let mut ends = false;
            for (stream, found) in streams.iter().zip(&mut found) {
                if stream.source == source && stream.scope == scope {
                    *found = true;
                    ends = true;
                }
            }
            if !ends {
                search.follow(&scope, source);
            }
        }
        let indices = found.into_iter().enumerate();
        indices
            .filter_map(|(index, found)| found.then_some(index))
            .collect()
    }
}

struct Search<P: Payload> {
    /// By address of a scope.
    writers: FxHashMap<Vec<usize>, Rc<Writers>>,
    seen: FxHashSet<(Vec<usize>, Source)>,
    todo: Vec<(Scope<P>, Source)>,
}

impl<P: Payload> Search<P> {
    fn reach(&mut self, scope: &Scope<P>, source: Source) {
        if self.seen.insert((scope.address().to_vec(), source)) {
            self.todo.push((scope.clone(), source));
        }
    }

    /// Goes back from an output to those whose records may have led to its.
    fn follow(&mut self, scope: &Scope<P>, source: Source) {
        let Some(index) = source.node.checked_sub(1) else {
            if let Some(parent) = &scope.0.parent {
                self.reach_writers(parent, scope.index(), Some(source.port));
            }
            return;
        };
        let inner = match &scope.0.children.borrow()[index] {
            ChildDraft::Scope(inner) => Some(inner.clone()),
            ChildDraft::Operator(_) => None,
        };
        match inner {
            Some(inner) => self.reach_writers(&inner, 0, Some(source.port)),
            None => self.reach_writers(scope, source.node, None),
        }
    }

    /// Reaches what one input of a node reads, or what all of them do.
    fn reach_writers(&mut self, scope: &Scope<P>, node: usize, port: Option<usize>) {
        let writers = self.writers(scope);
        for &(at, source) in writers.get(&node).into_iter().flatten() {
            if port.is_none_or(|port| port == at) {
                self.reach(scope, source);
            }
        }
    }

    fn writers(&mut self, scope: &Scope<P>) -> Rc<Writers> {
        let made = self.writers.entry(scope.address().to_vec());
        let made = made.or_insert_with(|| {
            let mut writers = Writers::default();
            for edge in scope.0.edges.borrow().iter().filter(|edge| edge.copies > 0) {
                let target = edge.target;
                let read = writers.entry(target.node).or_default();
                read.push((target.port, edge.source));
            }
            Rc::new(writers)
        });
        Rc::clone(made)
    }
}
