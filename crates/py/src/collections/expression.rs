//! Expressions, as Python writes them.

use std::sync::Arc;

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use pointstamp_rows::RowBuf;
use pointstamp_rows::expressions::{Expr, Op, Relation, Source};

use super::aggregate::{Aggregate, aggregate_expr};
use super::values::{FromPython, ToPython};
use crate::errors::GraphError;

/// The maximum depth of expressions. Functions on them recurse, and the deepest has to fit on any thread's stack.
const MAX_DEPTH: u32 = 100;

/// A part of a record, or a computation on parts.
///
/// Examples:
///     >>> import pointstamp as ps
///     >>> def build(scope):
///     ...     stock = scope.collection([("tea", 3), ("rye", 0)])
///     ...     return stock.filter(ps.record[1] > 0).map(ps.record[0]).capture()
///     >>> ps.example(build).extract()
///     [(0, [('tea', 1)])]
#[pyclass(frozen, name = "Expr", module = "pointstamp._core")]
pub(crate) struct Expression {
    expr: Expr,
    /// The depth of nesting.
    depth: u32,
}

/// An expression, and how deep it is nested.
type Measured = (Expr, u32);

impl Expression {
    /// A field of an expression around others, the deepest of which is nested so deep.
    fn around(depth: u32, make: impl FnOnce() -> Expr) -> PyResult<Self> {
        let depth = deeper(depth)?;
        Ok(Expression {
            expr: make(),
            depth,
        })
    }

    fn binary(op: Op, (a, left): Measured, (b, right): Measured) -> PyResult<Self> {
        Expression::around(left.max(right), || {
            Expr::Binary(op, Arc::new(a), Arc::new(b))
        })
    }

    fn measured(&self) -> Measured {
        (self.expr.clone(), self.depth)
    }

    fn with(&self, op: Op, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Expression::binary(op, self.measured(), measured(other, 0)?)
    }

    fn after(&self, op: Op, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Expression::binary(op, measured(other, 0)?, self.measured())
    }
}

#[pymethods]
impl Expression {
    fn __getitem__(&self, index: isize) -> PyResult<Self> {
        let Ok(index) = usize::try_from(index) else {
            return Err(PyIndexError::new_err(format!(
                "the parts of a record are counted from 0 on: {index} is none of them"
            )));
        };
        Expression::around(self.depth, || {
            Expr::Item(Arc::new(self.expr.clone()), index)
        })
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::Add, other)
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(Op::Add, other)
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::Sub, other)
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(Op::Sub, other)
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::Mul, other)
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(Op::Mul, other)
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::Div, other)
    }

    fn __rtruediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(Op::Div, other)
    }

    fn __neg__(&self) -> PyResult<Self> {
        let mut zero = RowBuf::default();
        zero.int(0);
        Expression::binary(
            Op::Sub,
            (Expr::Constant(Arc::new(zero)), 0),
            self.measured(),
        )
    }

    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::And, other)
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::Or, other)
    }

    fn __invert__(&self) -> PyResult<Self> {
        Expression::around(self.depth, || Expr::Not(Arc::new(self.expr.clone())))
    }

    /// True if the value is null, which is None in records.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     return scope.collection([("tea", 3), ("rye", None)]).filter(ps.record[1].is_null()).capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [(('rye', None), 1)])]
    fn is_null(&self) -> PyResult<Self> {
        Expression::around(self.depth, || Expr::IsNull(Arc::new(self.expr.clone())))
    }

    /// The name of the column that the expression is; `None` where it is computed.
    #[getter(_column)]
    fn column(&self) -> Option<&str> {
        match &self.expr {
            Expr::Column(name) => Some(name),
            _ => None,
        }
    }

    /// Adds up the values.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").sum())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 10}])]
    fn sum(this: Py<Self>) -> Aggregate {
        aggregate("sum", this, None)
    }

    /// The mean of the values.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").mean())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3.3333333333333335}])]
    fn mean(this: Py<Self>) -> Aggregate {
        aggregate("mean", this, None)
    }

    /// The least value.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").min())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3}])]
    fn min(this: Py<Self>) -> Aggregate {
        aggregate("min", this, None)
    }

    /// The greatest value.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").max())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 4}])]
    fn max(this: Py<Self>) -> Aggregate {
        aggregate("max", this, None)
    }

    /// Counts the values.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").count())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3}])]
    fn count(this: Py<Self>) -> Aggregate {
        aggregate("count", this, None)
    }

    /// The first value to come.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").first())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3}])]
    fn first(this: Py<Self>) -> Aggregate {
        aggregate("first", this, None)
    }

    /// The last value to come.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").last())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3}])]
    fn last(this: Py<Self>) -> Aggregate {
        aggregate("last", this, None)
    }

    /// All values as a list, nulls among them.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").collect())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': [3, 4, 3]}])]
    fn collect(this: Py<Self>) -> Aggregate {
        aggregate("collect", this, None)
    }

    /// Counts the distinct values.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").distinct_count())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 2}])]
    fn distinct_count(this: Py<Self>) -> Aggregate {
        aggregate("distinct_count", this, None)
    }

    /// The median.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").median())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3.0}])]
    fn median(this: Py<Self>) -> Aggregate {
        aggregate("median", this, None)
    }

    /// The quantile of a share from 0 to 1, between two values as far along as the share says.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").quantile(0.9))
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3.8}])]
    fn quantile(this: Py<Self>, share: Py<PyAny>) -> Aggregate {
        aggregate("quantile", this, Some(share))
    }

    /// The `n` greatest values as a list, the greatest first.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").top_k(2))
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': [4, 3]}])]
    fn top_k(this: Py<Self>, n: Py<PyAny>) -> Aggregate {
        aggregate("top_k", this, Some(n))
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Self> {
        let relation = match op {
            CompareOp::Eq => Relation::Eq,
            CompareOp::Ne => Relation::Ne,
            CompareOp::Lt => Relation::Lt,
            CompareOp::Le => Relation::Le,
            CompareOp::Gt => Relation::Gt,
            CompareOp::Ge => Relation::Ge,
        };
        self.with(Op::Compare(relation), other)
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err(format!(
            "{} is an expression, which is true or false of a record and not by itself: combine conditions with & | ~, \
             in parentheses",
            self.expr
        )))
    }

    fn __repr__(&self) -> String {
        self.expr.to_string()
    }

    /// A function and its arguments that make the same expression elsewhere: programs refer to it, and are sent to
    /// other processes.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let of = |module: &str, name: &str| py.import(module)?.getattr(name);
        let object = |expr: &Expr| object_of(py, expr);
        Ok(match &self.expr {
            Expr::Source(source) => (
                of("pointstamp._core", "source_expr")?,
                (source.name(),).into_pyobject(py)?,
            ),
            Expr::Column(name) => (
                of("pointstamp._core", "column_expr")?,
                (&**name,).into_pyobject(py)?,
            ),
            Expr::Item(expr, index) => (
                of("operator", "getitem")?,
                (object(expr)?, *index).into_pyobject(py)?,
            ),
            Expr::Binary(op, a, b) => (
                of("operator", op.function())?,
                (object(a)?, object(b)?).into_pyobject(py)?,
            ),
            Expr::Not(expr) => (
                of("operator", "invert")?,
                (object(expr)?,).into_pyobject(py)?,
            ),
            Expr::IsNull(expr) => (
                of("operator", "methodcaller")?.call1(("is_null",))?,
                (object(expr)?,).into_pyobject(py)?,
            ),
            Expr::Constant(row) => (
                of("pointstamp._core", "literal_expr")?,
                (row.get().decode(py)?,).into_pyobject(py)?,
            ),
            // No expression of a program's is one of these by itself.
            Expr::Tuple(_) | Expr::Floats(..) => {
                return Err(PyTypeError::new_err("a value is no expression"));
            }
        })
    }
}

