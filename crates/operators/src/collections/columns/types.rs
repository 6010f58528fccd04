//! The types of expressions over columns, from the columns' types.
//!
//! Rows hold dates and decimals as integers, so that a comparison with a number would have an unintended result: it
//! is refused here. So are sums of text.

use arrow_schema::{DataType, SchemaRef};
use pointstamp_rows::expressions::{Expr, Op, Relation, Unresolved};
use pointstamp_rows::terms::{Atom, Plain, atom};
use pointstamp_rows::{Layout, Row, RowBuf};

use super::ColumnsError;

/// The result of looking at an expression's types.
type Typing<T> = Result<T, ColumnsError>;

/// A class of types whose values can be compared.
#[derive(PartialEq)]
enum Class {
    Number,
    Text,
    Bytes,
    Null,
    /// Values of this type alone.
    Only(DataType),
}

fn class(data_type: &DataType) -> Class {
    use DataType as D;
    match data_type {
        D::Boolean => Class::Number,
        D::Utf8 | D::LargeUtf8 | D::Utf8View => Class::Text,
        D::Binary | D::LargeBinary | D::BinaryView => Class::Bytes,
        D::Null => Class::Null,
        number if number.is_integer() || number.is_floating() => Class::Number,
        other => Class::Only(other.clone()),
    }
}

/// Resolves an expression over columns by name, and returns it with the type of its result.
///
/// # Errors
///
/// [`ColumnsError`] for a missing column, and for an expression without a meaning for a type.
pub fn typed(expr: &Expr, schema: &SchemaRef) -> Typing<(Expr, DataType)> {
    found(expr, schema)?; // before its type is asked for
    let data_type = type_of(expr, schema)?;
    Ok((found(&meant(expr, schema)?, schema)?, data_type))
}

/// A condition on columns, with the columns found.
///
/// # Errors
///
/// As of [`typed`], and for an expression that is neither true nor false.
pub fn condition(expr: &Expr, schema: &SchemaRef) -> Typing<Expr> {
    found(expr, schema)?; // before its type is asked for
    type_of(expr, schema)?;
    found(&truth(expr, schema)?, schema)
}

/// The expression with an item of the row for each column. Types are of the expression as it was written, so that errors
/// show it so.
fn found(expr: &Expr, schema: &SchemaRef) -> Typing<Expr> {
    Ok(expr.resolved(&[], &names_of(schema))?)
}

fn names_of(schema: &SchemaRef) -> Vec<String> {
    let fields = schema.fields().iter();
    fields.map(|field| field.name().clone()).collect()
}

/// Rewrites an expression by the types of its columns, where rows have integers for floats and for booleans.
fn meant(expr: &Expr, schema: &SchemaRef) -> Typing<Expr> {
    Ok(match expr {
        Expr::Binary(op @ (Op::And | Op::Or), a, b) => {
            Expr::Binary(*op, truth(a, schema)?.into(), truth(b, schema)?.into())
        }
        Expr::Binary(op, a, b) => {
            let (left, right) = (meant(a, schema)?.into(), meant(b, schema)?.into());
            if type_of(expr, schema)?.is_floating() {
                Expr::Floats(*op, left, right)
            } else {
                Expr::Binary(*op, left, right)
            }
        }
        Expr::Not(of) => Expr::Not(truth(of, schema)?.into()),
        Expr::IsNull(of) => Expr::IsNull(meant(of, schema)?.into()),
        other => other.clone(),
    })
}

/// A condition in which a column of booleans, which rows hold as integers, is compared with the one for true.
fn truth(expr: &Expr, schema: &SchemaRef) -> Typing<Expr> {
    if let Expr::Binary(Op::Compare(_) | Op::And | Op::Or, ..) | Expr::Not(_) | Expr::IsNull(_) =
        expr
    {
        return meant(expr, schema);
    }
    let found = type_of(expr, schema)?;
    if found != DataType::Boolean {
        return Err(ColumnsError::NoCondition {
            expr: expr.clone(),
            data_type: found,
        });
    }
    let mut one = RowBuf::default();
    one.int(1);
    let (of, one) = (expr.clone().into(), Expr::Constant(one.into()).into());
    Ok(Expr::Binary(Op::Compare(Relation::Eq), of, one))
}

fn type_of(expr: &Expr, schema: &SchemaRef) -> Typing<DataType> {
    Ok(match expr {
        Expr::Column(name) => match schema.field_with_name(name) {
            Ok(field) => field.data_type().clone(),
            Err(_) => return Err(Unresolved::Column(name.clone(), names_of(schema)).into()),
        },
        Expr::Constant(row) => constant(row)?,
        Expr::Binary(op, a, b) => {
            let types = (type_of(a, schema)?, type_of(b, schema)?);
            if let Op::Compare(_) = op {
                for (one, other) in [(a, b), (b, a)] {
                    if matches!(&**one, Expr::Constant(row) if row.get().is_none()) {
                        return Err(ColumnsError::NeverTrue {
                            expr: expr.clone(),
                            instead: Expr::IsNull(other.clone()),
                        });
                    }
                }
            }
            of_two(*op, expr, types)?
        }
        Expr::Floats(..) => DataType::Float64,
        Expr::Not(of) | Expr::IsNull(of) => {
            type_of(of, schema)?;
            DataType::Boolean
        }
        Expr::Item(..) | Expr::Tuple(_) | Expr::Source(_) | Expr::Call(..) => {
            return Err(ColumnsError::NoColumn(expr.clone()));
        }
    })
}

pub(super) fn constant(row: &RowBuf) -> Typing<DataType> {
    Ok(match row.get() {
        Row::Ints(Layout::INT, _) => DataType::Int64,
        Row::Ints(Layout::NONE, _) => DataType::Null,
        Row::Term(term) if row.get().truth().is_none() => match (row.get().number(), atom(term)) {
            (Some(Plain::Float(_)), _) => DataType::Float64,
            (_, Some(Atom::Text(_))) => DataType::LargeUtf8,
            (_, Some(Atom::Bytes(_))) => DataType::LargeBinary,
            _ => return Err(ColumnsError::NoConstant),
        },
        Row::Term(_) => DataType::Boolean,
        Row::Ints(..) => return Err(ColumnsError::NoConstant),
    })
}

/// The type of the result of two values.
fn of_two(op: Op, expr: &Expr, (a, b): (DataType, DataType)) -> Typing<DataType> {
    let (left, right) = (class(&a), class(&b));
    let refused = || ColumnsError::NoMeaning {
        expr: expr.clone(),
        left: a.clone(),
        right: b.clone(),
    };
    match op {
        Op::And | Op::Or => Ok(DataType::Boolean),
        Op::Compare(_) => {
            let alike = left == right || left == Class::Null || right == Class::Null;
            alike.then_some(DataType::Boolean).ok_or_else(refused)
        }
        _ if left != Class::Number || right != Class::Number => Err(refused()),
        Op::Div => Ok(DataType::Float64),
        _ if a.is_floating() || b.is_floating() => Ok(DataType::Float64),
        _ => Ok(DataType::Int64),
    }
}
