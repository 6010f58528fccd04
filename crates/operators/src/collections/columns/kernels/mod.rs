//! Expressions over columns of their own types: decimals, dates, text and functions, by Arrow's kernels.
//!
//! The plain evaluator (`eval`) covers numbers, comparisons of like types and conditions, on plain values. An expression
//! that it has no meaning for is made a [`Scalar`] once, when the dataflow is built: each node has its type, and casts
//! between types are nodes. Then a batch is computed node by node, on arrays of the columns' own types.
//!
//! Types are those of SQL as `DuckDB` has them: a product of decimals adds their scales, a quotient is a double, a date and an
//! interval are a timestamp. A null is unknown; a division by 0 is null.

pub(super) mod apply;
mod functions;
mod typing;

use std::sync::Arc;

use arrow_arith::boolean::{and_kleene, is_null, not, or_kleene};
use arrow_arith::numeric::{add, div, mul, rem, sub};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Datum, Scalar as One, UInt32Array, new_null_array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::filter::filter;
use arrow_select::interleave::interleave;
use arrow_select::nullif::nullif;
use arrow_select::take::take;
use pointstamp_columnar::physical::{from_physical, to_physical};
use pointstamp_rows::expressions::{Expr, Function, Relation};

use super::ColumnsError;
use super::plain::{PlainColumns, one_zero};

/// An expression with its type.
#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    /// The expression as it was written, for errors.
    written: String,
    node: Node,
}

/// A part of an expression and the type of its values.
#[derive(Clone, Debug)]
struct Node {
    data_type: DataType,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Column(usize),
    /// One value for all rows.
    Constant(ArrayRef),
    /// A calculation on two values of the types that its kernel takes.
    Arithmetic(Arithmetic, Box<[Node; 2]>),
    /// A comparison of two values of one type.
    Compare(Relation, Box<[Node; 2]>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Not(Box<Node>),
    IsNull(Box<Node>),
    /// A cast to the node's type. Safe: to null where there is no value.
    Cast {
        of: Box<Node>,
        safe: bool,
    },
    /// Conditions, each with its value, and the value where none is true.
    Case(Vec<(Node, Node)>, Box<Node>),
    Coalesce(Vec<Node>),
    /// The first equals one of the others.
    IsIn(Vec<Node>),
    Call(Function, Arc<str>, Vec<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

/// The columns that an expression reads, and their number of rows.
struct Batch<'a> {
    columns: &'a [ArrayRef],
    len: usize,
}

/// The value of a node for each row.
enum Value {
    Column(ArrayRef),
    /// One value, which all rows have.
    Constant(ArrayRef),
}

impl Value {
    fn datum(&self) -> Box<dyn Datum> {
        match self {
            Value::Column(array) => Box::new(Arc::clone(array)),
            Value::Constant(array) => Box::new(One::new(Arc::clone(array))),
        }
    }

    fn array(&self) -> &ArrayRef {
        let (Value::Column(array) | Value::Constant(array)) = self;
        array
    }

    /// The same, of another array.
    fn with(&self, array: ArrayRef) -> Value {
        match self {
            Value::Column(_) => Value::Column(array),
            Value::Constant(_) => Value::Constant(array),
        }
    }

    /// A column of so many rows.
    fn spread(self, len: usize) -> Result<ArrayRef, ArrowError> {
        match self {
            Value::Column(array) => Ok(array),
            Value::Constant(array) => take(&array, &UInt32Array::from(vec![0; len]), None),
        }
    }
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
        let scalar = Scalar::new(expr, schema)?;
        match scalar.node.data_type {
            DataType::Boolean | DataType::Null => Ok(Scalar {
                node: typing::to(scalar.node, &DataType::Boolean),
                ..scalar
            }),
            data_type => Err(ColumnsError::NoCondition {
                expr: expr.clone(),
                data_type,
            }),
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

/// Returns the columns of a schema, of their own types.
///
/// # Errors
///
/// [`ArrowError`] where a value does not fit its type.
pub(crate) fn own_types(
    columns: &PlainColumns,
    schema: &SchemaRef,
) -> Result<Vec<ArrayRef>, ArrowError> {
    let pairs = columns.arrays().iter().zip(schema.fields());
    let own = pairs.map(|(array, field)| {
        let data_type = field.data_type();
        let array = if data_type.is_decimal() && *array.data_type() == DataType::Int64 {
            arrow_cast::cast(array, &DataType::Decimal128(38, 0))?
        } else {
            Arc::clone(array)
        };
        from_physical(&array, data_type)
            .map_err(|error| ArrowError::ComputeError(error.to_string()))
    });
    own.collect()
}

impl Batch<'_> {
    fn value(&self, node: &Node) -> Result<Value, ArrowError> {
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

/// The mask without nulls, which are false.
pub(super) fn only_true(mask: &BooleanArray) -> BooleanArray {
    match mask.nulls() {
        None => mask.clone(),
        Some(known) => BooleanArray::new(mask.values() & known.inner(), None),
    }
}

/// The value of a kernel's result: constant where both arguments are.
fn combined(a: &Value, b: &Value, made: ArrayRef) -> Value {
    match (a, b) {
        (Value::Constant(_), Value::Constant(_)) => Value::Constant(made),
        _ => Value::Column(made),
    }
}

fn compared(relation: Relation, a: &Value, b: &Value) -> Result<BooleanArray, ArrowError> {
    let kernel = match relation {
        Relation::Eq => cmp::eq,
        Relation::Ne => cmp::neq,
        Relation::Lt => cmp::lt,
        Relation::Le => cmp::lt_eq,
        Relation::Gt => cmp::gt,
        Relation::Ge => cmp::gt_eq,
    };
    if *a.array().data_type() == DataType::Null {
        return Ok(BooleanArray::new_null(a.array().len().max(b.array().len())));
    }
    kernel(&*a.datum(), &*b.datum())
}

/// A cast; with an error where a value has none in the type, or safely to null.
fn casted(array: &ArrayRef, data_type: &DataType, safe: bool) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == data_type {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions {
        safe,
        ..CastOptions::default()
    };
    // Arrow cuts fractions off; SQL rounds them.
    if array.data_type().is_floating() && data_type.is_integer() {
        return cast_with_options(&functions::rounded(array), data_type, &options);
    }
    cast_with_options(array, data_type, &options)
}
