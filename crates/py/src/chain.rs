//! Chains of functions over records, run as one operator.
//!
//! A function applied to a stream becomes a *stage*. Stages that follow one another, with branches, form a tree in
//! one operator: it attaches once for all the batches that wait, and runs each stage over a whole batch with
//! Python's own loops. A stage gets an output of the operator only when something other than a stage reads it, so
//! a chain of maps and filters costs one operator, and no function runs twice however many read its result.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::payload::Payload;
use pointstamp_engine::port::{InputPort, MessageCapability, OutputPort, SendError};
use pointstamp_engine::stream::Stream as EngineStream;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::batch::{Batch, MAX_BATCH, copy};
use crate::errors::{GraphError, IntoException};
use crate::forks::{self, Process};
use crate::gil::{Held, attached};
use crate::iterables::Giver;
use crate::kinds::StageKind;
use crate::raised::Raised;
use crate::time::point_to_py;
use crate::tools::Tools;

/// One function of a chain.
struct Stage {
    kind: StageKind,
    name: String,
    function: Held,
    /// For each part of the result, who reads it.
    parts: Vec<Readers>,
}

#[derive(Default)]
struct Readers {
    stages: Vec<usize>,
    output: Option<OutputPort<Batch>>,
}

impl Readers {
    fn are_none(&self) -> bool {
        self.stages.is_empty() && self.output.is_none()
    }
}

/// The operator that runs a tree of stages.
pub(crate) struct Chain {
    builder: OperatorBuilder<Batch>,
    /// The operator's logic owns them, so that they go when it does: a stage's function may hold a stream of this
    /// chain.
    stages: Weak<RefCell<Vec<Stage>>>,
    /// The streams of the parts that have an output, by stage and part.
    streams: RefCell<BTreeMap<(usize, usize), EngineStream<Batch>>>,
}

/// A part of a stage's result: a stream that may have no output yet.
#[derive(Clone)]
pub(crate) struct Tap {
    chain: Rc<Chain>,
    stage: usize,
    part: usize,
}

impl Chain {
    /// A chain that begins with one stage on a stream; returns the parts of its result.
    pub(crate) fn begin(
        stream: &EngineStream<Batch>,
        kind: StageKind,
        name: &str,
        function: Py<PyAny>,
        parts: usize,
    ) -> PyResult<Vec<Tap>> {
        let builder = stream
            .scope()
            .operator(name)
            .map_err(IntoException::into_exception)?;
        let input = builder
            .new_input(stream, Pact::Pipeline)
            .map_err(IntoException::into_exception)?;
        let stages: Rc<RefCell<Vec<Stage>>> = Rc::default();
        let streams = RefCell::default();
        let chain = Rc::new(Chain {
            builder: builder.clone(),
            stages: Rc::downgrade(&stages),
            streams,
        });
        let taps = chain.add(&mut stages.borrow_mut(), kind, name, function, parts);
        builder.build(move || {
            run(&input, &stages.borrow())?;
            Ok(false)
        });
        Ok(taps)
    }

    /// The stages, until the dataflow ends.
    fn stages(&self) -> PyResult<Rc<RefCell<Vec<Stage>>>> {
        self.stages
            .upgrade()
            .ok_or_else(|| GraphError::new_err("the operator of this stream is gone"))
    }

    fn add(
        self: &Rc<Self>,
        stages: &mut Vec<Stage>,
        kind: StageKind,
        name: &str,
        function: Py<PyAny>,
        parts: usize,
    ) -> Vec<Tap> {
        let stage = stages.len();
        stages.push(Stage {
            kind,
            name: name.to_owned(),
            function: Held::new(function),
            parts: (0..parts).map(|_| Readers::default()).collect(),
        });
        (0..parts)
            .map(|part| Tap {
                chain: Rc::clone(self),
                stage,
                part,
            })
            .collect()
    }
}

