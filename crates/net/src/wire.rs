//! A socket, and the encryption of its bytes: none while two processes introduce themselves, then
//! [records](crate::records), or TLS from the beginning.
//!
//! One thread reads a wire while another writes it. With records they share nothing but the socket: each direction has its own key. Under
//! TLS they share the session for the moments in which it encrypts or
//! decrypts, never while a socket waits: a wire that is full one way still works the other way.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::Connection;
use socket2::SockRef;

use crate::noise::Keys;
use crate::records::{MOST, Opener, PLAIN, PREFIX, Sealer};

/// Bytes encrypted at a time, at most: four full records.
const SEALED_AT_ONCE: usize = 4 * PLAIN;
/// Bytes of records read ahead.
const OPENED_AT_ONCE: usize = 4 * (PREFIX + MOST);
/// Bytes of TLS read ahead.
const TLS_AT_ONCE: usize = 64 << 10;
/// The label under which a TLS session derives a value that only its two ends know.
const BINDING: &[u8] = b"EXPORTER-pointstamp";

/// The encryption of a connection.
enum Cover {
    /// Nothing; for the first messages of a handshake alone.
    Bare,
    Records,
    Tls(Box<Mutex<Connection>>),
}

pub(crate) struct Wire {
    socket: TcpStream,
    cover: Cover,
    /// Read by the writer alone.
    outgoing: Mutex<Outgoing>,
}

/// Encrypted, not yet written.
#[derive(Default)]
struct Outgoing {
    bytes: Vec<u8>,
    written: usize,
    sealer: Option<Sealer>,
}

impl Outgoing {
    /// Seals the first bytes of some slices; returns how many.
    fn seal(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let sealer = self.sealer.as_mut().expect("a wire under records has one");
        let mut rest = slices
            .iter()
            .map(|slice| &slice[..])
            .filter(|part| !part.is_empty());
        let mut part: &[u8] = rest.next().unwrap_or(&[]);
        let mut taken = 0;
        while !part.is_empty() && taken < SEALED_AT_ONCE {
            let fill = |out: &mut Vec<u8>| {
                let mut room = PLAIN;
                while room > 0 && !part.is_empty() {
                    let (now, later) = part.split_at(room.min(part.len()));
                    out.extend_from_slice(now);
                    room -= now.len();
                    part = if later.is_empty() {
                        rest.next().unwrap_or(&[])
                    } else {
                        later
                    };
                }
                taken += PLAIN - room;
            };
            sealer
                .seal(&mut self.bytes, fill)
                .map_err(io::Error::other)?;
        }
        Ok(taken)
    }
}

impl Wire {
    fn new(socket: TcpStream, cover: Cover) -> Self {
        Wire {
            socket,
            cover,
            outgoing: Mutex::default(),
        }
    }

    /// A wire that nothing covers yet.
    pub(crate) fn bare(socket: TcpStream) -> Self {
        Self::new(socket, Cover::Bare)
    }

