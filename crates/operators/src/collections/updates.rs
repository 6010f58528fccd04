//! A batch of updates: rows, each with a time and a diff.
//!
//! The times of one message may differ: each is at or after the message's own. A batch in which they do not differ holds
//! none of its own. Times are kept with the coordinates of the scope in which the batch was made: on the way into a scope
//! they gain zeros, when they are read and not before, and on the way out they lose what they had gained
//! (`Payload::left`), which is a number to be lowered. Only a loop's feedback writes them anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use pointstamp_arrange::{Overflow, Rows};
use pointstamp_channels::Encoder;
use pointstamp_order::{PathSummary, Point, Summary};

use super::time::ScopeTime;
use pointstamp_rows::{Cells, Row, RowBuf};

/// How many updates are put into one message at most, by operators that make many.
pub const MAX_UPDATES: usize = 4096;

/// A batch of updates. Clones share it.
#[derive(Clone)]
pub struct Updates {
    body: Arc<Body>,
    /// How many coordinates of the times count.
    dims: usize,
}

#[derive(Clone, Default)]
struct Body {
    rows: Cells,
    diffs: Vec<i64>,
    /// `stride` coordinates for each update, or none where all are at the message's time.
    coords: Vec<u64>,
    stride: usize,
}

/// One update of a batch.
pub struct Update<'a> {
    /// The row.
    pub row: Row<'a>,
    /// The diff.
    pub diff: i64,
    /// The time's coordinates as they are kept, or none for the message's.
    kept: Option<&'a [u64]>,
}

impl Update<'_> {
    /// The time as the kernel has it, in a message at `message`.
    #[inline]
    pub fn time_in<T: ScopeTime>(&self, message: &T, dims: usize) -> T {
        match self.kept {
            None => message.clone(),
            Some(kept) => T::of_coords(kept, dims),
        }
    }

    /// The time, in a message at `message`.
    #[inline]
    pub fn time(&self, message: &Point) -> Point {
        match self.kept {
            None => message.clone(),
            Some(kept) => Point::of_coords(kept, message.dims()),
        }
    }
}

impl Updates {
    /// Returns the number of updates.
    pub fn len(&self) -> usize {
        self.body.diffs.len()
    }

    /// Returns true if there is no update.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many coordinates of the times it keeps count.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// The update at an index.
    #[inline]
    pub fn get(&self, index: usize) -> Update<'_> {
        let body = &*self.body;
        let kept = (!body.coords.is_empty())
            .then(|| &body.coords[index * body.stride..index * body.stride + self.dims]);
        Update {
            row: body.rows.get(index),
            diff: body.diffs[index],
            kept,
        }
    }

    /// The rows, one for each update.
    pub fn rows(&self) -> &Cells {
        &self.body.rows
    }

    /// The rows and the diffs, where all are at the message's time.
    pub fn at_one_time(&self) -> Option<(&Cells, &[i64])> {
        (self.body.coords.is_empty()).then_some((&self.body.rows, &self.body.diffs))
    }

    /// The same updates of other rows, which are as many.
    #[must_use]
    pub fn with_rows(self, rows: Cells) -> Self {
        debug_assert_eq!(rows.len(), self.len());
        let body = match Arc::try_unwrap(self.body) {
            Ok(body) => Body { rows, ..body },
            Err(shared) => Body {
                rows,
                diffs: shared.diffs.clone(),
                coords: shared.coords.clone(),
                stride: shared.stride,
            },
        };
        Updates {
            body: Arc::new(body),
            dims: self.dims,
        }
    }

    /// The indices of the updates of each time, in the order of times, in a message at `message`.
    pub fn by_time(&self, message: &Point) -> BTreeMap<Point, Vec<usize>> {
        let mut found: BTreeMap<Point, Vec<usize>> = BTreeMap::new();
        if self.body.coords.is_empty() {
            found.insert(message.clone(), (0..self.len()).collect());
            return found;
        }
        for (index, update) in self.iter().enumerate() {
            found.entry(update.time(message)).or_default().push(index);
        }
        found
    }

    /// Iterates over the updates.
    pub fn iter(&self) -> impl Iterator<Item = Update<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The batch leaves a scope for one of so many coordinates.
    pub fn left(&mut self, dims: usize) {
        self.dims = self.dims.min(dims);
    }

    /// Returns about how many bytes the batch takes.
    pub fn footprint(&self) -> usize {
        let body = &*self.body;
        body.rows.bytes() + (body.coords.len() + body.diffs.len()) * 8
    }

    /// The same updates with their diffs negated.
    ///
    /// # Errors
    ///
    /// For the least diff of all, which negated does not fit.
    pub fn negated(self) -> Result<Self, Overflow> {
        let mut body = Arc::try_unwrap(self.body).unwrap_or_else(|shared| (*shared).clone());
        for diff in &mut body.diffs {
            *diff = diff.checked_neg().ok_or(Overflow)?;
        }
        Ok(Updates {
            body: Arc::new(body),
            dims: self.dims,
        })
    }

    /// The same updates at the times that a summary makes of theirs.
    ///
    /// # Errors
    ///
    /// The first time that the summary moves out of the range of its coordinates.
    pub fn followed(self, summary: &Summary, message: &Point) -> Result<Self, Point> {
        if self.body.coords.is_empty() {
            return Ok(self); // at the message's time, which the sender advances
        }
        let mut builder = Builder::default();
        for update in self.iter() {
            let time = update.time(message);
            match summary.results_in(&time) {
                Some(later) => builder.push(update.row, &later, update.diff),
                None => return Err(time),
            }
        }
        // Times are written even where all are the message's: what the message's will be is the sender's business.
        Ok(builder.finish_with_times(message.dims()))
    }

    /// Writes the batch.
    pub fn encode(&self, out: &mut Encoder) {
        let body = &*self.body;
        let header = [body.diffs.len(), body.coords.len(), body.stride, self.dims];
        for word in header {
            out.put_slice(&(word as u64).to_le_bytes());
        }
        for diff in &body.diffs {
            out.put_slice(&diff.to_le_bytes());
        }
        for coord in &body.coords {
            out.put_slice(&coord.to_le_bytes());
        }
        let mut rows = Vec::new();
        body.rows.write(&mut rows);
        out.put_slice(&rows);
    }

    /// Reads what `encode` wrote; nothing where the bytes do not fit together.
    pub fn decode(mut bytes: Bytes) -> Option<Self> {
        let mut header = [0_usize; 4];
        for word in &mut header {
            *word = usize::try_from(bytes.try_get_u64_le().ok()?).ok()?;
        }
        let [len, coords, stride, dims] = header;
        let fits = len.checked_add(coords)?.checked_mul(8)? <= bytes.len();
        let timed = coords == 0 || (len.checked_mul(stride) == Some(coords) && dims <= stride);
        if !fits || !timed {
            return None;
        }
        let diffs = (0..len).map(|_| bytes.get_i64_le()).collect();
        let coords = (0..coords).map(|_| bytes.get_u64_le()).collect();
        let mut rest = &bytes[..];
        let rows = Cells::read(&mut rest)?;
        (rows.len() == len && rest.is_empty()).then(|| Updates {
            body: Arc::new(Body {
                rows,
                diffs,
                coords,
                stride,
            }),
            dims,
        })
    }
}

