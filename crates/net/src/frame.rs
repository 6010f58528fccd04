//! Frames: how messages share one connection.
//!
//! A frame is a header of [`HEADER`] bytes and a body. [`FrameReader`] takes frames out of anything that can be read,
//! in any pieces and across interruptions: an error of the source loses nothing, the next call continues where it
//! stopped.
//!
//! Small frames are copied out of one buffer, so that many of them cost one read; the body of a large one is read
//! into a block of its own, which was used before or grows with the bytes that have arrived, not with the length in
//! the header. No bytes make the reader panic. It does not interpret bodies.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;

use super::pool::Pool;
use pointstamp_channels::MAX_BODY;
use pointstamp_channels::{ChannelId, Farewell, Reason, Recipient};

/// Bytes of a header.
pub(crate) const HEADER: usize = 24;
/// The alignment of bodies that are passed on, in bytes.
const ALIGNMENT: usize = 16;
/// Bytes read ahead of the requested frame.
const BUFFER: usize = 32 << 10;
/// A body up to this long is collected in the buffer.
const SMALL: usize = BUFFER / 2 - HEADER;
/// A longer body's first allocation, at most; it doubles from there as bytes come.
const FIRST_GROWTH: usize = 1 << 20;
/// Bytes of a farewell's reason, at most: a traceback is cut there.
pub(crate) const MAX_REASON: usize = 1 << 20;
/// Ends every header, so that a connection that lost its place is noticed at once.
const MARK: [u8; 3] = *b"psf";

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message.
    Message(Recipient),
    /// No content: the sender is running.
    Heartbeat,
    /// The sender is connected to every process.
    Formed,
    /// The sender leaves; all is well.
    Done,
    /// The sender leaves because of a failure that began in process `origin`; the body describes it.
    Failed {
        /// The number of the process in which the failure began.
        origin: u32,
        /// The kind of the failure, as far as a number expresses it.
        manner: Manner,
    },
}

/// The kind of failure because of which a process leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Raised,
    Lost,
    Disagreed,
}

impl Manner {
    pub(crate) const ALL: [Manner; 3] = [Manner::Raised, Manner::Lost, Manner::Disagreed];

    fn number(self) -> u32 {
        self as u32
    }

    fn of_number(number: u32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|manner| manner.number() == number)
    }
}

/// A frame that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) body: Bytes,
}

/// Bytes that are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("a frame's header does not end as headers do")]
    Mark,
    #[error("a frame of unknown kind {0}")]
    Kind(u8),
    #[error("a frame's header names what its kind does not have")]
    Fields,
    #[error("a frame of {0} bytes, longer than its kind may be")]
    Length(u32),
    #[error("it joined a second time")]
    Twice,
}

/// Why no frame could be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The source failed. After a transient failure the next call continues.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The source ended, maybe in the middle of a frame.
    #[error("the connection ended")]
    Ended { within_frame: bool },
    /// The bytes are not a frame; reading cannot continue.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// Writes a header.
pub(crate) fn header(kind: Kind, len: u32) -> [u8; HEADER] {
    let (number, fields) = match kind {
        Kind::Message(Recipient::Worker(id, worker)) => (1, [id.dataflow, id.channel, worker]),
        Kind::Message(Recipient::Everyone(id)) => (2, [id.dataflow, id.channel, 0]),
        Kind::Message(Recipient::Control) => (3, [0; 3]),
        Kind::Message(Recipient::Sum { id, count, at_once }) => {
            (8 + u8::from(at_once), [id.dataflow, id.channel, count])
        }
        Kind::Heartbeat => (4, [0; 3]),
        Kind::Formed => (5, [0; 3]),
        Kind::Done => (6, [0; 3]),
        Kind::Failed { origin, manner } => (7, [origin, manner.number(), 0]),
    };
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&len.to_le_bytes());
    for (at, field) in (4..).step_by(4).zip(fields) {
        header[at..at + 4].copy_from_slice(&field.to_le_bytes());
    }
    // Four bytes are kept for later versions.
    header[20] = number;
    header[21..].copy_from_slice(&MARK);
    header
}

/// Reads a header, and checks everything that can be known before the body has come.
fn parse(header: &[u8; HEADER]) -> Result<(Kind, usize), Malformed> {
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let (len, fields, reserved, number) =
        (word(0), [word(4), word(8), word(12)], word(16), header[20]);
    if header[21..] != MARK {
        return Err(Malformed::Mark);
    }
    let id = ChannelId {
        dataflow: fields[0],
        channel: fields[1],
    };
    let (kind, used, limit) = match number {
        1 => (Kind::Message(Recipient::Worker(id, fields[2])), 3, MAX_BODY),
        2 => (Kind::Message(Recipient::Everyone(id)), 2, MAX_BODY),
        3 => (Kind::Message(Recipient::Control), 0, MAX_BODY),
        4 => (Kind::Heartbeat, 0, 0),
        5 => (Kind::Formed, 0, 0),
        6 => (Kind::Done, 0, 0),
        7 => {
            let origin = fields[0];
            let manner = Manner::of_number(fields[1]).ok_or(Malformed::Fields)?;
            (Kind::Failed { origin, manner }, 2, MAX_REASON)
        }
        8 | 9 => {
            let (count, at_once) = (fields[2], number == 9);
            let sum = Recipient::Sum { id, count, at_once };
            (Kind::Message(sum), 3, MAX_BODY)
        }
        other => return Err(Malformed::Kind(other)),
    };
    if reserved != 0 || fields[used..].iter().any(|&field| field != 0) {
        return Err(Malformed::Fields);
    }
    match usize::try_from(len) {
        Ok(bytes) if bytes <= limit => Ok((kind, bytes)),
        _ => Err(Malformed::Length(len)),
    }
}

