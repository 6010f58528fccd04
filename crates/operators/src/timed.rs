//! Records at times of their own, in columns.
//!
//! Streams on event time carry [`Timed`]: the times, the keys where there are some, and the records, each a column of
//! the host. A message's time is at or before all of theirs, so that one message carries records of many times. The
//! times stay as the host has them, because most operators read them there: only `at_own_times` makes numbers of them,
//! once for a batch.
//!
//! Columns are never changed. Data that leaves a batch for a reader that may change it is copied.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use pointstamp_channels::Encoder;
use pointstamp_columnar::ipc::ALIGNMENT;
use pointstamp_engine::error::{BoxError, UserResult};

use crate::error::Error;
use crate::host::{self, HostColumn, MAX_BATCH};

#[cfg(test)]
mod tests;

/// The times of records.
#[derive(Clone)]
pub enum Times {
    /// One time for all records.
    All(u64),
    /// A column of the host with a time for each record.
    Each(Arc<dyn HostColumn>),
}

/// Records of the host at times of their own. Clones share the columns.
#[derive(Clone)]
pub struct Timed {
    times: Times,
    keys: Option<Arc<dyn HostColumn>>,
    records: Arc<dyn HostColumn>,
}

impl Timed {
    /// Makes a batch of columns of one length.
    ///
    /// # Errors
    ///
    /// [`Error::UnevenColumns`] for columns of several lengths.
    pub fn new(
        times: Times,
        keys: Option<Arc<dyn HostColumn>>,
        records: Arc<dyn HostColumn>,
    ) -> Result<Self, Error> {
        let made = Timed {
            times,
            keys,
            records,
        };
        let expected = made.len();
        let uneven = made.columns().find(|column| column.len() != expected);
        if let Some(found) = uneven.map(|column| column.len()) {
            return Err(Error::UnevenColumns { expected, found });
        }
        Ok(made)
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns true if the batch holds no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the times.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// Returns the keys, where there are some.
    pub fn keys(&self) -> Option<&Arc<dyn HostColumn>> {
        self.keys.as_ref()
    }

    /// Returns the records.
    pub fn records(&self) -> &Arc<dyn HostColumn> {
        &self.records
    }

    /// Returns the columns of the host: the times where they differ, the keys, the records.
    pub fn columns(&self) -> impl Iterator<Item = &Arc<dyn HostColumn>> {
        let times = match &self.times {
            Times::All(_) => None,
            Times::Each(times) => Some(times),
        };
        times.into_iter().chain(&self.keys).chain([&self.records])
    }

    /// Makes a batch by applying a function to each column.
    fn each_column(
        &self,
        make: impl Fn(&dyn HostColumn) -> UserResult<Arc<dyn HostColumn>>,
    ) -> UserResult<Self> {
        Ok(Timed {
            times: match &self.times {
                Times::All(time) => Times::All(*time),
                Times::Each(times) => Times::Each(make(&**times)?),
            },
            keys: self.keys.as_deref().map(&make).transpose()?,
            records: make(&*self.records)?,
        })
    }

    /// Divides the records between workers: the record at place `i` goes to worker `workers[i]`, one of the peers. Calls a function
    /// with each worker that gets some, and its part.
    ///
    /// # Errors
    ///
    /// Errors of the host.
    pub fn split(
        self,
        workers: &[usize],
        peers: usize,
        mut each: impl FnMut(usize, Timed),
    ) -> UserResult<()> {
        let mut places = vec![Vec::with_capacity(self.len() / peers + 1); peers];
        for (place, worker) in workers.iter().enumerate() {
            places[*worker].push(place);
        }
        for (worker, places) in places.into_iter().enumerate() {
            if places.is_empty() {
                continue;
            }
            if places.len() == self.len() {
                each(worker, self);
                return Ok(());
            }
            each(worker, self.each_column(|column| column.select(&places))?);
        }
        Ok(())
    }

    /// Hands the batch on, in pieces of bounded size where it is too large.
    ///
    /// # Errors
    ///
    /// Errors of the host and of `send`.
    pub fn in_bounds(
        self,
        mut send: impl FnMut(Timed) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        if self.len() <= 2 * MAX_BATCH {
            return if self.is_empty() { Ok(()) } else { send(self) };
        }
        for range in pieces(self.len()) {
            send(self.each_column(|column| column.cut(range.clone()))?)?;
        }
        Ok(())
    }

    /// Returns the approximate number of bytes of memory that the columns take.
    pub(crate) fn footprint(&self) -> usize {
        self.columns().map(|column| column.footprint()).sum()
    }

    /// Writes the batch, at a multiple of 16 bytes.
    ///
    /// ```text
    /// u64 form: 1 for a time for each, 2 for keys | u64 the time for all, or 0 | the columns, by the host
    /// ```
    pub(crate) fn encode(&self, out: &mut Encoder) -> UserResult<()> {
        let (each, time) = match self.times {
            Times::All(time) => (0, time),
            Times::Each(_) => (form::EACH, 0),
        };
        let keys = if self.keys.is_some() { form::KEYS } else { 0 };
        out.put_slice(&(each | keys).to_le_bytes());
        out.put_slice(&time.to_le_bytes());
        out.align(ALIGNMENT);
        let columns: Vec<_> = self.columns().map(|column| &**column).collect();
        self.records.encode_columns(&columns, out)
    }

    /// Reads a batch in the format of [`encode`](Self::encode).
    pub(crate) fn decode(mut bytes: Bytes) -> UserResult<Self> {
        if bytes.len() < ALIGNMENT {
            return Err(Error::NotABatch.into());
        }
        let (form, time) = (bytes.get_u64_le(), bytes.get_u64_le());
        let (each, keys) = (form & form::EACH != 0, form & form::KEYS != 0);
        if form & !(form::EACH | form::KEYS) != 0 {
            return Err(Error::NotABatch.into());
        }
        let count = 1 + usize::from(each) + usize::from(keys);
        let decode = host::columns_decoder().ok_or(Error::NotABatch)?;
        let mut columns = decode(&bytes, count)?.into_iter();
        let mut next = |is_there: bool| is_there.then(|| columns.next()).flatten();
        let (times, keys, records) = (next(each), next(keys), next(true));
        let times = times.map_or(Times::All(time), Times::Each);
        Ok(Timed::new(times, keys, records.ok_or(Error::NotABatch)?)?)
    }
}

/// The bits of an encoded batch's form.
mod form {
    pub(super) const EACH: u64 = 1;
    pub(super) const KEYS: u64 = 2;
}

/// Returns the ranges of pieces of bounded size: one where there are few elements.
pub(crate) fn pieces(len: usize) -> impl Iterator<Item = Range<usize>> {
    let most = if len <= 2 * MAX_BATCH { len } else { MAX_BATCH };
    (0..len)
        .step_by(most.max(1))
        .map(move |start| start..(start + most).min(len))
}
