//! Expressions over columns of their own types: decimals, dates, text and functions, by Arrow's kernels.
//!
//! The plain evaluator (`eval`) covers numbers, comparisons of like types and conditions, on plain values. An expression
//! that it has no meaning for is made a [`Scalar`] once, when the dataflow is built: each node has its type, and casts
//! between types are nodes. Then a batch is computed node by node, on arrays of the columns' own types.
//!
//! Types are those of SQL as `DuckDB` has them: a product of decimals adds their scales, a quotient is a double, a date and an
//! interval are a timestamp. A null is unknown; a division by 0 is null.

mod functions;
mod node;
mod typing;
pub(super) mod values;

use std::sync::Arc;

use arrow_arith::boolean::{and_kleene, is_null, not, or_kleene};
use arrow_arith::numeric::{add, div, mul, rem, sub};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Scalar as One, new_null_array};
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::filter::filter;
use arrow_select::interleave::interleave;
use arrow_select::nullif::nullif;
use pointstamp_columnar::physical::to_physical;
use pointstamp_rows::expressions::{Expr, Relation};

use self::node::{Arithmetic, Kind, Node};
use self::values::{Value, casted, combined, comparison};
use super::error::ColumnsError;
use super::plain::{one_zero, only_true};

/// An expression with its type.
#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    /// The expression as it was written, for errors.
    written: String,
    node: Node,
}

/// The columns that an expression reads, and their number of rows.
struct Batch<'a> {
    columns: &'a [ArrayRef],
    len: usize,
}

impl Scalar {
    /// Returns the scalar of an expression over columns by name.
    ///
    /// # Errors
    ///
    /// [`ColumnsError`] for a missing column, and for an expression without a meaning for a type.
    pub(crate) fn new(expr: &Expr, schema: &SchemaRef) -> Result<Self, ColumnsError> {
        Ok(Scalar {
            written: expr.to_string(),
            node: typing::node(expr, schema)?,
        })
    }

    /// Returns the scalar of a condition.
    ///
    /// # Errors
    ///
    /// As [`Scalar::new`], and for an expression that is neither true nor false.
    pub(crate) fn condition(expr: &Expr, schema: &SchemaRef) -> Result<Self, ColumnsError> {
        Ok(Scalar {
            written: expr.to_string(),
            node: typing::truth(expr, schema)?,
        })
    }

    /// Returns true if an expression is of functions: no evaluator but this computes it.
    pub(crate) fn calls(expr: &Expr) -> bool {
        match expr {
            Expr::Call(..) => true,
            Expr::Source(_) | Expr::Column(_) | Expr::Constant(_) => false,
            Expr::Item(of, _) | Expr::Not(of) | Expr::IsNull(of) => Scalar::calls(of),
            Expr::Tuple(parts) => parts.iter().any(Scalar::calls),
            Expr::Binary(_, a, b) | Expr::Floats(_, a, b) => Scalar::calls(a) || Scalar::calls(b),
        }
    }

    /// Returns the index of the column that the values are, as they are.
    pub(super) fn kept(&self) -> Option<usize> {
        match self.node.kind {
            Kind::Column(index) => Some(index),
            _ => None,
        }
    }

    /// Returns the type of the values.
    pub(crate) fn data_type(&self) -> &DataType {
        &self.node.data_type
    }

    /// Returns the expression as it was written.
    pub(crate) fn written(&self) -> &str {
        &self.written
    }

    /// Computes the values of rows.
    pub(crate) fn values(&self, columns: &[ArrayRef], len: usize) -> Result<ArrayRef, ArrowError> {
        let batch = Batch { columns, len };
        batch.value(&self.node)?.spread(len)
    }

    /// Computes the plain values of rows.
    pub(crate) fn plain(&self, columns: &[ArrayRef], len: usize) -> Result<ArrayRef, ArrowError> {
        let plain = to_physical(&self.values(columns, len)?);
        Ok(one_zero(plain.map_err(|error| {
            ArrowError::ComputeError(error.to_string())
        })?))
    }

