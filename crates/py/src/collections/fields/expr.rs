//! What an expression is: parts of rows, constants, tuples, and what is computed of them.

use std::fmt;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::super::rows::{Row, RowBuf};
use crate::errors::GraphError;

/// The rows that expressions read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The record of `map` and `filter`.
    Record,
    /// The key of a join, and the values on its left and on its right.
    Key,
    Left,
    Right,
}

impl Source {
    pub(crate) const ALL: [Source; 4] = [Source::Record, Source::Key, Source::Left, Source::Right];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Source::Record => "record",
            Source::Key => "key",
            Source::Left => "left",
            Source::Right => "right",
        }
    }

    /// Which of the rows it is that the operator gives.
    #[inline]
    pub(super) fn index(self) -> usize {
        match self {
            Source::Record | Source::Key => 0,
            Source::Left => 1,
            Source::Right => 2,
        }
    }
}

/// What is computed of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Compare(Relation),
    And,
    Or,
}

/// How two values may compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Relation {
    /// Whether values in this order have the relation.
    #[inline]
    pub(super) fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Relation::Eq => order.is_eq(),
            Relation::Ne => order.is_ne(),
            Relation::Lt => order.is_lt(),
            Relation::Le => order.is_le(),
            Relation::Gt => order.is_gt(),
            Relation::Ge => order.is_ge(),
        }
    }
}

impl Op {
    /// The function of Python's `operator` that writes it.
    pub(super) fn function(self) -> &'static str {
        match self {
            Op::Add => "add",
            Op::Sub => "sub",
            Op::Mul => "mul",
            Op::Div => "truediv",
            Op::Compare(Relation::Eq) => "eq",
            Op::Compare(Relation::Ne) => "ne",
            Op::Compare(Relation::Lt) => "lt",
            Op::Compare(Relation::Le) => "le",
            Op::Compare(Relation::Gt) => "gt",
            Op::Compare(Relation::Ge) => "ge",
            Op::And => "and_",
            Op::Or => "or_",
        }
    }

    pub(super) fn symbol(self) -> &'static str {
        match self {
            Op::Add => "+",
            Op::Sub => "-",
            Op::Mul => "*",
            Op::Div => "/",
            Op::Compare(Relation::Eq) => "==",
            Op::Compare(Relation::Ne) => "!=",
            Op::Compare(Relation::Lt) => "<",
            Op::Compare(Relation::Le) => "<=",
            Op::Compare(Relation::Gt) => ">",
            Op::Compare(Relation::Ge) => ">=",
            Op::And => "&",
            Op::Or => "|",
        }
    }
}

/// An expression. Clones share what it is made of. What is done with one recurses, also its end: `Field` bounds how deep
/// it is nested.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Source(Source),
    Item(Arc<Expr>, usize),
    /// The column of a name; [`resolved`](Expr::resolved) makes an item of it.
    Column(Arc<str>),
    Constant(Arc<RowBuf>),
    Tuple(Arc<[Expr]>),
    Binary(Op, Arc<Expr>, Arc<Expr>),
    /// What is calculated of columns of which one is of floats: rows hold those that integers equal as these.
    Floats(Op, Arc<Expr>, Arc<Expr>),
    Not(Arc<Expr>),
    /// Whether a value is None.
    IsNull(Arc<Expr>),
}

impl Expr {
    /// How deep it is nested: 0 for what has no expressions in it.
    pub(super) fn depth(&self) -> u32 {
        match self {
            Expr::Source(_) | Expr::Column(_) | Expr::Constant(_) => 0,
            Expr::Item(of, _) | Expr::Not(of) | Expr::IsNull(of) => 1 + of.depth(),
            Expr::Tuple(parts) => 1 + parts.iter().map(Expr::depth).max().unwrap_or_default(),
            Expr::Binary(_, a, b) | Expr::Floats(_, a, b) => 1 + a.depth().max(b.depth()),
        }
    }

    /// The expression, for an operator that gives these rows and has these columns.
    ///
    /// # Errors
    ///
    /// `GraphError` where it reads something else.
    pub(crate) fn resolved(&self, sources: &[Source], columns: &[String]) -> PyResult<Expr> {
        Ok(match self {
            Expr::Source(source) if sources.contains(source) => Expr::Source(*source),
            Expr::Source(source) => {
                let names: Vec<_> = sources.iter().map(|source| source.name()).collect();
                return Err(GraphError::new_err(format!(
                    "this expression reads '{}', and the operator has {}",
                    source.name(),
                    if names.is_empty() {
                        "columns: name them with col(...)".into()
                    } else {
                        names.join(", ")
                    },
                )));
            }
            Expr::Item(of, index) => Expr::Item(Arc::new(of.resolved(sources, columns)?), *index),
            Expr::Column(name) => match columns.iter().position(|column| **column == **name) {
                Some(index) => Expr::Item(Arc::new(Expr::Source(Source::Record)), index),
                None if columns.is_empty() => {
                    return Err(PyTypeError::new_err(format!(
                        "col({name:?}) reads a column, and these are records: read their parts with record[0], record[1], ..."
                    )));
                }
                None => {
                    return Err(GraphError::new_err(format!(
                        "there is no column {name:?}: there are {}",
                        columns.join(", ")
                    )));
                }
            },
            Expr::Constant(_) => self.clone(),
            Expr::Tuple(parts) => {
                let parts = parts.iter().map(|part| part.resolved(sources, columns));
                Expr::Tuple(parts.collect::<PyResult<_>>()?)
            }
            Expr::Binary(op, a, b) => Expr::Binary(
                *op,
                Arc::new(a.resolved(sources, columns)?),
                Arc::new(b.resolved(sources, columns)?),
            ),
            Expr::Floats(op, a, b) => Expr::Floats(
                *op,
                Arc::new(a.resolved(sources, columns)?),
                Arc::new(b.resolved(sources, columns)?),
            ),
            Expr::Not(of) => Expr::Not(Arc::new(of.resolved(sources, columns)?)),
            Expr::IsNull(of) => Expr::IsNull(Arc::new(of.resolved(sources, columns)?)),
        })
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Source(source) => f.write_str(source.name()),
            Expr::Item(of, index) => write!(f, "{of}[{index}]"),
            Expr::Column(name) => write!(f, "col({name:?})"),
            Expr::Constant(row) => match row.get() {
                Row::Ints(_, [only]) => write!(f, "{only}"),
                _ => f.write_str("..."),
            },
            Expr::Tuple(parts) => {
                f.write_str("(")?;
                for part in &**parts {
                    write!(f, "{part}, ")?;
                }
                f.write_str(")")
            }
            Expr::Binary(op, a, b) | Expr::Floats(op, a, b) => {
                write!(f, "({a} {} {b})", op.symbol())
            }
            Expr::Not(of) => write!(f, "~{of}"),
            Expr::IsNull(of) => write!(f, "{of}.is_null()"),
        }
    }
}
