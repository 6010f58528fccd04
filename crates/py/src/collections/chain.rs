//! Functions over the records of a collection, run as one operator.
//!
//! Functions that follow one another, with branches, form a tree of stages in one operator, as `crate::chain` has it for
//! streams. The operator attaches once for all batches that wait; objects are made of rows once, however many functions
//! see them, and rows are made of objects where another operator reads them. What a filter passes on is copied as bytes
//! where no function before it has changed it.
//!
//! A function is called for an update, not for a record that is there: one that is removed comes with a negative diff, and
//! must give what it gave when the record was inserted.

use crate::collections::values::ToPython;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::MessageCapability;
use pointstamp_engine::stream::Stream as EngineStream;
use pointstamp_operators::collections::{Builder, Updates, send};
use pointstamp_operators::{Input, Output, Typed};
use pointstamp_rows::RowBuf;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};

use super::values::FromPython;
use crate::batch::{Batch, MAX_BATCH};
use crate::errors::{GraphError, IntoException};
use crate::gil::{Held, attached};
use crate::iterables::{Giver, records_of};
use crate::kinds::CollectionStageKind;
use crate::raised::Raised;
use crate::time::point_to_py;
use crate::tools::Tools;

/// One function, and who reads what it makes.
struct Stage {
    kind: CollectionStageKind,
    name: String,
    function: Held,
    stages: Vec<usize>,
    output: Option<Output<Updates>>,
}

/// The operator that runs a tree of stages.
pub(crate) struct Chain {
    builder: OperatorBuilder<Batch>,
    /// The operator's logic owns them, so that they go when it does.
    stages: Weak<RefCell<Vec<Stage>>>,
    streams: RefCell<BTreeMap<usize, EngineStream<Batch>>>,
}

/// What a stage makes: a stream that may have no output yet.
#[derive(Clone)]
pub(crate) struct Tap {
    chain: Rc<Chain>,
    stage: usize,
}

impl Chain {
    /// A chain that begins with one stage on a stream.
    pub(crate) fn begin(
        stream: &Typed<Updates>,
        kind: CollectionStageKind,
        name: &str,
        function: Py<PyAny>,
    ) -> PyResult<Tap> {
        let refused = IntoException::into_exception;
        let builder = stream.scope().operator(name).map_err(refused)?;
        let input = Input::new(&builder, stream, Pact::Pipeline).map_err(refused)?;
        let stages: Rc<RefCell<Vec<Stage>>> = Rc::default();
        let chain = Rc::new(Chain {
            builder: builder.clone(),
            stages: Rc::downgrade(&stages),
            streams: RefCell::default(),
        });
        let tap = chain.add(&mut stages.borrow_mut(), kind, name, function);
        builder.build(move || {
            run(&input, &stages.borrow())?;
            Ok(false)
        });
        Ok(tap)
    }

    fn stages(&self) -> PyResult<Rc<RefCell<Vec<Stage>>>> {
        let stages = self.stages.upgrade();
        stages.ok_or_else(|| GraphError::new_err("the operator of this collection is gone"))
    }

    fn add(
        self: &Rc<Self>,
        stages: &mut Vec<Stage>,
        kind: CollectionStageKind,
        name: &str,
        function: Py<PyAny>,
    ) -> Tap {
        stages.push(Stage {
            kind,
            name: name.to_owned(),
            function: Held::new(function),
            stages: Vec::new(),
            output: None,
        });
        Tap {
            chain: Rc::clone(self),
            stage: stages.len() - 1,
        }
    }
}

impl Tap {
    /// Adds a stage that reads this one.
    pub(crate) fn then(
        &self,
        kind: CollectionStageKind,
        name: &str,
        function: Py<PyAny>,
    ) -> PyResult<Tap> {
        // Refused as an operator of its own would be, when the scope is no longer being built.
        let refused = IntoException::into_exception;
        self.chain.builder.check_building().map_err(refused)?;
        let stages = self.chain.stages()?;
        let mut stages = stages.borrow_mut();
        let tap = self.chain.add(&mut stages, kind, name, function);
        stages[self.stage].stages.push(tap.stage);
        drop(stages);
        let long = format!("{} > {name}", self.chain.builder.name());
        self.chain.builder.rename(&long);
        Ok(tap)
    }

