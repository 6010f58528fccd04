//! Events from bytes that come in pieces.
//!
//! Put bytes behind those that are there ([`Decoder::buffer`]), as many as come, and take the events that are whole. What is not
//! whole stays: a file that is being written, a socket, and a file that was cut off look alike until nothing more comes.

use bytes::{Buf, BytesMut};

use crate::event::{Event, Start};
use crate::frame::{Damage, HEADER, Header, MAGIC};

/// At most this much is asked for at once.
const PIECE: usize = 8 << 20;

/// At least this much is asked for at once.
const LEAST: usize = 256 << 10;

/// What was decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// How the capture begins; first, and once.
    Start(Start),
    /// An event.
    Event(Event),
}

/// Reads a capture.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
    /// Where the buffer begins, from the beginning of the capture.
    offset: u64,
    begun: bool,
    header: Option<Header>,
    start: Option<Start>,
    failed: Option<Damage>,
}

impl Decoder {
    /// A decoder at the beginning of a capture.
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder behind a whole event of a capture that begins so: the bytes from `offset` on are to come.
    pub fn resumed(start: Start, offset: u64) -> Self {
        Decoder {
            offset,
            begun: true,
            start: Some(start),
            ..Self::default()
        }
    }

    /// Where bytes are put that come next.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// How many bytes to read next, if they can be had: those that the event under way lacks, but neither tiny nor huge pieces.
    pub fn wants(&self) -> usize {
        let lacks = match &self.header {
            Some(header) => header.len.saturating_sub(self.buffer.len()),
            None => HEADER,
        };
        lacks.clamp(LEAST, PIECE)
    }

    /// Whether more bytes are of use now: the event under way lacks some, or fewer are there than `ahead`.
    pub fn has_room(&self, ahead: usize) -> bool {
        let there = self.buffer.len();
        there < ahead || self.header.is_some_and(|header| there < header.len)
    }

    /// Where the last whole event ended, from the beginning of the capture.
    pub fn offset(&self) -> u64 {
        self.offset
            - if self.header.is_some() {
                HEADER as u64
            } else {
                0
            }
    }

    /// Whether bytes are there that are no whole event.
    pub fn is_amid(&self) -> bool {
        self.header.is_some() || !self.buffer.is_empty()
    }

    /// How the capture began, once that is known.
    pub fn start(&self) -> Option<&Start> {
        self.start.as_ref()
    }

    /// The next item, once it is whole.
    ///
    /// # Errors
    ///
    /// [`Damage`]: at this offset, and whenever one asks again.
    pub fn take(&mut self) -> Result<Option<Item>, Damage> {
        if let Some(damage) = &self.failed {
            return Err(damage.clone());
        }
        self.decode().map_err(|what| {
            let offset = self.offset();
            let damage = Damage { offset, what };
            self.failed = Some(damage.clone());
            damage
        })
    }

    fn pass(&mut self, len: usize) {
        self.offset += len as u64;
        self.buffer.advance(len);
    }

    fn decode(&mut self) -> Result<Option<Item>, String> {
        if !self.begun {
            let there = self.buffer.len().min(MAGIC.len());
            if self.buffer[..there] != MAGIC[..there] {
                return Err("this is not a capture: it does not begin as one".to_owned());
            }
            if there < MAGIC.len() {
                return Ok(None);
            }
            self.pass(MAGIC.len());
            self.begun = true;
        }
        let header = if let Some(header) = self.header {
            header
        } else {
            let Some(bytes) = self.buffer.first_chunk::<HEADER>() else {
                return Ok(None);
            };
            let header = Header::read(*bytes)?;
            self.pass(HEADER);
            self.header = Some(header);
            header
        };
        if self.buffer.len() < header.len {
            return Ok(None);
        }
        if !header.fits(&self.buffer[..header.len]) {
            return Err("an event does not match its checksum".to_owned());
        }
        let body = self.buffer.split_to(header.len).freeze();
        let item = match &self.start {
            None => {
                let start = Start::read(header.kind, body)?;
                self.start = Some(start.clone());
                Item::Start(start)
            }
            Some(start) => Item::Event(Event::read(header.kind, body, start.dims)?),
        };
        self.offset += header.len as u64;
        self.header = None;
        Ok(Some(item))
    }
}
