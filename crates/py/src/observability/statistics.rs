//! The present state of a worker, as it answers questions.
//!
//! Owns the form, which `pointstamp.observability.statistics` reads: numbers, texts, lists and tuples, so that it may
//! travel as JSON. The engine's snapshot has the outstanding pointstamps, the worker's notes the lines that made
//! them. It is made between two steps.

use std::sync::Arc;

use pointstamp_engine::inspect::{ScopeState, Snapshot};
use pointstamp_engine::observe::OperatorId;
use pointstamp_engine::worker::Worker as EngineWorker;
use pointstamp_order::{Point, Summary};
use pointstamp_progress::{Location, Port};
use pointstamp_spill::Budget;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use rustc_hash::FxHashMap;

use super::notes::Notes;
use crate::batch::Batch;
use crate::bound::Home;

/// Returns the state of the worker, as a `dict`.
pub(crate) fn statistics(
    py: Python<'_>,
    home: &Arc<Home>,
    engine: &EngineWorker<Batch>,
) -> PyResult<Py<PyAny>> {
    let snapshot = engine.inspect();
    let notes = home.notes();
    let mut addresses = FxHashMap::default();
    let dataflows = PyList::empty(py);
    for root in &snapshot.dataflows {
        let form = Form::new(py, notes, &mut addresses);
        dataflows.append((root.id.dataflow, form.dataflow(root)?))?;
    }
    let report = PyDict::new(py);
    report.set_item("worker", home.worker())?;
    report.set_item("process", engine.cluster().process())?;
    report.set_item("dataflows", dataflows)?;
    let numbers = PyList::empty(py);
    for (id, address) in &addresses {
        numbers.append((id.dataflow, id.operator, PyTuple::new(py, address)?))?;
    }
    report.set_item("numbers", numbers)?;
    report.set_item("capabilities", capabilities(py, notes, &addresses)?)?;
    let (inputs, ran, kept) = operators(py, notes, &snapshot, &addresses)?;
    report.set_item("kept", kept)?;
    report.set_item("inputs", inputs)?;
    report.set_item("ran", ran)?;
    report.set_item("busy", engine.has_work())?;
    report.set_item("in_flight", snapshot.in_flight)?;
    report.set_item("high_water", engine.high_water())?;
    let undrained = engine.undrained();
    report.set_item(
        "undrained",
        undrained.iter().map(|(_, name)| name).collect::<Vec<_>>(),
    )?;
    if let Some(budget) = engine.resource::<Budget>() {
        let traffic = budget.traffic();
        let budget_report = PyDict::new(py);
        budget_report.set_item("limit", budget.limit())?;
        budget_report.set_item("used", budget.used())?;
        budget_report.set_item("cached", budget.cached())?;
        budget_report.set_item("written", traffic.written)?;
        budget_report.set_item("read", traffic.read)?;
        budget_report.set_item("hits", traffic.hits)?;
        budget_report.set_item("misses", traffic.misses)?;
        report.set_item("budget", budget_report)?;
    }
    if let Some(recorder) = home.recorder().get() {
        let (totals, parked) = recorder.totals();
        let list = PyList::empty(py);
        for (id, done) in totals {
            if let Some(address) = addresses.get(&id) {
                let (runs, nanoseconds) = (done.runs, done.nanoseconds);
                let records = (done.records_in, done.records_out);
                let batches = (done.batches_in, done.batches_out);
                list.append((
                    PyTuple::new(py, address)?,
                    runs,
                    nanoseconds,
                    records,
                    batches,
                ))?;
            }
        }
        report.set_item("totals", list)?;
        report.set_item("parked", parked)?;
    }
    Ok(report.into_any().unbind())
}

type Addresses = FxHashMap<OperatorId, Vec<usize>>;

/// The capabilities that Python code holds.
fn capabilities<'py>(
    py: Python<'py>,
    notes: &Notes,
    addresses: &Addresses,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for held in notes.capabilities() {
        let Some(address) = addresses.get(&held.operator) else {
            continue;
        };
        let seconds = held.since.elapsed().as_secs_f64();
        list.append((
            PyTuple::new(py, address)?,
            held.port,
            coordinates(py, &held.time)?,
            seconds,
            held.made.text(),
        ))?;
    }
    Ok(list)
}

/// Returns the inputs that `main` drives, the runs of Python logic, and the size of operators' state, in rows,
/// and bytes in memory and on disk.
fn operators<'py>(
    py: Python<'py>,
    notes: &Notes,
    snapshot: &Snapshot,
    addresses: &Addresses,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>, Bound<'py, PyList>)> {
    let (inputs, ran) = (PyList::empty(py), PyList::empty(py));
    let kept = PyList::empty(py);
    for (id, address) in addresses {
        let Some(known) = notes.operator(*id) else {
            continue;
        };
        let address = PyTuple::new(py, address)?;
        if known.is_input()
            && let Some(state) = snapshot.operator(*id)
        {
            for (time, _) in state.outputs.iter().flat_map(|output| &output.here) {
                inputs.append((&address, coordinates(py, time)?))?;
            }
        }
        if let Some((rows, bytes, on_disk)) = known.size(py) {
            kept.append((&address, rows, bytes, on_disk))?;
        }
        let (count, seconds) = known.ran();
        if count > 0 {
            let asked = known.asked.lock();
            let (thread, name) = match &*asked {
                Some((thread, name)) => (Some(*thread), name.clone()),
                None => (None, String::new()),
            };
            drop(asked);
            ran.append((address, count, seconds, thread, name))?;
        }
    }
    Ok((inputs, ran, kept))
}

fn coordinates<'py>(py: Python<'py>, time: &Point) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, time.coords())
}

