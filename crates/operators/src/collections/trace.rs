//! Reading an arrangement from outside of the dataflow.
//!
//! Owns [`Trace`], a reader of this worker's share, which holds back the merging of updates at times from its `since` on.
//!
//! Invariant: reads are exact at times at or after `since` and before `upper`.
//!
//! Cost: a key is found by a binary search in each of the trace's batches, of which there are logarithmically many.

use pointstamp_arrange::{Cursor, Error as KernelError, Trace as Reader};
use pointstamp_engine::scope::Scope;
use pointstamp_order::{Antichain, Point};
use pointstamp_rows::{Cells, Row, RowBuf};

use super::arrange::{Arranged, Arrangement, Form};
use super::follow::Followers;
use super::import::import;
use super::time::ScopeTime;
use crate::Error;
use crate::batch::Batch;

/// A reader of this worker's share of an arrangement.
pub struct Trace(Box<dyn Reads>);

/// A row and its count.
pub type Counted = (RowBuf, i64);

/// The interface of a trace, for any type of times.
trait Reads {
    fn since(&self) -> Vec<Point>;
    fn upper(&self) -> Vec<Point>;
    fn allow(&mut self, since: &Point);
    fn get(&self, key: Row<'_>, at: &Point) -> Result<Vec<Counted>, KernelError>;
    fn items(&self, at: &Point) -> Result<Vec<(RowBuf, Counted)>, KernelError>;
    fn import(&self, scope: &Scope<Batch>) -> Result<Arrangement, Error>;
    fn len(&self) -> usize;
    fn bytes(&self) -> usize;
}

/// A reader of an arrangement, and the followers of the arrangement.
struct Read<T: ScopeTime> {
    trace: Reader<Cells, Cells, T>,
    followers: Followers<T>,
    /// The form of the arrangement's records.
    form: Form,
    /// Wraps an arrangement in the variant of its type of times.
    whole: fn(Arranged<T>) -> Arrangement,
}

impl<T: ScopeTime> Reads for Read<T> {
    fn import(&self, scope: &Scope<Batch>) -> Result<Arrangement, Error> {
        let arranged = import(scope, self.trace.clone(), &self.followers, self.form)?;
        Ok((self.whole)(arranged))
    }

    fn len(&self) -> usize {
        self.trace.len()
    }

    fn bytes(&self) -> usize {
        self.trace.bytes()
    }

    fn since(&self) -> Vec<Point> {
        self.trace.since().iter().map(T::point).collect()
    }

    fn upper(&self) -> Vec<Point> {
        self.trace.upper().iter().map(T::point).collect()
    }

    fn allow(&mut self, since: &Point) {
        // Its earlier contents, moved up to the time.
        let moved = self.trace.since();
        let moved = moved.iter().map(|time| time.join(&T::of(since)));
        let moved: Antichain<T> = moved.collect();
        self.trace.allow_compaction(&moved);
    }

    fn get(&self, key: Row<'_>, at: &Point) -> Result<Vec<Counted>, KernelError> {
        let found = self.trace.get(key, &T::of(at))?;
        Ok(found
            .iter()
            .map(|(value, count)| (RowBuf::of(value), count))
            .collect())
    }

