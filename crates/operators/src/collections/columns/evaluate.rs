//! Expressions over a single record batch: for streams of columns, whose batches hold columns of any type.
//!
//! An expression has the meaning that it has for a collection's columns. Only the columns that it reads need types
//! that a collection supports.

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{Field, Schema};
use pointstamp_arrange::Rows;
use pointstamp_columnar::physical::from_physical;
use pointstamp_columnar::selection::rows_where;
use pointstamp_rows::expressions::{Condition, Expr, Failure, Nulls, Projection};

use super::kernels::{Scalar, plainly};
use super::plain::{PlainColumns, only_true};
use super::types::{condition, typed};
use super::write::columns_of_rows;
use super::{computed, eval, plain_exprs};
use crate::Error;

/// Returns the columns that expressions make of the columns of a batch.
///
/// # Errors
///
/// As of [`typed`]; [`Error::Expression`] for a row of which one has no result, such as a sum of more than 64 bits.
pub fn select_batch(
    batch: &RecordBatch,
    columns: impl IntoIterator<Item = (String, Expr)>,
) -> Result<RecordBatch, Error> {
    let columns = columns.into_iter();
    let made = columns.map(|(name, expr)| Ok((name, evaluate(batch, &expr)?, true)));
    let made = made.collect::<Result<Vec<_>, Error>>()?;
    Ok(RecordBatch::try_from_iter_with_nullable(made).map_err(pointstamp_columnar::Error::from)?)
}

/// Returns the rows of a batch of which a condition is true; it is not where it is unknown.
///
/// # Errors
///
/// As of [`condition`]; [`Error::Expression`] for a row of which it has no result.
pub fn filter_batch(batch: &RecordBatch, expr: &Expr) -> Result<RecordBatch, Error> {
    Ok(rows_where(batch, &holds(batch, expr)?)?)
}

/// The column that an expression makes.
fn evaluate(batch: &RecordBatch, expr: &Expr) -> Result<ArrayRef, Error> {
    // With all columns, which errors name.
    if plainly(expr, typed(expr, &batch.schema()))?.is_none() {
        Scalar::new(expr, &batch.schema())?;
        let batch = read_by(batch, expr)?;
        return computed::column(&batch, &Scalar::new(expr, &batch.schema())?);
    }
    let batch = read_by(batch, expr)?;
    let (plain, data_type) = typed(expr, &batch.schema())?;
    let columns = PlainColumns::of(&batch)?;
    let exprs = [plain.clone()];
    if let Some(made) = eval::select(&columns, &exprs)
        && let Ok(column) = from_physical(&made.arrays()[0], &data_type)
    {
        return Ok(column);
    }
    let mut projection = Projection::new(Expr::Tuple(exprs.into()), Nulls::Unknown);
    let rows = projection.apply_all(columns.rows());
    let rows = rows.map_err(|failure| failed(expr, plain, &columns, failure))?;
    let schema = Schema::new(vec![Field::new("", data_type, true)]);
    let mut made = columns_of_rows(&rows, &schema.into())?;
    Ok(made.remove(0))
}

/// For each row, whether a condition is true of it.
fn holds(batch: &RecordBatch, expr: &Expr) -> Result<BooleanArray, Error> {
    if plainly(expr, condition(expr, &batch.schema()))?.is_none() {
        Scalar::condition(expr, &batch.schema())?;
        let batch = read_by(batch, expr)?;
        let truth = computed::column(&batch, &Scalar::condition(expr, &batch.schema())?)?;
        return Ok(only_true(truth.as_boolean()));
    }
    let batch = read_by(batch, expr)?;
    let plain = condition(expr, &batch.schema())?;
    let columns = PlainColumns::of(&batch)?;
    if let Some(held) = eval::holds(&columns, &plain, Nulls::Unknown) {
        return Ok(held);
    }
    let mut condition = Condition::new(plain.clone(), Nulls::Unknown);
    let rows = columns.rows();
    let held = (0..rows.len()).map(|index| condition.holds(&[rows.get(index)]));
    let held = held.collect::<Result<Vec<_>, _>>();
    Ok(held
        .map_err(|failure| failed(expr, plain, &columns, failure))?
        .into())
}

/// The error of the first row of which an expression has no result.
#[cold]
fn failed(expr: &Expr, plain: Expr, columns: &PlainColumns, failure: Failure) -> Error {
    let rows = columns.rows();
    let rows = (0..rows.len()).map(|index| rows.get(index));
    let found = plain_exprs::error_of(&[(expr.to_string(), plain)], rows);
    found.unwrap_or(Error::Expression(failure))
}

/// The columns of a batch that an expression reads.
fn read_by(batch: &RecordBatch, expr: &Expr) -> Result<RecordBatch, Error> {
    let schema = batch.schema();
    let mut names = Vec::new();
    expr.for_each_column(&mut |name| names.push(name.to_owned()));
    let mut indices: Vec<_> = names
        .iter()
        .filter_map(|name| schema.index_of(name).ok())
        .collect();
    indices.sort_unstable();
    indices.dedup();
    Ok(batch
        .project(&indices)
        .map_err(pointstamp_columnar::Error::from)?)
}
