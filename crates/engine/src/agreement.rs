//! Finding out that workers built different dataflows.
//!
//! Progress is counted for the sum of all workers, so a worker with another graph would make every frontier
//! wrong, or stand still for ever. Each worker posts a [`Blueprint`] of what it builds before it installs it;
//! the first is kept until all have posted, and the first line that differs names the difference. A worker
//! that ends while others built more is found out in the same way. Nobody waits here.

use std::sync::{Arc, Mutex, PoisonError};

use crate::scope::EdgeShape;

/// A dataflow in words, line by line: equal on all workers that built the same.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Blueprint {
    name: String,
    lines: Vec<String>,
}

impl Blueprint {
    pub(crate) fn new(name: &str) -> Self {
        Blueprint {
            name: name.to_owned(),
            lines: Vec::new(),
        }
    }

    pub(crate) fn scope(&mut self, at: &[usize], name: &str, dims: usize) {
        self.lines
            .push(format!("scope '{name}' {at:?} with {dims} coordinates"));
    }

    pub(crate) fn operator(
        &mut self,
        at: &[usize],
        index: usize,
        name: &str,
        shape: (usize, usize),
    ) {
        let (inputs, outputs) = shape;
        self.lines.push(format!(
            "operator {index} '{name}' in scope {at:?} with {inputs} inputs and {outputs} outputs"
        ));
    }

    pub(crate) fn edge(&mut self, at: &[usize], edge: &EdgeShape) {
        let EdgeShape {
            source,
            target,
            pact,
            ..
        } = edge;
        self.lines.push(format!(
            "a {pact} edge in scope {at:?} from output {} of operator {} to input {} of operator {}",
            source.port, source.node, target.port, target.node
        ));
    }

    /// The first difference, in words.
    fn difference(&self, mine: usize, other: &Blueprint, theirs: usize) -> Option<String> {
        if self.name != other.name {
            return Some(format!(
                "it is '{}' on worker {mine} and '{}' on worker {theirs}",
                self.name, other.name
            ));
        }
        let at = self
            .lines
            .iter()
            .zip(&other.lines)
            .position(|(a, b)| a != b);
        let at = at.or((self.lines.len() != other.lines.len())
            .then(|| self.lines.len().min(other.lines.len())))?;
        let line = |lines: &[String]| {
            lines
                .get(at)
                .map_or("nothing more", |line| line.as_str())
                .to_owned()
        };
        Some(format!(
            "worker {mine} has {}, where worker {theirs} has {}",
            line(&self.lines),
            line(&other.lines)
        ))
    }
}

/// What the workers of one process have built so far.
pub(crate) struct Agreement {
    peers: usize,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    dataflows: Vec<Entry>,
    /// How many dataflows a worker had built when its `main` ended.
    finished: Vec<Option<usize>>,
}

struct Entry {
    name: String,
    first: usize,
    blueprint: Option<Arc<Blueprint>>,
    posted: usize,
    dropped: Vec<bool>,
}

impl Agreement {
    pub(crate) fn new(peers: usize) -> Self {
        Agreement {
            peers,
            book: Mutex::new(Book {
                dataflows: Vec::new(),
                finished: vec![None; peers],
            }),
        }
    }

    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares what `worker` built as its dataflow number `index` with what others built.
    pub(crate) fn post(
        &self,
        worker: usize,
        index: usize,
        blueprint: Blueprint,
    ) -> Result<(), String> {
        let mut book = self.book();
        if let Some(entry) = book.dataflows.get_mut(index) {
            if let Some(first) = &entry.blueprint
                && let Some(difference) = blueprint.difference(worker, first, entry.first)
            {
                return Err(format!(
                    "the workers built different dataflows: of dataflow {index}, {difference}; build the same graph on \
                     every worker"
                ));
            }
            entry.posted += 1;
            if entry.posted == self.peers {
                entry.blueprint = None;
            }
            return Ok(());
        }
        let name = blueprint.name.clone();
        if let Some(other) = book
            .finished
            .iter()
            .position(|built| built.is_some_and(|built| built <= index))
        {
            return Err(not_built(index, &name, worker, other));
        }
        let blueprint = (self.peers > 1).then(|| Arc::new(blueprint));
        let dropped = vec![false; self.peers];
        book.dataflows.push(Entry {
            name,
            first: worker,
            blueprint,
            posted: 1,
            dropped,
        });
        Ok(())
    }

    /// Notes that `worker` will build no more.
    pub(crate) fn finish(&self, worker: usize, built: usize) -> Result<(), String> {
        let mut book = self.book();
        book.finished[worker] = Some(built);
        match book.dataflows.get(built) {
            Some(entry) => Err(not_built(built, &entry.name, entry.first, worker)),
            None => Ok(()),
        }
    }

    /// Notes that `worker` dropped a dataflow.
    pub(crate) fn dropped(&self, worker: usize, index: usize) {
        if let Some(entry) = self.book().dataflows.get_mut(index) {
            entry.dropped[worker] = true;
        }
    }

    /// Whether a dataflow that `worker` still has can no longer end, because another dropped it.
    pub(crate) fn abandoned(&self, worker: usize, index: usize) -> Option<String> {
        let book = self.book();
        let entry = book.dataflows.get(index)?;
        let other = entry.dropped.iter().position(|&dropped| dropped)?;
        (!entry.dropped[worker]).then(|| {
            format!(
                "dataflow {index} '{}' was dropped on worker {other} but not on worker {worker}, where it cannot end any \
                 more: drop it on every worker",
                entry.name
            )
        })
    }
}

fn not_built(index: usize, name: &str, builder: usize, other: usize) -> String {
    format!(
        "the workers built different dataflows: worker {builder} built dataflow {index} '{name}', and worker {other} ended \
         without building it; build the same dataflows on every worker"
    )
}
