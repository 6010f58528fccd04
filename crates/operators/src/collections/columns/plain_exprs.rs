//! Expressions over plain values, applied to updates: by kernels where they have the meaning of the rows, else row by row.

use arrow_array::BooleanArray;
use pointstamp_arrange::Rows;
use pointstamp_engine::error::BoxError;
use pointstamp_rows::expressions::{Condition, Expr, Failure, Nulls, Op, Projection};
use pointstamp_rows::{Cells, Row, RowBuf};

use super::attempt::Attempt;
use super::error::ColumnsError;
use super::eval;
use crate::Error;
use crate::collections::Updates;

/// Whether there are rows of which an expression has no result: an integer may leave 64 bits.
pub(super) fn may_fail(expr: &Expr) -> bool {
    match expr {
        Expr::Binary(Op::Add | Op::Sub | Op::Mul, ..) | Expr::Call(..) => true,
        Expr::Source(_) | Expr::Column(_) | Expr::Constant(_) => false,
        Expr::Item(of, _) | Expr::Not(of) | Expr::IsNull(of) => may_fail(of),
        Expr::Tuple(parts) => parts.iter().any(may_fail),
        Expr::Binary(_, a, b) | Expr::Floats(_, a, b) => may_fail(a) || may_fail(b),
    }
}

/// Returns the updates with the columns that a projection to a tuple of expressions makes of theirs.
pub(super) fn select(
    updates: Updates,
    exprs: &[Expr],
    projection: &mut Projection,
) -> Result<Attempt, BoxError> {
    let columns = updates.columns();
    if let Some(made) = columns.and_then(|columns| eval::select(columns, exprs)) {
        return Ok(Attempt::whole(updates.with_columns(made)));
    }
    if let Ok(rows) = projection.apply_all(updates.rows()) {
        return Ok(Attempt::whole(updates.with_rows(rows)));
    }
    let (mut made, mut has_result) = (Cells::default(), Vec::with_capacity(updates.len()));
    for update in updates.iter() {
        let result = projection.apply(&[update.row]);
        has_result.push(result.is_ok());
        if let Ok(row) = result {
            made.push(row);
        }
    }
    Attempt::part(
        &updates,
        &has_result.into(),
        |left| Ok(left.with_rows(made)),
    )
}

/// Returns the updates of rows of which a condition is true.
pub(super) fn keep(updates: Updates, condition: &mut Condition) -> Result<Attempt, BoxError> {
    let columns = updates.columns();
    let mask =
        columns.and_then(|columns| eval::holds(columns, condition.expr(), condition.nulls()));
    if let Some(mask) = mask {
        return Ok(Attempt::whole(updates.filtered(&mask)?));
    }
    let held = updates
        .iter()
        .map(|update| condition.holds(&[update.row]).ok());
    let held: Vec<Option<bool>> = held.collect();
    let known: Vec<bool> = held.iter().copied().flatten().collect();
    let known = BooleanArray::from(known);
    if known.len() == updates.len() {
        return Ok(Attempt::whole(updates.filtered(&known)?));
    }
    let has_result: Vec<bool> = held.iter().map(Option::is_some).collect();
    Attempt::part(&updates, &has_result.into(), |left| {
        Ok(left.filtered(&known)?)
    })
}

/// Returns the error of the first row of which one of some expressions, each with its text, has no result.
pub(super) fn error_of<'a>(
    exprs: &[(String, Expr)],
    rows: impl IntoIterator<Item = Row<'a>>,
) -> Option<Error> {
    let mut projections: Vec<_> = exprs
        .iter()
        .map(|(written, expr)| (written, Projection::new(expr.clone(), Nulls::Unknown)))
        .collect();
    for row in rows {
        for (written, projection) in &mut projections {
            if let Err(failure) = projection.apply(&[row]) {
                return Some(no_result(written, failure, row));
            }
        }
    }
    None
}

#[cold]
fn no_result(written: &str, failure: Failure, row: Row<'_>) -> Error {
    let Failure::Overflow(symbol, _) = failure else {
        return Error::Expression(failure);
    };
    let no_result = ColumnsError::NoResult {
        expr: written.to_owned(),
        why: format!(
            "the result of {symbol} is no int of 64 bits: cast a value to decimal128(38, 0) or float64"
        ),
        overflow: true,
        row: Box::new(RowBuf::of(row)),
    };
    no_result.into()
}