/// The aggregate of a name of an expression's values.
fn aggregate(function: &str, of: Py<Expression>, argument: Option<Py<PyAny>>) -> Aggregate {
    aggregate_expr(function.to_owned(), Some(of.into_any()), argument)
}

/// Converts an expression to Python: the inverse of `expr_of`.
fn object_of<'py>(py: Python<'py>, expr: &Expr) -> PyResult<Bound<'py, PyAny>> {
    match expr {
        Expr::Constant(row) => row.get().decode(py),
        Expr::Tuple(parts) => {
            let parts = parts.iter().map(|part| object_of(py, part));
            Ok(PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        _ => {
            let (expr, depth) = (expr.clone(), expr.depth());
            Ok(Bound::new(py, Expression { expr, depth })?.into_any())
        }
    }
}

/// Converts a Python object to an expression: a field, a tuple with one in it, or a constant.
pub(crate) fn expr_of(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    measured(value, 0).map(|(expr, _)| expr)
}

/// The expression of an object that is in so many tuples.
fn measured(value: &Bound<'_, PyAny>, inside: u32) -> PyResult<Measured> {
    if let Ok(field) = value.cast::<Expression>() {
        return Ok(field.get().measured());
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        let within = deeper(inside)?;
        let mut parts = Vec::with_capacity(tuple.len());
        let mut depth = 0;
        for part in tuple.iter_borrowed() {
            let (part, of_part) = measured(&part, within)?;
            parts.push(part);
            depth = depth.max(of_part);
        }
        return Ok((Expr::Tuple(parts.into()), deeper(depth)?));
    }
    Ok((constant(value)?, 0))
}

/// The expression that is one value.
fn constant(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    let mut row = RowBuf::default();
    row.encode(value)?;
    Ok(Expr::Constant(Arc::new(row)))
}

/// Returns the depth of an expression around one of this depth.
fn deeper(depth: u32) -> PyResult<u32> {
    if depth < MAX_DEPTH {
        return Ok(depth + 1);
    }
    Err(GraphError::new_err(format!(
        "this expression nests more than {MAX_DEPTH} operations or tuples: write it as several, as in (a + b) + (c + d) in \
         place of ((a + b) + c) + d, or as a function of the record"
    )))
}

/// The field that is a whole row: `record`, `key`, `left` or `right`.
#[pyfunction]
pub(crate) fn source_expr(name: &str) -> PyResult<Expression> {
    let source = Source::ALL.into_iter().find(|source| source.name() == name);
    source
        .map(|source| Expression {
            expr: Expr::Source(source),
            depth: 0,
        })
        .ok_or_else(|| PyTypeError::new_err(format!("there is no part '{name}'")))
}

/// The field that is the column of a name.
#[pyfunction]
pub(crate) fn column_expr(name: String) -> Expression {
    Expression {
        expr: Expr::Column(name.into()),
        depth: 0,
    }
}

/// The expression that is one value for every record.
#[pyfunction]
pub(crate) fn literal_expr(value: &Bound<'_, PyAny>) -> PyResult<Expression> {
    Ok(Expression {
        expr: constant(value)?,
        depth: 0,
    })
}
