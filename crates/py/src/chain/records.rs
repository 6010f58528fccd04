//! Stages over records, and over records at times of their own: the effect of a function on a batch of them.
//!
//! Functions run over a whole batch with Python's own loops.

use pointstamp_engine::error::BoxError;
use pointstamp_engine::payload::Payload;
use pointstamp_engine::port::MessageCapability;
use pointstamp_operators::{Content, Error, Input, Kind, Output, Timed, Times};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::tree::{Carried, Made, Stage, Tree};
use crate::batch::{Batch, MAX_BATCH, Records, copy, timed_from_py, timed_to_py};
use crate::errors::IntoException;
use crate::forks::{self, Process};
use crate::gil::attached;
use crate::iterables::Giver;
use crate::kinds::StageKind;
use crate::raised::Raised;
use crate::time::point_to_py;
use crate::tools::{FlatMap, Tools};

/// A tree of functions over records.
pub(super) type RecordTree = Tree<StageKind, Batch>;

type Function = Stage<StageKind, Batch>;

/// Returns the kind of batches that a stage makes of batches of a kind.
///
/// # Errors
///
/// `GraphError` for a kind that the stage does not read.
pub(super) fn made_of(stage: StageKind, found: Kind) -> PyResult<Kind> {
    let (expected, made) = match (stage, found) {
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

/// Runs a tree over the messages that wait.
pub(super) fn run(input: &Input<Batch>, tree: &RecordTree) -> Result<(), BoxError> {
    if !input.port().has_messages() {
        return Ok(());
    }
    attached(|py| {
        let tools = Tools::get(py).map_err(Raised::here)?;
        while let Some((capability, batch)) = input.next()? {
            let message = Message {
                py,
                tools,
                capability: &capability,
            };
            tree.run(&message, batch)?;
        }
        Ok(())
    })
}

/// The message that is worked on.
struct Message<'a, 'py> {
    py: Python<'py>,
    tools: &'a Tools,
    capability: &'a MessageCapability,
}

impl<'py> Carried for Message<'_, 'py> {
    type Kind = StageKind;
    type Content = Batch;
    type Work = Batch;
    type Rest = FlatMap<'py>;

    fn apply(&self, stage: &Function, batch: Batch) -> Result<Made<Batch, FlatMap<'py>>, BoxError> {
        let raised = |error| Raised::by(&stage.name, error);
        let process = Process::this();
        let made = match stage.kind {
            StageKind::MapTimed => {
                let timed = self.timed(batch)?;
                Made::One(apply_timed(self.py, stage, &timed).map_err(raised)?)
            }
            StageKind::FlatMap => {
                let batch = Records::from_batch(batch)?;
                let function = stage.function.get().bind(self.py);
                let list = batch.list(self.py);
                let records = self.tools.flat_map(&stage.name, function, list);
                return Ok(Made::Rest(records.map_err(raised)?));
            }
            _ => {
                let batch = Records::from_batch(batch)?;
                self.apply_to(stage, batch).map_err(raised)?
            }
        };
        if !process.is_this() {
            forks::end(self.py, None); // before later stages see the records a second time
        }
        Ok(made)
    }

    fn take(
        &self,
        stage: &Function,
        records: &mut FlatMap<'py>,
    ) -> Result<(Batch, bool), BoxError> {
        let chunk = records.take(self.tools, MAX_BATCH);
        let chunk = chunk.map_err(|error| Raised::by(&stage.name, error))?;
        let more = chunk.len() == MAX_BATCH;
        Ok((Records::new(chunk).into_batch(), more))
    }

    fn send(
        &self,
        _stage: &Function,
        output: &Output<Batch>,
        batch: Batch,
    ) -> Result<(), BoxError> {
        let send = |batch| output.send(self.capability, batch);
        match batch {
            Batch::Timed(timed) => timed.in_bounds(|timed| send(timed.into_batch())),
            other => {
                Records::from_batch(other)?.in_bounds(self.py, |records| send(records.into_batch()))
            }
        }
    }

    fn is_empty(batch: &Batch) -> bool {
        batch.is_empty()
    }
}

/// The columns that a function makes of a batch's.
fn apply_timed(py: Python<'_>, stage: &Function, timed: &Timed) -> PyResult<Batch> {
    let columns = timed_to_py(py, timed)?;
    let made = stage.function.get().bind(py).call1(columns)?;
    Ok(timed_from_py(made.cast::<PyTuple>()?, Some(timed))?.into_batch())
}

impl<'py> Message<'_, 'py> {
    /// A batch as one of records at times of their own: other records are all at the message's time.
    fn timed(&self, batch: Batch) -> Result<Timed, BoxError> {
        if let Batch::Timed(timed) = batch {
            return Ok(timed);
        }
        let records = Records::from_batch(batch)?;
        let time = self.capability.time().last().unwrap_or(0);
        Ok(Timed::new(Times::All(time), None, records.into_column())?)
    }

    /// The message's time.
    fn time(&self) -> PyResult<Bound<'py, PyAny>> {
        point_to_py(self.py, self.capability.time())
    }

    /// Applies a function to a batch of records.
    fn apply_to(&self, stage: &Function, batch: Records) -> PyResult<Made<Batch, FlatMap<'py>>> {
        let (py, tools) = (self.py, self.tools);
        let list = batch.list(py);
        let function = stage.function.get().bind(py);
        let lists = match stage.kind {
            StageKind::Map => return Ok(one(tools.map(function, list)?)),
            StageKind::Filter => return Ok(one(tools.filter(function, list)?)),
            StageKind::Inspect | StageKind::MapInPlace => {
                tools.for_each(function, list)?;
                return Ok(Made::One(batch.into_batch()));
            }
            StageKind::InspectTime => {
                tools.for_each_before(function, list, &self.time()?)?;
                return Ok(Made::One(batch.into_batch()));
            }
            StageKind::InspectBatch => {
                let time = self.time()?;
                if stage.is_unread() {
                    // No other stage reads the batch: the function may have it as it is.
                    function.call1((time, batch.into_list(py)))?;
                    return Ok(Made::Several(Vec::new()));
                }
                function.call1((time, copy(list)))?;
                return Ok(Made::One(batch.into_batch()));
            }
            StageKind::MapBatches => {
                let results = function.call1((batch.into_list(py),))?;
                Giver::Function(&stage.name).check(&results)?;
                return Ok(one(tools.list(&results)?));
            }
            StageKind::BranchWhen => {
                let empty = Records::new(PyList::empty(py));
                let yes = function.call1((self.time()?,))?.is_truthy()?;
                let (no, yes) = if yes { (empty, batch) } else { (batch, empty) };
                return Ok(Made::Several(vec![no.into_batch(), yes.into_batch()]));
            }
            StageKind::TryMap => try_map(function, list)?,
            StageKind::OkErr => ok_err(&tools.map(function, list)?)?,
            StageKind::Partition => partition(stage.parts(), &tools.map(function, list)?)?,
            StageKind::Branch => {
                let flags = tools.map_with(function, &self.time()?, list)?;
                let (no, yes) = tools.split(list, &flags)?;
                vec![no, yes]
            }
            StageKind::FlatMap | StageKind::MapTimed => unreachable!("`apply` runs them itself"),
        };
        let parts = lists.into_iter();
        let parts = parts.map(|list| Records::new(list).into_batch());
        Ok(Made::Several(parts.collect()))
    }
}

/// A list as a stage's result.
fn one(list: Bound<'_, PyList>) -> Made<Batch, FlatMap<'_>> {
    Made::One(Records::new(list).into_batch())
}

/// Results, and the records that raised with their exceptions. Only an `Exception` is caught.
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
