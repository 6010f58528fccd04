//! A batch of updates: rows, each with a time and a diff.
//!
//! The times of one message may differ: each is at or after the message's own. A batch in which they do not differ
//! holds none of its own. Times are kept with the coordinates of the scope in which the batch was made. On the way
//! into a scope they gain zeros, at the time of reading and not before; on the way out they lose these again
//! (`Payload::left`), which is a number to be lowered. Only a loop's feedback rewrites them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::BooleanArray;
use bytes::{Buf, Bytes};
use pointstamp_arrange::{Overflow, Rows};
use pointstamp_channels::Encoder;
use pointstamp_columnar::ipc;
use pointstamp_order::{PathSummary, Point, Summary};

use super::columns::plain::PlainColumns;
use super::time::ScopeTime;
use pointstamp_rows::{Cells, Row, RowBuf};

/// The maximum number of updates in one message, for operators that make many.
pub const MAX_UPDATES: usize = 4096;

/// A batch of updates. Clones share it.
#[derive(Clone)]
pub struct Updates {
    body: Arc<Body>,
    /// The number of coordinates of the times that count.
    dims: usize,
}

#[derive(Clone)]
struct Body {
    records: Records,
    diffs: Vec<i64>,
    /// `stride` coordinates for each update, or none where all are at the message's time.
    coords: Vec<u64>,
    stride: usize,
}

/// The records of updates.
#[derive(Clone)]
enum Records {
    Rows(Cells),
    Columns(PlainColumns),
}

/// The number of updates from which on they carry columns.
const FEW: usize = 256;

impl Records {
    /// Columns, unless there are few rows.
    fn of(columns: PlainColumns) -> Self {
        if Updates::carries(&columns) {
            Records::Columns(columns)
        } else {
            Records::Rows(columns.into_rows())
        }
    }

    #[inline]
    fn rows(&self) -> &Cells {
        match self {
            Records::Rows(rows) => rows,
            Records::Columns(columns) => columns.rows(),
        }
    }
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
    /// The time in the kernel's type, in a message at `message`.
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
            Some(kept) => point_of(kept, message),
        }
    }
}

