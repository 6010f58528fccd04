//! The description of a dataflow, for the comparison between workers.

use serde::{Deserialize, Serialize};

use crate::error::Disagreement;
use crate::run::edge::EdgeShape;

/// A dataflow in words, line by line: equal on all workers that built the same.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Adds lines of the caller, which the engine does not interpret.
    pub(crate) fn described(&mut self, lines: Vec<String>) {
        self.lines.extend(lines);
    }

    /// The dataflow's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The first difference between the dataflow of worker `here` and the dataflow of worker `there`.
    pub(crate) fn difference(
        &self,
        dataflow: usize,
        here: usize,
        other: &Blueprint,
        there: usize,
    ) -> Option<Disagreement> {
        if self.name != other.name {
            return Some(Disagreement::Names {
                dataflow,
                here: (here, self.name.clone()),
                there: (there, other.name.clone()),
            });
        }
        let mut pairs = self.lines.iter().zip(&other.lines);
        let at = pairs.position(|(a, b)| a != b);
        let shorter = self.lines.len().min(other.lines.len());
        let at = at.or((self.lines.len() != other.lines.len()).then_some(shorter))?;
        Some(Disagreement::Graphs {
            dataflow,
            here: (here, self.lines.get(at).cloned()),
            there: (there, other.lines.get(at).cloned()),
        })
    }
}