    /// A wire under TLS, after its handshake, which has to end before `until`.
    pub(crate) fn under_tls(
        socket: TcpStream,
        mut connection: Connection,
        until: Instant,
    ) -> io::Result<Self> {
        socket.set_write_timeout(Some(remaining(until)?))?;
        let mut io = Until {
            socket: &socket,
            until,
        };
        while connection.is_handshaking() {
            connection.complete_io(&mut io)?;
        }
        while connection.wants_write() {
            connection.write_tls(&mut io)?;
        }
        Ok(Self::new(
            socket,
            Cover::Tls(Box::new(Mutex::new(connection))),
        ))
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(crate) fn is_under_tls(&self) -> bool {
        matches!(self.cover, Cover::Tls(_))
    }

    /// The value that only the two ends know; empty without TLS.
    pub(crate) fn binding(&self) -> io::Result<Vec<u8>> {
        let Cover::Tls(connection) = &self.cover else {
            return Ok(Vec::new());
        };
        connection
            .lock()
            .export_keying_material(vec![0; 32], BINDING, None)
            .map_err(io::Error::other)
    }

    /// Writes some of the bytes and returns how many; they may wait here encrypted until [`Wire::flush`]. Unless it may
    /// wait, it fails with `WouldBlock` when nothing can be written now.
    pub(crate) fn write(&self, slices: &[IoSlice<'_>], may_wait: bool) -> io::Result<usize> {
        if matches!(self.cover, Cover::Bare) {
            return send(&self.socket, slices, may_wait);
        }
        if !self.flush(may_wait)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut outgoing = self.outgoing.lock();
        let taken = match &self.cover {
            Cover::Bare => 0,
            Cover::Records => outgoing.seal(slices)?,
            Cover::Tls(connection) => {
                let mut connection = connection.lock();
                let mut taken = 0;
                for slice in slices {
                    let part = &slice[..slice.len().min(SEALED_AT_ONCE - taken)];
                    let mut at = 0;
                    while at < part.len() {
                        at += connection.writer().write(&part[at..])?;
                        while connection.wants_write() {
                            connection.write_tls(&mut outgoing.bytes)?;
                        }
                    }
                    taken += part.len();
                }
                taken
            }
        };
        drop(outgoing);
        self.flush(may_wait)?;
        Ok(taken)
    }

    /// Writes some of the bytes and returns how many. Unlike [`Wire::write`] it may be called again after the socket's write timeout, an
    /// error of the kind `WouldBlock` or `TimedOut`: none of the bytes was taken then.
    pub(crate) fn write_or_wait(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if matches!(self.cover, Cover::Bare) {
            return send(&self.socket, slices, true);
        }
        self.flush(true)?;
        self.write(slices, false)
    }

    /// Writes encrypted bytes that wait here; returns false when some of them still wait.
    pub(crate) fn flush(&self, may_wait: bool) -> io::Result<bool> {
        let mut outgoing = self.outgoing.lock();
        while outgoing.written < outgoing.bytes.len() {
            let rest = IoSlice::new(&outgoing.bytes[outgoing.written..]);
            match send(&self.socket, &[rest], may_wait) {
                Ok(count) => outgoing.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !may_wait => {
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        outgoing.bytes.clear();
        outgoing.written = 0;
        Ok(true)
    }

    /// Writes all of some bytes.
    pub(crate) fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.write(&[IoSlice::new(bytes)], true)?;
            bytes = &bytes[count..];
        }
        self.flush(true).map(drop)
    }

    /// Ends writing. Bytes that were written still arrive.
    pub(crate) fn end_writing(&self) {
        if let Cover::Tls(connection) = &self.cover {
            connection.lock().send_close_notify();
            let _ = self.write(&[], true);
            let mut outgoing = self.outgoing.lock();
            let _ = connection.lock().write_tls(&mut outgoing.bytes);
            drop(outgoing);
            let _ = self.flush(false);
        }
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Ends the connection; waiting calls return.
    pub(crate) fn cut(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// The reading end of a wire.
pub(crate) struct Incoming {
    wire: Arc<Wire>,
    /// Bytes read ahead, from `start` to `end`, still sealed.
    sealed: Box<[u8]>,
    start: usize,
    end: usize,
    /// Opened bytes that were not read yet: before `start`.
    plain: Range<usize>,
    opener: Option<Opener>,
    until: Option<Instant>,
}

impl Incoming {
    pub(crate) fn new(wire: Wire) -> Self {
        let room = if wire.is_under_tls() { TLS_AT_ONCE } else { 0 };
        Self::with_room(wire, room, None, None)
    }

    fn with_room(wire: Wire, room: usize, opener: Option<Opener>, until: Option<Instant>) -> Self {
        Incoming {
            wire: Arc::new(wire),
            sealed: vec![0; room].into_boxed_slice(),
            start: 0,
            end: 0,
            plain: 0..0,
            opener,
            until,
        }
    }

    pub(crate) fn wire(&self) -> &Arc<Wire> {
        &self.wire
    }

    /// Covers all that follows: by records, unless TLS does so already. Nothing may have been read ahead, and no other thread may have the wire yet.
    pub(crate) fn cover(self, keys: Keys) -> Self {
        if self.wire.is_under_tls() {
            return self;
        }
        let wire = Arc::into_inner(self.wire).expect("the wire is not shared before it is covered");
        let mut covered = Wire::new(wire.socket, Cover::Records);
        covered.outgoing.get_mut().sealer = Some(keys.sealer);
        Self::with_room(covered, OPENED_AT_ONCE, Some(keys.opener), self.until)
    }

    /// Makes reads fail after `until`, or never again.
    pub(crate) fn set_deadline(&mut self, until: Option<Instant>) {
        self.until = until;
    }

    fn read_socket(wire: &Wire, until: Option<Instant>, buffer: &mut [u8]) -> io::Result<usize> {
        match until {
            None => (&wire.socket).read(buffer),
            Some(until) => Until {
                socket: &wire.socket,
                until,
            }
            .read(buffer),
        }
    }

    fn read_records(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let invalid = |broken| io::Error::new(io::ErrorKind::InvalidData, broken);
        let opener = self.opener.as_mut().expect("a wire under records has one");
        while self.plain.is_empty() {
            let sealed = &mut self.sealed[self.start..self.end];
            match Opener::length(sealed).map_err(invalid)? {
                Some(len) if sealed.len() >= PREFIX + len => {
                    let record = &mut sealed[PREFIX..PREFIX + len];
                    let len_plain = opener.open(record).map_err(invalid)?;
                    let from = self.start + PREFIX;
                    self.plain = from..from + len_plain;
                    self.start = from + len;
                    continue;
                }
                _ => {}
            }
            self.sealed.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            match Self::read_socket(&self.wire, self.until, &mut self.sealed[self.end..])? {
                0 if self.end > 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                0 => return Ok(0),
                count => self.end += count,
            }
        }
        let count = buffer.len().min(self.plain.len());
        let until = self.plain.start + count;
        buffer[..count].copy_from_slice(&self.sealed[self.plain.start..until]);
        self.plain.start = until;
        Ok(count)
    }

    fn read_tls(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Cover::Tls(session) = &self.wire.cover else {
            return Ok(0);
        };
        loop {
            match session.lock().reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Without the end of TLS: the reader of frames distinguishes a farewell from a failure itself.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                result => return result,
            }
            if self.start == self.end {
                self.end = Self::read_socket(&self.wire, self.until, &mut self.sealed)?;
                self.start = 0;
                if self.end == 0 {
                    return Ok(0);
                }
            }
            let mut sealed = &self.sealed[self.start..self.end];
            let mut connection = session.lock();
            self.start += connection.read_tls(&mut sealed)?;
            connection
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.wire.cover {
            Cover::Bare => Self::read_socket(&self.wire, self.until, buffer),
            Cover::Records => self.read_records(buffer),
            Cover::Tls(_) => self.read_tls(buffer),
        }
    }
}
/// A socket that is read and written until a deadline.
struct Until<'a> {
    socket: &'a TcpStream,
    until: Instant,
}

fn remaining(until: Instant) -> io::Result<Duration> {
    let remaining = until.saturating_duration_since(Instant::now());
    if remaining < Duration::from_millis(1) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(remaining)
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(remaining(self.until)?))?;
        match self.socket.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::ErrorKind::TimedOut.into())
            }
            result => result,
        }
    }
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        send(self.socket, &[IoSlice::new(bytes)], true)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes to a socket, without the signal for a closed one.
fn send(socket: &TcpStream, slices: &[IoSlice<'_>], may_wait: bool) -> io::Result<usize> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let flags = libc::MSG_NOSIGNAL | if may_wait { 0 } else { libc::MSG_DONTWAIT };
    #[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
    let flags = if may_wait { 0 } else { libc::MSG_DONTWAIT };
    #[cfg(not(unix))]
    let flags = 0;
    if cfg!(not(unix)) && !may_wait {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    loop {
        match SockRef::from(socket).send_vectored_with_flags(slices, flags) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) if slices.iter().any(|slice| !slice.is_empty()) => {
                return Err(io::ErrorKind::WriteZero.into());
            }
            result => return result,
        }
    }
}
