//! The worker that an update goes to: by the key group of the stable hash of its record's term, or of its key's.
//!
//! Invariant: equal keys go to one worker, in every process and every run.
//!
//! Cost: a hash and a copy of each update; none on one worker.

use pointstamp_columnar::hash::hash_bytes;
use pointstamp_engine::error::UserResult;
use pointstamp_engine::pact::{Pact, Route};
use pointstamp_order::worker_of_hash;
use pointstamp_rows::{Cutter, Row, RowBuf};

use super::updates::{Builder, Updates};
use crate::Error;
use crate::batch::{Batch, Content};

/// The part of a record by which an exchange of updates, or an arrangement, routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The record.
    Record,
    /// The first of the two things in it.
    Key,
}

/// An exchange of updates, for the input of the named operator.
pub(crate) fn exchange(by: By, reader: &str) -> Pact<Batch> {
    Pact::exchange(Router {
        by,
        cutter: Cutter::default(),
        term: Vec::new(),
        reader: reader.to_owned(),
    })
}

struct Router {
    by: By,
    cutter: Cutter,
    term: Vec<u8>,
    reader: String,
}

impl Route<Batch> for Router {
    fn route(&mut self, batch: Batch, parts: &mut [Vec<Batch>]) -> UserResult<()> {
        if let [only] = parts {
            only.push(batch); // the operator says itself of a record that it is not a pair
            return Ok(());
        }
        let updates = Updates::from_batch(batch)?;
        let builders = parts
            .iter()
            .map(|_| Builder::for_share(&updates, parts.len()));
        let mut builders: Vec<Builder> = builders.collect();
        let dims = updates.dims();
        for update in updates.iter() {
            let worker = self.worker(update.row, parts.len())?;
            builders[worker].push_like(update.row, &update);
        }
        for (part, builder) in parts.iter_mut().zip(builders) {
            if !builder.is_empty() {
                part.push(Batch::Updates(builder.finish_kept(dims)));
            }
        }
        Ok(())
    }
}

impl Router {
    #[inline]
    fn worker(&mut self, row: Row<'_>, workers: usize) -> UserResult<usize> {
        let key = match self.by {
            By::Record => row,
            By::Key => match self.cutter.cut(row) {
                Some((key, _)) => key,
                None => return Err(not_a_pair(row, &self.reader)),
            },
        };
        Ok(worker_of_hash(hash_of(key, &mut self.term), workers))
    }
}

/// The stable hash of a row, by its term, for which there is memory.
pub(crate) fn hash_of(row: Row<'_>, term: &mut Vec<u8>) -> u64 {
    term.clear();
    row.put_term(term);
    hash_bytes(term)
}

/// Returns the error for a record without a key.
#[cold]
pub(crate) fn not_a_pair(row: Row<'_>, reader: &str) -> pointstamp_engine::error::BoxError {
    let (reader, record) = (reader.to_owned(), RowBuf::of(row));
    Error::NotAPair { reader, record }.into()
}
