//! Expressions: parts of rows, constants, tuples, and computations on them.

use std::fmt;
use std::sync::Arc;

use super::function::Function;
use crate::terms::{Atom, atom};
use crate::{Row, RowBuf};

/// The rows that expressions read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The record of `map` and `filter`.
    Record,
    /// The key of a join.
    Key,
    /// The value on the left of a join.
    Left,
    /// The value on the right of a join.
    Right,
}

impl Source {
    /// All of them.
    pub const ALL: [Source; 4] = [Source::Record, Source::Key, Source::Left, Source::Right];

    /// The name by which the package exports it.
    pub fn name(self) -> &'static str {
        match self {
            Source::Record => "record",
            Source::Key => "key",
            Source::Left => "left",
            Source::Right => "right",
        }
    }

    /// The number of the source among the rows that the operator gives.
    #[inline]
    pub fn index(self) -> usize {
        match self {
            Source::Record | Source::Key => 0,
            Source::Left => 1,
            Source::Right => 2,
        }
    }
}

/// A computation on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The sum.
    Add,
    /// The difference.
    Sub,
    /// The product.
    Mul,
    /// The quotient, a float.
    Div,
    /// True if the values have the relation.
    Compare(Relation),
    /// True if both are true.
    And,
    /// True if one is true.
    Or,
}

/// A relation of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The values are equal.
    Eq,
    /// They are not.
    Ne,
    /// The first is less.
    Lt,
    /// The first is less or equal.
    Le,
    /// The first is greater.
    Gt,
    /// The first is greater or equal.
    Ge,
}

impl Relation {
    /// Whether values in this order have the relation.
    #[inline]
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
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
    /// The name of the function of Python's module `operator`.
    pub fn function(self) -> &'static str {
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

    /// The symbol that is written between the values.
    pub fn symbol(self) -> &'static str {
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

/// An expression. Clones share its parts. Functions on it recurse, also its drop: `Field` bounds its depth.
#[derive(Clone, Debug)]
pub enum Expr {
    /// A whole row.
    Source(Source),
    /// An element of a tuple.
    Item(Arc<Expr>, usize),
    /// The column of a name; [`resolved`](Expr::resolved) makes an item of it.
    Column(Arc<str>),
    /// A value.
    Constant(Arc<RowBuf>),
    /// A tuple.
    Tuple(Arc<[Expr]>),
    /// A computation on two values.
    Binary(Op, Arc<Expr>, Arc<Expr>),
    /// A calculation on columns of which one has floats: in rows, integers replace the floats that they
    /// equal.
    Floats(Op, Arc<Expr>, Arc<Expr>),
    /// The opposite of a condition.
    Not(Arc<Expr>),
    /// True if a value is None.
    IsNull(Arc<Expr>),
    /// A function of columns, with its constant argument (or an empty text) and the values that it reads. Records have
    /// none.
    Call(Function, Arc<str>, Arc<[Expr]>),
}

impl Expr {
    /// The depth of nesting: 0 for an expression without inner expressions.
    pub fn depth(&self) -> u32 {
        match self {
            Expr::Source(_) | Expr::Column(_) | Expr::Constant(_) => 0,
            Expr::Item(of, _) | Expr::Not(of) | Expr::IsNull(of) => 1 + of.depth(),
            Expr::Tuple(parts) | Expr::Call(_, _, parts) => {
                1 + parts.iter().map(Expr::depth).max().unwrap_or_default()
            }
            Expr::Binary(_, a, b) | Expr::Floats(_, a, b) => 1 + a.depth().max(b.depth()),
        }
    }

    /// Calls a function with the name of each column that the expression reads.
    pub fn for_each_column(&self, found: &mut impl FnMut(&str)) {
        match self {
            Expr::Column(name) => found(name),
            Expr::Source(_) | Expr::Constant(_) => {}
            Expr::Item(of, _) | Expr::Not(of) | Expr::IsNull(of) => of.for_each_column(found),
            Expr::Tuple(parts) | Expr::Call(_, _, parts) => {
                parts.iter().for_each(|part| part.for_each_column(found));
            }
            Expr::Binary(_, a, b) | Expr::Floats(_, a, b) => {
                a.for_each_column(found);
                b.for_each_column(found);
            }
        }
    }

