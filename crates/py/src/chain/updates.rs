//! Stages over the records of a collection.
//!
//! The operator of a tree attaches once for all waiting batches; objects are made of rows once, however many
//! functions see them, and rows are made of objects where another operator reads them. Records that a filter passes
//! on are copied as bytes where no function before it has changed them.
//!
//! A function is called for an update, not for a present record: a removed record comes with a negative diff, and
//! must give the same result as when it was inserted.

use std::rc::Rc;

use pointstamp_engine::error::BoxError;
use pointstamp_engine::port::MessageCapability;
use pointstamp_operators::collections::{Builder, Updates, send};
use pointstamp_operators::{Input, Output};
use pointstamp_rows::RowBuf;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};

use super::tree::{Carried, Made, Stage, Tree};
use crate::batch::MAX_BATCH;
use crate::collections::values::{FromPython, ToPython};
use crate::gil::attached;
use crate::iterables::{Giver, records_of};
use crate::kinds::CollectionStageKind;
use crate::raised::Raised;
use crate::time::point_to_py;
use crate::tools::Tools;

/// A tree of functions over the records of a collection.
pub(super) type UpdateTree = Tree<CollectionStageKind, Updates>;

type Function = Stage<CollectionStageKind, Updates>;

/// Runs a tree over the messages that wait.
pub(super) fn run(input: &Input<Updates>, tree: &UpdateTree) -> Result<(), BoxError> {
    if !input.port().has_messages() {
        return Ok(());
    }
    attached(|py| {
        let tools = Tools::get(py).map_err(Raised::here)?;
        while let Some((capability, updates)) = input.next()? {
            let message = Message {
                py,
                tools,
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
                tree.run(&message, Rc::new(Objects { list, from, plain }))?;
            }
        }
        Ok(())
    })
}

#[allow(clippy::cast_possible_truncation, reason = "batches are small")]
fn index(at: usize) -> u32 {
    at as u32
}

/// Records on their way through the stages, and the update that each is of.
struct Objects<'py> {
    list: Bound<'py, PyList>,
    from: Vec<u32>,
    /// Whether they are the updates' own records.
    plain: bool,
}

/// The iterables that a function made of records, read in bounded pieces.
struct FlatMap<'py> {
    /// Each with the update that it is of; the next is the last.
    iterables: Vec<(Bound<'py, PyAny>, u32)>,
    /// The iterator that is being read.
    current: Option<(Bound<'py, PyIterator>, u32)>,
}

impl<'py> FlatMap<'py> {
    /// The next records, fewer than `MAX_BATCH` of them at the end.
    fn take(&mut self, py: Python<'py>, operator: &str) -> PyResult<Objects<'py>> {
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
        Ok(Objects { list, from, plain })
    }
}

/// The message that is worked on.
struct Message<'a, 'py> {
    py: Python<'py>,
    tools: &'a Tools,
    capability: &'a MessageCapability,
    updates: &'a Updates,
}

impl<'py> Carried for Message<'_, 'py> {
    type Kind = CollectionStageKind;
    type Content = Updates;
    type Work = Rc<Objects<'py>>;
    type Rest = FlatMap<'py>;

    fn apply(
        &self,
        stage: &Function,
        work: Rc<Objects<'py>>,
    ) -> Result<Made<Rc<Objects<'py>>, FlatMap<'py>>, BoxError> {
        let py = self.py;
        let raised = |error| Raised::by(&stage.name, error);
        let function = stage.function.get().bind(py);
        let (list, from, plain) = match stage.kind {
            CollectionStageKind::Map => {
                let list = self.tools.map(function, &work.list).map_err(raised)?;
                (list, work.from.clone(), false)
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
                (list, from, work.plain)
            }
            CollectionStageKind::FlatMap => {
                let results = self.tools.map(function, &work.list).map_err(raised)?;
                let iterables = results.iter().zip(work.from.iter().copied());
                return Ok(Made::Rest(FlatMap {
                    iterables: iterables.rev().collect(),
                    current: None,
                }));
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
                return Ok(Made::One(work));
            }
        };
        Ok(Made::One(Rc::new(Objects { list, from, plain })))
    }

    fn take(
        &self,
        stage: &Function,
        records: &mut FlatMap<'py>,
    ) -> Result<(Rc<Objects<'py>>, bool), BoxError> {
        let work = records.take(self.py, &stage.name);
        let work = work.map_err(|error| Raised::by(&stage.name, error))?;
        let more = work.from.len() == MAX_BATCH;
        Ok((Rc::new(work), more))
    }

    fn send(
        &self,
        stage: &Function,
        output: &Output<Updates>,
        work: Rc<Objects<'py>>,
    ) -> Result<(), BoxError> {
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

    fn is_empty(work: &Rc<Objects<'py>>) -> bool {
        work.from.is_empty()
    }
}
