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
use pointstamp_engine::port::MessageCapability;
use pointstamp_engine::stream::Stream as EngineStream;
use pointstamp_operators::{Content, Error, Input, Kind, Output, Timed, Times, Typed};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::batch::{Batch, MAX_BATCH, Records, copy, timed_from_py, timed_to_py};
use crate::errors::{GraphError, IntoException};
use crate::forks::{self, Process};
use crate::gil::{Held, attached};
use crate::iterables::Giver;
use crate::kinds::StageKind;
use crate::raised::Raised;
use crate::time::point_to_py;
use crate::tools::{FlatMap, Tools};

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
    output: Option<Output<Batch>>,
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
    kind: Kind,
}

/// The kind of batches that a stage makes of those of a kind.
///
/// # Errors
///
/// `GraphError` for a kind that the stage does not read.
fn made_of(stage: StageKind, found: Kind, dims: usize) -> PyResult<Kind> {
    let (expected, made) = match (stage, found) {
        (StageKind::MapTimed, Kind::Host) if dims != 1 => {
            return Err(GraphError::new_err(format!(
                "records have times of their own where times are one number, and these have {dims} coordinates"
            )));
        }
        (StageKind::MapTimed, Kind::Host) => (Kind::Host, Kind::Timed),
        (StageKind::MapTimed, _) => (Kind::Timed, Kind::Timed),
        _ => (Kind::Host, Kind::Host),
    };
    if expected == found {
        Ok(made)
    } else {
        Err(Error::WrongKind { expected, found }.into_exception())
    }
}

impl Chain {
    /// A chain that begins with one stage on a stream; returns the parts of its result.
    pub(crate) fn begin(
        stream: &EngineStream<Batch>,
        found: Kind,
        kind: StageKind,
        name: &str,
        function: Py<PyAny>,
        parts: usize,
    ) -> PyResult<Vec<Tap>> {
        let made = made_of(kind, found, stream.scope().dims())?;
        let stream = Typed::assume(stream.clone());
        let builder = stream
            .scope()
            .operator(name)
            .map_err(IntoException::into_exception)?;
        let input =
            Input::new(&builder, &stream, Pact::Pipeline).map_err(IntoException::into_exception)?;
        let stages: Rc<RefCell<Vec<Stage>>> = Rc::default();
        let streams = RefCell::default();
        let chain = Rc::new(Chain {
            builder: builder.clone(),
            stages: Rc::downgrade(&stages),
            streams,
        });
        let taps = chain.add(&mut stages.borrow_mut(), kind, made, name, function, parts);
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
        made: Kind,
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
                kind: made,
            })
            .collect()
    }
}

impl Tap {
    /// The kind of the part's batches.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

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
        let made = made_of(kind, self.kind, self.chain.builder.scope().dims())?;
        let stages = self.chain.stages()?;
        let mut stages = stages.borrow_mut();
        let taps = (self.chain).add(&mut stages, kind, made, name, function, parts);
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
        stages.borrow_mut()[self.stage].parts[self.part].output = Some(Output::assume(output));
        self.chain
            .streams
            .borrow_mut()
            .insert((self.stage, self.part), stream.clone());
        Ok(stream)
    }
}

fn run(input: &Input<Batch>, stages: &[Stage]) -> Result<(), BoxError> {
    if !input.port().has_messages() {
        return Ok(());
    }
    attached(|py| {
        let tools = Tools::get(py).map_err(Raised::here)?;
        let mut tasks = Vec::new();
        while let Some((capability, batch)) = input.next()? {
            let message = Message {
                py,
                tools,
                stages,
                capability: &capability,
            };
            let mut next = Some(Task::Run(0, batch));
            while let Some(task) = next.take().or_else(|| tasks.pop()) {
                next = message.run(task, &mut tasks)?;
            }
        }
        Ok(())
    })
}

