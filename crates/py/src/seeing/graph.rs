//! The graph of a dataflow, as it is told when the dataflow is installed.

use std::cell::RefCell;
use std::rc::Rc;

use pointstamp_engine::observe::{Observation, Observer, OperatorId};
use pointstamp_progress::{Source, Target};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use rustc_hash::FxHashMap;

use super::notes::Notes;

/// Collects the graph while a dataflow is installed.
#[derive(Default)]
pub(crate) struct Collector(RefCell<Described>);

/// A graph.
#[derive(Default)]
pub(crate) struct Described {
    scopes: Vec<(OperatorId, Vec<usize>, String, usize, usize, usize)>,
    operators: Vec<(OperatorId, Vec<usize>, String, usize, usize)>,
    edges: Vec<(OperatorId, Source, Target, &'static str)>,
}

impl Observer for Collector {
    fn observe(&self, observation: &Observation<'_>) {
        let mut graph = self.0.borrow_mut();
        match *observation {
            Observation::ScopeMade {
                id,
                address,
                name,
                dims,
                inputs,
                outputs,
            } => {
                let (address, name) = (address.to_vec(), name.to_owned());
                graph
                    .scopes
                    .push((id, address, name, dims, inputs, outputs));
            }
            Observation::OperatorMade {
                id,
                address,
                name,
                inputs,
                outputs,
            } => {
                let (address, name) = (address.to_vec(), name.to_owned());
                graph.operators.push((id, address, name, inputs, outputs));
            }
            Observation::EdgeMade {
                scope,
                source,
                target,
                pact,
                ..
            } => graph.edges.push((scope, source, target, pact)),
            _ => {}
        }
    }
}

impl Collector {
    pub(crate) fn new() -> Rc<Self> {
        Rc::default()
    }

    /// The graph as `pointstamp.seeing.graph.Graph.from_data` takes it.
    pub(crate) fn to_py<'py>(
        &self,
        py: Python<'py>,
        notes: &Notes,
    ) -> PyResult<Bound<'py, PyDict>> {
        let graph = self.0.borrow();
        for (id, _, name, ..) in &graph.operators {
            if let Some(known) = notes.operator(*id) {
                known.is_called(name);
            }
        }
        let made = |id: OperatorId| {
            let known = notes.operator(id);
            known.map_or_else(String::new, |known| known.made.text())
        };
        let scopes = PyList::empty(py);
        let mut addresses = FxHashMap::default();
        for (id, address, name, dims, inputs, outputs) in &graph.scopes {
            addresses.insert(*id, address);
            let address = PyTuple::new(py, address)?;
            scopes.append((address, name, dims, inputs, outputs, made(*id)))?;
        }
        let operators = PyList::empty(py);
        for (id, address, name, inputs, outputs) in &graph.operators {
            let address = PyTuple::new(py, address)?;
            operators.append((
                address,
                name,
                inputs,
                outputs,
                made(*id),
                PyTuple::empty(py),
            ))?;
        }
        let edges = PyList::empty(py);
        for (scope, source, target, pact) in &graph.edges {
            let scope = PyTuple::new(py, addresses[scope])?;
            let edge = (
                scope,
                source.node,
                source.port,
                target.node,
                target.port,
                *pact,
            );
            edges.append(edge)?;
        }
        let data = PyDict::new(py);
        data.set_item("scopes", scopes)?;
        data.set_item("operators", operators)?;
        data.set_item("edges", edges)?;
        Ok(data)
    }
}
