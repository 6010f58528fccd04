//! The errors of columns.

use arrow_schema::{ArrowError, DataType};

/// Why an operation over columns is refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A column that does not exist.
    #[error("there is no column '{name}': the columns are {columns}")]
    NoColumn {
        /// The requested name.
        name: String,
        /// The names that there are.
        columns: String,
    },
    /// A name that several columns have.
    #[error(
        "there are {count} columns named '{name}': rename all but one, so that it is clear which is meant"
    )]
    Ambiguous {
        /// The name.
        name: String,
        /// The number of columns with the name.
        count: usize,
    },
    /// A key without columns.
    #[error("a key needs at least one column")]
    NoKey,
    /// A column that cannot be part of a key.
    #[error(
        "column '{name}' of type {data_type} cannot be hashed: a key column is a number, a decimal, a string, bytes, a \
         boolean, a time, or a dictionary, list or struct of them; convert it in map_batches"
    )]
    Unhashable {
        /// The column.
        name: String,
        /// Its type.
        data_type: DataType,
    },
    /// An aggregation that does not exist.
    #[error(
        "'{name}' is not an aggregate: there are sum, count, min, max and mean, and first, last, collect, \
         distinct_count, median, top_k and quantile, for which values are kept"
    )]
    NoAggregation {
        /// The requested name.
        name: String,
    },
    /// The greatest of no number.
    #[error("'{name}' is not an aggregate: top_k takes a number of at least 1")]
    NoFew {
        /// The requested name.
        name: String,
    },
    /// A quantile of no share.
    #[error("'{name}' is not an aggregate: quantile takes a share from 0 to 1")]
    NoShare {
        /// The requested name.
        name: String,
    },
    /// A column whose values have no order.
    #[error(
        "column '{name}' of type {data_type} has no order: sort by another, or convert it in map_batches"
    )]
    Unordered {
        /// The column.
        name: String,
        /// Its type.
        data_type: DataType,
    },
    /// A running function that does not exist.
    #[error("'{name}' is no running aggregate: there are count, sum, min, max and mean")]
    NotRunning {
        /// The requested name.
        name: String,
    },
    /// An aggregation over a type that it is not defined for.
    #[error(
        "{aggregation} is not defined for column '{column}' of type {data_type}: convert it in map_batches"
    )]
    Unaggregable {
        /// The aggregation's name.
        aggregation: &'static str,
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// Keys of a join that have different types.
    #[error(
        "the join's key column '{name}' is {left} on the left and {right} on the right: convert one of them in \
         map_batches"
    )]
    JoinTypes {
        /// The column.
        name: String,
        /// The type on the left.
        left: DataType,
        /// The type on the right.
        right: DataType,
    },
    /// A column that has no times.
    #[error(
        "column '{name}' of type {data_type} tells no times: event times are integers, timestamps or dates; convert it in \
         map_batches"
    )]
    NotTimes {
        /// The column.
        name: String,
        /// Its type.
        data_type: DataType,
    },
    /// A column that says no yes or no.
    #[error(
        "column '{name}' of type {data_type} is not of booleans: it says of each row whether it ends the one before"
    )]
    NotBoolean {
        /// The column.
        name: String,
        /// Its type.
        data_type: DataType,
    },
    /// A row without a time.
    #[error("a row has no event time, but null: filter such rows out, or fill them in, before")]
    NullTime,
    /// A time beyond the range of the column's type.
    #[error(
        "a row is at the time {time}, and times of columns end at 2**63 - 1: give smaller ones, such as those of a coarser unit"
    )]
    TimeBeyond {
        /// The time.
        time: u64,
    },
    /// A row whose time is before the time of its message.
    #[error(
        "a row has event time {time}, before {least}, the earliest that may still come here: take the stream from \
         event_time, without the late rows that it sends apart; records may be late here: \
         on_time.to_records().concat(late.to_records())"
    )]
    TimeBefore {
        /// The row's time.
        time: i64,
        /// The least time that was possible.
        least: u64,
    },
    /// A sum that its type cannot hold.
    #[error("{0}")]
    Beyond(Box<Beyond>),
    /// A column's name that would stand twice in a result.
    #[error(
        "the result would have two columns named '{name}': rename one, or choose another suffix"
    )]
    Collision {
        /// The name.
        name: String,
    },
    /// A batch that is not of the stream's schema.
    #[error("{0}")]
    Schema(String),
    /// More distinct keys than can be numbered.
    #[error("more than 4,294,967,295 distinct keys on one worker: use more workers")]
    TooManyKeys,
    /// A batch that has no form as bytes.
    #[error("this record batch cannot be sent to another process: {why}")]
    Unsendable {
        /// Arrow's error.
        #[source]
        why: ArrowError,
    },
    /// Bytes that are not a record batch.
    #[error("these bytes are not a record batch: {why}")]
    Unreadable {
        /// Arrow's error.
        #[source]
        why: ArrowError,
    },
    /// An error of a kernel.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// A sum that its type cannot hold. Each layer between the sum and the operator adds its part of the message.
#[derive(Debug)]
pub struct Beyond {
    /// The number of the group with the sum.
    pub(crate) group: usize,
    /// The type of the sum.
    pub(crate) data_type: DataType,
    /// The operator.
    pub(crate) operator: &'static str,
    /// The column that is added up.
    pub(crate) column: String,
    /// The group's key, as `name=value`; empty where it is not known.
    pub(crate) key: String,
}

impl Beyond {
    /// The error for a group's sum.
    pub(crate) fn of(group: usize, data_type: &DataType) -> Error {
        Error::Beyond(Box::new(Beyond {
            group,
            data_type: data_type.clone(),
            operator: "",
            column: String::new(),
            key: String::new(),
        }))
    }
}

impl std::fmt::Display for Beyond {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Beyond {
            operator, column, ..
        } = self;
        write!(f, "{operator}: the sum of column '{column}'")?;
        if !self.key.is_empty() {
            write!(f, " for the key {}", self.key)?;
        }
        let wider = match self.data_type {
            DataType::Decimal128(_, scale) => format!("decimal256(76, {scale}) or float64"),
            DataType::Decimal256(..) => "float64".to_owned(),
            _ => "decimal128(38, 0) or float64".to_owned(),
        };
        write!(
            f,
            " is beyond {}: cast the column to {wider} in with_columns before, or add it up in to_records(), where \
             numbers have no bounds",
            self.data_type
        )
    }
}

impl Error {
    /// Completes an error about a sum by `known`; returns other errors as they are.
    pub(crate) fn with(mut self, known: impl FnOnce(&mut Beyond)) -> Self {
        if let Error::Beyond(beyond) = &mut self {
            known(beyond);
        }
        self
    }
}
