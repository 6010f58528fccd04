//! What two processes say to each other on a new connection, up to the first frame.
//!
//! ```text
//! connecting                                accepting
//!            (TLS, where it is asked for)
//! hello  ------------------------------------>
//!        <------------------------------------  hello
//! proof  ------------------------------------>
//!        <------------------------------------  no, or yes and proof
//! introduction  ----------------------------->
//!        <------------------------------------  introduction, and what it objects to
//! ```
//!
//! Up to the proofs everything has a fixed size. Whoever fails to prove himself is a [`Failure::Stranger`] to the accepting
//! side, which goes on waiting for others; to the connecting side a secret or a version that differs is final, since it is
//! sure whom it wanted to reach.

use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::AlertDescription;

use super::introduction::{Introduction, MAX_INTRODUCTION};
use super::proof::{Challenge, HELLO, Hello, PROOF, Role};
use super::tls::Identity;
use super::wire::{Incoming, Wire};

/// How long the other side may take until both are introduced.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// How the first message of TLS begins.
const TLS_HELLO: [u8; 2] = [0x16, 3];
/// How an alert of TLS begins.
const TLS_ALERT: [u8; 2] = [0x15, 3];
/// A whole one: the version is none that can be spoken here.
const TLS_REFUSAL: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 70];

const YES: u8 = 1;
const NO: u8 = 0;

/// This process, as every connection needs it.
pub(crate) struct Local {
    pub(crate) secret: Vec<u8>,
    pub(crate) identity: Option<Identity>,
    pub(crate) introduction: Introduction,
    pub(crate) version: u16,
}

/// How a handshake failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection broke, or nothing came in time: worth another try.
    Broken(String),
    /// The other side did not prove that it belongs to the cluster.
    Stranger(String),
    /// The other side belongs to the cluster, or should, and cannot be in it: final.
    Refused(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        // What TLS found wrong with the other side will not change.
        if let Some(tls) = error
            .get_ref()
            .and_then(|source| source.downcast_ref::<rustls::Error>())
        {
            return Failure::Refused(match tls {
                rustls::Error::InvalidMessage(_)
                | rustls::Error::AlertReceived(AlertDescription::ProtocolVersion) => {
                    "this process was told to use TLS, and the other was not".to_owned()
                }
                other => format!("TLS failed: {other}"),
            });
        }
        Failure::Broken(match error.kind() {
            io::ErrorKind::UnexpectedEof => "the connection was closed".to_owned(),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                "nothing was sent in time".to_owned()
            }
            _ => error.to_string(),
        })
    }
}

/// A connection whose ends know each other.
pub(crate) struct Established {
    pub(crate) process: usize,
    pub(crate) incoming: Incoming,
}

