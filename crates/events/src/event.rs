//! The events that frames hold.
//!
//! ```text
//! start     u32 version | u32 contents | u32 coordinates of a time | u32 length | as many bytes: the schema
//! progress  u32 changes | u32 0 | per change: the time's coordinates (u64 each), i64 difference
//! messages  u32 runs | u32 length of the runs | u64 length of the batch | per run: the time's coordinates, u64 records |
//!           zeros up to 16 | the batch
//! ```
//!
//! A message has *runs*: so many records at a time, then so many at another, in the batch's order. Streams have one
//! run in each at present. Runs allow batches whose records have times of their own, without a second format.

use bytes::{Buf, Bytes};
use pointstamp_order::Point;

use crate::frame::{TooLong, UNIT, frame};

/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// A time has at most so many coordinates.
pub const MOST_DIMS: usize = 256;

const START: u8 = 1;
const PROGRESS: u8 = 2;
const MESSAGES: u8 = 3;

/// The kind of contents of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Python objects, pickled: reading them can run code.
    Records,
    /// Arrow columns.
    Columns,
}

/// The beginning of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The kind of contents of batches.
    pub contents: Contents,
    /// The number of coordinates of times.
    pub dims: usize,
    /// The schema of columns, in the encoding of the writer of batches.
    pub schema: Bytes,
}

/// So many records of a batch, at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The time.
    pub time: Point,
    /// The number of records.
    pub records: u64,
}

/// An event on a stream: an event of the engine's, with the batch as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EncodedEvent {
    /// Changes to the frontier of times that may still come.
    Progress(Vec<(Point, i64)>),
    /// A batch.
    Messages(Vec<Run>, Bytes),
}

fn word(n: usize, of: usize) -> Result<[u8; 4], TooLong> {
    Ok(u32::try_from(n).map_err(|_| TooLong(of))?.to_le_bytes())
}

fn put_time(out: &mut Vec<u8>, time: &Point) {
    for coordinate in time.coords() {
        out.extend_from_slice(&coordinate.to_le_bytes());
    }
}

impl Start {
    /// The frame, without the magic that comes before it.
    ///
    /// # Errors
    ///
    /// [`TooLong`] for a schema that no frame holds.
    pub fn write(&self) -> Result<Vec<Bytes>, TooLong> {
        let len = self.schema.len();
        let mut head = Vec::with_capacity(UNIT);
        head.extend_from_slice(&VERSION.to_le_bytes());
        let contents: u32 = match self.contents {
            Contents::Records => 0,
            Contents::Columns => 1,
        };
        head.extend_from_slice(&contents.to_le_bytes());
        head.extend_from_slice(&word(self.dims, len)?);
        head.extend_from_slice(&word(len, len)?);
        frame(START, vec![head.into(), self.schema.clone()])
    }

    /// Reads a beginning in the format of `write`.
    pub(crate) fn read(kind: u8, mut body: Bytes) -> Result<Start, String> {
        if kind != START || body.len() < UNIT {
            return Err("a capture begins with what it holds, and this does not".to_owned());
        }
        let version = body.get_u32_le();
        if version != VERSION {
            return Err(format!(
                "it is a capture of version {version}, and version {VERSION} is read here"
            ));
        }
        let contents = match body.get_u32_le() {
            0 => Contents::Records,
            1 => Contents::Columns,
            other => return Err(format!("batches of kind {other} are not known")),
        };
        let dims = body.get_u32_le() as usize;
        let len = body.get_u32_le() as usize;
        if dims > MOST_DIMS || len > body.len() {
            return Err("a capture begins with numbers that cannot be".to_owned());
        }
        Ok(Start {
            contents,
            dims,
            schema: body.slice(..len),
        })
    }
}

impl EncodedEvent {
    /// Returns the frame of an event, whose batch is in pieces.
    ///
    /// # Errors
    ///
    /// [`TooLong`].
    pub fn messages(runs: &[Run], batch: Vec<Bytes>) -> Result<Vec<Bytes>, TooLong> {
        let mut listed = Vec::new();
        for run in runs {
            put_time(&mut listed, &run.time);
            listed.extend_from_slice(&run.records.to_le_bytes());
        }
        let mut head = Vec::with_capacity(listed.len() + 2 * UNIT);
        let len: usize = batch.iter().map(Bytes::len).sum();
        head.extend_from_slice(&word(runs.len(), listed.len())?);
        head.extend_from_slice(&word(listed.len(), listed.len())?);
        head.extend_from_slice(&(len as u64).to_le_bytes());
        head.extend_from_slice(&listed);
        head.resize(head.len().next_multiple_of(UNIT), 0);
        let mut body = Vec::with_capacity(1 + batch.len());
        body.push(Bytes::from(head));
        body.extend(batch);
        frame(MESSAGES, body)
    }

    /// The frame of changes to the frontier.
    ///
    /// # Errors
    ///
    /// [`TooLong`].
    pub fn progress(changes: &[(Point, i64)]) -> Result<Vec<Bytes>, TooLong> {
        let mut body = Vec::new();
        body.extend_from_slice(&word(changes.len(), changes.len())?);
        body.extend_from_slice(&[0; 4]);
        for (time, diff) in changes {
            put_time(&mut body, time);
            body.extend_from_slice(&diff.to_le_bytes());
        }
        frame(PROGRESS, vec![body.into()])
    }

    /// Reads an event.
    pub(crate) fn read(kind: u8, mut body: Bytes, dims: usize) -> Result<EncodedEvent, String> {
        if body.len() < 8 {
            return Err("an event without contents".to_owned());
        }
        let count = body.get_u32_le() as usize;
        let len = body.get_u32_le() as usize;
        let size = (dims + 1) * 8;
        let fits = count.checked_mul(size);
        match kind {
            PROGRESS => {
                if len != 0 || fits.is_none_or(|fits| fits > body.len()) {
                    return Err("an event with more changes than it has room for".to_owned());
                }
                let mut change = || (time(&mut body, dims), body.get_i64_le());
                Ok(EncodedEvent::Progress(
                    (0..count).map(|_| change()).collect(),
                ))
            }
            MESSAGES => {
                if body.len() < 8 {
                    return Err("a message without a batch".to_owned());
                }
                let batch = usize::try_from(body.get_u64_le()).unwrap_or(usize::MAX);
                if fits != Some(len) || len > body.len() || count == 0 {
                    return Err("a message with other times than it has room for".to_owned());
                }
                let head = len.next_multiple_of(UNIT);
                if head > body.len() || batch > body.len() - head {
                    return Err("a message with another batch than it has room for".to_owned());
                }
                let mut times = body.slice(..len);
                let mut run = || Run {
                    time: time(&mut times, dims),
                    records: times.get_u64_le(),
                };
                let runs = (0..count).map(|_| run()).collect();
                Ok(EncodedEvent::Messages(runs, body.slice(head..head + batch)))
            }
            other => Err(format!("events of kind {other} are not known")),
        }
    }
}

/// A time of which all coordinates are there.
fn time(bytes: &mut Bytes, dims: usize) -> Point {
    (0..dims).map(|_| bytes.get_u64_le()).collect()
}
