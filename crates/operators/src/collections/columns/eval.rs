//! Expressions over columns, by Arrow's kernels.
//!
//! An expression has the meaning that it has for rows (`pointstamp_rows::expressions`). Where a kernel's meaning is
//! another, or it fails, there is no result here and the rows decide: they stop at the part of a condition that
//! decides it, and their error names the operator and the record.

use std::sync::Arc;

use arrow_arith::boolean::{and_kleene, is_null, not, or_kleene};
use arrow_arith::numeric::{add, add_wrapping, div, mul, mul_wrapping, sub, sub_wrapping};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Datum};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType};
use pointstamp_rows::expressions::{Expr, Nulls, Op, Relation, Source};
use pointstamp_rows::{Row, RowBuf};

use super::constants::constant;
use super::kernels::values::{Value, combined, comparison};
use super::plain::{PlainColumns, Shape, one_zero, only_true};

/// Returns the columns that expressions make of columns; nothing where rows have to decide.
pub(crate) fn select(columns: &PlainColumns, exprs: &[Expr]) -> Option<PlainColumns> {
    let nulls = Nulls::Unknown;
    let of = Columns { columns, nulls };
    let made = exprs.iter().map(|expr| of.column(expr));
    Some(PlainColumns::new(
        made.collect::<Option<_>>()?,
        columns.len(),
    ))
}

/// Returns the rows of which a condition is true; nothing where rows have to decide.
pub(crate) fn holds(columns: &PlainColumns, expr: &Expr, nulls: Nulls) -> Option<BooleanArray> {
    let truth = Columns { columns, nulls }.truth(expr)?;
    Some(only_true(&truth))
}

/// Expressions nest tuples at most so deep, where rows are made of columns at once.
const DEPTH: u32 = 8;