fn take<const N: usize>(incoming: &mut Incoming) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    incoming.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn take_limited(incoming: &mut Incoming) -> Result<Vec<u8>, Failure> {
    let len = u32::from_le_bytes(take(incoming)?) as usize;
    if len > MAX_INTRODUCTION {
        return Err(Failure::Refused(format!(
            "it announced an introduction of {len} bytes"
        )));
    }
    let mut bytes = vec![0; len];
    incoming.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn with_length(bytes: &[u8]) -> Vec<u8> {
    let bytes = &bytes[..bytes.len().min(MAX_INTRODUCTION)];
    let len = u32::try_from(bytes.len()).expect("limited");
    [&len.to_le_bytes(), bytes].concat()
}

fn nonce(version: u16) -> Result<Hello, Failure> {
    Hello::new(version).map_err(|error| Failure::Refused(format!("no random numbers: {error}")))
}

fn versions(there: u16, here: u16) -> String {
    format!(
        "it speaks version {there} of the wire format, this process version {here}: install the same release everywhere"
    )
}

/// Makes a new socket ready, with TLS where it is asked for.
fn open(
    socket: TcpStream,
    local: &Local,
    host: Option<&str>,
    until: Instant,
) -> Result<Incoming, Failure> {
    socket.set_nodelay(true)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let wire = match &local.identity {
        None => Wire::plain(socket),
        Some(identity) => {
            let session = match host {
                Some(host) => identity.connecting(host),
                None => identity.accepting(),
            };
            Wire::sealed(socket, session.map_err(Failure::Refused)?, until)?
        }
    };
    let mut incoming = Incoming::new(Arc::new(wire));
    incoming.set_deadline(Some(until));
    Ok(incoming)
}

/// The side that connected, to process `expected` at `host`.
pub(crate) fn connect(
    socket: TcpStream,
    local: &Local,
    expected: usize,
    host: &str,
) -> Result<Established, Failure> {
    let mut incoming = open(socket, local, Some(host), Instant::now() + PATIENCE)?;
    let wire = Arc::clone(incoming.wire());
    let mine = nonce(local.version)?;
    wire.write_all(&mine.to_bytes())?;
    let theirs = answer(&mut incoming)?;
    if theirs.version != local.version {
        return Err(Failure::Refused(versions(theirs.version, local.version)));
    }
    let challenge = Challenge {
        secret: &local.secret,
        connecting: mine,
        accepting: theirs,
        binding: &wire.binding()?,
    };
    wire.write_all(&challenge.prove(Role::Connecting))?;
    let [verdict] = take::<1>(&mut incoming)?;
    if verdict != YES {
        return Err(Failure::Refused(
            "its secret is not this process's".to_owned(),
        ));
    }
    if !challenge.verify(Role::Accepting, &take::<PROOF>(&mut incoming)?) {
        return Err(Failure::Refused(
            "it could not prove that it knows the secret".to_owned(),
        ));
    }
    // The other side may count on this connection from here on: there is no second try.
    meet(&mut incoming, local, expected).map_err(|failure| match failure {
        Failure::Broken(why) => Failure::Refused(why),
        other => other,
    })?;
    incoming.set_deadline(None);
    Ok(Established {
        process: expected,
        incoming,
    })
}

/// The hello of the side that was connected to.
fn answer(incoming: &mut Incoming) -> Result<Hello, Failure> {
    let mut bytes = [0; HELLO];
    let mut len = 0;
    while len < HELLO {
        match incoming.read(&mut bytes[len..])? {
            0 => break,
            count => len += count,
        }
    }
    // The other side took the hello for a bad start of TLS.
    if !incoming.wire().is_sealed() && bytes.starts_with(&TLS_ALERT) {
        return Err(Failure::Refused(
            "it uses TLS, and this process was not told to".to_owned(),
        ));
    }
    if len < HELLO {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Hello::parse(&bytes).ok_or_else(|| Failure::Stranger("something else answers there".to_owned()))
}

/// Introduces both sides, seen from the one that connected.
fn meet(incoming: &mut Incoming, local: &Local, expected: usize) -> Result<(), Failure> {
    let wire = Arc::clone(incoming.wire());
    let introduction = Introduction {
        expects: u32::try_from(expected).ok(),
        ..local.introduction.clone()
    };
    introduce(&wire, &introduction)?;
    let theirs = listen_to(incoming)?;
    let objection = take_limited(incoming)?;
    if let Some(objection) = introduction.objection(&theirs) {
        return Err(Failure::Refused(objection));
    }
    if !objection.is_empty() {
        return Err(Failure::Refused(
            String::from_utf8_lossy(&objection).into_owned(),
        ));
    }
    Ok(())
}

/// The side that was connected to. `claim` says what speaks against the process that introduced itself.
pub(crate) fn accept(
    socket: TcpStream,
    local: &Local,
    claim: &dyn Fn(usize) -> Option<String>,
) -> Result<Established, (Option<usize>, Failure)> {
    let (mut incoming, theirs) = recognise(socket, local).map_err(|failure| {
        // Until it has proved itself, nothing that it does is final.
        let (Failure::Broken(why) | Failure::Stranger(why) | Failure::Refused(why)) = failure;
        (None, Failure::Stranger(why))
    })?;
    let process = theirs.process as usize;
    let wire = Arc::clone(incoming.wire());
    let mine = &local.introduction;
    let finish = || -> Result<(), Failure> {
        introduce(&wire, mine)?;
        let objection = mine.objection(&theirs).or_else(|| claim(process));
        wire.write_all(&with_length(objection.as_deref().unwrap_or("").as_bytes()))?;
        objection.map_or(Ok(()), |reason| Err(Failure::Refused(reason)))
    };
    finish().map_err(|failure| (Some(process), failure))?;
    incoming.set_deadline(None);
    Ok(Established { process, incoming })
}

/// Everything that a stranger could stop.
fn recognise(socket: TcpStream, local: &Local) -> Result<(Incoming, Introduction), Failure> {
    let mut incoming = open(socket, local, None, Instant::now() + PATIENCE)?;
    let wire = Arc::clone(incoming.wire());
    let bytes = take::<HELLO>(&mut incoming)?;
    let Some(theirs) = Hello::parse(&bytes) else {
        let tls = !wire.is_sealed() && bytes.starts_with(&TLS_HELLO);
        if tls {
            // It is told in its own language, once it has said what it had to say.
            let _ = incoming.read(&mut [0; 4096]);
            wire.write_all(&TLS_REFUSAL)?;
        }
        return Err(Failure::Stranger(
            if tls {
                "it speaks TLS, and this process was not told to"
            } else {
                "it speaks another protocol"
            }
            .to_owned(),
        ));
    };
    let mine = nonce(local.version)?;
    wire.write_all(&mine.to_bytes())?;
    if theirs.version != local.version {
        return Err(Failure::Stranger(versions(theirs.version, local.version)));
    }
    let challenge = Challenge {
        secret: &local.secret,
        connecting: theirs,
        accepting: mine,
        binding: &wire.binding()?,
    };
    if !challenge.verify(Role::Connecting, &take::<PROOF>(&mut incoming)?) {
        wire.write_all(&[NO])?;
        return Err(Failure::Stranger(
            "its secret is not this process's".to_owned(),
        ));
    }
    let proof = challenge.prove(Role::Accepting);
    wire.write_all(&[&[YES], &proof[..]].concat())?;
    let theirs = listen_to(&mut incoming)?;
    Ok((incoming, theirs))
}

fn introduce(wire: &Wire, introduction: &Introduction) -> Result<(), Failure> {
    let bytes = introduction
        .to_bytes()
        .ok_or_else(|| Failure::Refused("this process's facts are too long".to_owned()))?;
    Ok(wire.write_all(&with_length(&bytes))?)
}

fn listen_to(incoming: &mut Incoming) -> Result<Introduction, Failure> {
    Introduction::parse(&take_limited(incoming)?)
        .map_err(|error| Failure::Refused(error.to_string()))
}
