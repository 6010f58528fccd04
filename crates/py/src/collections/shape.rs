//! Collections from streams and to streams, negation, and the way round a loop.

use crate::collections::values::ToPython;
use std::cell::RefCell;
use std::cmp::Ordering;

use pointstamp_engine::operators::Event;
use pointstamp_engine::pact::Pact;
use pointstamp_operators::collections::{Builder, Updates, Variable, send};
use pointstamp_operators::{Content, Input};
use pointstamp_order::Point;
use pointstamp_rows::RowBuf;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::given::pair_of;
use super::values::FromPython;
use crate::batch::{Records, in_batches};
use crate::bound::ThreadBound;
use crate::capture::EventQueue;
use crate::errors::{GraphError, IntoException};
use crate::gil::attached;
use crate::raised::Raised;
use crate::scope::Scope;
use crate::stream::Stream;
use crate::time::{point_to_py, summary_from_py};
use pointstamp_rows::Row;

/// The records of a stream as a collection: each once, or, of pairs `(record, diff)`, so often.
#[pyfunction]
pub(crate) fn to_collection(stream: &Stream, diffs: bool) -> PyResult<Stream> {
    let unary = stream.unary("to_collection", Pact::Pipeline)?;
    let made = unary.on_messages(move |input: &Input<Records>, output| {
        let mut row = RowBuf::default();
        attached(|py| {
            let mut builder = Builder::default();
            while let Some((capability, batch)) = input.next()? {
                let time = capability.time().clone();
                for record in batch.list(py) {
                    let (record, diff) = if diffs {
                        pair_of(&record).map_err(Raised::here)?
                    } else {
                        (record, 1)
                    };
                    let row = row.encode(&record).map_err(Raised::here)?;
                    builder.push(row, &time, diff);
                    if builder.is_full() {
                        send(&mut builder, &capability, output)?;
                    }
                }
                send(&mut builder, &capability, output)?;
            }
            Ok(())
        })
    });
    Ok(Stream::of(stream.home(), made))
}

/// Updates as records `(record, time, diff)`, each at its own time.
#[pyfunction]
pub(crate) fn to_updates(stream: &Stream) -> PyResult<Stream> {
    let unary = stream.unary("updates", Pact::Pipeline)?;
    let made = unary.on_messages(move |input: &Input<Updates>, output| {
        attached(|py| {
            while let Some((capability, updates)) = input.next()? {
                for (time, indices) in updates.by_time(capability.time()) {
                    let records = PyList::empty(py);
                    let shown = point_to_py(py, &time).map_err(Raised::here)?;
                    for update in indices.into_iter().map(|index| updates.get(index)) {
                        let record = update.row.decode(py).map_err(Raised::here)?;
                        let record = (record, &shown, update.diff);
                        records.append(record).map_err(Raised::here)?;
                    }
                    let own = capability.delayed(&time, 0)?;
                    in_batches(records, |batch| output.send(&own, batch))?;
                }
            }
            Ok(())
        })
    });
    Ok(Stream::of(stream.home(), made))
}

/// Returns the contents of a queue that has captured a collection: `(time, [(record, diff)])`, added up, in
/// the order of times and records.
#[pyfunction]
pub(crate) fn extract_updates<'py>(
    py: Python<'py>,
    queue: &EventQueue,
) -> PyResult<Bound<'py, PyList>> {
    let result = PyList::empty(py);
    let mut current: Option<(Point, Bound<'py, PyList>)> = None;
    consolidated(queue, |time, row, diff| {
        let record: Bound<'py, PyTuple> = (row.decode(py)?, diff).into_pyobject(py)?;
        match &current {
            Some((same, list)) if same == time => list.append(record)?,
            _ => {
                let list = PyList::new(py, [record])?;
                result.append((point_to_py(py, time)?, &list))?;
                current = Some((time.clone(), list));
            }
        }
        Ok(())
    })?;
    Ok(result)
}

/// Gives the updates that a queue has caught, added up, in the order of times and records.
pub(crate) fn consolidated(
    queue: &EventQueue,
    mut give: impl FnMut(&Point, Row<'_>, i128) -> PyResult<()>,
) -> PyResult<()> {
    let (mut index, mut caught) = (0, Vec::new());
    while let Some(event) = queue.queue.get(index) {
        index += 1;
        if let Event::Messages(time, batch) = event {
            let updates = Updates::from_batch(batch).map_err(IntoException::into_exception)?;
            caught.push((time, updates));
        }
    }
    let mut all = Vec::new();
    for (message, updates) in &caught {
        all.extend(
            updates
                .iter()
                .map(|update| (update.time(message), update.row, update.diff)),
        );
    }
    let order = |(time, row, _): &(Point, Row<'_>, i64),
                 (other, than, _): &(Point, Row<'_>, i64)| {
        time.cmp(other).then_with(|| row.cmp(than))
    };
    all.sort_by(order);
    let mut rest = &all[..];
    while let Some(first) = rest.first() {
        let same = rest.partition_point(|update| order(update, first) == Ordering::Equal);
        let diff = rest[..same]
            .iter()
            .map(|(_, _, diff)| i128::from(*diff))
            .sum::<i128>();
        rest = &rest[same..];
        if diff != 0 {
            give(&first.0, first.1, diff)?;
        }
    }
    Ok(())
}

/// The open end of a loop, to which a collection is connected.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Loop {
    open: ThreadBound<RefCell<Option<Variable>>>,
}

/// Returns a collection that is defined later: the loop's end, and its stream. With a number of turns, later ones are
/// dropped.
#[pyfunction]
#[pyo3(signature = (scope, step, missing, turns=None))]
pub(crate) fn follow(
    scope: &Scope,
    step: &Bound<'_, PyAny>,
    missing: String,
    turns: Option<u64>,
) -> PyResult<(Loop, Stream)> {
    let home = scope.scope.home();
    let scope = scope.scope.get()?;
    let summary = summary_from_py(step, scope.dims())?;
    let (variable, stream) =
        Variable::new(scope, summary, missing).map_err(IntoException::into_exception)?;
    let open = ThreadBound::new(home, RefCell::new(Some(variable.with_turns(turns))));
    Ok((Loop { open }, Stream::of(home, stream)))
}

#[pymethods]
impl Loop {
    /// Closes the loop: the updates of the stream come round at the times that follow theirs.
    fn set(&self, stream: &Stream) -> PyResult<()> {
        let refused = IntoException::into_exception;
        let stream = stream.typed()?;
        let mut open = self.open.get()?.borrow_mut();
        let Some(variable) = open.take() else {
            return Err(GraphError::new_err(
                "this variable is set already: it has one definition; concat the collections first",
            ));
        };
        match variable.input(&stream) {
            Ok(input) => variable.connect(input).map_err(refused),
            Err(error) => {
                open.replace(variable);
                Err(refused(error))
            }
        }
    }
}
