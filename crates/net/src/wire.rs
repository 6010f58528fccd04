//! A socket, with or without TLS over it.
//!
//! One thread reads a wire while another writes it. Under TLS they share the session for the moments in which it encrypts or
//! decrypts, never while a socket waits: a wire that is full one way still works the other way.

use parking_lot::Mutex;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::Connection;
use socket2::SockRef;

/// Bytes encrypted at a time.
const SEALED_AT_ONCE: usize = 64 << 10;
/// The label under which a TLS session gives out what only its two ends know.
const BINDING: &[u8] = b"EXPORTER-pointstamp";

pub(crate) struct Wire {
    socket: TcpStream,
    session: Option<Session>,
}

struct Session {
    connection: Mutex<Connection>,
    /// Encrypted, not yet written. Only the one who writes looks at it.
    sealed: Mutex<Sealed>,
}

#[derive(Default)]
struct Sealed {
    bytes: Vec<u8>,
    written: usize,
}

impl Wire {
    /// A wire without TLS.
    pub(crate) fn plain(socket: TcpStream) -> Self {
        Wire {
            socket,
            session: None,
        }
    }

    /// A wire under TLS, after its handshake, which has to end before `until`.
    pub(crate) fn sealed(
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
        Ok(Wire {
            socket,
            session: Some(Session {
                connection: Mutex::new(connection),
                sealed: Mutex::default(),
            }),
        })
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.session.is_some()
    }

    /// What only the two ends know; empty without TLS.
    pub(crate) fn binding(&self) -> io::Result<Vec<u8>> {
        let Some(session) = &self.session else {
            return Ok(Vec::new());
        };
        session
            .connection
            .lock()
            .export_keying_material(vec![0; 32], BINDING, None)
            .map_err(io::Error::other)
    }

    /// Writes some of the bytes and returns how many; they may wait here encrypted until [`Wire::flush`]. Unless it may
    /// wait, it fails with `WouldBlock` when nothing can be written now.
    pub(crate) fn write(&self, slices: &[IoSlice<'_>], may_wait: bool) -> io::Result<usize> {
        let Some(session) = &self.session else {
            return send(&self.socket, slices, may_wait);
        };
        if !self.flush(may_wait)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut sealed = session.sealed.lock();
        let mut connection = session.connection.lock();
        let mut taken = 0;
        for slice in slices {
            let part = &slice[..slice.len().min(SEALED_AT_ONCE - taken)];
            let mut at = 0;
            while at < part.len() {
                at += connection.writer().write(&part[at..])?;
                while connection.wants_write() {
                    connection.write_tls(&mut sealed.bytes)?;
                }
            }
            taken += part.len();
        }
        drop((connection, sealed));
        self.flush(may_wait)?;
        Ok(taken)
    }

    /// Writes what waits here encrypted; false when some of it still does.
    pub(crate) fn flush(&self, may_wait: bool) -> io::Result<bool> {
        let Some(session) = &self.session else {
            return Ok(true);
        };
        let mut sealed = session.sealed.lock();
        while sealed.written < sealed.bytes.len() {
            let rest = IoSlice::new(&sealed.bytes[sealed.written..]);
            match send(&self.socket, &[rest], may_wait) {
                Ok(count) => sealed.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !may_wait => {
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        sealed.bytes.clear();
        sealed.written = 0;
        Ok(true)
    }

    /// Writes all of a few bytes.
    pub(crate) fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.write(&[IoSlice::new(bytes)], true)?;
            bytes = &bytes[count..];
        }
        self.flush(true).map(drop)
    }

    /// Says that nothing more will be written. What was written still arrives.
    pub(crate) fn end_writing(&self) {
        if let Some(session) = &self.session {
            session.connection.lock().send_close_notify();
            let _ = self.write(&[], true);
            let mut sealed = session.sealed.lock();
            let _ = session.connection.lock().write_tls(&mut sealed.bytes);
            drop(sealed);
            let _ = self.flush(false);
        }
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Ends the connection, and what waits for it.
    pub(crate) fn cut(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// The reading end of a wire.
pub(crate) struct Incoming {
    wire: Arc<Wire>,
    sealed: Box<[u8]>,
    start: usize,
    end: usize,
    until: Option<Instant>,
}

impl Incoming {
    pub(crate) fn new(wire: Arc<Wire>) -> Self {
        let room = if wire.is_sealed() { 64 << 10 } else { 0 };
        Incoming {
            wire,
            sealed: vec![0; room].into_boxed_slice(),
            start: 0,
            end: 0,
            until: None,
        }
    }

    pub(crate) fn wire(&self) -> &Arc<Wire> {
        &self.wire
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
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(session) = &self.wire.session else {
            return Self::read_socket(&self.wire, self.until, buffer);
        };
        loop {
            match session.connection.lock().reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Without the end of TLS: whoever reads frames tells a farewell from an accident himself.
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
            let mut connection = session.connection.lock();
            self.start += connection.read_tls(&mut sealed)?;
            connection
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
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

/// Writes to a socket, without the signal for one that is closed.
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