/// The time of coordinates, in a message at `message`.
#[inline]
fn point_of(kept: &[u64], message: &Point) -> Point {
    if kept.len() == message.dims() {
        return Point::new(kept);
    }
    let zeros = std::iter::repeat(0);
    let coords = kept.iter().copied().chain(zeros);
    coords.take(message.dims()).collect()
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

    /// The number of coordinates of its times that count.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// The update at an index.
    #[inline]
    pub fn get(&self, index: usize) -> Update<'_> {
        self.with_row(self.body.records.rows(), index)
    }

    #[inline]
    fn with_row<'a>(&'a self, rows: &'a Cells, index: usize) -> Update<'a> {
        let body = &*self.body;
        let kept = (!body.coords.is_empty())
            .then(|| &body.coords[index * body.stride..index * body.stride + self.dims]);
        Update {
            row: rows.get(index),
            diff: body.diffs[index],
            kept,
        }
    }

    /// The rows, one for each update. Rows of columns are made once.
    pub fn rows(&self) -> &Cells {
        self.body.records.rows()
    }

    /// The columns, where the updates carry columns.
    pub fn columns(&self) -> Option<&PlainColumns> {
        match &self.body.records {
            Records::Rows(_) => None,
            Records::Columns(columns) => Some(columns),
        }
    }

    /// The diffs, one for each update.
    pub fn diffs(&self) -> &[i64] {
        &self.body.diffs
    }

    /// The rows and the diffs, where all are at the message's time.
    pub fn at_one_time(&self) -> Option<(&Cells, &[i64])> {
        (self.body.coords.is_empty()).then(|| (self.rows(), self.diffs()))
    }

    /// Whether updates of these columns carry them, and not rows.
    pub fn carries(columns: &PlainColumns) -> bool {
        columns.len() >= FEW
    }

    /// Creates updates of columns with a diff for each row, and `dims` coordinates of its time, or none where all are
    /// at the message's. A small batch carries rows: kernels over columns have costs of their own.
    ///
    /// # Panics
    ///
    /// If there are not as many diffs and times as rows.
    pub fn of_columns(
        columns: PlainColumns,
        diffs: Vec<i64>,
        coords: Vec<u64>,
        dims: usize,
    ) -> Self {
        assert_eq!(diffs.len(), columns.len(), "a diff for each row");
        assert!(
            coords.is_empty() || coords.len() == diffs.len() * dims,
            "a time for each row"
        );
        Updates {
            body: Arc::new(Body {
                records: Records::of(columns),
                diffs,
                coords,
                stride: dims,
            }),
            dims,
        }
    }

    /// The updates of which a mask of the same length is true.
    ///
    /// # Errors
    ///
    /// [`Error::Arrow`](pointstamp_columnar::Error::Arrow) for a mask of another length.
    pub fn filtered(self, mask: &BooleanArray) -> Result<Self, pointstamp_columnar::Error> {
        let kept = mask.true_count();
        if kept == self.len() {
            return Ok(self);
        }
        let body = &*self.body;
        let (mut diffs, mut coords) = (Vec::with_capacity(kept), Vec::new());
        let mut rows = Cells::default();
        for index in mask.values().set_indices() {
            diffs.push(body.diffs[index]);
            if !body.coords.is_empty() {
                let start = index * body.stride;
                coords.extend_from_slice(&body.coords[start..start + body.stride]);
            }
            if let Records::Rows(all) = &body.records {
                rows.push(all.get(index));
            }
        }
        let records = match &body.records {
            Records::Rows(_) => Records::Rows(rows),
            Records::Columns(columns) => Records::of(columns.filtered(mask)?),
        };
        let stride = body.stride;
        Ok(Updates {
            body: Arc::new(Body {
                records,
                diffs,
                coords,
                stride,
            }),
            dims: self.dims,
        })
    }

    /// The body, to be changed: a copy where others share it.
    fn into_body(self) -> Body {
        Arc::try_unwrap(self.body).unwrap_or_else(|shared| (*shared).clone())
    }

    /// The same updates of other records, which are as many.
    fn with_records(self, records: Records) -> Self {
        let dims = self.dims;
        let body = match Arc::try_unwrap(self.body) {
            Ok(body) => Body { records, ..body },
            Err(shared) => Body {
                records,
                diffs: shared.diffs.clone(),
                coords: shared.coords.clone(),
                stride: shared.stride,
            },
        };
        Updates {
            body: Arc::new(body),
            dims,
        }
    }

    /// The same updates of other rows, which are as many.
    #[must_use]
    pub fn with_rows(self, rows: Cells) -> Self {
        debug_assert_eq!(rows.len(), self.len());
        self.with_records(Records::Rows(rows))
    }

    /// The same updates of other columns, which have as many rows.
    #[must_use]
    pub fn with_columns(self, columns: PlainColumns) -> Self {
        debug_assert_eq!(columns.len(), self.len());
        self.with_records(Records::Columns(columns))
    }

    /// The indices of the updates of each time, in the order of times, in a message at `message`.
    pub fn by_time(&self, message: &Point) -> BTreeMap<Point, Vec<usize>> {
        let mut found: BTreeMap<Point, Vec<usize>> = BTreeMap::new();
        if self.body.coords.is_empty() {
            found.insert(message.clone(), (0..self.len()).collect());
            return found;
        }
        for index in 0..self.len() {
            found
                .entry(self.time(index, message))
                .or_default()
                .push(index);
        }
        found
    }

    /// The time of an update, in a message at `message`.
    fn time(&self, index: usize, message: &Point) -> Point {
        let body = &*self.body;
        if body.coords.is_empty() {
            return message.clone();
        }
        let start = index * body.stride;
        point_of(&body.coords[start..start + self.dims], message)
    }

    /// Iterates over the updates.
    pub fn iter(&self) -> impl Iterator<Item = Update<'_>> {
        let rows = self.rows();
        (0..self.len()).map(move |index| self.with_row(rows, index))
    }

    /// The batch leaves a scope for one of so many coordinates.
    pub fn left(&mut self, dims: usize) {
        self.dims = self.dims.min(dims);
    }

    /// Returns the approximate number of bytes that the batch takes.
    pub fn footprint(&self) -> usize {
        let body = &*self.body;
        let records = match &body.records {
            Records::Rows(rows) => rows.bytes(),
            Records::Columns(columns) => columns.bytes(),
        };
        records + (body.coords.len() + body.diffs.len()) * 8
    }

    /// The same updates with their diffs negated.
    ///
    /// # Errors
    ///
    /// For the least diff of all, which negated does not fit.
    pub fn negated(self) -> Result<Self, Overflow> {
        let dims = self.dims;
        let mut body = self.into_body();
        for diff in &mut body.diffs {
            *diff = diff.checked_neg().ok_or(Overflow)?;
        }
        Ok(Updates {
            body: Arc::new(body),
            dims,
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
        let mut coords = Vec::with_capacity(self.len() * message.dims());
        for index in 0..self.len() {
            let time = self.time(index, message);
            match summary.results_in(&time) {
                Some(later) => coords.extend_from_slice(later.coords()),
                None => return Err(time),
            }
        }
        // Times are written even where all are the message's: the sender decides the message's time later.
        let stride = message.dims();
        let body = Body {
            coords,
            stride,
            ..self.into_body()
        };
        Ok(Updates {
            body: Arc::new(body),
            dims: stride,
        })
    }

    /// Returns the updates whose turn, the last coordinate of their times, is less than a number.
    ///
    /// # Errors
    ///
    /// None that occur: the mask has a value for each update.
    pub fn before_turn(
        self,
        turns: u64,
        message: &Point,
    ) -> Result<Self, pointstamp_columnar::Error> {
        let early = |time: &Point| time.coords().last().is_none_or(|turn| *turn < turns);
        let mask: Vec<_> = (0..self.len())
            .map(|index| early(&self.time(index, message)))
            .collect();
        self.filtered(&mask.into())
    }

    /// Whether the batch is written as columns.
    pub(crate) fn travels_as_columns(&self) -> bool {
        self.columns().is_some_and(PlainColumns::can_be_written)
    }

    /// Writes the batch, at a multiple of 16 bytes: columns in the form of Arrow's IPC.
    ///
    /// # Errors
    ///
    /// [`Error::Unsendable`](pointstamp_columnar::Error::Unsendable) for columns that Arrow does not write.
    pub(crate) fn encode(&self, out: &mut Encoder) -> Result<(), pointstamp_columnar::Error> {
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
        match &body.records {
            Records::Columns(columns) if self.travels_as_columns() => {
                out.align(ipc::ALIGNMENT);
                for piece in ipc::encode(&columns.to_batch()?)? {
                    out.put_bytes(piece);
                }
            }
            records => {
                let mut rows = Vec::new();
                records.rows().write(&mut rows);
                out.put_slice(&rows);
            }
        }
        Ok(())
    }

    /// Reads rows in the format of `encode`; `None` where the bytes are inconsistent.
    pub(crate) fn decode(bytes: Bytes) -> Option<Self> {
        let (mut body, dims, bytes) = Body::decode(bytes)?;
        let mut rest = &bytes[..];
        let rows = Cells::read(&mut rest)?;
        if rows.len() != body.diffs.len() || !rest.is_empty() {
            return None;
        }
        body.records = Records::Rows(rows);
        let body = Arc::new(body);
        Some(Updates { body, dims })
    }

    /// Reads columns in the format of `encode`; `None` where the bytes are inconsistent.
    pub(crate) fn decode_columns(bytes: Bytes) -> Option<Self> {
        let whole = bytes.len();
        let (mut body, dims, bytes) = Body::decode(bytes)?;
        let read = whole - bytes.len();
        let begin = read.next_multiple_of(ipc::ALIGNMENT) - read;
        if begin > bytes.len() {
            return None;
        }
        let columns = PlainColumns::from_batch(&ipc::decode(bytes.slice(begin..)).ok()?)?;
        if columns.len() != body.diffs.len() {
            return None;
        }
        body.records = Records::Columns(columns);
        let body = Arc::new(body);
        Some(Updates { body, dims })
    }
}

impl Body {
    /// Reads the part before the records; returns it with the number of coordinates that count, and the
    /// remaining bytes.
    fn decode(mut bytes: Bytes) -> Option<(Self, usize, Bytes)> {
        let mut header = [0_usize; 4];
        for word in &mut header {
            *word = usize::try_from(bytes.try_get_u64_le().ok()?).ok()?;
        }
        let [len, coords, stride, dims] = header;
        let fits = len.checked_add(coords)?.checked_mul(8)? <= bytes.len();
        let timed = coords == 0
            || (len.checked_mul(stride) == Some(coords) && (1..=stride).contains(&dims));
        if !fits || !timed {
            return None;
        }
        let body = Body {
            records: Records::Rows(Cells::default()),
            diffs: (0..len).map(|_| bytes.get_i64_le()).collect(),
            coords: (0..coords).map(|_| bytes.get_u64_le()).collect(),
            stride,
        };
        Some((body, dims, bytes))
    }
}

/// Puts updates together.
#[derive(Default)]
pub struct Builder {
    rows: Cells,
    diffs: Vec<i64>,
    coords: Vec<u64>,
    /// The time of the updates so far, until another comes up.
    time: Option<Point>,
    row: RowBuf,
    /// Whether there is a pair that is nested too deep.
    too_deep: bool,
}

impl Builder {
    /// Creates a builder with capacity for one of `of` shares of a batch.
    pub fn for_share(batch: &Updates, of: usize) -> Self {
        let (body, len) = (&batch.body, batch.len() / of);
        let len = len + len / 8; // shares are not quite equal
        let mut rows = Cells::default();
        rows.reserve_for(batch.rows(), len);
        Builder {
            rows,
            diffs: Vec::with_capacity(len),
            coords: Vec::with_capacity(if body.coords.is_empty() {
                0
            } else {
                len * batch.dims
            }),
            ..Builder::default()
        }
    }

    /// Returns the number of updates.
    pub fn len(&self) -> usize {
        self.diffs.len()
    }

    /// Whether a row is nested deeper than records may be, so that the batch must not be sent.
    pub fn is_too_deep(&self) -> bool {
        self.too_deep
    }

    /// Returns true if there is no update.
    pub fn is_empty(&self) -> bool {
        self.diffs.is_empty()
    }

    /// Whether the batch is large enough to be sent.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() >= MAX_UPDATES || self.rows.bytes() >= 1 << 18
    }

    /// Adds an update.
    #[inline]
    pub fn push(&mut self, row: Row<'_>, time: &Point, diff: i64) {
        self.rows.push(row);
        self.end_row(time, diff);
    }

    /// Adds an update of a tuple of two.
    #[inline]
    pub fn push_pair(&mut self, key: Row<'_>, value: Row<'_>, time: &Point, diff: i64) {
        self.rows.push(self.row.pair(key, value));
        self.too_deep |= self.row.is_too_deep();
        self.end_row(time, diff);
    }

    /// Adds an update with the time and the diff of one of another batch, for a message at the same time:
    /// `finish_kept` ends the batch.
    #[inline]
    pub fn push_like(&mut self, row: Row<'_>, update: &Update<'_>) {
        self.rows.push(row);
        self.diffs.push(update.diff);
        self.coords.extend_from_slice(update.kept.unwrap_or(&[]));
    }

    /// The batch of updates of another batch, in which so many coordinates count.
    pub fn finish_kept(self, dims: usize) -> Updates {
        Updates {
            body: Arc::new(Body {
                records: Records::Rows(self.rows),
                diffs: self.diffs,
                coords: self.coords,
                stride: dims,
            }),
            dims,
        }
    }

    #[inline]
    fn end_row(&mut self, time: &Point, diff: i64) {
        self.diffs.push(diff);
        if !self.coords.is_empty() {
            self.coords.extend_from_slice(time.coords());
            return;
        }
        match &self.time {
            None => self.time = Some(time.clone()),
            Some(only) if only == time => {}
            Some(only) => {
                // From here on each has its own.
                for _ in 1..self.diffs.len() {
                    self.coords.extend_from_slice(only.coords());
                }
                self.coords.extend_from_slice(time.coords());
            }
        }
    }

    /// The batch, for a message at `message`, and an empty builder.
    pub fn finish(&mut self, message: &Point) -> Updates {
        let mut made = std::mem::take(self);
        if made.coords.is_empty()
            && let Some(only) = made.time.take().filter(|only| only != message)
        {
            for _ in 0..made.diffs.len() {
                made.coords.extend_from_slice(only.coords());
            }
        }
        self.row = std::mem::take(&mut made.row);
        self.too_deep = made.too_deep;
        made.finish_kept(message.dims())
    }
}
