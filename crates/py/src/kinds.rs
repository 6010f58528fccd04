//! The names out of a few by which the package calls the extension: the kind of a stage, a pact, a join, a reduction.
//!
//! Owns the enums that cross the border, so that neither side compares strings. Each has a `label`, its name in
//! messages and names of operators; Python's spelling of a member is the label in capitals.

use pointstamp_operators::Kind;
use pyo3::prelude::*;

/// An enum that Python sees as a class with a member for each variant.
macro_rules! crossing {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $label:literal,)+ }) => {
        $(#[$doc])*
        #[pyclass(eq, hash, frozen, from_py_object, module = "pointstamp._core", rename_all = "SCREAMING_SNAKE_CASE")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        #[pymethods]
        impl $name {
            /// The name of the value in messages.
            #[getter]
            pub(crate) fn label(&self) -> &'static str {
                match self {
                    $($name::$variant => $label,)+
                }
            }
        }
    };
}

crossing! {
    /// The operation of a stage of a chain on a batch of records.
    StageKind {
        Map = "map",
        FlatMap = "flat_map",
        Filter = "filter",
        Inspect = "inspect",
        InspectTime = "inspect_time",
        InspectBatch = "inspect_batch",
        MapInPlace = "map_in_place",
        MapBatches = "map_batches",
        /// Maps the columns of records at times of their own; other records are at their message's time.
        MapTimed = "map_timed",
        TryMap = "try_map",
        OkErr = "ok_err",
        Partition = "partition",
        Branch = "branch",
        BranchWhen = "branch_when",
    }
}

crossing! {
    /// The operation of a stage of a collection's chain on a record.
    CollectionStageKind {
        Map = "map",
        FlatMap = "flat_map",
        Filter = "filter",
        Inspect = "inspect",
    }
}

crossing! {
    /// The way in which records reach the workers.
    PactKind {
        Pipeline = "pipeline",
        Broadcast = "broadcast",
        /// By the return value of a function for each record.
        Exchange = "exchange",
        /// By the key group of the return value of a function for each record.
        ExchangeGroup = "exchange_group",
        /// By the first of the two things in each record.
        ExchangeFirst = "exchange_first",
        /// By the keys beside records at times of their own.
        ExchangeKeys = "exchange_keys",
        /// By columns, which are numbers of them.
        ExchangeColumns = "exchange_columns",
        /// By the key group of columns, which are numbers of them.
        ExchangeColumnGroups = "exchange_column_groups",
        /// All to the first worker.
        Gather = "gather",
    }
}

crossing! {
    /// The result of a join for a key and the values of its sides.
    JoinKind {
        /// `(key, (left, right))`.
        Pairs = "pairs",
        /// `(key, left)`.
        Left = "left",
        /// The result of an expression over the three.
        Fields = "fields",
        /// The result of a function of the three.
        Function = "function",
    }
}

crossing! {
    /// The rows that a join of columns returns.
    How {
        /// Pairs.
        Inner = "inner",
        /// Pairs, and rows of the left side without a match.
        Left = "left",
        /// Pairs, and rows of the right side without a match.
        Right = "right",
        /// Pairs, and rows of both sides without a match.
        Full = "full",
        /// Rows of the left side with a match.
        Semi = "semi",
        /// Rows of the left side without a match.
        Anti = "anti",
    }
}

impl From<How> for pointstamp_columnar::join::How {
    fn from(how: How) -> Self {
        match how {
            How::Inner => Self::Inner,
            How::Left => Self::Left,
            How::Right => Self::Right,
            How::Full => Self::Full,
            How::Semi => Self::Semi,
            How::Anti => Self::Anti,
        }
    }
}

crossing! {
    /// The reduction of an arrangement.
    Reduction {
        Distinct = "distinct",
        Threshold = "threshold",
        Count = "value_counts",
        CountByKey = "count",
        Min = "min",
        Max = "max",
        TopK = "top_k",
        /// The values at some places in an order.
        Ranked = "top_k",
        /// Window functions.
        Over = "over",
        Sum = "sum",
        Mean = "mean",
        /// The sum of a column of floats.
        SumOfFloats = "sum",
        /// The mean of a column of floats.
        MeanOfFloats = "mean",
        Variance = "var",
        VarianceOfAll = "var",
        Deviation = "std",
        DeviationOfAll = "std",
        Reduce = "map_groups",
        /// An aggregation of the values of columns, in which nulls are skipped.
        OfColumns = "columns",
        /// Values as lists, in an order.
        Collected = "collect",
        Aggregate = "aggregate",
        /// Sums, counts and means, from the diffs of accumulated records.
        Accumulated = "aggregate",
    }
}

crossing! {
    /// The rows that aggregates of window functions are computed of.
    Frame {
        Range = "range",
        Rows = "rows",
        All = "all",
    }
}

crossing! {
    /// A window function.
    WindowFunction {
        Number = "row_number",
        Rank = "rank",
        DenseRank = "dense_rank",
        Lag = "lag",
        First = "first",
        Last = "last",
        Count = "count",
        Sum = "sum",
        /// The sum of a column of floats.
        SumOfFloats = "sum",
        Min = "min",
        Max = "max",
    }
}

crossing! {
    /// The kind of a stream's batches, where a program's handle alone says it.
    StreamKind {
        Records = "records",
        Columns = "columns",
        Updates = "updates",
    }
}

impl From<StreamKind> for Kind {
    fn from(kind: StreamKind) -> Self {
        match kind {
            StreamKind::Records => Kind::Host,
            StreamKind::Columns => Kind::Columns,
            StreamKind::Updates => Kind::Updates,
        }
    }
}

crossing! {
    /// The records that the program sends to an input after a resumption from a checkpoint.
    Resume {
        /// All records again, on each worker.
        Repeat = "repeat",
        /// On each worker, the records after its position.
        Continue = "continue",
        /// The records after the position of the first worker, which sends all of them.
        Follow = "follow",
    }
}

crossing! {
    /// The progress that workers send each other.
    ProgressMode {
        /// Only changes that can move a frontier of another worker.
        Demand = "demand",
        /// All of it, at once.
        Eager = "eager",
        /// The same as on demand, added up for groups of processes.
        Tree = "tree",
    }
}