    fn items(&self, at: &Point) -> Result<Vec<(RowBuf, Counted)>, KernelError> {
        let at = T::of(at);
        let mut cursor = Cursor::new(self.trace.batches())?;
        let mut items = Vec::new();
        while let Some(key) = cursor.key() {
            cursor.vals_at(&at, |value, count| {
                items.push((RowBuf::of(key), (RowBuf::of(value), count)));
            })?;
            cursor.pass()?;
        }
        Ok(items)
    }
}

/// The latest time that is not at or after any of a frontier's, first coordinate first; nothing where there is none.
fn latest_before(upper: &[Point], dims: usize) -> Option<Point> {
    let upper: Vec<&[u64]> = upper.iter().map(Point::coords).collect();
    let mut coords = Vec::with_capacity(dims);
    put_latest(&upper, dims, &mut coords).then(|| Point::from(coords))
}

/// Appends the greatest coordinates that are not at or after any of these; whether there are such.
fn put_latest(upper: &[&[u64]], dims: usize, coords: &mut Vec<u64>) -> bool {
    if dims == 0 {
        return upper.is_empty();
    }
    let before = upper.iter().filter_map(|time| time[0].checked_sub(1));
    let mut firsts: Vec<u64> = before.chain([u64::MAX]).collect();
    firsts.sort_unstable();
    while let Some(first) = firsts.pop() {
        let begun = upper.iter().filter(|time| time[0] <= first);
        let begun: Vec<&[u64]> = begun.map(|time| &time[1..]).collect();
        coords.push(first);
        if put_latest(&begun, dims - 1, coords) {
            return true;
        }
        coords.pop();
    }
    false
}

impl Trace {
    /// Returns the frontier from which on reads are exact.
    pub fn since(&self) -> Vec<Point> {
        self.0.since()
    }

    /// Returns the frontier before which the arrangement is complete.
    pub fn upper(&self) -> Vec<Point> {
        self.0.upper()
    }

    /// Returns the latest time before the upper frontier, of so many coordinates, first coordinate first.
    pub fn latest_complete(&self, dims: usize) -> Option<Point> {
        latest_before(&self.upper(), dims)
    }

    /// Gives up reading at times that are not at or after one, so that the arrangement may merge updates before it.
    pub fn allow_merging_before(&mut self, since: &Point) {
        self.0.allow(since);
    }

    /// Returns the values of a key at a time, each with its count, in order.
    ///
    /// # Errors
    ///
    /// [`Overflow`](KernelError::Overflow) for a count that leaves the range of 64 bits; where state is on disk, errors of reading it.
    pub fn get(&self, key: Row<'_>, at: &Point) -> Result<Vec<Counted>, KernelError> {
        self.0.get(key, at)
    }

    /// Returns every key, value and count at a time, in order.
    ///
    /// # Errors
    ///
    /// [`Overflow`](KernelError::Overflow) for a count that leaves the range of 64 bits; where state is on disk, errors of reading it.
    pub fn items(&self, at: &Point) -> Result<Vec<(RowBuf, Counted)>, KernelError> {
        self.0.items(at)
    }

    /// Imports the arrangement into a dataflow, for operators of a scope whose times have as many
    /// coordinates.
    ///
    /// # Errors
    ///
    /// [`Error::TraceDropped`] where the arrangement's dataflow ended before it was complete; errors of building an
    /// operator.
    pub fn import(&self, scope: &Scope<Batch>) -> Result<Arrangement, Error> {
        self.0.import(scope)
    }

    /// Returns the number of updates that it holds, merged or not.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if it holds no update.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes of memory that it holds.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl Arrangement {
    /// Returns a reader of this worker's share.
    ///
    /// # Errors
    ///
    /// [`Error::EnteredTrace`] for an arrangement that is seen from an inner scope; [`Error::NothingKept`] for one
    /// that kept nothing for lack of a reader.
    pub fn trace(&self) -> Result<Trace, Error> {
        fn read<T: ScopeTime>(
            arranged: &Arranged<T>,
            whole: fn(Arranged<T>) -> Arrangement,
        ) -> Result<Trace, Error> {
            let (trace, followers) = arranged.readers.trace()?;
            Ok(Trace(Box::new(Read {
                trace,
                followers,
                form: arranged.form,
                whole,
            })))
        }
        match self {
            Arrangement::One(arranged) => read(arranged, Arrangement::One),
            Arrangement::Two(arranged) => read(arranged, Arrangement::Two),
            Arrangement::Three(arranged) => read(arranged, Arrangement::Three),
            Arrangement::Many(arranged) => read(arranged, Arrangement::Many),
        }
    }
}
