//! Collections through expressions over the parts of their records.

use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_rows::expressions::{Condition, Failure, Projection};
use pointstamp_rows::{Cutter, RowBuf};

use super::columns::eval;
use super::updates::{Builder, Updates};
use crate::Error;
use crate::typed::Typed;
use crate::unary::Unary;

/// Applies an expression to each record.
///
/// # Errors
///
/// Errors of building an operator. The operator fails with [`Error::Expression`] for a record without a result.
pub fn project(
    stream: &Typed<Updates>,
    mut projection: Projection,
    name: &str,
) -> Result<Typed<Updates>, Error> {
    on_updates(stream, name, move |updates| {
        // An expression that only puts columns together makes its rows of them at once.
        let columns = updates.columns();
        let shape = columns.and_then(|columns| eval::shape(columns, projection.expr()));
        let rows = if let Some(shape) = shape {
            shape.rows(updates.len())
        } else {
            let rows = projection.apply_all(updates.rows());
            rows.map_err(Error::Expression)?
        };
        Ok(updates.with_rows(rows))
    })
}

/// Keeps the records of which a condition is true.
///
/// # Errors
///
/// Errors of [`project`].
pub fn filter(
    stream: &Typed<Updates>,
    mut condition: Condition,
    name: &str,
) -> Result<Typed<Updates>, Error> {
    on_updates(stream, name, move |updates| {
        let columns = updates.columns();
        let mask =
            columns.and_then(|columns| eval::holds(columns, condition.expr(), condition.nulls()));
        if let Some(mask) = mask {
            return Ok(updates.filtered(&mask)?);
        }
        let mut made = Builder::default();
        for update in updates.iter() {
            let holds = condition.holds(&[update.row]);
            if holds.map_err(Error::Expression)? {
                made.push_like(update.row, &update);
            }
        }
        Ok(made.finish_kept(updates.dims()))
    })
}

/// Passes on records that are all tuples of two; `expected` is the message for another one.
///
/// # Errors
///
/// Errors of [`project`].
pub fn check_pairs(
    stream: &Typed<Updates>,
    expected: String,
    name: &str,
) -> Result<Typed<Updates>, Error> {
    let mut cutter = Cutter::default();
    on_updates(stream, name, move |updates| {
        for update in updates.iter() {
            if cutter.cut(update.row).is_none() {
                let failure = Failure::NotPair(expected.clone(), RowBuf::of(update.row));
                return Err(Error::Expression(failure).into());
            }
        }
        Ok(updates)
    })
}

/// Negates the diffs.
///
/// # Errors
///
/// Errors of building an operator. The operator fails with [`Overflow`](pointstamp_arrange::Overflow) for the least diff.
pub fn negate(stream: &Typed<Updates>) -> Result<Typed<Updates>, Error> {
    on_updates(stream, "negate", |updates| Ok(updates.negated()?))
}

/// Applies a function to the updates of each message, as a message at the same time.
///
/// # Errors
///
/// Errors of building an operator.
pub(crate) fn on_updates(
    stream: &Typed<Updates>,
    name: &str,
    mut apply: impl FnMut(Updates) -> Result<Updates, BoxError> + 'static,
) -> Result<Typed<Updates>, Error> {
    let unary = Unary::new(stream, name, Pact::Pipeline)?;
    Ok(unary.on_messages(move |input, output| {
        while let Some((capability, updates)) = input.next()? {
            let made = apply(updates)?;
            if !made.is_empty() {
                output.send(&capability, made)?;
            }
        }
        Ok(())
    }))
}
