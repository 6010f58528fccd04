//! Collections through expressions over the parts of their records: without the interpreter.

use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::{MessageCapability, OutputPort, SendError};
use pyo3::prelude::*;

use super::fields::{Condition, Expr, Projection, Source};
use super::updates::{Builder, Updates};
use super::updates_of;
use crate::batch::Batch;
use crate::library::Unary;
use crate::stream::Stream;

/// The expression of a Python object, for an operator on records or, where there are any, on columns.
fn expression(value: &Bound<'_, PyAny>, columns: &[String]) -> PyResult<Expr> {
    let expr = Expr::of(value)?;
    if columns.is_empty() {
        expr.resolved(&[Source::Record], columns)
    } else {
        expr.resolved(&[], columns)
    }
}

/// What an expression makes of each record.
#[pyfunction]
pub(crate) fn project(
    stream: &Stream,
    fields: &Bound<'_, PyAny>,
    columns: Vec<String>,
    name: String,
) -> PyResult<Stream> {
    let mut projection = Projection::new(expression(fields, &columns)?);
    let unary = Unary::new(&stream.engine()?, &name, Pact::Pipeline)?;
    Ok(unary.on_messages(stream, move |input, output| {
        while let Some((capability, batch)) = input.next()? {
            let updates = updates_of(batch);
            let mut builder = Builder::default();
            for update in updates.iter() {
                let row = projection.apply(&[update.row]);
                let row = row.map_err(|failure| failure.of(&name))?;
                builder.push_like(row, &update);
            }
            send(builder, &updates, &capability, output)?;
        }
        Ok(())
    }))
}

/// The records of which an expression is true.
#[pyfunction]
pub(crate) fn filter_fields(
    stream: &Stream,
    condition: &Bound<'_, PyAny>,
    columns: Vec<String>,
    name: String,
) -> PyResult<Stream> {
    let mut condition = Condition::new(expression(condition, &columns)?);
    let unary = Unary::new(&stream.engine()?, &name, Pact::Pipeline)?;
    Ok(unary.on_messages(stream, move |input, output| {
        while let Some((capability, batch)) = input.next()? {
            let updates = updates_of(batch);
            let mut builder = Builder::default();
            for update in updates.iter() {
                let holds = condition.holds(&[update.row]);
                if holds.map_err(|failure| failure.of(&name))? {
                    builder.push_like(update.row, &update);
                }
            }
            send(builder, &updates, &capability, output)?;
        }
        Ok(())
    }))
}

/// Sends what was made of the updates of a message.
fn send(
    made: Builder,
    of: &Updates,
    capability: &MessageCapability,
    output: &OutputPort<Batch>,
) -> Result<(), BoxError> {
    if made.is_empty() {
        return Ok(());
    }
    let made = Batch::Updates(made.finish_kept(of.dims()));
    output
        .send(capability, made)
        .map_err(SendError::into_cause)
}