/// Puts updates together.
#[derive(Default)]
pub struct Builder {
    body: Body,
    /// The time of the updates so far, until another comes up.
    time: Option<Point>,
    row: RowBuf,
    /// Whether there is a pair that is nested too deep.
    too_deep: bool,
}

impl Builder {
    /// A builder for about as many updates as a share of those of a batch.
    pub fn for_share(batch: &Updates, of: usize) -> Self {
        let (body, len) = (&batch.body, batch.len() / of);
        let len = len + len / 8; // shares are not quite equal
        let mut rows = Cells::default();
        rows.reserve_for(&body.rows, len);
        Builder {
            body: Body {
                rows,
                diffs: Vec::with_capacity(len),
                coords: Vec::with_capacity(if body.coords.is_empty() {
                    0
                } else {
                    len * batch.dims
                }),
                stride: 0,
            },
            ..Builder::default()
        }
    }

    /// Returns the number of updates.
    pub fn len(&self) -> usize {
        self.body.diffs.len()
    }

    /// Whether a row is nested deeper than records may be, so that the batch must not be sent.
    pub fn is_too_deep(&self) -> bool {
        self.too_deep
    }

    /// Returns true if there is no update.
    pub fn is_empty(&self) -> bool {
        self.body.diffs.is_empty()
    }

    /// Whether the batch is large enough to be sent.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() >= MAX_UPDATES || self.body.rows.bytes() >= 1 << 18
    }

    /// Adds an update.
    #[inline]
    pub fn push(&mut self, row: Row<'_>, time: &Point, diff: i64) {
        self.body.rows.push(row);
        self.end_row(time, diff);
    }

    /// Adds an update of a tuple of two.
    #[inline]
    pub fn push_pair(&mut self, key: Row<'_>, value: Row<'_>, time: &Point, diff: i64) {
        self.body.rows.push(self.row.pair(key, value));
        self.too_deep |= self.row.is_too_deep();
        self.end_row(time, diff);
    }

    /// Adds an update with the time and the diff of one of another batch, whose message's time stays what it is:
    /// `finish_kept` ends the batch.
    #[inline]
    pub fn push_like(&mut self, row: Row<'_>, update: &Update<'_>) {
        let body = &mut self.body;
        body.rows.push(row);
        body.diffs.push(update.diff);
        body.coords.extend_from_slice(update.kept.unwrap_or(&[]));
    }

    /// The batch of updates of another batch, in which so many coordinates count.
    pub fn finish_kept(mut self, dims: usize) -> Updates {
        self.body.stride = dims;
        let body = Arc::new(self.body);
        Updates { body, dims }
    }

    #[inline]
    fn end_row(&mut self, time: &Point, diff: i64) {
        self.body.diffs.push(diff);
        if !self.body.coords.is_empty() {
            self.body.coords.extend_from_slice(time.coords());
            return;
        }
        match &self.time {
            None => self.time = Some(time.clone()),
            Some(only) if only == time => {}
            Some(only) => {
                // From here on each has its own.
                for _ in 1..self.body.diffs.len() {
                    self.body.coords.extend_from_slice(only.coords());
                }
                self.body.coords.extend_from_slice(time.coords());
            }
        }
    }

    /// The batch, for a message at `message`, and an empty builder.
    pub fn finish(&mut self, message: &Point) -> Updates {
        let (mut body, time) = (std::mem::take(&mut self.body), self.time.take());
        if body.coords.is_empty()
            && let Some(only) = time.filter(|only| only != message)
        {
            for _ in 0..body.diffs.len() {
                body.coords.extend_from_slice(only.coords());
            }
        }
        body.stride = message.dims();
        Updates {
            body: Arc::new(body),
            dims: message.dims(),
        }
    }

    /// The batch, with every time written.
    fn finish_with_times(mut self, dims: usize) -> Updates {
        if self.body.coords.is_empty()
            && let Some(only) = self.time.take()
        {
            for _ in 0..self.body.diffs.len() {
                self.body.coords.extend_from_slice(only.coords());
            }
        }
        self.body.stride = dims;
        Updates {
            body: Arc::new(self.body),
            dims,
        }
    }
}