/// Work on a message. What is left to do is a stack and no recursion, as chains may be of any length; the stages
/// after one run before its siblings.
enum Task<'py> {
    /// A stage reads a batch.
    Run(usize, Batch),
    /// A stage goes on with what its function made of a batch: `flat_map`.
    Continue(usize, FlatMap<'py>),
    /// A part of a stage's result goes to those who read it.
    Pass(usize, usize, Batch),
    /// A part of a stage's result leaves the operator.
    Send(usize, usize, Batch),
}

/// The task that comes next.
type Next<'py> = Result<Option<Task<'py>>, BoxError>;

/// The message that is worked on.
struct Message<'a, 'py> {
    py: Python<'py>,
    tools: &'a Tools,
    stages: &'a [Stage],
    capability: &'a MessageCapability,
}

impl<'py> Message<'_, 'py> {
    /// Does a task; returns the one that comes next, if one follows from it, and adds the others.
    fn run(&self, task: Task<'py>, tasks: &mut Vec<Task<'py>>) -> Next<'py> {
        match task {
            Task::Run(stage, batch) => self.run_stage(stage, batch, tasks),
            Task::Continue(stage, records) => self.run_on(stage, records, tasks),
            Task::Pass(stage, part, batch) => Ok(self.pass_on(stage, part, batch, tasks)),
            Task::Send(stage, part, batch) => {
                let output = self.stages[stage].parts[part].output.as_ref();
                let output = output.expect("a batch is sent where there is an output");
                let send = |batch| output.send(self.capability, batch);
                match batch {
                    Batch::Timed(timed) => {
                        timed.in_bounds(|timed| send(timed.into_batch()))?;
                    }
                    other => Records::from_batch(other)?
                        .in_bounds(self.py, |records| send(records.into_batch()))?,
                }
                Ok(None)
            }
        }
    }

    fn run_stage(&self, index: usize, batch: Batch, tasks: &mut Vec<Task<'py>>) -> Next<'py> {
        let (py, stage) = (self.py, &self.stages[index]);
        let raised = |error| Raised::by(&stage.name, error);
        let process = Process::this();
        if stage.kind == StageKind::MapTimed {
            let timed = self.timed(batch)?;
            let made = stage.apply_timed(py, &timed).map_err(raised)?;
            if !process.is_this() {
                forks::end(py, None);
            }
            return Ok(self.pass_on(index, 0, made.into_batch(), tasks));
        }
        let batch = Records::from_batch(batch)?;
        if stage.kind == StageKind::FlatMap {
            let function = stage.function.get().bind(py);
            let records = self.tools.flat_map(&stage.name, function, batch.list(py));
            return self.run_on(index, records.map_err(raised)?, tasks);
        }
        let time = match stage.kind {
            StageKind::InspectTime
            | StageKind::InspectBatch
            | StageKind::Branch
            | StageKind::BranchWhen => {
                Some(point_to_py(py, self.capability.time()).map_err(raised)?)
            }
            _ => None,
        };
        let parts = stage
            .apply(py, self.tools, time.as_ref(), batch)
            .map_err(raised)?;
        if !process.is_this() {
            forks::end(py, None); // before what follows sees the records a second time
        }
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else {
            return Ok(None);
        };
        for (part, batch) in parts.enumerate().rev() {
            tasks.push(Task::Pass(index, part + 1, batch.into_batch()));
        }
        Ok(self.pass_on(index, 0, first.into_batch(), tasks))
    }

    /// A batch as one of records at times of their own: other records are all at the message's time.
    fn timed(&self, batch: Batch) -> Result<Timed, BoxError> {
        if let Batch::Timed(timed) = batch {
            return Ok(timed);
        }
        let records = Records::from_batch(batch)?;
        let time = self.capability.time().last().unwrap_or(0);
        Ok(Timed::new(Times::All(time), None, records.into_column())?)
    }

    /// Passes on a bounded batch of records of which each was made into many, and leaves the rest for later.
    fn run_on(&self, index: usize, records: FlatMap<'py>, tasks: &mut Vec<Task<'py>>) -> Next<'py> {
        let chunk = records.take(self.tools, MAX_BATCH);
        let chunk = chunk.map_err(|error| Raised::by(&self.stages[index].name, error))?;
        if chunk.len() == MAX_BATCH {
            tasks.push(Task::Continue(index, records));
        }
        Ok(self.pass_on(index, 0, Records::new(chunk).into_batch(), tasks))
    }

    /// Hands a part of the result to the stages that read it, and after them to the output.
    fn pass_on(
        &self,
        index: usize,
        part: usize,
        batch: Batch,
        tasks: &mut Vec<Task<'py>>,
    ) -> Option<Task<'py>> {
        if batch.is_empty() {
            return None;
        }
        let readers = &self.stages[index].parts[part];
        // The usual cases: one reader.
        match (&readers.output, &*readers.stages) {
            (None, &[next]) => return Some(Task::Run(next, batch)),
            (Some(_), []) => return Some(Task::Send(index, part, batch)),
            _ => {}
        }
        let top = tasks.len();
        let others = if readers.output.is_some() {
            &*readers.stages
        } else {
            let others = readers.stages.split_last();
            others.map_or(&[][..], |(_, others)| others)
        };
        tasks.extend((others.iter()).map(|&next| Task::Run(next, batch.clone())));
        // The last reader gets the batch itself: unless another owner shares it, it need not be copied.
        if readers.output.is_some() {
            tasks.push(Task::Send(index, part, batch));
        } else if let Some(&last) = readers.stages.last() {
            tasks.push(Task::Run(last, batch));
        }
        tasks[top..].reverse();
        None
    }
}