/// One dataflow, flat: its scopes, operators and edges, and the counts in them.
struct Form<'py, 'a> {
    py: Python<'py>,
    notes: &'a Notes,
    addresses: &'a mut Addresses,
    scopes: Bound<'py, PyList>,
    operators: Bound<'py, PyList>,
    edges: Bound<'py, PyList>,
    pointstamps: Bound<'py, PyList>,
    queued: Bound<'py, PyList>,
    held: Bound<'py, PyList>,
    paused: Bound<'py, PyList>,
    frontiers: Bound<'py, PyList>,
}

impl<'py, 'a> Form<'py, 'a> {
    fn new(py: Python<'py>, notes: &'a Notes, addresses: &'a mut Addresses) -> Self {
        Form {
            py,
            notes,
            addresses,
            scopes: PyList::empty(py),
            operators: PyList::empty(py),
            edges: PyList::empty(py),
            pointstamps: PyList::empty(py),
            queued: PyList::empty(py),
            held: PyList::empty(py),
            paused: PyList::empty(py),
            frontiers: PyList::empty(py),
        }
    }

    fn dataflow(mut self, root: &ScopeState) -> PyResult<Bound<'py, PyDict>> {
        self.scope(root, 0)?;
        let graph = PyDict::new(self.py);
        graph.set_item("scopes", self.scopes)?;
        graph.set_item("operators", self.operators)?;
        graph.set_item("edges", self.edges)?;
        let dataflow = PyDict::new(self.py);
        dataflow.set_item("graph", graph)?;
        dataflow.set_item("pointstamps", self.pointstamps)?;
        dataflow.set_item("queued", self.queued)?;
        dataflow.set_item("held", self.held)?;
        dataflow.set_item("paused", self.paused)?;
        dataflow.set_item("frontiers", self.frontiers)?;
        Ok(dataflow)
    }

    fn made(&self, id: OperatorId) -> String {
        let noted = self.notes.operator(id);
        noted.map_or_else(String::new, |noted| noted.made.text())
    }

    fn scope(&mut self, scope: &ScopeState, outputs: usize) -> PyResult<()> {
        let py = self.py;
        let address = PyTuple::new(py, &scope.address)?;
        self.addresses.insert(scope.id, scope.address.clone());
        let made = self.made(scope.id);
        let inputs = scope.inputs.len();
        self.scopes
            .append((&address, &scope.name, scope.dims, inputs, outputs, made))?;
        let steps = steps(&scope.hops, scope.dims);
        for (i, operator) in scope.operators.iter().enumerate() {
            self.addresses.insert(operator.id, operator.address.clone());
            let at = PyTuple::new(py, &operator.address)?;
            for (port, input) in operator.inputs.iter().enumerate() {
                for (time, count) in &input.pointstamps {
                    let time = coordinates(py, time)?;
                    self.pointstamps.append((&at, false, port, time, count))?;
                }
                let mut waiting: FxHashMap<&Point, usize> = FxHashMap::default();
                for (time, records) in &input.waiting {
                    *waiting.entry(time).or_default() += records;
                }
                for (time, records) in waiting {
                    let time = coordinates(py, time)?;
                    self.queued.append((&at, port, time, records))?;
                }
                if input.remote {
                    // Of other workers' batches it is known that there are some.
                    self.queued.append((&at, port, py.None(), 0))?;
                }
            }
            for (port, output) in operator.outputs.iter().enumerate() {
                let frontier = PyList::empty(py);
                for time in &output.frontier {
                    frontier.append(coordinates(py, time)?)?;
                }
                self.frontiers.append((&at, port, frontier))?;
                for (time, count) in &output.pointstamps {
                    let time = coordinates(py, time)?;
                    self.pointstamps.append((&at, true, port, time, count))?;
                }
                for (time, count) in &output.here {
                    let time = coordinates(py, time)?;
                    self.held.append((&at, port, time, count))?;
                }
            }
            if operator.held_back {
                self.paused.append(&at)?;
            }
            if let Some(inner) = &operator.scope {
                self.scope(inner, operator.outputs.len())?;
                continue;
            }
            let shape = (operator.inputs.len(), operator.outputs.len());
            let made = self.made(operator.id);
            let node = steps
                .get(&(i + 1))
                .map_or(&[][..], |steps| steps.as_slice());
            let list = PyList::empty(py);
            for (input, output, keep, increments) in node {
                let increments = PyTuple::new(py, *increments)?;
                list.append((*input, *output, *keep, increments))?;
            }
            self.operators
                .append((at, &operator.name, shape.0, shape.1, made, list))?;
        }
        for edge in &scope.edges {
            self.edges.append((
                &address,
                edge.source.node,
                edge.source.port,
                edge.target.node,
                edge.target.port,
                edge.pact,
            ))?;
        }
        Ok(())
    }
}

type Steps<'a> = FxHashMap<usize, Vec<(usize, usize, usize, &'a [u64])>>;

const ZEROS: [u64; 256] = [0; 256];

/// By node, the effect of operators on times: from input to output, the coordinates that are kept and the
/// increments.
fn steps(hops: &[(Location, Location, Option<Summary>)], dims: usize) -> Steps<'_> {
    let mut steps = Steps::default();
    for (from, to, summary) in hops {
        let (Port::Target(input), Port::Source(output)) = (from.port, to.port) else {
            continue; // along an edge
        };
        let (keep, increments) = match summary {
            Some(summary) => (summary.keep(), summary.increments()),
            None => (dims, &ZEROS[..dims]),
        };
        let node = steps.entry(from.node).or_default();
        node.push((input, output, keep, increments));
    }
    steps
}
