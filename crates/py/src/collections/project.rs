//! Collections through expressions over the parts of their records: without the interpreter.

use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::SendError;
use pyo3::prelude::*;

use super::failure::{raised, unresolved};
use super::updates::{Builder, Updates};
use super::updates_of;
use crate::batch::Batch;
use crate::collections::field::expr_of;
use crate::library::Unary;
use crate::stream::Stream;
use pointstamp_rows::expressions::{Condition, Expr, Failure, Nulls, Projection, Source};
use pointstamp_rows::{Cutter, RowBuf};

/// The expression of a Python object, over a record.
fn expression(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    expr_of(value)?
        .resolved(&[Source::Record], &[])
        .map_err(|error| unresolved(&error))
}

/// What an expression makes of each record.
#[pyfunction]
pub(crate) fn project(stream: &Stream, fields: &Bound<'_, PyAny>, name: &str) -> PyResult<Stream> {
    project_with(stream, expression(fields)?, Nulls::Value, name)
}

/// What an expression makes of each record.
pub(crate) fn project_with(
    stream: &Stream,
    fields: Expr,
    nulls: Nulls,
    name: &str,
) -> PyResult<Stream> {
    let mut projection = Projection::new(fields, nulls);
    on_updates(stream, name, move |updates| {
        let rows = projection.apply_all(updates.rows());
        let rows = rows.map_err(raised)?;
        Ok(updates.with_rows(rows))
    })
}

/// The records of which an expression is true.
#[pyfunction]
pub(crate) fn filter_fields(
    stream: &Stream,
    condition: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<Stream> {
    let condition = Condition::new(expression(condition)?, Nulls::Value);
    filter(stream, condition, name)
}

/// The records of which a condition is true.
pub(crate) fn filter(stream: &Stream, mut condition: Condition, name: &str) -> PyResult<Stream> {
    on_updates(stream, name, move |updates| {
        let mut made = Builder::default();
        for update in updates.iter() {
            let holds = condition.holds(&[update.row]);
            if holds.map_err(raised)? {
                made.push_like(update.row, &update);
            }
        }
        Ok(made.finish_kept(updates.dims()))
    })
}

/// The same updates, of records that are all tuples of two.
///
/// The operator raises `TypeError` for another record: what was expected, and what came.
#[pyfunction]
pub(crate) fn check_pairs(stream: &Stream, expected: String, name: &str) -> PyResult<Stream> {
    let mut cutter = Cutter::default();
    on_updates(stream, name, move |updates| {
        for update in updates.iter() {
            if cutter.cut(update.row).is_none() {
                let failure = Failure::NotPair(expected.clone(), RowBuf::of(update.row));
                return Err(raised(failure));
            }
        }
        Ok(updates)
    })
}

/// What `apply` makes of the updates of a message, as a message at the same time.
fn on_updates(
    stream: &Stream,
    name: &str,
    mut apply: impl FnMut(Updates) -> Result<Updates, BoxError> + 'static,
) -> PyResult<Stream> {
    let unary = Unary::new(&stream.engine()?, name, Pact::Pipeline)?;
    Ok(unary.on_messages(stream, move |input, output| {
        while let Some((capability, batch)) = input.next()? {
            let made = apply(updates_of(batch))?;
            if made.len() > 0 {
                output
                    .send(&capability, Batch::Updates(made))
                    .map_err(SendError::into_cause)?;
            }
        }
        Ok(())
    }))
}
