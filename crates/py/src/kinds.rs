//! The names out of a few by which the package calls the extension: the kind of a stage, a pact, a join, a reduction.
//!
//! Owns the enums that cross the border, so that neither side compares strings. Each has a `label`, which is what
//! messages and names of operators call it; Python's spelling of a member is the label in capitals.

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
            /// What messages call it.
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
    /// What a stage of a chain does with a batch of records.
    StageKind {
        Map = "map",
        FlatMap = "flat_map",
        Filter = "filter",
        Inspect = "inspect",
        InspectTime = "inspect_time",
        InspectBatch = "inspect_batch",
        MapInPlace = "map_in_place",
        MapBatch = "map_batch",
        /// Of the columns of records at times of their own; other records are at their message's time.
        MapTimed = "map_timed",
        TryMap = "try_map",
        OkErr = "ok_err",
        Partition = "partition",
        Branch = "branch",
        BranchWhen = "branch_when",
    }
}

crossing! {
    /// What a stage of a collection's chain does with a record.
    CollectionStageKind {
        Map = "map",
        FlatMap = "flat_map",
        Filter = "filter",
        Inspect = "inspect",
    }
}

crossing! {
    /// How records reach the workers.
    PactKind {
        Pipeline = "pipeline",
        Broadcast = "broadcast",
        /// By what a function returns for each record.
        Exchange = "exchange",
        /// By the key group of what a function returns for each record.
        ExchangeGroup = "exchange_group",
        /// By the first of the two things in each record.
        ExchangeFirst = "exchange_first",
        /// By the keys beside records at times of their own.
        ExchangeKeys = "exchange_keys",
        /// By columns, which are numbers of them.
        ExchangeColumns = "exchange_columns",
        /// All to the first worker.
        Gather = "gather",
    }
}

crossing! {
    /// What a join makes of a key and the values of its sides.
    JoinKind {
        /// `(key, (left, right))`.
        Pairs = "pairs",
        /// `(key, left)`.
        Left = "left",
        /// What an expression over the three makes of them.
        Fields = "fields",
        /// What a function makes of the three.
        Function = "function",
    }
}

crossing! {
    /// What an arrangement is reduced to.
    Reduction {
        Distinct = "distinct",
        Threshold = "threshold",
        Count = "value_counts",
        CountByKey = "count",
        Min = "min",
        Max = "max",
        TopK = "top_k",
        Sum = "sum",
        Mean = "mean",
        /// Of a column of floats.
        SumOfFloats = "sum",
        /// Of a column of floats.
        MeanOfFloats = "mean",
        Reduce = "map_groups",
        /// Of the values of columns, in which nulls are skipped.
        OfColumns = "columns",
        Aggregate = "aggregate",
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
    /// Which progress workers tell each other.
    ProgressMode {
        /// What can move a frontier of another worker.
        Demand = "demand",
        /// All of it, at once.
        Eager = "eager",
    }
}
