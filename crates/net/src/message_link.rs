//! Messages between two programs that are no cluster.
//!
//! A link begins in one of two ways. [`connect`](MessageLink::connect) and [`accept`](MessageLink::accept) do the
//! handshake of a cluster over TCP: both ends prove that they know a secret and that their contexts are equal, and
//! records cover all later bytes. [`inherited`](MessageLink::inherited) takes one end of a socket pair, whose other
//! end a process has inherited: no other program can have it, so there is no handshake and no encryption.
//!
//! A message is a length of 8 bytes, and so many bytes. A receiver refuses a message that is longer than its limit before reading it. One
//! thread may send while another receives. Both wait for as long as their callers say.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, Read};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use socket2::{SockRef, TcpKeepalive};

use crate::form::FOREVER;
use crate::handshake::{self, Admission, Failure, Local};
use crate::introduction::Introduction;
use crate::noise::VERSION;
use crate::secret::Secret;
use crate::wire::{Incoming, Wire};

/// The purpose of these connections, as a term of the handshake.
const PURPOSE: &str = "a conversation";
/// A message's first allocation, at most; it doubles from there as bytes come.
const FIRST_GROWTH: usize = 1 << 20;
/// The interval at which a waiting caller is asked whether to wait longer.
const ASKED: Duration = Duration::from_millis(100);
/// The delay of a refused client before the next try.
const AGAIN: Duration = Duration::from_millis(50);
/// The idle time of a connection after which the system probes the other machine.
const QUIET: Duration = Duration::from_secs(30);
/// The interval of these probes, until [`QUESTIONS`] of them have failed.
const ASKS: Duration = Duration::from_secs(10);
const QUESTIONS: u32 = 3;
/// The time that sent bytes may stay without an acknowledgement.
const UNACKNOWLEDGED: Duration = Duration::from_secs(60);
/// The numbers of the two ends: the accepting one, and the connecting one.
const SERVER: u32 = 0;
const CLIENT: u32 = 1;

/// The identity and the limits of one end of a link.
#[derive(Debug, Clone)]
pub struct Party {
    /// The secret that both ends know.
    pub secret: Secret,
    /// Facts that must be equal at both ends, by name: the purpose of the link, and the end that is connected
    /// to.
    pub context: BTreeMap<String, String>,
    /// The time that the introduction of both ends may take.
    pub patience: Duration,
}

/// Why there is no conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing answers, or the connection broke.
    #[error("{0}")]
    Unreachable(String),
    /// The other end does not know the secret, or speaks another protocol.
    #[error("{0}")]
    Stranger(String),
    /// The other end differs from this one.
    #[error("{0}")]
    Differs(String),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Broken(why) => Refusal::Unreachable(why),
            Failure::Stranger(why) => Refusal::Stranger(why),
            Failure::Refused(why) => Refusal::Differs(why),
        }
    }
}

impl Party {
    fn local(&self, process: u32, version: u16) -> Local {
        Local {
            secret: self.secret.clone(),
            purpose: PURPOSE,
            identity: None,
            introduction: Introduction {
                process,
                expects: None,
                processes: 2,
                facts: self.context.clone(),
            },
            version,
            patience: self.patience.min(FOREVER),
        }
    }
}

/// An admission of every holder of the secret, any number of times; `fresh` detects replayed greetings.
struct Open<'a> {
    fresh: &'a dyn Fn(&[u8; 32]) -> bool,
}

impl Admission for Open<'_> {
    fn greeted(&self, ephemeral: &[u8; 32]) -> bool {
        (self.fresh)(ephemeral)
    }

    fn claimed(&self, process: usize) -> Option<String> {
        (process != CLIENT as usize).then(|| format!("it calls itself number {process}"))
    }
}

/// An attempt to connect, which another thread may give up.
#[derive(Default)]
struct Attempt(Mutex<Tried>);

#[derive(Default)]
struct Tried {
    socket: Option<TcpStream>,
    given_up: bool,
}

impl Attempt {
    /// Notes that a connection exists, on which the other end's greeting is awaited.
    fn reached(&self, socket: &TcpStream) -> io::Result<()> {
        let mut tried = self.0.lock();
        if tried.given_up {
            return Err(io::ErrorKind::Interrupted.into());
        }
        tried.socket = Some(socket.try_clone()?);
        Ok(())
    }