impl Tap {
    /// Adds a stage that reads this part; returns the parts of its result.
    pub(crate) fn then(
        &self,
        kind: StageKind,
        name: &str,
        function: Py<PyAny>,
        parts: usize,
    ) -> PyResult<Vec<Tap>> {
        // Refused as an operator of its own would be, when the scope is no longer being built.
        self.chain
            .builder
            .check_building()
            .map_err(IntoException::into_exception)?;
        let stages = self.chain.stages()?;
        let mut stages = stages.borrow_mut();
        let taps = self.chain.add(&mut stages, kind, name, function, parts);
        let next = stages.len() - 1;
        stages[self.stage].parts[self.part].stages.push(next);
        drop(stages);
        self.chain
            .builder
            .rename(&format!("{} > {name}", self.chain.builder.name()));
        Ok(taps)
    }

    /// The stream of this part, which gets an output of its own now if it has none.
    pub(crate) fn stream(&self) -> PyResult<EngineStream<Batch>> {
        if let Some(stream) = self.chain.streams.borrow().get(&(self.stage, self.part)) {
            return Ok(stream.clone());
        }
        // Not refused where the scope's block has ended: the stream may leave it then.
        let (output, stream) = self
            .chain
            .builder
            .new_late_output()
            .map_err(IntoException::into_exception)?;
        let stages = self.chain.stages()?;
        stages.borrow_mut()[self.stage].parts[self.part].output = Some(output);
        self.chain
            .streams
            .borrow_mut()
            .insert((self.stage, self.part), stream.clone());
        Ok(stream)
    }
}

fn run(input: &InputPort<Batch>, stages: &[Stage]) -> Result<(), BoxError> {
    if !input.has_messages() {
        return Ok(());
    }
    attached(|py| {
        while let Some((capability, batch)) = input.next()? {
            stages[0].run(py, stages, &capability, batch)?;
        }
        Ok(())
    })
}

impl Stage {
    /// Runs the stage and those after it on a batch.
    fn run(
        &self,
        py: Python<'_>,
        stages: &[Stage],
        capability: &MessageCapability,
        batch: Batch,
    ) -> Result<(), BoxError> {
        let raised = |error| Raised::by(&self.name, error);
        let process = Process::this();
        let tools = Tools::get(py).map_err(raised)?;
        if self.kind == StageKind::FlatMap {
            // Each record may become many: what follows sees bounded batches.
            let records = tools
                .flat_map(&self.name, self.function.get().bind(py), &batch.as_list(py))
                .map_err(raised)?;
            loop {
                let chunk = records.take(tools, MAX_BATCH).map_err(raised)?;
                let len = chunk.len();
                self.pass_on(py, stages, capability, 0, Batch::records(chunk))?;
                if len < MAX_BATCH {
                    return Ok(());
                }
            }
        }
        let time = match self.kind {
            StageKind::InspectTime
            | StageKind::InspectBatch
            | StageKind::Branch
            | StageKind::BranchWhen => Some(point_to_py(py, capability.time()).map_err(raised)?),
            _ => None,
        };
        let parts = self
            .apply(py, tools, time.as_ref(), batch)
            .map_err(raised)?;
        if !process.is_this() {
            forks::end(py, None); // before what follows sees the records a second time
        }
        for (part, batch) in parts.into_iter().enumerate() {
            self.pass_on(py, stages, capability, part, batch)?;
        }
        Ok(())
    }

    /// Hands a part of the result to the stages that read it, and to the output.
    fn pass_on(
        &self,
        py: Python<'_>,
        stages: &[Stage],
        capability: &MessageCapability,
        part: usize,
        batch: Batch,
    ) -> Result<(), BoxError> {
        if batch.is_empty() {
            return Ok(());
        }
        let readers = &self.parts[part];
        // The last reader gets the batch itself: unless another owner shares it, it need not be copied.
        let Some(output) = &readers.output else {
            let Some((&last, others)) = readers.stages.split_last() else {
                return Ok(());
            };
            for &next in others {
                stages[next].run(py, stages, capability, batch.clone())?;
            }
            return stages[last].run(py, stages, capability, batch);
        };
        for &next in &readers.stages {
            stages[next].run(py, stages, capability, batch.clone())?;
        }
        batch.in_bounds(py, |batch| {
            output
                .send(capability, batch)
                .map_err(SendError::into_cause)
        })
    }