    /// The expression, for an operator that gives these rows and has these columns.
    ///
    /// # Errors
    ///
    /// [`Unresolved`] where it reads something else.
    pub fn resolved(&self, sources: &[Source], columns: &[String]) -> Result<Expr, Unresolved> {
        let part = |of: &Arc<Expr>| of.resolved(sources, columns).map(Arc::new);
        Ok(match self {
            Expr::Source(source) if sources.contains(source) => Expr::Source(*source),
            Expr::Source(source) => return Err(Unresolved::Source(*source, sources.to_vec())),
            Expr::Item(of, index) => Expr::Item(part(of)?, *index),
            Expr::Column(name) => match columns.iter().position(|column| **column == **name) {
                Some(index) => Expr::Item(Arc::new(Expr::Source(Source::Record)), index),
                None if columns.is_empty() => return Err(Unresolved::Records(Arc::clone(name))),
                None => return Err(Unresolved::Column(Arc::clone(name), columns.to_vec())),
            },
            Expr::Constant(_) => self.clone(),
            Expr::Tuple(parts) => {
                let parts = parts.iter().map(|part| part.resolved(sources, columns));
                Expr::Tuple(parts.collect::<Result<_, _>>()?)
            }
            Expr::Binary(op, a, b) => Expr::Binary(*op, part(a)?, part(b)?),
            Expr::Floats(op, a, b) => Expr::Floats(*op, part(a)?, part(b)?),
            Expr::Not(of) => Expr::Not(part(of)?),
            Expr::IsNull(of) => Expr::IsNull(part(of)?),
            Expr::Call(function, ..) if columns.is_empty() => {
                return Err(Unresolved::Function(*function));
            }
            Expr::Call(function, argument, parts) => {
                let parts = parts.iter().map(|part| part.resolved(sources, columns));
                let parts = parts.collect::<Result<_, _>>()?;
                Expr::Call(*function, Arc::clone(argument), parts)
            }
        })
    }
}

/// Why an expression does not fit its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// It reads a row that the operator does not give; the rows that it gives.
    Source(Source, Vec<Source>),
    /// It reads a column, and the operator has records.
    Records(Arc<str>),
    /// It reads a column that the operator does not have; the columns that it has.
    Column(Arc<str>, Vec<String>),
    /// It calls a function of columns, and the operator has records.
    Function(Function),
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unresolved::Source(source, sources) => {
                let names: Vec<_> = sources.iter().map(|source| source.name()).collect();
                write!(
                    f,
                    "this expression reads '{}', and the operator has {}",
                    source.name(),
                    if names.is_empty() {
                        "columns: name them with col(...)".into()
                    } else {
                        names.join(", ")
                    },
                )
            }
            Unresolved::Records(name) => write!(
                f,
                "col({name:?}) reads a column, and these are records: read their parts with record[0], record[1], ..."
            ),
            Unresolved::Column(name, columns) => {
                write!(
                    f,
                    "there is no column {name:?}: there are {}",
                    columns.join(", ")
                )
            }
            Unresolved::Function(function) => write!(
                f,
                "{}() is a function of columns, and these are records: use a Python function of the record",
                function.name()
            ),
        }
    }
}

impl std::error::Error for Unresolved {}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Source(source) => f.write_str(source.name()),
            Expr::Item(of, index) => write!(f, "{of}[{index}]"),
            Expr::Column(name) => write!(f, "col({name:?})"),
            Expr::Constant(row) => match row.get() {
                Row::Ints(_, [only]) => write!(f, "{only}"),
                Row::Ints(..) => f.write_str("..."),
                Row::Term(term) => match atom(term) {
                    Some(Atom::Text(text)) => write!(f, "{:?}", String::from_utf8_lossy(&text)),
                    Some(Atom::Float(value)) => write!(f, "{value:?}"),
                    _ => f.write_str("..."),
                },
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
            Expr::Call(Function::Typed, data_type, parts) => {
                write!(f, "{}:{data_type}", parts.first().unwrap_or(self))
            }
            Expr::Call(function, argument, parts) => {
                write!(f, "{}(", function.name())?;
                for (index, part) in parts.iter().enumerate() {
                    let before = if index == 0 { "" } else { ", " };
                    write!(f, "{before}{part}")?;
                }
                if argument.is_empty() {
                    f.write_str(")")
                } else {
                    write!(f, "; {argument})")
                }
            }
        }
    }
}
