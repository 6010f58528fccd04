//! Parts of expressions with their types, as data.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use pointstamp_rows::expressions::{Function, Relation};

/// A part of an expression and the type of its values.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) data_type: DataType,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
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
pub(super) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}