/// Returns the form of the rows that an expression makes, where it only puts columns together.
pub(crate) fn shape<'a>(columns: &'a PlainColumns, expr: &Expr) -> Option<Shape<'a>> {
    if expr.depth() > DEPTH {
        return None;
    }
    Some(match expr {
        Expr::Source(Source::Record) => {
            Shape::Tuple(columns.arrays().iter().map(Shape::Column).collect())
        }
        Expr::Item(of, index) if matches!(**of, Expr::Source(Source::Record)) => {
            Shape::Column(columns.arrays().get(*index)?)
        }
        Expr::Constant(row) if matches!(row.get(), Row::Ints(..)) => {
            Shape::Constant(RowBuf::clone(row))
        }
        Expr::Tuple(parts) => {
            let parts = parts.iter().map(|part| shape(columns, part));
            Shape::Tuple(parts.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// The numbers as floats, as Python converts them; `None` for other values, and for integers of more than
/// 64 bits.
fn floats(value: &Value) -> Option<Value> {
    match value.array().data_type() {
        DataType::Float64 => Some(value.with(Arc::clone(value.array()))),
        DataType::Int64 => Some(value.with(cast(value.array(), &DataType::Float64).ok()?)),
        _ => None,
    }
}

/// Whether all are integers that are floats, too, so that they are compared with floats as such.
fn are_exact(value: &Value) -> bool {
    let exact = |value: &i64| value.unsigned_abs() <= 1 << 53;
    let ints = value.array().as_primitive_opt::<Int64Type>();
    ints.is_some_and(|ints| ints.values().iter().all(exact))
}

/// The columns that expressions read.
struct Columns<'a> {
    columns: &'a PlainColumns,
    nulls: Nulls,
}

impl Columns<'_> {
    /// The column that an expression is.
    fn column(&self, expr: &Expr) -> Option<ArrayRef> {
        self.value(expr)?.spread(self.columns.len()).ok()
    }

    fn value(&self, expr: &Expr) -> Option<Value> {
        Some(match expr {
            Expr::Item(of, index) if matches!(**of, Expr::Source(Source::Record)) => {
                Value::Column(Arc::clone(self.columns.arrays().get(*index)?))
            }
            Expr::Constant(row) => Value::Constant(constant(row)?),
            Expr::Binary(op @ (Op::Add | Op::Sub | Op::Mul), a, b) => {
                let (a, b) = self.both(a, b)?;
                if [&a, &b]
                    .iter()
                    .any(|of| *of.array().data_type() != DataType::Int64)
                {
                    return None;
                }
                let kernel = match op {
                    Op::Add => add,
                    Op::Sub => sub,
                    _ => mul,
                };
                apply(kernel, &a, &b)?
            }
            Expr::Floats(op, a, b) => {
                let (a, b) = self.both(a, b)?;
                let (a, b) = (floats(&a)?, floats(&b)?);
                let kernel = match op {
                    Op::Add => add_wrapping,
                    Op::Sub => sub_wrapping,
                    Op::Mul => mul_wrapping,
                    _ if has_zero(b.array()) => return None,
                    _ => div,
                };
                let made = apply(kernel, &a, &b)?;
                made.with(one_zero(Arc::clone(made.array())))
            }
            Expr::Binary(Op::Compare(_) | Op::And | Op::Or, ..)
            | Expr::Not(_)
            | Expr::IsNull(_) => {
                let truth = self.truth(expr)?;
                Value::Column(cast(&truth, &DataType::Int64).ok()?)
            }
            _ => return None,
        })
    }

    /// The values of two expressions, if the mode of nulls lets a kernel look at them.
    fn both(&self, a: &Expr, b: &Expr) -> Option<(Value, Value)> {
        let both = (self.value(a)?, self.value(b)?);
        let known = |value: &Value| value.array().logical_null_count() == 0;
        (self.nulls == Nulls::Unknown || known(&both.0) && known(&both.1)).then_some(both)
    }

    /// Whether an expression is true of each row; null where that is unknown.
    fn truth(&self, expr: &Expr) -> Option<BooleanArray> {
        match expr {
            Expr::Binary(Op::Compare(relation), a, b) => {
                let (a, b) = self.both(a, b)?;
                self.compared(*relation, a, b)
            }
            Expr::Binary(Op::And, a, b) => and_kleene(&self.truth(a)?, &self.truth(b)?).ok(),
            Expr::Binary(Op::Or, a, b) => or_kleene(&self.truth(a)?, &self.truth(b)?).ok(),
            Expr::Not(of) => not(&self.truth(of)?).ok(),
            Expr::IsNull(of) => {
                let value = self.value(of)?;
                let none = is_null(value.array()).ok()?;
                Some(self.spread(&value, none))
            }
            _ => None, // rows know which of their integers are bools
        }
    }

    fn compared(&self, relation: Relation, a: Value, b: Value) -> Option<BooleanArray> {
        let (a, b) = match (a.array().data_type(), b.array().data_type()) {
            (DataType::Null, _) | (_, DataType::Null) => {
                return Some(BooleanArray::new_null(self.columns.len()));
            }
            (left, right) if left == right => (a, b),
            (DataType::Int64, wide @ DataType::Decimal128(..)) => {
                let ints = a.with(cast(a.array(), wide).ok()?);
                (ints, b)
            }
            (wide @ DataType::Decimal128(..), DataType::Int64) => {
                let ints = b.with(cast(b.array(), wide).ok()?);
                (a, ints)
            }
            (DataType::Int64, DataType::Float64) if are_exact(&a) => (floats(&a)?, b),
            (DataType::Float64, DataType::Int64) if are_exact(&b) => (a, floats(&b)?),
            _ => return None,
        };
        let made = comparison(relation)(&*a.datum(), &*b.datum()).ok()?;
        let constant = matches!((&a, &b), (Value::Constant(_), Value::Constant(_)));
        Some(if constant {
            self.spread(&a, made)
        } else {
            made
        })
    }

    /// Extends a truth value to all rows, where the value is a constant.
    fn spread(&self, value: &Value, truth: BooleanArray) -> BooleanArray {
        match value {
            Value::Column(_) => truth,
            Value::Constant(_) if truth.is_null(0) => BooleanArray::new_null(self.columns.len()),
            Value::Constant(_) => {
                let all = std::iter::repeat_n(Some(truth.value(0)), self.columns.len());
                all.collect()
            }
        }
    }
}

/// Applies a kernel; nothing where it fails.
fn apply(
    kernel: fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>,
    a: &Value,
    b: &Value,
) -> Option<Value> {
    let made = kernel(&*a.datum(), &*b.datum()).ok()?;
    Some(combined(a, b, made))
}

/// Whether one of the floats, of which there is one zero, is 0.
fn has_zero(floats: &ArrayRef) -> bool {
    let floats = floats.as_primitive_opt::<Float64Type>();
    floats.is_none_or(|floats| floats.iter().flatten().any(|value| value == 0.0))
}
