//! The list of reductions and aggregates, as data.

use std::num::NonZeroU128;

use arrow_schema::SchemaRef;
use pointstamp_arrange::{Error, Reducer as Kernel};
use pointstamp_rows::Cells;

/// A reducer of any of the modules beside this one.
pub(super) type BoxedReducer = Box<dyn Kernel<Cells, Cells, Cells>>;

/// The result of a reducer's call.
pub(super) type Done = Result<(), Error>;

/// The result of a reduction for each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reduction {
    /// The key once.
    Distinct,
    /// The key as often as it is there; not where its count is negative.
    Positive,
    /// The number of values.
    Count,
    /// The least value. With `any_order`, a deterministic one, among values that rows do not order as the host does.
    Min {
        /// True for the least row, whatever the host's order is.
        any_order: bool,
    },
    /// The greatest value.
    Max,
    /// The greatest values: so many.
    TopK(NonZeroU128),
    /// Some of the values, in an order of their parts.
    Ranked(Ranking),
    /// The values, each with the results of window functions: a pair of the value and their tuple.
    Windowed(Windowing),
    /// The sum.
    Sum {
        /// True for the values of a column of floats, in whose rows integers replace the floats that they
        /// equal.
        floats: bool,
    },
    /// The mean.
    Mean {
        /// True as in [`Reduction::Sum`].
        floats: bool,
    },
    /// An aggregate of each of several parts of values that are tuples, as a tuple. A part that is null is left out; of no
    /// value the result is null, and of a count 0.
    Several(Vec<(Aggregate, usize)>),
    /// A list of a part of the values.
    Collected(Collection),
    /// Totals of parts of values, as a tuple, from the records of [`accumulate`](crate::collections::accumulate()). A part
    /// that is null is left out; of no value the result is null, and of a count 0.
    Accumulated(Vec<(Accumulation, usize)>),
    /// An aggregate of values of so many columns, in which nulls are skipped.
    OfColumns(Aggregate, usize),
}

/// The values of a key that are at some places in an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranking {
    /// The parts of values that decide, one after another; then whole values do.
    pub by: Vec<Place>,
    /// The number of values that are skipped.
    pub offset: u128,
    /// The number of values that are kept.
    pub count: u128,
}

/// A part of values in an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The index of the part.
    pub part: usize,
    /// True if greater values come first.
    pub descending: bool,
    /// True if nulls come first.
    pub nulls_first: bool,
}

/// The values of a key as a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// The part that is listed.
    pub part: usize,
    /// The parts of values that decide about their order; then whole values do.
    pub by: Vec<Place>,
    /// The schema of one column, of the elements.
    pub element: SchemaRef,
}

/// The values of a key with functions of the values around each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windowing {
    /// The parts of values that decide about their order; then whole values do.
    pub by: Vec<Place>,
    /// The values of the order that aggregates are computed of.
    pub frame: Frame,
    /// The functions.
    pub functions: Vec<WindowFunction>,
}

/// The values of an order that aggregates of a value are computed of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// The values up to this one.
    Rows,
    /// The values up to the last one that is alike in the parts of the order.
    Range,
    /// All values of the key.
    All,
}

/// A function of the values around a value; indices are of parts of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowFunction {
    /// The place of the value, from 1 on.
    Number,
    /// The place of the first value that is alike.
    Rank,
    /// The number of unlike values up to this one.
    DenseRank,
    /// A part of the value that is so many places before; after, where the number is negative.
    Shift {
        /// The part.
        part: usize,
        /// The number of places.
        by: i64,
        /// The part of the value itself that is the result where there is no such place.
        default: Option<usize>,
    },
    /// A part of the first value.
    First {
        /// The part.
        part: usize,
    },
    /// A part of the last value of the frame.
    Last {
        /// The part.
        part: usize,
    },
    /// The number of values of the frame, of which a part is not null.
    Count {
        /// The part; nothing to count all values.
        part: Option<usize>,
    },
    /// The sum of a part.
    Sum {
        /// The part.
        part: usize,
        /// True for a column of floats.
        floats: bool,
    },
    /// The least value of a part.
    Min {
        /// The part.
        part: usize,
    },
    /// The greatest value of a part.
    Max {
        /// The part.
        part: usize,
    },
}

/// An aggregate of a part of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// The number of values.
    Count,
    /// The number of unlike values.
    DistinctCount,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The sum.
    Sum {
        /// True for a column of floats.
        floats: bool,
    },
    /// The mean.
    Mean {
        /// True for a column of floats.
        floats: bool,
    },
    /// The variance.
    Variance {
        /// True for that of a sample.
        sample: bool,
        /// True for its square root.
        root: bool,
    },
}

/// A total of a part of values, which are integers where it is not a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accumulation {
    /// The number of values.
    Count,
    /// The sum.
    Sum,
    /// The mean, as a float.
    Mean,
}
