//! Events from bytes that come in pieces.
//!
//! Put bytes behind the present ones ([`Decoder::buffer`]), as many as arrive, and take the complete events.
//! Incomplete bytes stay: a file that is being written, a socket, and a truncated file look alike until nothing more
//! comes. From a file the decoder reads itself ([`Decoder::read_from`]), so that the body of a large event is read
//! into its final place.

use std::io::{ErrorKind, Read};
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};

use crate::body::{Body, LARGE, Pool};
use crate::event::{EncodedEvent, Start};
use crate::frame::{Damage, HEADER, Header, MAGIC};

/// The number of bytes that are read at once of small events.
const PIECE: usize = 64 << 10;

/// A decoded item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// The beginning of the capture; first, and once.
    Start(Start),
    /// An event.
    Event(EncodedEvent),
}

/// Reads a capture.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
    /// The offset of the buffer, from the beginning of the capture.
    offset: u64,
    begun: bool,
    header: Option<Header>,
    /// The body of the current event, where it is a large one of a file.
    body: Option<Body>,
    pool: Arc<Pool>,
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

    /// The buffer into which the next bytes are read.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Reads the next bytes of a file; returns their number, which is 0 at its end.
    ///
    /// # Errors
    ///
    /// The errors of the file.
    pub fn read_from(&mut self, file: &mut impl Read) -> std::io::Result<usize> {
        if let Some(header) = &self.header
            && header.len >= LARGE
            && self.buffer.len() < header.len
        {
            let begun = || Body::new(header.len, &self.buffer, &self.pool);
            let body = self.body.get_or_insert_with(begun);
            self.buffer.clear();
            return body.read_from(file, &self.pool);
        }
        let there = self.buffer.len();
        self.buffer.resize(there + PIECE, 0);
        let got = loop {
            match file.read(&mut self.buffer[there..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let came = got.as_ref().copied().unwrap_or(0);
        self.buffer.truncate(there + came);
        got
    }

    /// Whether more bytes are of use now: the current event lacks some, or fewer are present than `ahead`.
    pub fn has_room(&self, ahead: usize) -> bool {
        let there = self.buffer.len();
        there < ahead || self.header.is_some_and(|header| there < header.len)
    }

    /// The end of the last complete event, from the beginning of the capture.
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

    /// The beginning of the capture, once it is known.
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
        let Some(body) = self.body_of(&header)? else {
            return Ok(None);
        };
        let item = match &self.start {
            None => {
                let start = Start::read(header.kind, body)?;
                self.start = Some(start.clone());
                Item::Start(start)
            }
            Some(start) => Item::Event(EncodedEvent::read(header.kind, body, start.dims)?),
        };
        self.offset += header.len as u64;
        self.header = None;
        Ok(Some(item))
    }

    /// The body of the current event, once it is complete.
    fn body_of(&mut self, header: &Header) -> Result<Option<Bytes>, String> {
        let fits = match &self.body {
            Some(body) if body.lacks() > 0 => return Ok(None),
            Some(body) => header.sum == body.sum(),
            None if self.buffer.len() < header.len => return Ok(None),
            None => header.fits(&self.buffer[..header.len]),
        };
        if !fits {
            return Err("an event does not match its checksum".to_owned());
        }
        Ok(Some(match self.body.take() {
            Some(body) => body.finish(&self.pool),
            None => self.buffer.split_to(header.len).freeze(),
        }))
    }
}
