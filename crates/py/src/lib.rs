//! The extension module `pointstamp._core`: everything of `pointstamp` that runs in Rust, as Python
//! sees it.
//!
//! Owns nothing itself: each concept has a file, named for it, and this one lists the public items.
//! `python/pointstamp/_core.pyi` states the same list with types; `make lint` compares the two. Importing the module
//! starts no thread and opens no file.

#![allow(
    clippy::doc_markdown,
    clippy::doc_link_with_quotes,
    reason = "docstrings of Python names are written for Python's readers"
)]

mod activator;
mod batch;
mod bound;
mod buffered;
mod capability;
mod capture;
mod chain;
mod collections;
mod columns;
mod connections;
mod errors;
mod events;
mod forks;
mod gathering;
mod generic;
mod gil;
mod hash;
mod hints;
mod input;
mod iterables;
mod kinds;
mod library;
mod memory;
mod message_link;
mod nan;
mod observability;
mod operator;
mod order;
mod pact;
mod parent;
mod port;
mod position;
mod probe;
mod progress;
mod raised;
mod recovery;
mod scope;
mod session;
mod simulation;
mod sources;
mod states;
mod stream;
mod threads;
mod time;
mod tools;
mod turns;
mod unordered;
mod wire;
mod worker;
mod worker_loop;

/// The compiled half of the package; its names are re-exported by `pointstamp` and its modules.
#[pyo3::pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    #[allow(clippy::unnecessary_wraps, reason = "what pyo3 calls")]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        pointstamp_engine::panics::install();
        crate::batch::register();
        Ok(())
    }

    #[pymodule_export]
    const HIGH_WATER: usize = pointstamp_engine::cluster::HIGH_WATER;

    #[pymodule_export]
    use crate::hash::{stable_hash, tagged_hash, worker_of_key};
    #[pymodule_export]
    use crate::iterables::{check_record, check_records};
    #[pymodule_export]
    use crate::nan::{pairs_with_one_nan, with_one_nan};

    // pointstamp.order
    #[pymodule_export]
    use crate::order::{Antichain, MutableAntichain, followed_by, less_equal, results_in};

    // pointstamp.progress
    #[pymodule_export]
    use crate::progress::{Graph, Scheduler, Tracker};

    // The engine: workers, scopes, streams, and the objects that an operator uses when it runs.
    #[pymodule_export]
    use crate::{
        activator::Activator,
        capability::{Capability, CapabilityRef},
        capture::EventQueue,
        connections::Connections,
        input::InputHandle,
        memory::Budget,
        message_link::MessageLink,
        operator::{Builder, Retention},
        parent::end_with_parent,
        port::{FrontieredInput, InputPort, OutputPort},
        position::digest,
        probe::ProbeHandle,
        recovery::{
            Checkpoints, Piece, Recording, Shows, checkpoints_list, checkpoints_prune,
            checkpoints_show, checkpoints_verify,
        },
        scope::{LoopEnd, Retaining, Scope, loop_difference},
        session::Session,
        simulation::Simulation,
        sources::Sources,
        states::{Disk, PiecesOnDisk, StatesOnDisk, StatesScan},
        stream::Stream,
        time::check_summaries,
        turns::WriterTurns,
        unordered::UnorderedInput,
        worker::{Cluster, Worker},
    };

    // Chains of functions.
    #[pymodule_export]
    use crate::chain::{chain, collection_chain};

    // Choices among a few names.
    #[pymodule_export]
    use crate::kinds::{
        CollectionStageKind, Frame, How, JoinKind, PactKind, ProgressMode, Reduction, Resume,
        StageKind, StreamKind, WindowFunction,
    };

    // Arrow: streams of record batches.
    #[pymodule_export]
    use crate::columns::{
        input::send_columns,
        kernel::{Kernel, in_time_order},
        map::{branch_columns_when, inspect_columns, map_batches, to_records},
        operators::{
            aggregate_columns, aggregate_schema, delay_columns, distinct_columns,
            distinct_so_far_columns, exchange_columns, join_columns, join_schema,
            join_so_far_columns, own_times_schema, partition_columns, time_column_of,
            window_columns, window_schema, with_own_times,
        },
        schema::Schema,
        selection::{order_columns, rows_at, rows_in_order, rows_where, without_views},
    };

    // Collections.
    #[pymodule_export]
    use crate::collections::{
        aggregate::{Aggregate, aggregate_expr},
        arrange::{Arrangement, arrange, arrangement_updates, enter_arrangement, total_updates},
        columns::{
            check_columns, check_filter, collect_columns, collect_schema, column_updates,
            column_updates_schema, extract_column_updates, filter_batch, filter_columns,
            select_batch, select_columns, select_schema, update_columns,
        },
        expression::{Expression, call_expr, column_expr, expr_type, literal_expr, source_expr},
        input::{check_updates, refuse_negative_counts, send_updates, update_input},
        join::{check_join_fields, join_arranged},
        play::{play_columns, play_updates},
        project::{
            accumulate, by_magnitude, check_fields, check_pairs, consolidate, filter_fields,
            hashed, negate, project, set_collections_fuel,
        },
        reduce::reduce_arranged,
        shape::{Loop, extract_updates, follow, to_collection, to_updates},
        trace::{Trace, import_trace, trace_of},
        values::{decode_term, encode_term},
    };

    // Captured events.
    #[pymodule_export]
    use crate::events::{feed::EventFeed, replay::replay, writer::EventSink};

    // The activity of workers.
    #[pymodule_export]
    use crate::observability::{
        diagnostics::{keep_diagnostics, take_diagnostics},
        frames::Line,
        graph::Installed,
        guard::Guard,
        record::Recorder,
    };

    // Batches as bytes, and batches of records at times of their own.
    #[pymodule_export]
    use crate::batch::{decode_batch, encode_batch};
    #[pymodule_export]
    use crate::port::give_timed;

    // The library: operators whose work per record is done in Rust.
    #[pymodule_export]
    use crate::library::{
        count::count,
        delay::{delay, delay_batch, enter_at},
        event_time::at_event_times,
        running::running,
        sketch::Sketch,
    };
}
