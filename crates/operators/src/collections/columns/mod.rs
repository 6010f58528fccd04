//! Collections of columns: record batches as rows, and rows as record batches.
//!
//! Between arrangements, updates carry columns of plain values ([`PlainColumns`]), and expressions are kernels over them
//! (`eval`), or over columns of their own types where the types matter (`kernels`). An arrangement keeps rows, which are made of the columns where it reads them.
//!
//! A row is the tuple of a record batch's columns, of values in the plain form of the crate `columnar`: integers for
//! dates, times and booleans, too. The schema, which the dataflow knows, has their types. So rows of columns are rows
//! like those of the host's tuples, and the same operators run on both; where all columns are integers without nulls,
//! rows are words from end to end. [`typed`] refuses expressions that have no meaning for a column's type, while the
//! dataflow is built.

mod attempt;
mod changes;
mod collect;
mod computed;
mod constants;
mod error;
pub(crate) mod eval;
mod evaluate;
mod kernels;
pub(crate) mod plain;
mod plain_exprs;
#[cfg(test)]
mod tests;
mod types;
mod updates;
pub(crate) mod write;

use arrow_schema::{Field, Schema, SchemaRef};
use pointstamp_columnar::physical::physical;
use pointstamp_rows::expressions::{Condition, Expr, Nulls, Projection};

use self::attempt::attempt;
use self::kernels::{Scalar, plainly};
use super::Updates;
use super::project::{filter, on_updates};
use crate::Error;
use crate::typed::Typed;

pub use changes::{Changes, ChangesOf};
pub use collect::{collect, collect_schema};
pub use error::{ColumnsError, Misplaced};
pub use evaluate::{filter_batch, select_batch};
pub use plain::{PlainColumns, pieces};
pub use types::{condition, typed};
pub use updates::{batch_of, updates, with_changes};

use updates::time_type;

/// Refuses a schema with a column that a collection cannot keep, or with two of one name.
///
/// # Errors
///
/// [`ColumnsError::SameName`] and [`ColumnsError::Unkept`].
pub fn check_columns(schema: &SchemaRef) -> Result<(), ColumnsError> {
    for (index, column) in schema.fields().iter().enumerate() {
        if schema.index_of(column.name()).ok() != Some(index) {
            return Err(ColumnsError::SameName {
                name: column.name().clone(),
            });
        }
        if physical(column.data_type()).is_none() {
            return Err(ColumnsError::Unkept {
                name: column.name().clone(),
                data_type: column.data_type().clone(),
            });
        }
    }
    Ok(())
}

/// Computes columns of the columns of each row.
///
/// # Errors
///
/// [`ColumnsError`] for an expression that has no meaning for the types of its columns; errors of building an operator.
pub fn select(
    stream: &Typed<Updates>,
    schema: &SchemaRef,
    columns: impl IntoIterator<Item = (String, Expr)>,
) -> Result<Typed<Updates>, Error> {
    let columns: Vec<_> = columns.into_iter().collect();
    let (chosen, _) = selected(schema, columns.iter().cloned())?;
    let exprs = match chosen {
        Selected::Plain(exprs) => exprs,
        Selected::Kernels(scalars) => {
            let (schema, known) = (schema.clone(), (scalars.clone(), schema.clone()));
            return attempt(
                stream,
                "select",
                move |updates| computed::select(updates, &scalars, &schema),
                move |row| computed::error_of(&known.0, &known.1, row),
            );
        }
    };
    let mut projection = Projection::new(Expr::Tuple(exprs.clone().into()), Nulls::Unknown);
    if !exprs.iter().any(plain_exprs::may_fail) {
        return on_updates(stream, "select", move |updates| {
            Ok(plain_exprs::select(updates, &exprs, &mut projection)?.made)
        });
    }
    let written = columns.iter().map(|(_, expr)| expr.to_string());
    let known: Vec<_> = written.zip(exprs.iter().cloned()).collect();
    attempt(
        stream,
        "select",
        move |updates| plain_exprs::select(updates, &exprs, &mut projection),
        move |row| plain_exprs::error_of(&known, [row]),
    )
}

/// Returns the schema of the result of [`select`].
///
/// # Errors
///
/// [`ColumnsError`] for an expression that has no meaning for the types of its columns.
pub fn select_schema(
    schema: &SchemaRef,
    columns: impl IntoIterator<Item = (String, Expr)>,
) -> Result<SchemaRef, ColumnsError> {
    selected(schema, columns).map(|(_, result)| result)
}

/// The expressions of columns.
enum Selected {
    /// All have a meaning for plain values.
    Plain(Vec<Expr>),
    Kernels(Vec<Scalar>),
}

fn selected(
    schema: &SchemaRef,
    columns: impl IntoIterator<Item = (String, Expr)>,
) -> Result<(Selected, SchemaRef), ColumnsError> {
    let columns: Vec<_> = columns.into_iter().collect();
    let (mut exprs, mut fields) = (Vec::new(), Vec::new());
    for (name, expr) in &columns {
        let Some((expr, data_type)) = plainly(expr, typed(expr, schema))? else {
            break;
        };
        fields.push(Field::new(name, data_type, true));
        exprs.push(expr);
    }
    if exprs.len() == columns.len() {
        return Ok((Selected::Plain(exprs), Schema::new(fields).into()));
    }
    let scalars = columns.iter().map(|(_, expr)| Scalar::new(expr, schema));
    let scalars = scalars.collect::<Result<Vec<_>, _>>()?;
    let named = columns.iter().zip(&scalars);
    let fields: Vec<_> = named
        .map(|((name, _), scalar)| Field::new(name, scalar.data_type().clone(), true))
        .collect();
    Ok((Selected::Kernels(scalars), Schema::new(fields).into()))
}

/// Keeps the rows of which a condition on the columns is true.
///
/// # Errors
///
/// As [`select`]; [`ColumnsError::NoCondition`] for an expression that is neither true nor false.
pub fn keep(
    stream: &Typed<Updates>,
    schema: &SchemaRef,
    expr: &Expr,
) -> Result<Typed<Updates>, Error> {
    if let Some(plain) = plainly(expr, condition(expr, schema))? {
        let mut condition = Condition::new(plain.clone(), Nulls::Unknown);
        if !plain_exprs::may_fail(&plain) {
            return filter(stream, condition, "filter");
        }
        let known = [(expr.to_string(), plain)];
        return attempt(
            stream,
            "filter",
            move |updates| plain_exprs::keep(updates, &mut condition),
            move |row| plain_exprs::error_of(&known, [row]),
        );
    }
    let (scalar, schema) = (Scalar::condition(expr, schema)?, schema.clone());
    let known = ([scalar.clone()], schema.clone());
    attempt(
        stream,
        "filter",
        move |updates| computed::keep(updates, &scalar, &schema),
        move |row| computed::error_of(&known.0, &known.1, row),
    )
}

/// Refuses a condition that [`keep`] has no meaning for.
///
/// # Errors
///
/// As [`keep`].
pub fn check_condition(expr: &Expr, schema: &SchemaRef) -> Result<(), ColumnsError> {
    if plainly(expr, condition(expr, schema))?.is_none() {
        Scalar::condition(expr, schema)?;
    }
    Ok(())
}