    fn give_up(&self) {
        let mut tried = self.0.lock();
        tried.given_up = true;
        if let Some(socket) = &tried.socket {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// One end of a link.
pub struct MessageLink {
    wire: Arc<Wire>,
    incoming: Mutex<Incoming>,
    /// Held for a whole message.
    sending: Mutex<()>,
}

impl MessageLink {
    /// Connects to the program that listens there; `go_on` is called every 100 ms, and its error ends the
    /// attempt.
    ///
    /// The name is resolved, and the handshake is done, on a thread of its own: neither reacts to signals. Where
    /// `go_on` ends the wait, that thread ends at once if it has a connection, and else when the system gives up or
    /// the patience is over.
    ///
    /// # Errors
    ///
    /// [`Refusal`], when no party with the same secret and context is there within the party's patience, or `go_on` failed.
    pub fn connect(
        host: &str,
        port: u16,
        party: &Party,
        go_on: &mut dyn FnMut() -> io::Result<()>,
    ) -> Result<Self, Refusal> {
        let broken = |error: io::Error| Refusal::from(Failure::from(error));
        let attempt = Arc::new(Attempt::default());
        let (stop, stopped) = mpsc::channel();
        let (host, party, theirs) = (host.to_owned(), party.clone(), Arc::clone(&attempt));
        let trying = thread::Builder::new()
            .name("ptstamp-connect".to_owned())
            .spawn(move || {
                let _abandoned = stop.send(Self::try_to_reach(&host, port, &party, &theirs));
            })
            .map_err(broken)?;
        let outcome = loop {
            match stopped.recv_timeout(ASKED) {
                Ok(outcome) => break outcome,
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = go_on() {
                        attempt.give_up();
                        return Err(broken(error));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    break Err(Refusal::Unreachable("connecting failed".to_owned()));
                }
            }
        };
        let _panicked = trying.join();
        outcome
    }

    fn try_to_reach(
        host: &str,
        port: u16,
        party: &Party,
        attempt: &Attempt,
    ) -> Result<Self, Refusal> {
        let broken = |error: io::Error| Refusal::from(Failure::from(error));
        let until = Instant::now() + party.patience.min(FOREVER);
        loop {
            let mut last = Refusal::Unreachable("its name has no address".to_owned());
            let mut sent_away = false;
            for address in (host, port).to_socket_addrs().map_err(broken)? {
                let left = until
                    .saturating_duration_since(Instant::now())
                    .max(Duration::from_millis(1));
                match TcpStream::connect_timeout(&address, left) {
                    Ok(socket) => {
                        attempt.reached(&socket).map_err(broken)?;
                        let party = Party {
                            patience: left,
                            ..party.clone()
                        };
                        match Self::greet(socket, &party, VERSION) {
                            Err(why @ Refusal::Unreachable(_)) => (last, sent_away) = (why, true),
                            final_word => return final_word,
                        }
                    }
                    Err(error) => last = broken(error),
                }
            }
            // A server under load by strangers closes slow clients. It still runs, and may accept soon.
            if !sent_away || Instant::now() + AGAIN >= until {
                return Err(last);
            }
            thread::sleep(AGAIN);
        }
    }

    pub(crate) fn greet(socket: TcpStream, party: &Party, version: u16) -> Result<Self, Refusal> {
        let local = party.local(CLIENT, version);
        let established = handshake::connect(socket, &local, SERVER as usize, "")?;
        Self::new(established.incoming).map_err(|error| Failure::from(error).into())
    }

    /// Takes up a connection that was accepted.
    ///
    /// `fresh` is called once the other end has greeted with the secret, with the key that it made for that; it
    /// returns whether this key was never seen before. A greeting that is no replay comes from a member, whose
    /// connection must not be ended in favour of others.
    ///
    /// # Errors
    ///
    /// [`Refusal`], when the other end has not shown within the party's patience that it has the same secret and context.
    pub fn accept(
        socket: TcpStream,
        party: &Party,
        fresh: &dyn Fn(&[u8; 32]) -> bool,
    ) -> Result<Self, Refusal> {
        let admission = Open { fresh };
        socket
            .set_nonblocking(false)
            .map_err(|error| Refusal::from(Failure::from(error)))?;
        let established = handshake::accept(socket, &party.local(SERVER, VERSION), &admission)
            .map_err(|(_, failure)| failure)?;
        Self::new(established.incoming).map_err(|error| Failure::from(error).into())
    }

    /// Takes one end of a socket pair that was made on this machine.
    ///
    /// # Errors
    ///
    /// When it is not a socket.
    pub fn inherited(socket: TcpStream) -> io::Result<Self> {
        socket.set_nonblocking(false)?;
        Self::over(Incoming::new(Wire::bare(socket)))
    }

    fn new(incoming: Incoming) -> io::Result<Self> {
        // A lost machine would be waited for for ever: neither end has a limit for the other's next message, which
        // may be the end of a long computation.
        let socket = SockRef::from(incoming.wire().socket());
        let alive = TcpKeepalive::new().with_time(QUIET).with_interval(ASKS);
        #[cfg(not(windows))]
        let alive = alive.with_retries(QUESTIONS);
        socket.set_tcp_keepalive(&alive)?;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
        Self::over(incoming)
    }

    fn over(incoming: Incoming) -> io::Result<Self> {
        let wire = Arc::clone(incoming.wire());
        wire.socket().set_read_timeout(Some(ASKED))?;
        wire.socket().set_write_timeout(Some(ASKED))?;
        Ok(MessageLink {
            wire,
            incoming: Mutex::new(incoming),
            sending: Mutex::default(),
        })
    }

    /// Sends a message, which is all of `parts`. While the other end takes nothing, waits for as long as `go_on` says so, which is asked
    /// every 100 ms and whenever a signal comes.
    ///
    /// # Errors
    ///
    /// When the connection has ended, or nothing arrived from the other machine for a minute; and errors of `go_on`.
    /// The link is unusable afterwards.
    pub fn send(
        &self,
        parts: &[&[u8]],
        go_on: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let _whole = self.sending.lock();
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let prefix = (len as u64).to_le_bytes();
        let mut slices: Vec<_> = std::iter::once(&prefix[..])
            .chain(parts.iter().copied())
            .map(IoSlice::new)
            .collect();
        let mut rest = &mut slices[..];
        let mut left = prefix.len() + len;
        let sent = loop {
            let step = if left == 0 {
                self.wire.flush(true).map(|_| None)
            } else {
                self.wire.write_or_wait(rest).map(Some)
            };
            match step {
                Ok(None) => break Ok(()),
                Ok(Some(count)) => {
                    left -= count;
                    IoSlice::advance_slices(&mut rest, count);
                }
                Err(error) if is_waiting(&error) => {
                    if let Err(error) = go_on() {
                        break Err(error);
                    }
                }
                Err(error) => break Err(error),
            }
        };
        if sent.is_err() {
            self.close(); // a part of a message is of no use
        }
        sent
    }

    /// The next message, of at most `most` bytes; `None` when the other end has closed between two messages. Waits for as long as
    /// `go_on` says so, which is asked every 100 ms and whenever a signal comes.
    ///
    /// # Errors
    ///
    /// When the connection broke, the bytes do not verify, or the message is too long; and errors of `go_on`. The
    /// link is unusable afterwards.
    pub fn receive(
        &self,
        most: usize,
        go_on: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Option<Vec<u8>>> {
        let mut patient = Patient {
            incoming: &mut self.incoming.lock(),
            go_on,
        };
        let received = receive(&mut patient, most);
        if received.is_err() {
            self.close();
        }
        received
    }

    #[cfg(test)]
    pub(crate) fn socket(&self) -> &TcpStream {
        self.wire.socket()
    }

    /// Ends the link, for both ends and for the threads that wait in it.
    pub fn close(&self) {
        self.wire.cut();
    }
}

impl Drop for MessageLink {
    fn drop(&mut self) {
        self.close();
    }
}

/// Whether an operation on a socket has only waited for as long as its timeout, or until a signal came.
fn is_waiting(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    // Elsewhere than on Windows `TimedOut` is the system's: the other machine is lost.
    matches!(error.kind(), WouldBlock | Interrupted) || cfg!(windows) && error.kind() == TimedOut
}

/// Reads on while it may.
struct Patient<'a> {
    incoming: &'a mut Incoming,
    go_on: &'a mut dyn FnMut() -> io::Result<()>,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.incoming.read(buffer) {
                Err(error) if is_waiting(&error) => (self.go_on)()?,
                result => return result,
            }
        }
    }
}

fn receive(source: &mut impl Read, most: usize) -> io::Result<Option<Vec<u8>>> {
    let cut = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            io::Error::new(error.kind(), "the connection ended inside of a message")
        }
        _ => error,
    };
    receive_whole(source, most).map_err(cut)
}

fn receive_whole(source: &mut impl Read, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut prefix = [0; 8];
    let mut come = 0;
    while come < prefix.len() {
        match source.read(&mut prefix[come..])? {
            0 if come == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => come += count,
        }
    }
    let announced = u64::from_le_bytes(prefix);
    let len = usize::try_from(announced)
        .ok()
        .filter(|&len| len <= most)
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a message of {announced} bytes came, and at most {most} are taken"),
            )
        })?;
    // Memory follows the bytes that have arrived, not the announced length.
    let mut message = vec![0; len.min(FIRST_GROWTH)];
    let mut come = 0;
    loop {
        source.read_exact(&mut message[come..])?;
        come = message.len();
        if come == len {
            return Ok(Some(message));
        }
        message.resize(len.min(2 * come), 0);
    }
}
