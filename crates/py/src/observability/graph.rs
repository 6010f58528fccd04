//! The graph of a dataflow, as it is reported when the dataflow is installed.

use std::cell::RefCell;
use std::rc::Rc;

use pointstamp_engine::observe::{Observation, Observer, OperatorId};
use pointstamp_progress::{Source, Target};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use rustc_hash::FxHashMap;

use super::frames::Line;
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

    /// Takes the graph, with the lines that made its operators, and notes the operators' names.
    pub(crate) fn take(&self, notes: &Notes) -> Installed {
        let graph = self.0.take();
        for (id, _, name, ..) in &graph.operators {
            if let Some(known) = notes.operator(*id) {
                known.is_called(name);
            }
        }
        let line = |id| notes.operator(id).map(|known| known.made.clone());
        let scopes = graph.scopes.iter().map(|(id, ..)| line(*id)).collect();
        let operators = graph.operators.iter().map(|(id, ..)| line(*id)).collect();
        Installed {
            graph,
            scopes,
            operators,
        }
    }
}

/// The graph of a dataflow that was installed. Few programs look at it: it becomes Python's when one does.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Installed {
    graph: Described,
    /// The lines that made the scopes and the operators, in their order.
    scopes: Vec<Option<Line>>,
    operators: Vec<Option<Line>>,
}

#[pymethods]
impl Installed {
    /// The graph as `Graph.from_data` takes it.
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let graph = &self.graph;
        let text = |line: &Option<Line>| line.as_ref().map_or_else(String::new, Line::text);
        let scopes = PyList::empty(py);
        let mut addresses = FxHashMap::default();
        for ((id, address, name, dims, inputs, outputs), made) in
            graph.scopes.iter().zip(&self.scopes)
        {
            addresses.insert(*id, address);
            let address = PyTuple::new(py, address)?;
            scopes.append((address, name, dims, inputs, outputs, text(made)))?;
        }
        let operators = PyList::empty(py);
        for ((_, address, name, inputs, outputs), made) in
            graph.operators.iter().zip(&self.operators)
        {
            let address = PyTuple::new(py, address)?;
            let steps = PyTuple::empty(py);
            operators.append((address, name, inputs, outputs, text(made), steps))?;
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