    /// The stream of this stage, which gets an output now if it has none.
    pub(crate) fn stream(&self) -> PyResult<EngineStream<Batch>> {
        if let Some(stream) = self.chain.streams.borrow().get(&self.stage) {
            return Ok(stream.clone());
        }
        let (output, stream) = self
            .chain
            .builder
            .new_late_output()
            .map_err(IntoException::into_exception)?;
        let stages = self.chain.stages()?;
        stages.borrow_mut()[self.stage].output = Some(Output::assume(output));
        let mut streams = self.chain.streams.borrow_mut();
        streams.insert(self.stage, stream.clone());
        Ok(stream)
    }
}

fn run(input: &Input<Updates>, stages: &[Stage]) -> Result<(), BoxError> {
    if !input.port().has_messages() {
        return Ok(());
    }
    attached(|py| {
        let tools = Tools::get(py).map_err(Raised::here)?;
        let mut tasks = Vec::new();
        while let Some((capability, updates)) = input.next()? {
            let message = Message {
                py,
                tools,
                stages,
                capability: &capability,
                updates: &updates,
            };
            for start in (0..updates.len()).step_by(MAX_BATCH) {
                let from: Vec<u32> = (start..updates.len().min(start + MAX_BATCH))
                    .map(index)
                    .collect();
                let records = from
                    .iter()
                    .map(|&index| updates.get(index as usize).row.decode(py))
                    .collect::<PyResult<Vec<_>>>()
                    .map_err(Raised::here)?;
                let list = PyList::new(py, records).map_err(Raised::here)?;
                let plain = true;
                let mut next = Some(Task::Run(0, Rc::new(Work { list, from, plain })));
                while let Some(task) = next.take().or_else(|| tasks.pop()) {
                    next = message.run(task, &mut tasks)?;
                }
            }
        }
        Ok(())
    })
}

#[allow(clippy::cast_possible_truncation, reason = "batches are small")]
fn index(at: usize) -> u32 {
    at as u32
}

/// Records on their way through the stages, and of which update each is made.
struct Work<'py> {
    list: Bound<'py, PyList>,
    from: Vec<u32>,
    /// Whether they are the updates' own records.
    plain: bool,
}

