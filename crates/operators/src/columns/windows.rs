//! Aggregations per key and window of event time, updated as rows arrive.

use std::cell::RefCell;
use std::rc::Rc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pointstamp_columnar::aggregate::Plan;
use pointstamp_columnar::event_time::time_column;
use pointstamp_columnar::windows::{Layout, Windows};
use pointstamp_engine::capability::Capability;
use pointstamp_order::Point;

use super::event_time::{bound_of, frontier_of, instant, latest_of};
use super::route::placed;
use crate::Error;
use crate::checkpoint::{Division, Entry, Restored, keep};
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
    let pact = placed(plan.key(), in_place);
    let at = time_column(schema, column)?;
    let of_key = plan.state_key();
    let windows = Rc::new(RefCell::new(Windows::new(schema, plan, column, layout)?));
    let unary = Unary::new(stream, "window", pact)?;
    let mut held: Option<Capability> = None;
    if let Some((mut restored, entries)) = Restored::of(unary.builder())? {
        for entry in entries {
            for states in entry.contents::<RecordBatch>()? {
                if let Some(states) = restored.mine(&states, &of_key)? {
                    windows.borrow_mut().put_kept(&states)?;
                }
            }
        }
        if let Some(last) = windows.borrow().next_last() {
            held = Some(restored.capability(0, &Point::new(&[last.unsigned_abs()]))?);
        }
    }
    let kept = Rc::clone(&windows);
    keep(unary.builder(), Division::Groups, move || {
        Ok(vec![Entry::new(Vec::new(), [kept.borrow().kept()?])])
    });
    let retention = unary.retention()?;
    Ok(
        unary.on_messages_and_frontier(move |input: &Input<RecordBatch>, output| {
            let mut windows = windows.borrow_mut();
            while let Some((message, rows)) = input.next()? {
                let least = message.time().last().unwrap_or_default();
                windows.update(&rows, least)?;
                if let Some(retention) = &retention {
                    retention.take(least, latest_of(&rows, at, least)?);
                }
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
                let mut closing: Option<Capability> = None;
                windows.close(bound, |last, rows| {
                    let at = Point::new(&[last.unsigned_abs()]);
                    let capability = match &mut closing {
                        Some(closing) if *closing.time() == at => closing,
                        closing => closing.insert(capability.delayed(&at)?),
                    };
                    output.send(capability, rows)
                })?;
                match windows.next_last() {
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