    /// Returns the rows of which the condition is true.
    pub(crate) fn holds(
        &self,
        columns: &[ArrayRef],
        len: usize,
    ) -> Result<BooleanArray, ArrowError> {
        Ok(only_true(self.values(columns, len)?.as_boolean()))
    }
}

impl Batch<'_> {
    fn value(&self, node: &Node) -> Result<Value, ArrowError> {
        let value = self.computed(node)?;
        if matches!(node.kind, Kind::Column(_)) {
            return Ok(value); // columns have one zero and one NaN
        }
        Ok(value.with(one_zero(Arc::clone(value.array()))))
    }

    fn computed(&self, node: &Node) -> Result<Value, ArrowError> {
        Ok(match &node.kind {
            Kind::Column(index) => Value::Column(Arc::clone(&self.columns[*index])),
            Kind::Constant(array) => Value::Constant(Arc::clone(array)),
            Kind::Arithmetic(op, of) => self.calculated(*op, of, &node.data_type)?,
            Kind::Compare(relation, of) => {
                let (a, b) = (self.value(&of[0])?, self.value(&of[1])?);
                let made = compared(*relation, &a, &b)?;
                combined(&a, &b, Arc::new(made))
            }
            Kind::And(of) => self.both(of, and_kleene)?,
            Kind::Or(of) => self.both(of, or_kleene)?,
            Kind::Not(of) => {
                let of = self.value(of)?;
                of.with(Arc::new(not(of.array().as_boolean())?))
            }
            Kind::IsNull(of) => {
                let of = self.value(of)?;
                of.with(Arc::new(is_null(of.array())?))
            }
            Kind::Cast { of, safe } => {
                let of = self.value(of)?;
                of.with(casted(of.array(), &node.data_type, *safe)?)
            }
            Kind::Case(branches, default) => Value::Column(self.case(branches, default)?),
            Kind::Coalesce(parts) => Value::Column(self.coalesced(parts, &node.data_type)?),
            Kind::IsIn(parts) => {
                let first = self.value(&parts[0])?;
                let mut found: Option<BooleanArray> = None;
                for other in &parts[1..] {
                    let other = self.value(other)?;
                    let same = combined(
                        &first,
                        &other,
                        Arc::new(cmp::eq(&*first.datum(), &*other.datum())?),
                    );
                    let same = same.spread(self.len)?;
                    found = Some(match found {
                        None => same.as_boolean().clone(),
                        Some(found) => or_kleene(&found, same.as_boolean())?,
                    });
                }
                let nothing = || BooleanArray::from(vec![false; self.len]);
                Value::Column(Arc::new(found.unwrap_or_else(nothing)))
            }
            Kind::Call(function, argument, parts) => {
                let parts = parts.iter().map(|part| self.value(part));
                let parts = parts.collect::<Result<Vec<_>, _>>()?;
                functions::call(*function, argument, &parts, &node.data_type, self.len)?
            }
        })
    }

    fn calculated(
        &self,
        op: Arithmetic,
        of: &[Node; 2],
        data_type: &DataType,
    ) -> Result<Value, ArrowError> {
        let (a, mut b) = (self.value(&of[0])?, self.value(&of[1])?);
        if matches!(op, Arithmetic::Div | Arithmetic::Rem) {
            let zero = casted(
                &(Arc::new(arrow_array::Int64Array::from(vec![0])) as ArrayRef),
                b.array().data_type(),
                false,
            )?;
            let zeros = cmp::eq(b.array(), &One::new(zero))?;
            b = b.with(nullif(b.array(), &only_true(&zeros))?);
        }
        let kernel = match op {
            Arithmetic::Add => add,
            Arithmetic::Sub => sub,
            Arithmetic::Mul => mul,
            Arithmetic::Div => div,
            Arithmetic::Rem => rem,
        };
        let made = kernel(&*a.datum(), &*b.datum())?;
        let made = match (made.data_type(), data_type) {
            (DataType::Decimal128(..), DataType::Decimal128(precision, scale)) => {
                use arrow_array::types::Decimal128Type;
                let digits = made.as_primitive::<Decimal128Type>();
                digits.validate_decimal_precision(*precision)?;
                let digits = digits
                    .clone()
                    .with_precision_and_scale(*precision, *scale)?;
                Arc::new(digits)
            }
            (found, wanted) if found != wanted => casted(&made, wanted, false)?,
            _ => made,
        };
        Ok(combined(&a, &b, made))
    }

    fn both(
        &self,
        of: &[Node; 2],
        kernel: fn(&BooleanArray, &BooleanArray) -> Result<BooleanArray, ArrowError>,
    ) -> Result<Value, ArrowError> {
        let a = self.value(&of[0])?.spread(self.len)?;
        let b = self.value(&of[1])?.spread(self.len)?;
        Ok(Value::Column(Arc::new(kernel(
            a.as_boolean(),
            b.as_boolean(),
        )?)))
    }

    /// The rows of which a mask is true.
    fn part(&self, mask: &BooleanArray) -> Result<Vec<ArrayRef>, ArrowError> {
        let columns = self.columns.iter();
        columns.map(|column| filter(column, mask)).collect()
    }

    /// Computes each value only for the rows that it is for: a row that has another value is no error.
    fn case(&self, branches: &[(Node, Node)], default: &Node) -> Result<ArrayRef, ArrowError> {
        let mut left: Vec<usize> = (0..self.len).collect();
        let mut places = vec![(0, 0); self.len];
        let mut values: Vec<ArrayRef> = Vec::new();
        let mut put = |rows: &[usize], value: ArrayRef| {
            for (index, row) in rows.iter().enumerate() {
                places[*row] = (values.len(), index);
            }
            values.push(value);
        };
        let mut columns = self.columns.to_vec();
        for (condition, value) in branches {
            let batch = Batch {
                columns: &columns,
                len: left.len(),
            };
            let truth = batch.value(condition)?.spread(batch.len)?;
            let truth = only_true(truth.as_boolean());
            let taken = batch.part(&truth)?;
            let other = not(&truth)?;
            let rest = batch.part(&other)?;
            let rows: Vec<usize> = truth.values().set_indices().map(|at| left[at]).collect();
            let own = Batch {
                columns: &taken,
                len: rows.len(),
            };
            put(&rows, own.value(value)?.spread(rows.len())?);
            left = other.values().set_indices().map(|at| left[at]).collect();
            columns = rest;
        }
        let batch = Batch {
            columns: &columns,
            len: left.len(),
        };
        put(&left, batch.value(default)?.spread(left.len())?);
        let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
        interleave(&values, &places)
    }

    fn coalesced(&self, parts: &[Node], data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let mut made = new_null_array(data_type, self.len);
        for part in parts.iter().rev() {
            let value = self.value(part)?.spread(self.len)?;
            let missing = is_null(&value)?;
            made = arrow_select::zip::zip(&missing, &made, &value)?;
        }
        Ok(made)
    }
}

fn compared(relation: Relation, a: &Value, b: &Value) -> Result<BooleanArray, ArrowError> {
    if *a.array().data_type() == DataType::Null {
        return Ok(BooleanArray::new_null(a.array().len().max(b.array().len())));
    }
    comparison(relation)(&*a.datum(), &*b.datum())
}

/// The result of typing an expression for plain values; nothing where it has a meaning only for the columns' own types.
pub(super) fn plainly<T>(
    expr: &Expr,
    typed: Result<T, ColumnsError>,
) -> Result<Option<T>, ColumnsError> {
    match typed {
        _ if Scalar::calls(expr) => Ok(None),
        Ok(typed) => Ok(Some(typed)),
        Err(ColumnsError::NoMeaning { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
