//! The errors of collections of columns.

use arrow_schema::DataType;
use pointstamp_rows::RowBuf;
use pointstamp_rows::expressions::{Expr, Unresolved};

/// The reason why columns are no collection, or an expression or a row does not fit them. A message says what to do;
/// the host adds records to errors that carry a row.
#[derive(Debug, thiserror::Error)]
pub enum ColumnsError {
    /// Two columns have one name.
    #[error("a collection cannot have two columns named '{name}': rename one of them")]
    SameName {
        /// The name.
        name: String,
    },
    /// A column has a type that a collection cannot keep.
    #[error(
        "a collection cannot keep column '{name}' of type {data_type}: it keeps numbers, decimals of 128 bits, booleans, \
         dates, times, durations, text and bytes; cast it, or leave it out"
    )]
    Unkept {
        /// The column.
        name: String,
        /// Its type.
        data_type: DataType,
    },
    /// An expression reads something that the collection does not have.
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
    /// A condition whose expression is not a boolean.
    #[error(
        "a condition is true or false, and {expr} is of type {data_type}: compare it with something"
    )]
    NoCondition {
        /// The expression.
        expr: Expr,
        /// Its type.
        data_type: DataType,
    },
    /// A comparison with null.
    #[error(
        "{expr} is never true, because a null is unknown in comparisons: {instead} says whether a value is null"
    )]
    NeverTrue {
        /// The comparison.
        expr: Expr,
        /// The expression to write instead.
        instead: Expr,
    },
    /// An expression has no meaning for the types of its columns.
    #[error("{expr} has no meaning for types {left} and {right}: cast one of them")]
    NoMeaning {
        /// The expression.
        expr: Expr,
        /// The type on its left.
        left: DataType,
        /// The type on its right.
        right: DataType,
    },
    /// An expression that a column cannot be computed by.
    #[error("{0} is no column: a column is col(name), a constant, or calculated of such")]
    NoColumn(Expr),
    /// A constant of a type that columns do not have.
    #[error(
        "a constant beside columns is None, a bool, an int of 64 bits, a float, a str or bytes: put others into a column, \
         or compare columns that are cast to int64"
    )]
    NoConstant,
    /// A function has no meaning for the type of a value.
    #[error("{expr} has no meaning for type {data_type}: cast the value")]
    NoFunction {
        /// The expression.
        expr: Expr,
        /// The type.
        data_type: DataType,
    },
    /// An expression has no result for a row.
    #[error("{expr} has no result: {why}")]
    NoResult {
        /// The expression, as it was written.
        expr: String,
        /// The kernel's message.
        why: String,
        /// True if the result is too large for its type.
        overflow: bool,
        /// The row.
        row: Box<RowBuf>,
    },
    /// A value is too large for its column.
    #[error("column '{column}' is {data_type}, which has no room for a value")]
    TooLarge {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
        /// The value, where it is an integer of 38 digits at most.
        value: Option<i128>,
        /// The row that it is in.
        row: Box<RowBuf>,
    },
    /// A row does not have a value for each column.
    #[error("a record is not a row of the columns {columns}")]
    NoRow {
        /// The columns' names.
        columns: String,
        /// The row.
        row: Box<RowBuf>,
    },
    /// A stream that should have the columns that `updates` adds does not have them.
    #[error(
        "to_collection(diffs=True) takes what updates() gives: the last two columns are 'time' of type {time} and 'diff' of \
         type Int64, and this stream has no such columns"
    )]
    NoUpdates {
        /// The type of the times.
        time: DataType,
    },
    /// An update in a stream of record batches has no place in the collection.
    #[error(
        "an update of to_collection(diffs=True) {0}: its time is at or after that of the stream, and neither time nor diff is \
         null"
    )]
    Misplaced(Misplaced),
    /// The data has no column of times, or of diffs.
    #[error(
        "the data has no column '{name}' with the {what} of each change, only {columns}: say which it is with {what}={}",
        if *.what == "diff" { ", or diff=None where every row is inserted once" } else { "" }
    )]
    NoChanges {
        /// The column that was looked for.
        name: String,
        /// The missing column: `time` or `diff`.
        what: &'static str,
        /// The columns of the data.
        columns: String,
    },
    /// A column of times has another number of coordinates than the collection's scope.
    #[error(
        "column '{column}', of the times, is of type {data_type}: a time of {dims} coordinates is a list of the fixed size \
         {dims}, without nulls"
    )]
    NoTimes {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
        /// The number of coordinates.
        dims: usize,
    },
    /// A column of times or diffs is not of integers.
    #[error(
        "column '{column}', of the {what}s, is of type {data_type}: it needs integers; cast it"
    )]
    NoIntegers {
        /// The column.
        column: String,
        /// The column: `time` or `diff`.
        what: &'static str,
        /// Its type.
        data_type: DataType,
    },
    /// A column of times or diffs holds nulls.
    #[error(
        "column '{column}', of the {what}s, holds {count} nulls: a change has a time and a diff"
    )]
    Nulls {
        /// The column.
        column: String,
        /// The column: `time` or `diff`.
        what: &'static str,
        /// The number of nulls.
        count: usize,
    },
    /// An integer is no coordinate of a time.
    #[error("{0} is not a time: a coordinate is 0 or more, and at most {max}", max = u64::MAX)]
    NoTime(i128),
    /// A diff is 0.
    #[error("a change of diff 0 changes nothing: leave it out")]
    NoDiff,
    /// An integer is too large for a diff.
    #[error("{0} is not a diff: it has at most 64 bits, with the sign")]
    WideDiff(i128),
}

/// The fault of an update's time or diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    /// The batch has no column of times.
    #[error("has no time")]
    NoTime,
    /// The time or the diff is null.
    #[error("has a null")]
    Null,
    /// The time is before the time of the stream.
    #[error("is early")]
    Early,
}
