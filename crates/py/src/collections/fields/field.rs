//! Fields, as Python writes expressions with them.

use std::sync::Arc;

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::super::rows::RowBuf;
use super::expr::{Expr, Op, Relation, Source};

/// A part of a record, or what is computed of parts.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Field {
    pub(crate) expr: Expr,
}

impl Field {
    fn binary(op: Op, a: Expr, b: Expr) -> Self {
        Field {
            expr: Expr::Binary(op, Arc::new(a), Arc::new(b)),
        }
    }

    fn with(&self, op: Op, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Field::binary(op, self.expr.clone(), expr_of(other)?))
    }

    fn after(&self, op: Op, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Field::binary(op, expr_of(other)?, self.expr.clone()))
    }
}

#[pymethods]
impl Field {
    fn __getitem__(&self, index: isize) -> PyResult<Self> {
        let Ok(index) = usize::try_from(index) else {
            return Err(PyIndexError::new_err(format!(
                "the parts of a record are counted from 0 on: {index} is none of them"
            )));
        };
        Ok(Field {
            expr: Expr::Item(Arc::new(self.expr.clone()), index),
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

    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::And, other)
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::Or, other)
    }

    fn __invert__(&self) -> Self {
        Field {
            expr: Expr::Not(Arc::new(self.expr.clone())),
        }
    }

    /// Whether the value is null, which is None in records.
    fn is_null(&self) -> Self {
        Field {
            expr: Expr::IsNull(Arc::new(self.expr.clone())),
        }
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
                of("pointstamp._core", "source_field")?,
                (source.name(),).into_pyobject(py)?,
            ),
            Expr::Column(name) => (
                of("pointstamp._core", "column_field")?,
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
            // No field is one of these by itself.
            Expr::Tuple(_) | Expr::Constant(_) | Expr::Floats(..) => {
                return Err(PyTypeError::new_err("a value is no expression"));
            }
        })
    }
}

/// What Python has for an expression: the opposite of `expr_of`.
fn object_of<'py>(py: Python<'py>, expr: &Expr) -> PyResult<Bound<'py, PyAny>> {
    match expr {
        Expr::Constant(row) => row.get().decode(py),
        Expr::Tuple(parts) => {
            let parts = parts.iter().map(|part| object_of(py, part));
            Ok(PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        _ => Ok(Bound::new(py, Field { expr: expr.clone() })?.into_any()),
    }
}

/// The expression that a Python object stands for: a field, a tuple with one in it, or a constant.
pub(crate) fn expr_of(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    if let Ok(field) = value.cast::<Field>() {
        return Ok(field.get().expr.clone());
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        let parts = tuple.iter_borrowed().map(|part| expr_of(&part));
        return Ok(Expr::Tuple(parts.collect::<PyResult<_>>()?));
    }
    let mut constant = RowBuf::default();
    constant.encode(value)?;
    Ok(Expr::Constant(Arc::new(constant)))
}

/// The field that is a whole row: `record`, `key`, `left` or `right`.
#[pyfunction]
pub(crate) fn source_field(name: &str) -> PyResult<Field> {
    let source = Source::ALL.into_iter().find(|source| source.name() == name);
    source
        .map(|source| Field {
            expr: Expr::Source(source),
        })
        .ok_or_else(|| PyTypeError::new_err(format!("there is no field '{name}'")))
}

/// The field that is the column of a name.
#[pyfunction]
pub(crate) fn column_field(name: String) -> Field {
    Field {
        expr: Expr::Column(name.into()),
    }
}
