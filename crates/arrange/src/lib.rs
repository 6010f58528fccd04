//! Collections that change, as arrangements: sorted, indexed, kept and shared.
//!
//! A collection is a multiset of pairs of a key and a value that changes over partially ordered times: updates `(key,
//! value, time, difference)`. Its contents at a time are the sums of all updates at or before that time.
//!
//! * [`Rows`]: columns of keys and values, as [`Words`], [`Bytes`] or [`Units`]; [`Time`]: a lattice;
//! * [`Updates`] in any order become, in a [`Batcher`], immutable [`Batch`]es of consecutive intervals;
//! * [`TraceWriter`] and [`Trace`]: batches in a spine, merged as it grows, with any number of readers;
//! * [`Cursor`]: several batches read as one;
//! * [`Join`] and [`Reduce`]: the changes of the output when inputs change, at every time exactly those of
//!   recomputation; both stop after a bounded amount of work;
//! * [`Totals`]: counts without a loop, the quick way; [`Count`], [`Distinct`], [`Top`], [`Sum`].
//!
//! Batches that memory has no room for are on disk, page by page: [`Storage`].
//!
//! The crate is pure: no threads, and I/O by its caller alone. The caller passes it frontiers, holds the capabilities for
//! its delayed updates, and gives it fuel. Differences are checked 64-bit integers.

#![forbid(unsafe_code)]

mod batch;
mod batcher;
mod builder;
mod bytes;
mod checkpoint;
mod column_format;
mod columns;
mod compaction;
mod cursor;
mod deferred_drop;
mod demands;
mod direct;
mod entered;
mod error;
mod format;
mod gather;
mod hash;
mod history;
mod interesting_times;
mod join;
mod key_filter;
mod merge;
mod offsets;
mod pending;
mod pins;
mod reduce;
mod reducer;
mod reducers;
mod replay;
mod round;
mod rows;
mod sealing;
mod spine;
mod storage;
mod stored;
mod time;
mod totals;
mod trace;
mod updates;
mod window;

pub use batch::{Batch, Page};
pub use batcher::Batcher;
pub use bytes::{read_array, write_array};
pub use checkpoint::{Contents, Numbers, merged};
pub use cursor::{Counted, Cursor};
pub use entered::Entered;
pub use error::{Damaged, Error, Overflow};
pub use format::BatchReader;
pub use hash::hash_of;
pub use join::{Join, JoinStep};
pub use reduce::{Output, Reduce};
pub use reducer::{Lists, Reducer};
pub use reducers::{Count, Distinct, Sum, Top};
pub use rows::{
    Bytes, Rows, Units, Words, f64_of_word, i64_of_word, seek_by, word_of_f64, word_of_i64,
};
pub use sealing::Timed;
pub use storage::{Decoded, File, Storage, StorageError, Writer};
pub use time::{Time, advance, join_frontiers, meet_frontiers};
pub use totals::Totals;
pub use trace::{Origin, Sealed, Source, Trace, TraceWriter};
pub use updates::Updates;
