//! Scalars applied to updates and to record batches, and rows of which one has no result.
//!
//! Cost: a batch in which a row has no result is computed again row by row.

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use pointstamp_arrange::Rows;
use pointstamp_engine::error::BoxError;
use pointstamp_rows::{Cells, Row, RowBuf};

use super::attempt::Attempt;
use super::error::ColumnsError;
use super::kernels::Scalar;
use super::plain::PlainColumns;
use super::write::{columns_of, columns_of_rows};
use crate::Error;
use crate::collections::Updates;

/// Returns the updates with the columns that scalars make of a schema's columns.
pub(super) fn select(
    updates: Updates,
    scalars: &[Scalar],
    schema: &SchemaRef,
) -> Result<Attempt, BoxError> {
    let own = own_columns(&updates, schema)?;
    let len = updates.len();
    if let Ok(made) = plain(&updates, scalars, &own, len) {
        return Ok(Attempt::whole(
            updates.with_columns(PlainColumns::new(made, len)),
        ));
    }
    Attempt::part(&updates, &has_results(scalars, &own, len), |left| {
        let own = own_columns(&left, schema)?;
        let len = left.len();
        let made = plain(&left, scalars, &own, len).map_err(pointstamp_columnar::Error::from)?;
        Ok(left.with_columns(PlainColumns::new(made, len)))
    })
}

/// Returns the updates of rows of which a condition is true.
pub(super) fn keep(
    updates: Updates,
    condition: &Scalar,
    schema: &SchemaRef,
) -> Result<Attempt, BoxError> {
    let own = own_columns(&updates, schema)?;
    if let Ok(mask) = condition.holds(&own, updates.len()) {
        return Ok(Attempt::whole(updates.filtered(&mask)?));
    }
    let scalars = std::slice::from_ref(condition);
    Attempt::part(
        &updates,
        &has_results(scalars, &own, updates.len()),
        |left| {
            let own = own_columns(&left, schema)?;
            let mask = condition.holds(&own, left.len());
            Ok(left.filtered(&mask.map_err(pointstamp_columnar::Error::from)?)?)
        },
    )
}

/// Returns the error of a row of which one of some scalars has no result.
pub(super) fn error_of(scalars: &[Scalar], schema: &SchemaRef, row: Row<'_>) -> Option<Error> {
    let mut rows = Cells::default();
    rows.push(row);
    let own = match columns_of_rows(&rows, schema) {
        Ok(own) => own,
        Err(error) => return Some(error),
    };
    scalars.iter().find_map(|scalar| {
        let error = scalar.plain(&own, 1).err()?;
        Some(no_result(scalar, &error, row).into())
    })
}

/// Returns the column that a scalar makes of a batch.
///
/// # Errors
///
/// [`ColumnsError::NoResult`] for a row of which it has no result.
pub(super) fn column(batch: &RecordBatch, scalar: &Scalar) -> Result<ArrayRef, Error> {
    let values = scalar.values(batch.columns(), batch.num_rows());
    values.or_else(|error| {
        for index in 0..batch.num_rows() {
            let one = batch.slice(index, 1);
            if let Err(error) = scalar.values(one.columns(), 1) {
                let row = PlainColumns::of(&one)?;
                return Err(no_result(scalar, &error, row.rows().get(0)).into());
            }
        }
        Err(pointstamp_columnar::Error::from(error).into())
    })
}

/// The columns of a schema that the updates have, of their own types.
fn own_columns(updates: &Updates, schema: &SchemaRef) -> Result<Vec<ArrayRef>, Error> {
    let own = updates
        .columns()
        .and_then(|columns| columns_of(columns, schema));
    match own {
        Some(own) => Ok(own),
        None => columns_of_rows(updates.rows(), schema), // whose errors name the row
    }
}

/// The plain values of scalars. A column that is kept as it is, is not converted to its type and back.
fn plain(
    updates: &Updates,
    scalars: &[Scalar],
    own: &[ArrayRef],
    len: usize,
) -> Result<Vec<ArrayRef>, ArrowError> {
    let columns = updates.columns();
    let made = scalars.iter().map(|scalar| match (scalar.kept(), columns) {
        (Some(index), Some(columns)) => Ok(columns.arrays()[index].clone()),
        _ => scalar.plain(own, len),
    });
    made.collect()
}

/// A mask of the rows that all scalars have a result for.
fn has_results(scalars: &[Scalar], own: &[ArrayRef], len: usize) -> BooleanArray {
    let has_results = |index| {
        let one: Vec<_> = own.iter().map(|column| column.slice(index, 1)).collect();
        scalars.iter().all(|scalar| scalar.plain(&one, 1).is_ok())
    };
    (0..len).map(|index| Some(has_results(index))).collect()
}

#[cold]
fn no_result(scalar: &Scalar, error: &ArrowError, row: Row<'_>) -> ColumnsError {
    let (why, overflow) = match error {
        ArrowError::ArithmeticOverflow(why) => (why.clone(), true),
        ArrowError::CastError(why)
        | ArrowError::ComputeError(why)
        | ArrowError::ParseError(why)
        | ArrowError::InvalidArgumentError(why) => {
            (why.clone(), why.contains("too large to store"))
        }
        other => (other.to_string(), false),
    };
    ColumnsError::NoResult {
        expr: scalar.written().to_owned(),
        why,
        overflow,
        row: Box::new(RowBuf::of(row)),
    }
}