impl Stage {
    /// The columns that the function makes of a batch's.
    fn apply_timed(&self, py: Python<'_>, timed: &Timed) -> PyResult<Timed> {
        let columns = timed_to_py(py, timed)?;
        let made = self.function.get().bind(py).call1(columns)?;
        timed_from_py(made.cast::<PyTuple>()?, Some(timed))
    }

    /// The parts of the result for a batch.
    fn apply<'py>(
        &self,
        py: Python<'py>,
        tools: &Tools,
        time: Option<&Bound<'py, PyAny>>,
        batch: Records,
    ) -> PyResult<Vec<Records>> {
        let list = batch.list(py);
        let function = self.function.get().bind(py);
        let time = || time.expect("the kinds that use the time were given it");
        let lists = match self.kind {
            StageKind::Map => vec![tools.map(function, list)?],
            StageKind::Filter => vec![tools.filter(function, list)?],
            StageKind::Inspect | StageKind::MapInPlace => {
                tools.for_each(function, list)?;
                return Ok(vec![batch]);
            }
            StageKind::InspectTime => {
                tools.for_each_with(function, time(), list)?;
                return Ok(vec![batch]);
            }
            StageKind::InspectBatch => {
                let time = time();
                if self.parts[0].are_none() {
                    // No other stage reads the batch: the function may have it as it is.
                    function.call1((time, batch.into_list(py)))?;
                    return Ok(Vec::new());
                }
                function.call1((time, copy(list)))?;
                return Ok(vec![batch]);
            }
            StageKind::BranchWhen => {
                let empty = Records::new(PyList::empty(py));
                let yes = function.call1((time(),))?.is_truthy()?;
                return Ok(if yes {
                    vec![empty, batch]
                } else {
                    vec![batch, empty]
                });
            }
            StageKind::MapBatch => {
                let results = function.call1((batch.into_list(py),))?;
                Giver::Function(&self.name).check(&results)?;
                vec![tools.list(&results)?]
            }
            StageKind::TryMap => try_map(function, list)?,
            StageKind::OkErr => ok_err(&tools.map(function, list)?)?,
            StageKind::Partition => partition(self.parts.len(), &tools.map(function, list)?)?,
            StageKind::Branch => {
                let flags = tools.map_with(function, time(), list)?;
                let (no, yes) = tools.split(list, &flags)?;
                vec![no, yes]
            }
            StageKind::FlatMap => unreachable!("flat_map runs in pieces"),
            StageKind::MapTimed => unreachable!("it makes columns of columns"),
        };
        Ok(lists.into_iter().map(Records::new).collect())
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
