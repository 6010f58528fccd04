//! Functions over the records of a collection, run as one operator.
//!
//! Functions that follow one another, with branches, form a tree of stages in one operator, as `crate::chain` has it for
//! streams. The operator attaches once for all batches that wait; objects are made of rows once, however many functions
//! see them, and rows are made of objects where another operator reads them. What a filter passes on is copied as bytes
//! where no function before it has changed it.
//!
//! A function is called for an update, not for a record that is there: one that is removed comes with a negative diff, and
//! must give what it gave when the record was inserted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::{InputPort, MessageCapability, OutputPort};
use pointstamp_engine::stream::Stream as EngineStream;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::updates::{Builder, Updates};
use super::{send, updates_of};
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
    output: Option<OutputPort<Batch>>,
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
        stream: &EngineStream<Batch>,
        kind: CollectionStageKind,
        name: &str,
        function: Py<PyAny>,
    ) -> PyResult<Tap> {
        let refused = IntoException::into_exception;
        let builder = stream.scope().operator(name).map_err(refused)?;
        let input = builder.new_input(stream, Pact::Pipeline).map_err(refused)?;
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
        stages.borrow_mut()[self.stage].output = Some(output);
        let mut streams = self.chain.streams.borrow_mut();
        streams.insert(self.stage, stream.clone());
        Ok(stream)
    }
}

fn run(input: &InputPort<Batch>, stages: &[Stage]) -> Result<(), BoxError> {
    if !input.has_messages() {
        return Ok(());
    }
    attached(|py| {
        while let Some((capability, batch)) = input.next()? {
            let updates = updates_of(batch);
            let at = At {
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
                stages[0].run(py, stages, &at, &Work { list, from, plain })?;
            }
        }
        Ok(())
    })
}

#[allow(clippy::cast_possible_truncation, reason = "batches are small")]
fn index(at: usize) -> u32 {
    at as u32
}

/// The message that is worked on.
struct At<'a> {
    capability: &'a MessageCapability,
    updates: &'a Updates,
}

/// Records on their way through the stages, and of which update each is made.
struct Work<'py> {
    list: Bound<'py, PyList>,
    from: Vec<u32>,
    /// Whether they are the updates' own records.
    plain: bool,
}

impl Stage {
    fn run<'py>(
        &self,
        py: Python<'py>,
        stages: &[Stage],
        at: &At<'_>,
        work: &Work<'py>,
    ) -> Result<(), BoxError> {
        let raised = |error| Raised::by(&self.name, error);
        let tools = Tools::get(py).map_err(raised)?;
        let function = self.function.get().bind(py);
        match self.kind {
            CollectionStageKind::Map => {
                let list = tools.map(function, &work.list).map_err(raised)?;
                let from = work.from.clone();
                let plain = false;
                self.pass_on(py, stages, at, &Work { list, from, plain })
            }
            CollectionStageKind::Filter => {
                let flags = tools.map(function, &work.list).map_err(raised)?;
                let (list, mut from) = (PyList::empty(py), Vec::new());
                for ((record, flag), &index) in work.list.iter().zip(&flags).zip(&work.from) {
                    if flag.is_truthy().map_err(raised)? {
                        list.append(record).map_err(raised)?;
                        from.push(index);
                    }
                }
                let plain = work.plain;
                self.pass_on(py, stages, at, &Work { list, from, plain })
            }
            CollectionStageKind::FlatMap => {
                let results = tools.map(function, &work.list).map_err(raised)?;
                let (mut list, mut from) = (PyList::empty(py), Vec::new());
                let plain = false;
                for (result, &index) in results.iter().zip(&work.from) {
                    let records =
                        records_of(Giver::Function(&self.name), &result).map_err(raised)?;
                    for record in records {
                        list.append(record.map_err(raised)?).map_err(raised)?;
                        from.push(index);
                        if from.len() >= MAX_BATCH {
                            let full = std::mem::replace(&mut list, PyList::empty(py));
                            let from = std::mem::take(&mut from);
                            let work = Work {
                                list: full,
                                from,
                                plain,
                            };
                            self.pass_on(py, stages, at, &work)?;
                        }
                    }
                }
                self.pass_on(py, stages, at, &Work { list, from, plain })
            }
            CollectionStageKind::Inspect => {
                for (record, &index) in work.list.iter().zip(&work.from) {
                    let update = at.updates.get(index as usize);
                    let time = update.time(at.capability.time());
                    let time = point_to_py(py, &time).map_err(raised)?;
                    function
                        .call1((record, time, update.diff))
                        .map_err(raised)?;
                }
                self.pass_on(py, stages, at, work)
            }
        }
    }

    /// Hands the records to the stages that read them, and to the output.
    fn pass_on<'py>(
        &self,
        py: Python<'py>,
        stages: &[Stage],
        at: &At<'_>,
        work: &Work<'py>,
    ) -> Result<(), BoxError> {
        if work.from.is_empty() {
            return Ok(());
        }
        for &next in &self.stages {
            stages[next].run(py, stages, at, work)?;
        }
        let Some(output) = &self.output else {
            return Ok(());
        };
        let mut builder = Builder::default();
        for (record, &index) in work.list.iter().zip(&work.from) {
            let update = at.updates.get(index as usize);
            let time = update.time(at.capability.time());
            if work.plain {
                builder.push(update.row, &time, update.diff);
            } else {
                builder
                    .push_value(&record, &time, update.diff)
                    .map_err(|error| Raised::by(&self.name, error))?;
            }
            if builder.is_full() {
                send(&mut builder, at.capability, output)?;
            }
        }
        send(&mut builder, at.capability, output)
    }
}
