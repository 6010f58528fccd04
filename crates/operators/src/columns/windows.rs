//! Aggregations per key and window of event time, updated as rows arrive.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pointstamp_columnar::aggregate::Plan;
use pointstamp_columnar::event_time::{time_column, times_of};
use pointstamp_columnar::pieces::Merger;
use pointstamp_columnar::windows::{Layout, Windows};
use pointstamp_engine::capability::Capability;
use pointstamp_order::Point;

use super::event_time::{bound_of, frontier_of, instant, latest_of};
use super::parts::{Divisible, Note, Parts};
use super::route::placed;
use crate::Error;
use crate::checkpoint::{Entry, Restored};
use crate::typed::{Input, Typed};
use crate::unary::Unary;

/// Returns the schema of the result of [`window`].
///
/// # Errors
///
/// An error for a column that does not exist or does not hold times.
pub fn window_schema(
    schema: &SchemaRef,
    plan: Plan,
    column: &str,
    layout: Layout,
) -> Result<SchemaRef, Error> {
    let windows = Windows::new(schema, plan, column, layout)?;
    Ok(SchemaRef::clone(windows.output()))
}

/// Aggregates the rows of each key and window of event time; rows are exchanged by key unless they are `in_place`.
///
/// A window's results are sent at its last instant, when no row of it can come any more. One capability is held, for the
/// last instant of the first open window.
///
/// # Errors
///
/// An error for a column that does not exist or does not hold times; errors of building an operator.
pub fn window(
    stream: &Typed<RecordBatch>,
    schema: &SchemaRef,
    plan: Plan,
    column: &str,
    layout: Layout,
    in_place: bool,
) -> Result<Typed<RecordBatch>, Error> {
    let key = plan.key().to_vec();
    let pact = placed(&key, in_place);
    let at = time_column(schema, column)?;
    let terms = Terms {
        state_key: plan.state_key(),
        model: (SchemaRef::clone(schema), plan, column.to_owned(), layout),
        at,
    };
    terms.make()?; // so that what is wrong with it is seen here
    let unary = Unary::new(stream, "window", pact)?;
    let mut windows = Parts::new(terms, unary.builder());
    let mut held: Option<Capability> = None;
    Restored::each(unary.builder(), |restored, entry| {
        for states in entry.contents::<RecordBatch>()? {
            let key = &windows.terms().state_key;
            if let Some(states) = restored.mine(&states, key)? {
                windows.put(&[], states)?;
            }
        }
        if let Some(last) = next_last(&mut windows) {
            let at = Point::new(&[last.unsigned_abs()]);
            if held.as_ref().is_none_or(|held| *held.time() > at) {
                held = Some(restored.capability(0, &at)?);
            }
        }
        Ok(())
    })?;
    let windows = windows.kept(unary.builder());
    let retention = unary.retention()?;
    Ok(
        unary.on_messages_and_frontier(move |input: &Input<RecordBatch>, output| {
            let mut windows = windows.borrow_mut();
            while let Some((message, rows)) = input.next()? {
                let least = message.time().last().unwrap_or_default();
                if let Some(retention) = &retention {
                    retention.take(least, latest_of(&rows, at, least)?);
                }
                windows.give(&[least], &key, rows)?;
                if held
                    .as_ref()
                    .is_none_or(|held| held.time() > message.time())
                {
                    held = Some(message.retain(0)?);
                }
            }
            let open = frontier_of(input);
            let bound = bound_of(open);
            if let Some(capability) = &mut held {
                let mut results: BTreeMap<i64, Vec<RecordBatch>> = BTreeMap::new();
                let is_due = |due: i64| bound.is_none_or(|bound| due < bound);
                windows.each(
                    |note| note.due.is_some_and(is_due),
                    |_, windows| {
                        windows.close(bound, |last, rows| {
                            results.entry(last).or_default().push(rows);
                            Ok::<_, Error>(())
                        })
                    },
                )?;
                for (last, results) in results {
                    let at = Point::new(&[last.unsigned_abs()]);
                    let closing = capability.delayed(&at)?;
                    let mut merger = Merger::new();
                    for rows in results {
                        merger.push(rows, |rows| output.send(&closing, rows))?;
                    }
                    merger.flush(|rows| output.send(&closing, rows))?;
                }
                match next_last(&mut windows) {
                    None => held = None,
                    Some(last) => {
                        let at = Point::new(&[last.unsigned_abs()]);
                        if at > *capability.time() {
                            capability.downgrade(&at)?;
                        }
                    }
                }
            }
            if let Some(retention) = &retention {
                let least = bound.map_or(i64::MAX, |bound| layout.first_open(bound));
                retention.keep(open, instant(least));
            }
            Ok(())
        }),
    )
}

/// Returns the last instant of the first window that is open.
fn next_last(windows: &mut Parts<Terms>) -> Option<i64> {
    windows.least(|windows| windows.next_last(), |note| note.next)
}

/// The terms by which the windows of some keys are made.
struct Terms {
    model: (SchemaRef, Plan, String, Layout),
    state_key: Vec<usize>,
    /// The column of times.
    at: usize,
}

/// Contents have no numbers; those of rows are the least time that they may have.
impl Divisible for Terms {
    type State = Windows;

    fn make(&self) -> Result<Windows, Error> {
        let (schema, plan, column, layout) = &self.model;
        Ok(Windows::new(schema, plan.clone(), column, *layout)?)
    }

    fn key_of(&self, _numbers: &[u64]) -> &[usize] {
        &self.state_key
    }

    fn put(
        &self,
        windows: &mut Windows,
        _numbers: &[u64],
        states: RecordBatch,
    ) -> Result<(), Error> {
        Ok(windows.put_kept(&states)?)
    }

    fn take(&self, windows: &mut Windows, numbers: &[u64], rows: RecordBatch) -> Result<(), Error> {
        let least = numbers.first().copied().unwrap_or_default();
        Ok(windows.update(&rows, least)?)
    }

    fn entries(&self, windows: &Windows) -> Result<Vec<Entry>, Error> {
        Ok(vec![Entry::new(Vec::new(), [windows.kept()?])])
    }

    fn size(&self, windows: &Windows) -> usize {
        windows.held()
    }

    fn note(&self, windows: &mut Windows) -> Note {
        let next = windows.next_last();
        Note {
            due: next,
            next,
            needed: None,
            size: (windows.held(), 0),
        }
    }

    fn note_of(&self, numbers: &[u64], rows: &RecordBatch) -> Result<Note, Error> {
        let least = numbers.first().copied().unwrap_or_default();
        let times = times_of(rows.column(self.at), least)?;
        let first = times.values().iter().min();
        let next = first.map(|&first| self.model.3.first_last(first));
        Ok(Note {
            due: next,
            next,
            ..Note::default()
        })
    }
}