    /// The parts of the result for a batch.
    fn apply<'py>(
        &self,
        py: Python<'py>,
        tools: &Tools,
        time: Option<&Bound<'py, PyAny>>,
        batch: Batch,
    ) -> PyResult<Vec<Batch>> {
        let list = batch.as_list(py);
        let function = self.function.get().bind(py);
        let time = || time.expect("the kinds that use the time were given it");
        let lists = match self.kind {
            StageKind::Map => vec![tools.map(function, &list)?],
            StageKind::Filter => vec![tools.filter(function, &list)?],
            StageKind::Inspect | StageKind::MapInPlace => {
                tools.for_each(function, &list)?;
                return Ok(vec![batch]);
            }
            StageKind::InspectTime => {
                tools.for_each_with(function, time(), &list)?;
                return Ok(vec![batch]);
            }
            StageKind::InspectBatch => {
                let time = time();
                if self.parts[0].are_none() {
                    // No other stage reads the batch: the function may have it as it is.
                    drop(list);
                    function.call1((time, batch.into_list(py)))?;
                    return Ok(Vec::new());
                }
                function.call1((time, copy(&list)))?;
                return Ok(vec![batch]);
            }
            StageKind::BranchWhen => {
                let empty = Batch::records(PyList::empty(py));
                let yes = function.call1((time(),))?.is_truthy()?;
                return Ok(if yes {
                    vec![empty, batch]
                } else {
                    vec![batch, empty]
                });
            }
            StageKind::MapBatch => {
                drop(list);
                let results = function.call1((batch.into_list(py),))?;
                Giver::Function(&self.name).check(&results)?;
                vec![tools.list(&results)?]
            }
            StageKind::TryMap => try_map(function, &list)?,
            StageKind::OkErr => ok_err(&tools.map(function, &list)?)?,
            StageKind::Partition => partition(self.parts.len(), &tools.map(function, &list)?)?,
            StageKind::Branch => {
                let flags = tools.map_with(function, time(), &list)?;
                let (no, yes) = tools.split(&list, &flags)?;
                vec![no, yes]
            }
            StageKind::FlatMap => unreachable!("flat_map runs in pieces"),
        };
        Ok(lists.into_iter().map(Batch::records).collect())
    }
}

/// Results, and the records that raised with their exceptions. What is not an `Exception` is not caught.
fn try_map<'py>(
    function: &Bound<'py, PyAny>,
    list: &Bound<'py, PyList>,
) -> PyResult<Vec<Bound<'py, PyList>>> {
    let py = list.py();
    let (results, failures) = (PyList::empty(py), PyList::empty(py));
    for record in list.iter() {
        match function.call1((&record,)) {
            Ok(result) => results.append(result)?,
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyException>(py) => {
                failures.append((record, error.into_value(py)))?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(vec![results, failures])
}

/// Splits `(is_ok, value)` results into the values of both kinds.
fn ok_err<'py>(results: &Bound<'py, PyList>) -> PyResult<Vec<Bound<'py, PyList>>> {
    let (oks, errors) = (PyList::empty(results.py()), PyList::empty(results.py()));
    for result in results.iter() {
        let (is_ok, value) = pair(&result, "ok_err", "(is_ok, value)")?;
        if is_ok.is_truthy()? {
            oks.append(value)?;
        } else {
            errors.append(value)?;
        }
    }
    Ok(vec![oks, errors])
}

/// Splits `(part, value)` results into the values of each part.
fn partition<'py>(parts: usize, results: &Bound<'py, PyList>) -> PyResult<Vec<Bound<'py, PyList>>> {
    let lists: Vec<_> = (0..parts).map(|_| PyList::empty(results.py())).collect();
    for result in results.iter() {
        let (part, value) = pair(&result, "partition", "(part, record)")?;
        let index = part.extract::<usize>().ok().filter(|&index| index < parts);
        let Some(index) = index else {
            return Err(PyIndexError::new_err(format!(
                "partition has {parts} parts, numbered from 0, and its function returned part {}",
                part.repr()?
            )));
        };
        lists[index].append(value)?;
    }
    Ok(lists)
}

fn pair<'py>(
    result: &Bound<'py, PyAny>,
    what: &str,
    expected: &str,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    match result.cast::<PyTuple>() {
        Ok(tuple) if tuple.len() == 2 => Ok((tuple.get_item(0)?, tuple.get_item(1)?)),
        _ => Err(PyTypeError::new_err(format!(
            "the function of {what} must return {expected}, and returned {}",
            result.repr()?
        ))),
    }
}