/// Returns the farewell that a frame carries, if it is one.
pub(crate) fn farewell(frame: &Frame) -> Option<Farewell> {
    match frame.kind {
        Kind::Done => Some(Farewell::Done),
        Kind::Failed { origin, manner } => {
            let text = String::from_utf8_lossy(&frame.body).into_owned();
            let reason = match manner {
                Manner::Raised => Reason::Raised(text),
                Manner::Lost => Reason::Lost(text),
                Manner::Disagreed => Reason::Disagreed(text),
            };
            Some(Farewell::Failed { origin, reason })
        }
        Kind::Message(_) | Kind::Heartbeat | Kind::Formed => None,
    }
}

/// The kind and the body of a farewell's frame.
pub(crate) fn of_farewell(how: &Farewell) -> (Kind, Bytes) {
    match how {
        Farewell::Done => (Kind::Done, Bytes::new()),
        Farewell::Failed { origin, reason } => {
            let (text, origin) = (reason.text(), *origin);
            let mut cut = text.len().min(MAX_REASON);
            while !text.is_char_boundary(cut) {
                cut -= 1;
            }
            let body = Bytes::copy_from_slice(&text.as_bytes()[..cut]);
            let manner = match reason {
                Reason::Raised(_) => Manner::Raised,
                Reason::Lost(_) => Manner::Lost,
                Reason::Disagreed(_) => Manner::Disagreed,
            };
            (Kind::Failed { origin, manner }, body)
        }
    }
}

/// A body too long for the buffer, of which a part has come.
#[derive(Debug)]
struct Partial {
    kind: Kind,
    len: usize,
    block: Vec<u8>,
    /// Bytes of the block that have come.
    come: usize,
}

/// Takes frames out of a stream of bytes.
#[derive(Debug)]
pub(crate) struct FrameReader {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    partial: Option<Partial>,
    pool: Arc<Pool>,
}

impl FrameReader {
    pub(crate) fn new() -> Self {
        FrameReader {
            buffer: vec![0; BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
            partial: None,
            pool: Arc::default(),
        }
    }

    /// Bytes of memory kept for a body that has not come as a whole.
    #[cfg(test)]
    pub(crate) fn reserved(&self) -> usize {
        self.partial
            .as_ref()
            .map_or(0, |partial| partial.block.capacity())
    }

    /// The next frame. Reads from `source` only when no whole frame has come yet.
    pub(crate) fn next<R: Read>(&mut self, source: &mut R) -> Result<Frame, ReadError> {
        loop {
            if self.partial.is_some() {
                return self.rest_of_large(source);
            }
            let ready = self.end - self.start;
            if let Some(header) = self.buffer[self.start..self.end].first_chunk::<HEADER>() {
                let (kind, len) = parse(header)?;
                let from = self.start + HEADER;
                if ready - HEADER >= len {
                    self.start = from + len;
                    let body = aligned(Bytes::copy_from_slice(&self.buffer[from..self.start]));
                    return Ok(Frame { kind, body });
                }
                if len > SMALL {
                    let used = self.pool.take(len);
                    let mut block = used.unwrap_or_else(|| vec![0; len.min(FIRST_GROWTH)]);
                    let come = self.end - from;
                    block[..come].copy_from_slice(&self.buffer[from..self.end]);
                    (self.start, self.end) = (0, 0);
                    self.partial = Some(Partial {
                        kind,
                        len,
                        block,
                        come,
                    });
                    continue;
                }
            }
            self.fill(source)?;
        }
    }

    /// Reads once into the buffer, which holds less than one small frame.
    fn fill<R: Read>(&mut self, source: &mut R) -> Result<(), ReadError> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        loop {
            match source.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    let within_frame = self.end > 0;
                    return Err(ReadError::Ended { within_frame });
                }
                Ok(count) => {
                    self.end += count;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads the missing bytes of a large body into its block.
    fn rest_of_large<R: Read>(&mut self, source: &mut R) -> Result<Frame, ReadError> {
        let partial = self.partial.as_mut().expect("asked for by the caller");
        while partial.come < partial.len {
            let room = partial.block.len();
            if partial.come == room {
                partial.block.resize(partial.len.min(2 * room), 0);
            }
            let until = partial.len.min(partial.block.len());
            match source.read(&mut partial.block[partial.come..until]) {
                Ok(0) => return Err(ReadError::Ended { within_frame: true }),
                Ok(count) => partial.come += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let whole = self.partial.take().expect("as above");
        let body = aligned(self.pool.lend(whole.block, whole.len));
        let kind = whole.kind;
        Ok(Frame { kind, body })
    }
}

/// The same bytes, at the alignment that bodies have. Allocators give it to every block on most platforms: then nothing is copied.
fn aligned(bytes: Bytes) -> Bytes {
    if bytes.as_ptr().align_offset(ALIGNMENT) == 0 {
        return bytes;
    }
    let mut roomy = Vec::<u8>::with_capacity(bytes.len() + ALIGNMENT);
    let skip = roomy.as_ptr().align_offset(ALIGNMENT);
    roomy.resize(skip, 0);
    roomy.extend_from_slice(&bytes);
    Bytes::from(roomy).slice(skip..)
}
