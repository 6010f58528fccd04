//! Collections from streams and to streams, negation, and the way round a loop.

use crate::collections::values::ToPython;
use std::cell::RefCell;
use std::cmp::Ordering;

use pointstamp_engine::error::{BuildError, Error};
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::operators::Event;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::{OutputPort, SendError};
use pointstamp_order::{PathSummary, Point, Summary};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::chain::Chain;
use super::given::pair_of;
use super::updates::Builder;
use super::{send, updates_of};
use crate::batch::{Batch, in_batches};
use crate::bound::ThreadBound;
use crate::capture::EventQueue;
use crate::errors::{GraphError, IntoException};
use crate::gil::attached;
use crate::kinds::CollectionStageKind;
use crate::library::Unary;
use crate::raised::Raised;
use crate::scope::Scope;
use crate::stream::Stream;
use crate::time::{point_to_py, summary_from_py};
use pointstamp_rows::Row;

/// The records of a stream as a collection: each once, or, of pairs `(record, diff)`, so often.
#[pyfunction]
pub(crate) fn as_collection(stream: &Stream, diffs: bool) -> PyResult<Stream> {
    let unary = Unary::new(&stream.engine()?, "as_collection", Pact::Pipeline)?;
    Ok(unary.on_messages(stream, move |input, output| {
        attached(|py| {
            let mut builder = Builder::default();
            while let Some((capability, batch)) = input.next()? {
                let time = capability.time().clone();
                for record in batch.as_list(py) {
                    let (record, diff) = if diffs {
                        pair_of(&record).map_err(Raised::here)?
                    } else {
                        (record, 1)
                    };
                    builder
                        .push_value(&record, &time, diff)
                        .map_err(Raised::here)?;
                    if builder.is_full() {
                        send(&mut builder, &capability, output)?;
                    }
                }
                send(&mut builder, &capability, output)?;
            }
            Ok(())
        })
    }))
}

/// Updates as records `(record, time, diff)`, each at its own time.
#[pyfunction]
pub(crate) fn to_updates(stream: &Stream) -> PyResult<Stream> {
    let unary = Unary::new(&stream.engine()?, "updates", Pact::Pipeline)?;
    Ok(unary.on_messages(stream, move |input, output| {
        attached(|py| {
            while let Some((capability, batch)) = input.next()? {
                let updates = updates_of(batch);
                for (time, indices) in updates.by_time(capability.time()) {
                    let records = PyList::empty(py);
                    let shown = point_to_py(py, &time).map_err(Raised::here)?;
                    for update in indices.into_iter().map(|index| updates.get(index)) {
                        let record = update.row.decode(py).map_err(Raised::here)?;
                        let record = (record, &shown, update.diff);
                        records.append(record).map_err(Raised::here)?;
                    }
                    let own = capability.delayed(&time, 0)?;
                    in_batches(records, |batch| {
                        output.send(&own, batch).map_err(SendError::into_cause)
                    })?;
                }
            }
            Ok(())
        })
    }))
}

/// What a queue has caught of a collection: `(time, [(record, diff)])`, added up, in the order of times and records.
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
    while let Some(event) = queue.get(index) {
        index += 1;
        if let Event::Messages(time, batch) = event {
            caught.push((time, updates_of(batch)));
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

/// The updates with their diffs negated.
#[pyfunction]
pub(crate) fn negate(stream: &Stream) -> PyResult<Stream> {
    let unary = Unary::new(&stream.engine()?, "negate", Pact::Pipeline)?;
    Ok(unary.on_messages(stream, move |input, output| {
        while let Some((capability, batch)) = input.next()? {
            let negated = Batch::Updates(updates_of(batch).negated()?);
            output
                .send(&capability, negated)
                .map_err(SendError::into_cause)?;
        }
        Ok(())
    }))
}

/// What comes round a loop: the end that a collection is connected to.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Loop {
    open: ThreadBound<RefCell<Option<Open>>>,
}

struct Open {
    builder: OperatorBuilder<Batch>,
    output: OutputPort<Batch>,
    summary: Summary,
}

/// A collection that is defined later: the loop's end, and what comes round.
#[pyfunction]
pub(crate) fn follow(
    scope: &Scope,
    step: &Bound<'_, PyAny>,
    missing: String,
) -> PyResult<(Loop, Stream)> {
    let refused = IntoException::into_exception;
    let home = scope.scope.home();
    let scope = scope.scope.get()?;
    let summary = summary_from_py(step, scope.dims())?;
    let builder = scope.operator("variable").map_err(refused)?;
    if scope.parent().is_none() {
        builder.retains_forever(); // its turns are times of the whole dataflow
    }
    let (output, stream) = builder.new_output().map_err(refused)?;
    builder.require(BuildError::Missing(missing));
    let open = RefCell::new(Some(Open {
        builder,
        output,
        summary,
    }));
    Ok((
        Loop {
            open: ThreadBound::new(home, open),
        },
        Stream::plain(home, stream),
    ))
}

#[pymethods]
impl Loop {
    /// Closes the loop: the updates of the stream come round at the times that follow theirs.
    fn set(&self, stream: &Stream) -> PyResult<()> {
        let refused = IntoException::into_exception;
        let stream = stream.engine()?;
        let mut open = self.open.get()?.borrow_mut();
        let Some(loop_) = &*open else {
            return Err(GraphError::new_err(
                "this variable is set already: it has one definition; concat the collections first",
            ));
        };
        let input = loop_
            .builder
            .new_input(&stream, Pact::Pipeline)
            .map_err(refused)?;
        let Some(Open {
            builder,
            output,
            summary,
        }) = open.take()
        else {
            return Ok(());
        };
        builder
            .set_summary(0, 0, vec![summary.clone()])
            .map_err(refused)?;
        builder.fulfil();
        builder.build(move || {
            while let Some((capability, batch)) = input.next()? {
                let passed = |time| Error::TimeOverflow {
                    time,
                    summary: summary.clone(),
                };
                let message = capability.time().clone();
                let time = summary.results_in(&message);
                let later = capability.delayed(&time.ok_or_else(|| passed(message.clone()))?, 0)?;
                let updates = updates_of(batch).followed(&summary, &message);
                output
                    .send(&later, Batch::Updates(updates.map_err(passed)?))
                    .map_err(SendError::into_cause)?;
            }
            Ok(false)
        });
        Ok(())
    }
}

/// A collection through a function of its records.
#[pyfunction]
pub(crate) fn collection_stage(
    stream: &Stream,
    kind: CollectionStageKind,
    function: Py<PyAny>,
    name: &str,
) -> PyResult<Stream> {
    // What the operator is called is in its errors, too.
    let name = &*stream.home().naming().named(name);
    let tap = match stream.changes_tap()? {
        Some(tap) => tap.then(kind, name, function)?,
        None => Chain::begin(&stream.engine()?, kind, name, function)?,
    };
    Ok(Stream::changes(stream.home(), tap))
}