/// What is left to do for a message: a stack and no recursion, as chains may be of any length. The stages after one
/// run before its siblings.
enum Task<'py> {
    /// A stage reads records.
    Run(usize, Rc<Work<'py>>),
    /// A stage goes on with what its function made of records: `flat_map`.
    Continue(usize, FlatMap<'py>),
    /// A stage's result leaves the operator.
    Send(usize, Rc<Work<'py>>),
}

/// The iterables that a function made of records, read in bounded pieces.
struct FlatMap<'py> {
    /// Each with the update that it is of; the next is the last.
    iterables: Vec<(Bound<'py, PyAny>, u32)>,
    /// The one that is being read.
    current: Option<(Bound<'py, PyIterator>, u32)>,
}

impl<'py> FlatMap<'py> {
    /// The next records, fewer than `MAX_BATCH` of them at the end.
    fn take(&mut self, py: Python<'py>, operator: &str) -> PyResult<Work<'py>> {
        let (list, mut from) = (PyList::empty(py), Vec::new());
        while from.len() < MAX_BATCH {
            let Some((records, index)) = &mut self.current else {
                let Some((iterable, index)) = self.iterables.pop() else {
                    break;
                };
                self.current = Some((records_of(Giver::Function(operator), &iterable)?, index));
                continue;
            };
            match records.next() {
                Some(record) => {
                    list.append(record?)?;
                    from.push(*index);
                }
                None => self.current = None,
            }
        }
        let plain = false;
        Ok(Work { list, from, plain })
    }
}

/// The task that comes next.
type Next<'py> = Result<Option<Task<'py>>, BoxError>;

/// The message that is worked on.
struct Message<'a, 'py> {
    py: Python<'py>,
    tools: &'a Tools,
    stages: &'a [Stage],
    capability: &'a MessageCapability,
    updates: &'a Updates,
}

impl<'py> Message<'_, 'py> {
    /// Does a task; returns the one that comes next, if one follows from it, and adds the others.
    fn run(&self, task: Task<'py>, tasks: &mut Vec<Task<'py>>) -> Next<'py> {
        match task {
            Task::Run(stage, work) => self.run_stage(stage, &work, tasks),
            Task::Continue(stage, records) => self.run_on(stage, records, tasks),
            Task::Send(stage, work) => {
                self.send(&self.stages[stage], &work)?;
                Ok(None)
            }
        }
    }

    fn run_stage(
        &self,
        index: usize,
        work: &Rc<Work<'py>>,
        tasks: &mut Vec<Task<'py>>,
    ) -> Next<'py> {
        let (py, stage) = (self.py, &self.stages[index]);
        let raised = |error| Raised::by(&stage.name, error);
        let function = stage.function.get().bind(py);
        match stage.kind {
            CollectionStageKind::Map => {
                let list = self.tools.map(function, &work.list).map_err(raised)?;
                let from = work.from.clone();
                let plain = false;
                Ok(self.pass_on(index, &Rc::new(Work { list, from, plain }), tasks))
            }
            CollectionStageKind::Filter => {
                let flags = self.tools.map(function, &work.list).map_err(raised)?;
                let (list, mut from) = (PyList::empty(py), Vec::new());
                for ((record, flag), &index) in work.list.iter().zip(&flags).zip(&work.from) {
                    if flag.is_truthy().map_err(raised)? {
                        list.append(record).map_err(raised)?;
                        from.push(index);
                    }
                }
                let plain = work.plain;
                Ok(self.pass_on(index, &Rc::new(Work { list, from, plain }), tasks))
            }
            CollectionStageKind::FlatMap => {
                let results = self.tools.map(function, &work.list).map_err(raised)?;
                let iterables = results.iter().zip(work.from.iter().copied());
                let records = FlatMap {
                    iterables: iterables.rev().collect(),
                    current: None,
                };
                self.run_on(index, records, tasks)
            }
            CollectionStageKind::Inspect => {
                for (record, &index) in work.list.iter().zip(&work.from) {
                    let update = self.updates.get(index as usize);
                    let time = update.time(self.capability.time());
                    let time = point_to_py(py, &time).map_err(raised)?;
                    function
                        .call1((record, time, update.diff))
                        .map_err(raised)?;
                }
                Ok(self.pass_on(index, work, tasks))
            }
        }
    }

    /// Passes on a bounded number of records of which each was made into many, and leaves the rest for later.
    fn run_on(
        &self,
        index: usize,
        mut records: FlatMap<'py>,
        tasks: &mut Vec<Task<'py>>,
    ) -> Next<'py> {
        let work = records.take(self.py, &self.stages[index].name);
        let work = work.map_err(|error| Raised::by(&self.stages[index].name, error))?;
        if work.from.len() == MAX_BATCH {
            tasks.push(Task::Continue(index, records));
        }
        Ok(self.pass_on(index, &Rc::new(work), tasks))
    }

    /// Hands the records to the stages that read them, and after them to the output.
    fn pass_on(
        &self,
        index: usize,
        work: &Rc<Work<'py>>,
        tasks: &mut Vec<Task<'py>>,
    ) -> Option<Task<'py>> {
        if work.from.is_empty() {
            return None;
        }
        let stage = &self.stages[index];
        let run = |&next| Task::Run(next, Rc::clone(work));
        if stage.output.is_some() {
            tasks.push(Task::Send(index, Rc::clone(work)));
        }
        let (first, others) = stage.stages.split_first().unzip();
        tasks.extend(others.unwrap_or_default().iter().rev().map(run));
        first.map(run)
    }

    fn send(&self, stage: &Stage, work: &Work<'py>) -> Result<(), BoxError> {
        let output = stage.output.as_ref();
        let output = output.expect("records are sent where there is an output");
        let (mut builder, mut row) = (Builder::default(), RowBuf::default());
        for (record, &index) in work.list.iter().zip(&work.from) {
            let update = self.updates.get(index as usize);
            let time = update.time(self.capability.time());
            if work.plain {
                builder.push(update.row, &time, update.diff);
            } else {
                let row = row.encode(&record);
                let row = row.map_err(|error| Raised::by(&stage.name, error))?;
                builder.push(row, &time, update.diff);
            }
            if builder.is_full() {
                send(&mut builder, self.capability, output)?;
            }
        }
        send(&mut builder, self.capability, output)
    }
}
